# Completion of the options of rdma_read.
# shellcheck shell=bash

_rdma_read() {
    local options="-s -c --bind --port --message --size --clients --timeout --token-file --version --help"
    local current=${COMP_WORDS[COMP_CWORD]} last=$((COMP_CWORD - 1)) word
    local IFS=$' \t\n'
    COMPREPLY=()

    # Readline splits words at =: "--port=7471" comes as three.
    if [[ $current == "=" ]]; then
        current=""
        last=$COMP_CWORD
    fi
    if [[ ${COMP_WORDS[last]} == "=" ]]; then last=$((last - 1)); fi

    case ${COMP_WORDS[last]} in
        -c) mapfile -t COMPREPLY < <(compgen -A hostname -- "$current") ;;
        --token-file)
            compopt -o filenames 2>/dev/null
            mapfile -t COMPREPLY < <(compgen -f -- "$current")
            ;;
        # Values that only the user knows.
        --bind | --port | --message | --size | --clients | --timeout) ;;
        *)
            for word in $options; do
                # An option that was given cannot be given again.
                if [[ " ${COMP_WORDS[*]:1:COMP_CWORD-1} " != *" $word "* && $word == "$current"* ]]; then
                    COMPREPLY+=("$word")
                fi
            done
            ;;
    esac
} && complete -F _rdma_read rdma_read
