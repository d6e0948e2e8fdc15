# Completion of the options of rdma_read_mpi, and of those values that can be listed.
# shellcheck shell=bash

_rdma_read_mpi() {
    local options="--size --iterations --duration --depth --qps --buffer --hugepages --pattern --server --concurrency --server-ip
        --interface --device --port --timeout --verify --self-test --json --progress --version --help"
    local sys=${RDMA_READ_SYSFS:-/sys} current=${COMP_WORDS[COMP_CWORD]} last=$((COMP_CWORD - 1)) words="" word device=""
    local IFS=$' \t\n'
    COMPREPLY=()

    # Readline splits words at = and at colons: "--device=NAME:P" comes as five.
    if [[ $current == [=:] ]]; then
        current=""
        last=$COMP_CWORD
    fi
    if [[ ${COMP_WORDS[last]} == : ]]; then
        device=${COMP_WORDS[last - 1]}
        last=$((last - 2))
    fi
    if [[ ${COMP_WORDS[last]} == "=" ]]; then last=$((last - 1)); fi

    case ${COMP_WORDS[last]} in
        --pattern) words="star" ;;
        --verify) words="full off" ;;
        --progress) words="auto always never" ;;
        --device)
            if [[ -n $device ]]; then
                words=$(compgen -G "$sys/class/infiniband/$device/ports/*")
            else
                words=$(compgen -G "$sys/class/infiniband/*")
            fi
            ;;
        --interface) words=$(compgen -G "$sys/class/net/*/address") ;;
        --json)
            compopt -o filenames 2>/dev/null
            mapfile -t COMPREPLY < <(compgen -f -- "$current")
            return
            ;;
        # Values that only the user knows.
        --size | --iterations | --duration | --depth | --qps | --buffer | --server | --concurrency | --server-ip | --port | --timeout) return ;;
        *)
            # An option that was given cannot be given again.
            for word in $options; do
                if [[ " ${COMP_WORDS[*]:1:COMP_CWORD-1} " != *" $word "* ]]; then words+=" $word"; fi
            done
            ;;
    esac
    # Of paths in the kernel's tree, the name.
    words=${words//\/address/}
    for word in $words; do
        word=${word##*/}
        if [[ $word == "$current"* ]]; then COMPREPLY+=("$word"); fi
    done
} && complete -F _rdma_read_mpi rdma_read_mpi
