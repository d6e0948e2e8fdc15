#!/bin/bash
# Checks the software-RoCE machine from outside: prints one line a claim, ends with the sum, fails if any claim fails.
set -uo pipefail
export LC_ALL=C
here=$(dirname -- "$(realpath -- "${BASH_SOURCE[0]}")")
run=$here/run
passed=0
failed=0
work=$(mktemp -d)
work=$(realpath -- "$work")
trap 'rm -rf -- "$work"' EXIT
mkdir -- "$work/temporary"

# claim TEXT COMMAND...: the claim holds if the command succeeds.
claim() {
    local text=$1
    shift
    if "$@"; then
        passed=$((passed + 1))
        printf 'ok    %s\n' "$text"
    else
        failed=$((failed + 1))
        printf 'FAIL  %s\n' "$text"
    fi
}

same() {
    [[ $1 == "$2" ]] || {
        printf '      got:    %q\n      wanted: %q\n' "$1" "$2"
        return 1
    }
}

matches() {
    [[ $1 =~ $2 ]] || {
        printf '      got: %q\n' "$1"
        return 1
    }
}

# The machine with its own folder for temporary files, so that what it leaves behind can be told.
machine() {
    status=0
    TMPDIR=$work/temporary "$run" "$@" >"$work/out" 2>"$work/err" || status=$?
}

one_line() {
    [[ $(wc -l <"$1") -eq 1 && -s $1 ]]
}

# Processes of the machines started here: their command lines name the folder.
ours() {
    local process
    for process in /proc/[0-9]*; do
        if tr '\0' ' ' 2>/dev/null <"$process/cmdline" | grep -qsF -- "$work/temporary"; then
            printf '%s\n' "${process#/proc/}"
        fi
    done
}

nothing_left() {
    local tries left
    for ((tries = 0; tries < 100; ++tries)); do
        left="$(ours) $(ls -A -- "$work/temporary")"
        [[ $left != " " ]] || return 0
        sleep 0.1
    done
    printf '      left: %s\n' "$left"
    return 1
}

# ---- options, without a machine

machine
claim "no command is bad usage, in one line" same "$status $(wc -l <"$work/err")" "2 1"
for bad in --cpus=0 --cpus=x --memory=9999999999 --limit=0 --nodes=3 --slurm-mpi=pmi9 --env=1A=b --accelerator=fast --unknown=1 word; do
    machine "$bad" -- true
    claim "$bad is bad usage, in one line" same "$status $(wc -l <"$work/err")" "2 1"
done
machine --help
claim "--help names every option" same "$status $(grep -c '^  --' "$work/out")" "0 13"

# ---- one machine, many claims

cat >"$work/inside" <<'INSIDE'
echo "to stdout"
echo "to stderr" >&2
results=$RDMA_READ_RESULTS
cd -- "$results" || exit 1
printf '%s\0' "$@" >arguments
pwd >folder
{ cat </dev/stdin; echo end; } >stdin
env >environment
cat /proc/cmdline >cmdline
id -u >user
ulimit -l >memlock
hostname >name
getent hosts "$(hostname)" >address
ip -o address show >addresses
ls /sys/class/infiniband >devices
ibv_devices >ibv_devices 2>&1
ibv_devinfo >ibv_devinfo 2>&1
ls -d /dev/shm /dev/pts /proc/self /sys/class /dev/infiniband/uverbs0 /dev/infiniband/rdma_cm >special
for folder in /tmp /run /dev/shm /etc /var/tmp "$RDMA_READ_TEST_HERE"; do
    echo written >"$folder/softroce-test" && cat "$folder/softroce-test"
done >written 2>&1
echo changed >>"$RDMA_READ_TEST_FILE"
cat "$RDMA_READ_TEST_FILE" >changed
rm -f /usr/bin/env && ls /usr/bin/env >removed 2>&1
mount >mounts
modprobe siw; modprobe sch_fq >modprobe 2>&1; echo $? >>modprobe
lsmod >modules
date +%s >clock
mpirun -np 4 hostname >mpirun 2>&1; echo $? >>mpirun
ib_read_bw -d rxe0 -n 64 -s 4096 -R -p 18900 >read_bw_server 2>&1 &
for try in 1 2 3 4 5 6 7 8 9 10; do
    ib_read_bw -d rxe0 -n 64 -s 4096 -R -p 18900 "$(hostname)" >read_bw 2>&1 && break
    sleep 0.3
done
echo $? >>read_bw
bash -c 'trap "echo caught; exit 0" INT; kill -INT $$' >interrupt
bash -c 'kill -SEGV $$'; echo $? >segv
su -s /bin/sh nobody -c 'echo by nobody' >/dev/null 2>&1
printf 'a\r\nb\n\0\377\n' >&2
head -c 50000000 /dev/urandom >random
sha256sum <random >checksum
cat random
rm -f random
(while :; do sleep 1; done) &
sleep 100000 &
exit 77
INSIDE
printf 'original\n' >"$work/file"
# shellcheck disable=SC2016 # to arrive as written
arguments=("a b" "" "it's" 'say "x"' '$HOME `id` \ *' $'line\nbreak\ttab' --limit -- $'\377\001' ä "")
cd -- "$work" || exit 1
before=$(date +%s)
RDMA_READ_TEST_HERE=$work RDMA_READ_TEST_FILE=$work/file RDMA_READ_TEST_ODD=$'x y\n"z' \
    machine --results "$work/new/results, of it" --env "GIVEN=a  'b'" --kernel-options mitigations=auto --limit 300 -- bash "$work/inside" "${arguments[@]}"
after=$(date +%s)
results="$work/new/results, of it"
content() { cat -- "$results/$1" 2>/dev/null; }

claim "the command's exit status 77 passes through" same "$status" 77
claim "standard output is passed on, all 50 MB of it" \
    same "$(tail -c +11 "$work/out" | sha256sum)" "$(content checksum)"
claim "standard error is separate" same "$(head -n 1 "$work/err")" "to stderr"
claim "no byte is changed on the way" \
    same "$(tail -n 3 "$work/err" | od -A n -t x1 | tr -d ' \n')" "610d0a620a00ff0a"
claim "arguments arrive as given" same "$(printf '%s\0' "${arguments[@]}" | sha256sum)" "$(sha256sum <"$results/arguments")"
claim "the results folder is the same inside" same "$(content folder)" "$results"
claim "the results belong to the caller" same "$(stat -c %u -- "$results/folder")" "$(id -u)"
claim "standard input is empty" same "$(content stdin)" end
claim "--env sets a variable" matches "$(content environment)" $'\n'"GIVEN=a  'b'"$'\n'
claim "RDMA_READ_ variables of the caller are seen" matches "$(content environment)" $'RDMA_READ_TEST_ODD=x y\n"z\n'
claim "the results folder is in RDMA_READ_RESULTS" matches "$(content environment)" "RDMA_READ_RESULTS=$results"
claim "--kernel-options come last on the kernel's command line" matches "$(content cmdline)" " mitigations=auto$"
claim "the command is root" same "$(content user)" 0
claim "memory may be locked without limit" same "$(content memlock)" unlimited
claim "the host name resolves to the RDMA address" matches "$(content address)" "^10\.83\.79\.1 .*$(content name)"
claim "loopback and the RDMA interface have addresses" \
    matches "$(content addresses)" "127\.0\.0\.1/8.*10\.83\.79\.1/24.*fd52:444d:4152::1/64"
claim "the device is rxe0" same "$(content devices)" rxe0
claim "ibv_devices lists rxe0" matches "$(content ibv_devices)" "rxe0"
claim "its RDMA MTU is 4096" matches "$(content ibv_devinfo)" "active_mtu:[[:space:]]*4096"
claim "special files are there" same "$(content special | wc -l)" 6
claim "every folder can be written to inside" same "$(content written | sort | uniq -c | tr -s ' ')" " 6 written"
claim "files can be changed and removed inside" same "$(content changed | tail -n 1) $(content removed | wc -l)" "changed 1"
claim "the host does not see it" \
    same "$(cat "$work/file") $(ls -d /usr/bin/env {/tmp,/run,/dev/shm,/etc,/var/tmp,"$work"}/softroce-test 2>/dev/null)" "original /usr/bin/env"
claim "modprobe finds the kernel's modules" same "$(content modprobe)" 0
claim "modules for tests are loaded" \
    same "$(content modules | grep -cE '^(dummy|rdma_rxe|rdma_ucm|ib_umad|sch_netem|crc32_generic) ')" 6
claim "the clock is right" test "$(content clock)" -ge "$((before - 2))" -a "$(content clock)" -le "$((after + 2))"
claim "plain mpirun -np 4 works and says no more than it should" \
    same "$(content mpirun | uniq -c | tr -s ' ' | tr '\n' ,)" " 4 $(content name), 1 0,"
claim "ib_read_bw moves data" matches "$(content read_bw)" "4096 +64 +[0-9.]+"
claim "SIGINT is not ignored inside" same "$(content interrupt)" caught
claim "a command's death by signal is seen" same "$(content segv)" 139
claim "nothing is left though the command left processes running" nothing_left

# ---- two machines and Slurm

cat >"$work/pair" <<'INSIDE'
cd -- "$RDMA_READ_RESULTS" || exit 1
sinfo --noheader --Node --format='%N %T' >idle
hostname >name
getent hosts node1 node2 node1-rdma node2-rdma | awk '{ print $1 }' >resolved
on-node 2 -- bash -c 'printf "%s\0" "$@"; hostname >&2; pwd >>written; exit 7' x "a b" '' "it's \"" $'line\nbreak' \
    >words 2>name2
echo $? >>name2
on-node 2 -- cat "$RDMA_READ_TEST_FILE" >file
on-node 2 -- head -c 3000000 /dev/zero | wc -c >amount
on-node 2 -- bash -c 'sleep 1000 & echo "$!" >sleeping'
timeout 1 on-node 2 -- sleep 2000
on-node 2 -- ps -e -o args= >processes
mpirun -np 4 --host node1:2,node2:2 hostname >mpirun 2>&1
echo $? >>mpirun
srun --nodes=2 hostname >srun 2>&1
srun --mpi=pmix --nodes=2 --ntasks=2 bash -c 'echo "$PMIX_RANK"' >pmix 2>&1
on-node 2 -- ib_read_bw -d rxe0 -n 64 -s 4096 -R -p 18900 >read_bw_server 2>&1 &
for try in 1 2 3 4 5 6 7 8 9 10; do
    ib_read_bw -d rxe0 -n 64 -s 4096 -R -p 18900 node2-rdma >read_bw 2>&1 && break
    sleep 0.3
done
states() {
    cat /sys/class/infiniband/rxe0/ports/1/state
    on-node 2 -- bash -c 'cat /sys/class/infiniband/*/ports/1/state || echo none' 2>&1 | tail -n 1
}
{
    for action in down restore drop restore unplug restore; do
        control-node 2 "$action" && states
    done
} 2>&1 | sed 's/.*: //' | tr '\n' ' ' >states
{
    control-node 2 stop
    on-node --wait 1 2 -- true
    echo "stopped $?"
    control-node 2 continue
    on-node --wait 20 2 -- true
    echo "continued $?"
    control-node 2 kill
    on-node --wait 1 2 -- true
    echo "killed $?"
    control-node 2 start
    on-node 2 -- hostname
    slurm-daemons wait
    echo "idle $?"
} >control 2>control.errors
exit 78
INSIDE
RDMA_READ_TEST_FILE=$work/file machine --nodes 2 --slurm --results "$work/pair.results" --limit 300 -- bash "$work/pair"
results=$work/pair.results
claim "with two machines the command's exit status passes through silently" \
    same "$status $(cat "$work/out" "$work/err")" "78 "
claim "the command runs on node1" same "$(content name)" node1
claim "the nodes' names are addresses of the first network, or with -rdma of the second" \
    same "$(content resolved | tr '\n' ' ')" "10.83.78.1 10.83.78.2 10.83.79.1 10.83.79.2 "
claim "Slurm's nodes are idle before the command starts" same "$(content idle | sort | tr '\n' ' ')" "node1 idle node2 idle "
claim "on-node passes on arguments, both outputs and the status" \
    same "$(content words | sha256sum) $(content name2 | tr '\n' ' ')" \
    "$(printf '%s\0' "a b" '' "it's \"" $'line\nbreak' | sha256sum) node2 7 "
claim "on-node works in the current folder, which the nodes share" same "$(content written)" "$results"
claim "node2 sees this machine's files" same "$(content file)" "$(cat "$work/file")"
claim "on-node passes on all of a long output" same "$(content amount)" 3000000
claim "on-node does not wait for what a command leaves behind" grep -qx 'sleep 1000' "$results/processes"
claim "the command ends with its on-node" test -z "$(grep -x 'sleep 2000' "$results/processes")"
claim "plain mpirun starts ranks on both nodes, silently" \
    same "$(content mpirun | sort | uniq -c | tr -s ' ' | tr '\n' ,)" " 1 0, 2 node1, 2 node2,"
claim "srun starts tasks on both nodes" same "$(content srun | sort | tr '\n' ' ')" "node1 node2 "
claim "srun starts them with PMIx" same "$(content pmix | sort | tr '\n' ' ')" "0 1 "
claim "ib_read_bw moves data between the nodes" matches "$(content read_bw)" "4096 +64 +[0-9.]+"
claim "node2 alone loses its port, its packets, its device, and gets them back" \
    same "$(content states)" "ACTIVE DOWN ACTIVE ACTIVE ACTIVE ACTIVE ACTIVE ACTIVE ACTIVE none ACTIVE ACTIVE "
claim "node2 can be stopped, continued, killed and started" \
    same "$(content control | head -n 4 | tr '\n' ' ')" "stopped 125 continued 0 killed 125 node2 "
claim "node2 comes back into Slurm" same "$(content control | tail -n 1)" "idle 0"
claim "nothing is left of two machines" nothing_left

machine --nodes 2 --limit 12 -- bash -c 'control-node 2 stop; sleep 1000'
claim "the time limit ends two machines, also a stopped one" same "$status $(wc -l <"$work/err")" "124 1"
claim "nothing is left of them" nothing_left

# ---- exit status and streaming

for wanted in 0 1 124 125 130; do
    machine -- bash -c "exit $wanted"
    claim "exit status $wanted passes through silently" same "$status $(cat "$work/out" "$work/err")" "$wanted "
done
machine -- /no/such/program
claim "a program that does not exist gives 127" same "$status" 127

# shellcheck disable=SC2016 # expanded inside
TMPDIR=$work/temporary "$run" -- bash -c 'echo first; for ((i = 0; i < 300000; ++i)); do echo "$i"; done' 2>"$work/err" | {
    read -r line
    same "$line" first
}
claim "when the reader goes away the machine ends with status 141" same "${PIPESTATUS[*]}" "141 0"
claim "nothing is left after that" nothing_left

head -c 6000000 /dev/urandom >"$work/random"
TMPDIR=$work/temporary "$run" -- cat "$work/random" 2>"$work/err" | {
    sleep 20
    cat
} >"$work/out"
claim "a reader that is slow loses nothing" same "${PIPESTATUS[0]} $(sha256sum <"$work/out")" "0 $(sha256sum <"$work/random")"

exec {stream}< <(TMPDIR=$work/temporary exec "$run" -- bash -c 'echo early; sleep 30')
read -r -t 60 -u "$stream" line
claim "a line arrives while the command still runs" same "$line$(read -r -t 0.2 -u "$stream" line; echo $?)" early142
kill -TERM "$!"
wait "$!"
exec {stream}<&-

if [[ $(id -u) -eq 0 ]]; then
    # As another user, in a folder on another file system, with a results folder of that user.
    chmod 755 "$work"
    chmod 1777 "$work/temporary"
    mkdir "$work/mount"
    mount -t tmpfs none "$work/mount" 2>/dev/null
    install -d -o 65534 -g 65534 "$work/mount/folder"
    cd -- "$work/mount/folder" || exit 1
    status=0
    # shellcheck disable=SC2016 # expanded inside
    TMPDIR=$work/temporary setpriv --reuid=65534 --regid=65534 --clear-groups \
        "$run" --results results -- bash -c 'id -u; pwd; ls -d results; echo x >"$RDMA_READ_RESULTS/x"; cat /etc/shadow' \
        >"$work/out" 2>"$work/err" || status=$?
    claim "root is not needed, and grants nothing inside" \
        same "$status $(tr '\n' ' ' <"$work/out")" "1 0 $work/mount/folder results "
    claim "the results are the caller's who is not root" same "$(stat -c %u results/x)" 65534
    cd -- "$work" || exit 1
    umount "$work/mount" 2>/dev/null
    claim "nothing is left by another user" nothing_left
fi

# ---- ends that are no ends of the command

machine --limit 8 -- sleep 1000
claim "the time limit gives 124 and one line" same "$status $(wc -l <"$work/err")" "124 1"
claim "nothing is left after the time limit" nothing_left
machine -- bash -c 'echo 1 >/proc/sys/kernel/sysrq; sleep 0.3; echo c >/proc/sysrq-trigger; sleep 100'
claim "a kernel panic gives 125 and the console" \
    same "$status $(grep -c 'ended before the command did' "$work/err") $(grep -c 'Kernel panic' "$work/err")" "125 1 1"
head -c 100000 /dev/zero >"$work/bogus"
machine --kernel "$work/bogus" --boot-limit 5 -- true
claim "a kernel that does not boot gives 125 and says so" same "$status $(tail -n 1 "$work/err" | grep -c ready)" "125 1"
claim "nothing is left after a failed boot" nothing_left

set -m
for signal in INT:130 TERM:143 HUP:129 KILL:137; do
    wanted=${signal#*:}
    signal=${signal%:*}
    rm -f -- "$work/out"
    TMPDIR=$work/temporary "$run" -- bash -c 'echo up; sleep 1000' >"$work/out" 2>"$work/err" &
    runner=$!
    for ((try = 0; try < 600; ++try)); do
        if [[ -s $work/out ]]; then break; fi
        sleep 0.1
    done
    claim "the machine is up before SIG$signal" test -s "$work/out" -a -n "$(ours)"
    kill -"$signal" "$runner"
    status=0
    wait "$runner" 2>/dev/null || status=$?
    claim "SIG$signal gives $wanted" same "$status" "$wanted"
    claim "SIG$signal leaves no process and no file" nothing_left
done
# The way of Ctrl-C: the whole process group, and while the machine still boots.
TMPDIR=$work/temporary "$run" -- sleep 1000 >"$work/out" 2>"$work/err" &
runner=$!
for ((try = 0; try < 100; ++try)); do
    if [[ -n $(ours) ]]; then break; fi
    sleep 0.1
done
kill -INT -- "-$runner"
status=0
wait "$runner" 2>/dev/null || status=$?
claim "Ctrl-C while booting gives 130 and says nothing" same "$status $(cat "$work/err")" "130 "
claim "Ctrl-C while booting leaves nothing" nothing_left
set +m

printf '%d passed, %d failed\n' "$passed" "$failed"
((failed == 0))
