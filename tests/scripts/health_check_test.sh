#!/bin/bash
# Claims about health_check.sh, with a made-up /sys and stand-ins for ip and rdma_read. The real path is for a machine
# with a device.
# shellcheck disable=SC2016 # programs in single quotes are for other shells
# shellcheck source=SCRIPTDIR/claims.sh
source "$(dirname -- "$(realpath -- "${BASH_SOURCE[0]}")")/claims.sh"
script=$job_scripts/health_check.sh
export RDMA_READ_SYSFS=$work/sys
infiniband=$RDMA_READ_SYSFS/class/infiniband

# device NAME PORT STATE [INTERFACE]: as the kernel shows it.
device() {
    local port=$infiniband/$1/ports/$2
    mkdir -p -- "$port/gid_attrs/ndevs"
    printf '%s\n' "$3" >"$port/state"
    printf '5: LinkUp\n' >"$port/phys_state"
    if [[ -n ${4:-} ]]; then printf '%s\n' "$4" >"$port/gid_attrs/ndevs/0"; fi
}
no_devices() {
    rm -rf -- "$RDMA_READ_SYSFS"
    mkdir -p -- "$infiniband"
}

# Addresses are in files named after family and interface.
stand_in ip <<'S'
[[ "$1 $3 $4 $5 $7 $8" == "-o address show dev scope global" ]] || exit 1
cat "addresses$2.$6"
S
printf '2: eth0    inet 10.0.0.7/24 brd 10.0.0.255 scope global eth0\\       valid_lft forever preferred_lft forever\n' >addresses-4.eth0
printf '2: ib0    inet 10.1.0.7/24 scope global ib0\\       valid_lft forever\n' >addresses-4.ib0
printf '3: eth6    inet6 2001:db8::7/64 scope global \\       valid_lft forever\n' >addresses-6.eth6

# The program notes how it was called; the files server and client say what it does.
stand_in rdma_read <<'S'
role=server
[[ $1 == -s ]] || role=client
printf '%s ' "$@" >"calls.$role"
if [[ $role == server ]]; then
    while [[ $1 != --message ]]; do shift; done
    printf '%s' "$2" >message
fi
source "./$role"
S
works() {
    echo 'echo "rdma_read: a remark" >&2; echo "rdma_read: serving 4096 bytes on port 4242 of rxe0:1; read them with: x" >&2; until [[ -e done ]]; do sleep 0.05; done; rm done' >server
    echo 'echo "RDMA Read completed. Data received: $(<message)"; touch done' >client
}

# says TEXT STATUS LINE [OPTION...]: the claim that this is the one line, and the status.
says() {
    local text=$1 wanted=$2 line=$3
    shift 3
    # The limits of whoever runs this test are not at issue.
    run "$script" --memlock-min 0 "$@"
    claim "$text" has "$status $out" "$wanted $line"
    claim "in one line on stdout, nothing on stderr" same "$(wc -l <out) $err" "1 "
    claim "and leaves nothing behind" none_left "$work/bin/rdma_read"
}
error="ERROR: rdma_read health check:"

claim_options "$script" --device --memlock-min --limit
for bad in --limit=1 --limit=3601 --limit=x --memlock-min=-1 --memlock-min= '--device=a;b' --device=../x --device= --device=x:0 \
    --device=x: word; do
    run "$script" "$bad"
    claim "$bad is bad usage, in one line" same "$status $(wc -l <err) $out" "2 1 "
done
run "$script" --device
claim "an option without its value is bad usage" same "$status $(wc -l <err)" "2 1"

rm -rf -- "$RDMA_READ_SYSFS"
says "no RDMA in this kernel" 1 "$error no RDMA device"
no_devices
says "no device" 1 "$error no RDMA device"
device rxe0 1 "4: ACTIVE" eth0
works
says "healthy" 0 "OK: rdma_read health check: rxe0:1 on eth0 with 10.0.0.7"
claim "the server has the address, and any port" has "$(<calls.server)" "-s --bind 10.0.0.7 --port 0 --message "
claim "the client has the server's" has "$(<calls.client)" "-c 10.0.0.7 --port 4242 --timeout "
first=$(<message)
run "$script" --memlock-min 0
claim "what is read differs from check to check" test "$first" != "$(<message)"

device rxe0 1 "1: DOWN" eth0
says "link down" 1 "$error port rxe0:1 is DOWN (LinkUp), not ACTIVE"
device rxe0 1 "2: INIT" eth0
says "no subnet manager" 1 "$error port rxe0:1 is INIT"
device rxe0 1 "5: ACTIVE_DEFER" eth0
says "deferred is not active" 1 "$error port rxe0:1 is ACTIVE_DEFER"
device mlx5_1 1 "4: ACTIVE" eth9
says "the reasons of all ports are there" 1 \
    "$error port mlx5_1:1 is ACTIVE, but its net device eth9 has no routable IP address; port rxe0:1 is ACTIVE_DEFER"
device rxe0 1 "4: ACTIVE" eth0
says "the first port that can be used is taken" 0 "OK: rdma_read health check: rxe0:1 on eth0"
says "a device that is asked for has to work" 1 "$error port mlx5_1:1 is ACTIVE, but" --device mlx5_1
says "and has to be there" 1 "$error no RDMA device mlx5_2 (there: mlx5_1 rxe0)" --device mlx5_2
says "so has its port" 1 "$error device rxe0 has no port 2" --device rxe0:2
device rxe0 2 "4: ACTIVE" eth6
says "IPv6 will do" 0 "OK: rdma_read health check: rxe0:2 on eth6 with 2001:db8::7" --device rxe0:2
says "several are checked one after the other" 0 \
    "OK: rdma_read health check: rxe0:1 on eth0 with 10.0.0.7, rxe0:2 on eth6 with 2001:db8::7" --device rxe0:1 --device rxe0:2
no_devices
device mlx4_0 1 "1: DOWN"
device mlx4_0 2 "4: ACTIVE"
for interface in 0 1; do
    mkdir -p -- "$infiniband/mlx4_0/device/net/ib$interface" "$RDMA_READ_SYSFS/class/net/ib$interface"
    echo "$interface" >"$RDMA_READ_SYSFS/class/net/ib$interface/dev_port"
done
says "IP over InfiniBand belongs to its port alone" 1 "$error port mlx4_0:1 is DOWN (LinkUp), not ACTIVE; port mlx4_0:2 is ACTIVE, but its net device ib1 has"
echo "4: ACTIVE" >"$infiniband/mlx4_0/ports/1/state"
says "and is found" 0 "OK: rdma_read health check: mlx4_0:1 on ib0 with 10.1.0.7"
no_devices
device rxe0 1 "4: ACTIVE"
echo eth0 >"$infiniband/rxe0/parent"
says "a software device names its net device itself" 0 "OK: rdma_read health check: rxe0:1 on eth0"

# ---- memlock

run bash -c "ulimit -S -l 64; exec '$script'"
claim "a low memlock limit is an error" has "$status $out" "1 $error memlock limit 64 KiB, less than 65536 KiB"
run bash -c "ulimit -S -l 64; exec '$script' --memlock-min 64"
claim "unless it is enough" has "$status $out" "0 OK: rdma_read health check: rxe0:1 on eth0 with 10.0.0.7; memlock 64"
run bash -c "ulimit -S -l 64; exec '$script' --memlock-min 0"
claim "or any will do" same "$status" 0

# ---- the read

echo 'echo "rdma_read: no device
  for this" >&2; exit 3' >server
says "a server that does not start" 1 "$error rxe0:1 (10.0.0.7): no server: for this"
: >server
says "one that says nothing" 1 "$error rxe0:1 (10.0.0.7): no server: it ended without a word"
works
echo 'echo "rdma_read: it failed: \"x\" \$(touch here) \`y\`"; exit 1' >client
says "a read that fails" 1 "$error rxe0:1 (10.0.0.7): the read failed: it failed: 'x' '(touch here) 'y'"
works
echo 'echo "RDMA Read completed. Data received: Hello from RDMA server memory!"; touch done' >client
says "a read of something else" 1 "$error rxe0:1 (10.0.0.7): the read failed: RDMA Read completed. Data received: Hello"
printf '%s\n' 'printf "\033[2J\377%s" {1..400}' >client
says "what is said is short and printable" 1 "$error"
claim "so it is" test "${#out}" -lt 500 -a "$(tr -d '[:print:]\n' <out | wc -c)" -eq 0
run env RDMA_READ=/no/such/program "$script"
claim "a program that is not there is named" has "$status $out" "1 $error the program /no/such/program is not found"

# ---- time

works
echo 'exec -a "$0" sleep 1000' >client
before=$SECONDS
says "a read that hangs ends at the limit" 1 "$error" --limit 2
claim "so it does" test $((SECONDS - before)) -le 6
echo 'exec -a "$0" sleep 1000' >server
says "so does a server that hangs" 1 "$error" --limit 2
works
echo 'echo "RDMA Read completed. Data received: $(<message)"; exec -a "$0" sleep 1000' >client
says "a program that does not end is an error" 1 "$error" --limit 2

rm -- "$infiniband/rxe0/ports/1/state" && mkfifo -- "$infiniband/rxe0/ports/1/state"
says "a kernel that does not answer is an error soon after the limit" 137 \
    "$error the look at the devices hangs, not done after 2 s" --limit 2
rm -- "$infiniband/rxe0/ports/1/state" && device rxe0 1 "4: ACTIVE"
stand_in ip <<<'exec -a "$0" sleep 1000'
says "so is one that does not tell the addresses" 1 "$error" --limit 2
claim "that leaves nothing behind" none_left "$work/bin/ip"
stand_in ip <<<'cat "addresses$2.$6"'

echo 'exec -a "$0" sleep 1000' >client
echo 'echo "serving 1 bytes on port 1 of x" >&2; exec -a "$0" sleep 1000' >server
for signal in TERM HUP KILL; do
    "$script" --memlock-min 0 >out 2>err </dev/null &
    script_process=$!
    for ((tries = 0; tries < 200; ++tries)); do
        (($(processes_with "$work/bin/rdma_read 1000" | wc -l) < 2)) || break
        sleep 0.05
    done
    before=$SECONDS
    kill "-$signal" "$script_process"
    wait "$script_process" 2>/dev/null
    status=$?
    claim "ended by SIG$signal at once" test $((SECONDS - before)) -le 2
    claim "it leaves nothing behind" none_left "$work/bin/rdma_read"
    if [[ $signal == KILL ]]; then
        claim "nor that which watches over it" none_left "watch $script_process"
    else
        claim "and says so" same "$status $(wc -l <out)" "1 1"
    fi
done
end_of_claims
