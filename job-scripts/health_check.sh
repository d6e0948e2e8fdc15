#!/bin/bash
# Says whether RDMA Read works on this node: device present, port ACTIVE, an address on it, enough memory that may be
# locked, and one read through the node's own device, on the same path through kernel and driver that jobs use.
#
# Prints one line: "OK: ..." (exit 0) or "ERROR: rdma_read health check: ..." (exit 1). Wrong options: exit 2, one line on
# stderr. It only says; it drains nothing, changes nothing, and leaves no process behind. It needs rdma_read and ip
# (iproute2), and neither MPI nor another node.
#
# In Slurm, HealthCheckProgram takes a program without options, ignores its exit status, and kills it after 60 s. So
# give it a small program that does what your site wants done; this one drains:
#
#     #!/bin/sh
#     health_check=FOLDER/health_check.sh
#     message=$("$health_check") && exit 0
#     case $message in ERROR:*) ;; *) exit 0 ;; esac
#     case $(sinfo --noheader --nodes="$(hostname -s)" --format=%T) in drain*) exit 0 ;; esac
#     scontrol update nodename="$(hostname -s)" state=drain reason="$message"
#
# with, in slurm.conf,
#
#     HealthCheckProgram=FOLDER/that-program
#     HealthCheckInterval=300
#     HealthCheckNodeState=ANY
#
# For node health checkers that run any command (LBNL's nhc.conf: "* || check_cmd_status -t 50 -r 0 FOLDER/health_check.sh"),
# or by hand on a node. slurmd's limits are those of this check, and by default those of jobs: run by slurmd it finds a
# memlock limit that a login shell does not have.
#
# To edit: nothing. RDMA_READ names the program rdma_read if it is not beside this script, in ../../bin or on the PATH.
set -u
export LC_ALL=C
PATH=$PATH:/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin

show_help() {
    cat <<'HELP'
usage: health_check.sh [--device NAME[:PORT]]... [--memlock-min KIB] [--limit SECONDS]

Says whether RDMA Read works on this node: device present, port ACTIVE, an address on it, enough memory that may
be locked, and one read through the node's own device.

  --device NAME[:PORT]  the RDMA device to check, and its port; may be repeated: then each of them is checked
                        (default: the first ACTIVE port with an address)
  --memlock-min KIB     least limit for locked memory, as in ulimit -l; 0: any will do (default: 65536, 64 MiB)
  --limit SECONDS       time for all of it, from 2 to 3600 (default: 45; Slurm kills a health check after 60)
  --help                shows this text

Environment:
  RDMA_READ        the program rdma_read (default: beside this script, in ../../bin, or on the PATH)
  RDMA_READ_SYSFS  where the kernel shows its devices (default: /sys)

Prints one line: "OK: ..." or "ERROR: rdma_read health check: ...".
Exit status: 0 healthy, 1 not, 2 wrong options.
HELP
}

bad_usage() {
    printf 'health_check.sh: %s (--help shows the options)\n' "$1" >&2
    exit 2
}

check_number() {
    if ! [[ $2 =~ ^[0-9]{1,12}$ ]] || ((10#$2 < $3 || 10#$2 > $4)); then
        bad_usage "option $1 wants a whole number from $3 to $4, not '$2'"
    fi
}

wishes=()
memlock_min=65536
limit=45
while (($# > 0)); do
    option=$1
    case $option in
        --help)
            show_help
            exit 0
            ;;
        --device=* | --memlock-min=* | --limit=*)
            value=${option#*=}
            option=${option%%=*}
            shift
            ;;
        --device | --memlock-min | --limit)
            (($# >= 2)) || bad_usage "option $option wants a value"
            value=$2
            shift 2
            ;;
        *) bad_usage "unknown option '$option'" ;;
    esac
    case $option in
        --device)
            [[ $value =~ ^[A-Za-z0-9][A-Za-z0-9_.-]{0,62}(:[1-9][0-9]{0,2})?$ ]] ||
                bad_usage "option --device wants the name of an RDMA device, and after a colon its port, not '$value'"
            wishes+=("$value")
            ;;
        --memlock-min) check_number "$option" "$value" 0 999999999999 && memlock_min=$((10#$value)) ;;
        --limit) check_number "$option" "$value" 2 3600 && limit=$((10#$value)) ;;
    esac
done

# ---- ending: whatever happens, one line is said and no process stays behind

server=
client=
life=
step="the start"

# shellcheck disable=SC2317 # a trap calls it
clean_up() {
    trap '' INT TERM HUP
    [[ -z $server ]] || kill -KILL "$server" 2>/dev/null
    [[ -z $client ]] || kill -KILL "$client" 2>/dev/null
    [[ -z $life ]] || exec {life}>&-
}
trap clean_up EXIT

# One line, without what could trouble a log or a reason in Slurm.
error() {
    trap '' INT TERM HUP
    local text=${1//[^[:print:]]/ }
    text=${text//[\"\`\$\\]/\'}
    ((${#text} <= 400)) || text=${text:0:400}...
    printf 'ERROR: rdma_read health check: %s\n' "$text"
    exit 1
}
trap 'error "ended by a signal during $step"' INT TERM HUP

# Reads what goes on until the pipe closes, which it does also if this script is killed in a way that no trap sees;
# then ends what is still running. All waits of this script end at its limit; if it is stuck in something else, a
# system call, this says so and ends it.
# shellcheck disable=SC2016
watch='
trap "" INT TERM HUP PIPE
main=$1
limit=$2
processes=()
step="the start"
while :; do
    left=$((limit + 2 - SECONDS))
    ((left > 0)) || left=1
    read -r -t "$left" what text
    result=$?
    case $result,$what in
        0,process) processes+=("$text") ;;
        0,ended) processes=() ;;
        0,step) step=$text ;;
        *) break ;;
    esac
done
for process in "${processes[@]}"; do kill -KILL "$process"; done
if ((result > 128)); then
    kill -KILL "$main" && printf "ERROR: rdma_read health check: %s hangs, not done after %d s; look at dmesg\n" "$step" "$limit"
fi
'
exec {life}> >(exec bash -c "$watch" watch "$$" "$limit" 2>/dev/null)

# Says what comes next.
begin() {
    step=$1
    printf 'step %s\n' "$step" >&"$life"
}

# Whole seconds that are left, at least one.
time_left() {
    left=$((limit - SECONDS))
    ((left > 0)) || left=1
}

# Starts a command with both its outputs in one pipe, whose end comes with the command's: sets pipe and process.
start() {
    exec {pipe}< <(exec {life}>&-; exec "$@" 2>&1 </dev/null)
    process=$!
    printf 'process %s\n' "$process" >&"$life"
}

# Reads a line from a pipe to line and last; fails at its end, or at the limit, with the reason in last.
next_line() {
    local result=0
    time_left
    read -r -t "$left" line <&"$1" || result=$?
    if ((result > 128)); then
        last="no end of it within the limit of $limit s${last:+, after: $last}"
    elif ((result == 0)); then
        last=$line
    fi
    return "$result"
}

# ---- the device

here=$(dirname -- "$(realpath -- "${BASH_SOURCE[0]}")")
program=${RDMA_READ:-}
if [[ -z $program ]]; then
    for program in "$here/rdma_read" "$here/../../bin/rdma_read" rdma_read; do
        if command -v "$program" >/dev/null; then break; fi
    done
fi
command -v "$program" >/dev/null || error "the program $program is not found: install it, or set RDMA_READ"

sys=${RDMA_READ_SYSFS:-/sys}
infiniband=$sys/class/infiniband
shopt -s nullglob

# Reads the one line of a file of the kernel; nothing if there is none.
get() {
    line=
    if [[ -r $1 ]]; then read -r line <"$1" 2>/dev/null || true; fi
}

# Sets interfaces to the net devices of port $2 of device $1: the GID table names those of RoCE, software devices
# have a parent, and those of IP over InfiniBand hang on the same hardware.
find_interfaces() {
    local folder=$infiniband/$1 file name
    interfaces=()
    for file in "$folder/ports/$2/gid_attrs/ndevs/"* "$folder/parent"; do
        get "$file"
        [[ -z $line || " ${interfaces[*]-} " == *" $line "* ]] || interfaces+=("$line")
    done
    for file in "$folder/device/net/"*; do
        name=${file##*/}
        get "$sys/class/net/$name/dev_port"
        [[ -z $line || $line == $(($2 - 1)) || ! -d $folder/ports/2 ]] || continue
        [[ " ${interfaces[*]-} " == *" $name "* ]] || interfaces+=("$name")
    done
}

# Sets address to a routable address of the interfaces, IPv4 first; fails if there is none.
find_address() {
    local family last=
    address=
    for family in -4 -6; do
        for interface in ${interfaces[@]+"${interfaces[@]}"}; do
            start ip -o "$family" address show dev "$interface" scope global
            while next_line "$pipe"; do
                if [[ -z $address && $line =~ \ inet6?\ ([0-9a-f.:]+)/ ]]; then address=${BASH_REMATCH[1]}; fi
            done
            exec {pipe}<&-
            [[ -z $address ]] || return 0
        done
    done
    return 1
}

# Checks port $2 of device $1; sets trouble if it cannot be used, else address and interface.
check_port() {
    trouble=
    get "$infiniband/$1/ports/$2/state"
    if [[ $line != *ACTIVE* || $line == *ACTIVE_DEFER* ]]; then
        trouble="port $1:$2 is ${line#*: }"
        get "$infiniband/$1/ports/$2/phys_state"
        [[ -z $line ]] || trouble+=" (${line#*: })"
        trouble+=", not ACTIVE"
        return 1
    fi
    find_interfaces "$1" "$2"
    if ! find_address; then
        trouble="port $1:$2 is ACTIVE, but its net device ${interfaces[*]:-(none)} has no routable IP address"
        return 1
    fi
}

begin "the look at the devices"
devices=("$infiniband"/*)
((${#devices[@]} > 0)) ||
    error "no RDMA device; load its driver and look with: rdma link"
targets=() # device, port, interface and address of each port to read through
if ((${#wishes[@]} == 0)); then
    troubles=()
    for folder in "${devices[@]}"; do
        for port in "$folder"/ports/*; do
            if check_port "${folder##*/}" "${port##*/}"; then
                targets=("${folder##*/} ${port##*/} $interface $address")
                break 2
            fi
            troubles+=("$trouble")
        done
    done
    if ((${#targets[@]} == 0)); then
        printf -v text '%s; ' ${troubles[@]+"${troubles[@]}"}
        error "${text}bring one up and look with: rdma link; ip -br address"
    fi
fi
for wish in ${wishes[@]+"${wishes[@]}"}; do
    device=${wish%%:*}
    [[ -d $infiniband/$device ]] || error "no RDMA device $device (there: ${devices[*]##*/})"
    found=
    trouble="device $device has no port"
    for port in "$infiniband/$device/ports/"*; do
        [[ $wish != *:* || ${wish##*:} == "${port##*/}" ]] || continue
        if check_port "$device" "${port##*/}"; then
            targets+=("$device ${port##*/} $interface $address")
            found=yes
            break
        fi
    done
    if [[ $wish == *:* && ! -d $infiniband/$device/ports/${wish##*:} ]]; then trouble+=" ${wish##*:}"; fi
    [[ -n $found ]] || error "$trouble"
done

# ---- the limit

memlock=$(ulimit -S -l)
if [[ $memlock != unlimited ]] && ((memlock < memlock_min)); then
    error "memlock limit $memlock KiB, less than $memlock_min KiB: set LimitMEMLOCK=infinity in the unit of slurmd, \
and for logins memlock unlimited in /etc/security/limits.conf"
fi

# ---- the read

# Waits for the end of a pipe, and with it of the program behind it.
await_end() {
    local fd=$1 result=0
    while ((result == 0)); do
        time_left
        read -r -t "$left" line <&"$fd"
        result=$?
    done
    exec {fd}<&-
    ((result <= 128))
}

# Why rdma_read failed, from its last line.
reason() {
    printf '%s' "${1#rdma_read: }"
}

# Reads through one port.
read_through() {
    local device=$1 port=$2 address=$4 token last from_server from_client number
    token="health check $$ $RANDOM$RANDOM$RANDOM"
    begin "the server on $device:$port ($address)"
    start "$program" -s --bind "$address" --port 0 --message "$token"
    server=$process
    from_server=$pipe
    last=
    number=
    while next_line "$from_server"; do
        if [[ $line =~ serving\ [0-9]+\ bytes\ on\ port\ ([0-9]+)\ of ]]; then
            number=${BASH_REMATCH[1]}
            break
        fi
    done
    [[ -n $number ]] || error "$device:$port ($address): no server: $(reason "${last:-it ended without a word}")"

    begin "the read through $device:$port ($address)"
    time_left
    # It gives up before this script does, and then says why.
    start "$program" -c "$address" --port "$number" --timeout $((left > 5 ? left - 3 : 2))
    client=$process
    from_client=$pipe
    last=
    while next_line "$from_client"; do
        [[ $line != "RDMA Read completed. Data received: $token" ]] || break
    done
    [[ $last == "RDMA Read completed. Data received: $token" ]] ||
        error "$device:$port ($address): the read failed: $(reason "${last:-it ended without a word}")"

    # Both end by themselves now.
    begin "the end of the read through $device:$port"
    if ! await_end "$from_client" || ! await_end "$from_server"; then
        error "$device:$port ($address): rdma_read does not end after its read"
    fi
    client=
    server=
    printf 'ended\n' >&"$life"
    reads=$((reads + 1))
}

reads=0
for target in "${targets[@]}"; do
    # shellcheck disable=SC2086 # four words
    read_through $target
done
# Nothing but a read that was made is a sign of health.
((reads > 0 && reads == ${#targets[@]})) || error "the read was not made"
read -r device port interface address <<<"${targets[0]}"
text="$device:$port on $interface with $address"
for target in "${targets[@]:1}"; do
    read -r device port interface address <<<"$target"
    text+=", $device:$port on $interface with $address"
done
printf 'OK: rdma_read health check: %s; memlock %s\n' "$text" "$memlock"
