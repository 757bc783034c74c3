#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# The checks, against two real libvirtds: everything that blocks a migration is found before anything moves, all at once,
# and quickly.
# shellcheck disable=SC2317  # functions are called through ok and wait_until
set -u
# shellcheck source=lib/tap.sh
. "$(dirname "$(readlink -f "$0")")/lib/tap.sh"
# shellcheck source=lib/agent.sh
. "$TAP_HOME/lib/agent.sh"

images=/var/lib/libvirt/images # private to each node
target=

# --- the nodes, and how they differ ---

# The node's libvirtd sees the node's own interfaces, and as much memory as we choose: at first as much as the machine has.
prepare_node() { # prepare_node NODE
    cp /proc/meminfo "$LAB_DIR/node-$1/meminfo"
    "$LAB" libvirtd "$1" stop
    "$LAB" exec "$1" mount -t sysfs sysfs /sys
    "$LAB" exec "$1" mount --bind "$LAB_DIR/node-$1/meminfo" /proc/meminfo
    "$LAB" exec "$1" mkdir -p "$images"
    "$LAB" libvirtd "$1" start
}

# Rewrites the file in place, because it is mounted.
set_free_memory() { # set_free_memory NODE KIB
    local file=$LAB_DIR/node-$1/meminfo text
    text=$(sed -E "s/^(MemFree|MemAvailable|Buffers|Cached): .*/\1: 0 kB/; s/^MemFree: .*/MemFree: $2 kB/" /proc/meminfo)
    printf '%s\n' "$text" >"$file"
}

# libvirtd caches what it learned about a QEMU. Editing the cache makes it see a different QEMU.
edit_capabilities() { # edit_capabilities NODE SED_SCRIPT
    "$LAB" virsh "$1" domcapabilities >/dev/null
    "$LAB" libvirtd "$1" stop
    sed -Ei "$2" "$LAB_DIR/node-$1"/cache-libvirt/qemu/capabilities/*.xml
    "$LAB" libvirtd "$1" start
}

# --- guests ---

# start_guest NAME [DEVICES] [DOMAIN] [OPTIONS...]: starts it on node a, with these in its XML
start_guest() {
    local file=$LAB_DIR/$1
    printf '%s\n' "${2:-}" >"$file.devices"
    printf '%s\n' "${3:-}" >"$file.domain"
    "$LAB" guest "$1" --memory 64 --sweep 16 --xml-extra "$file.devices" --xml-domain "$file.domain" "${@:4}"
}

disk() { # disk FILE
    printf "<disk type='file' device='disk'><driver name='qemu' type='raw' cache='none'/><source file='%s'/>%s</disk>" \
        "$images/$1" "<target dev='vda' bus='virtio'/>"
}

bridge() { printf "<interface type='bridge'><source bridge='%s'/><model type='e1000'/></interface>" "$1"; }

# The two models used here have nothing that this QEMU cannot emulate.
model() { printf "<cpu mode='custom' match='exact' check='partial'><model fallback='forbid'>%s</model></cpu>" "$1"; }

# --- asking ---

# The codes of the blockers, in order. Leaves the whole reply in check.json.
blockers() { # blockers GUEST [OPTIONS]
    local status=0
    ctl a -j check "$1" "$target" "${@:2}" >"$LAB_DIR/check.json" || status=$?
    jq -r '[.findings[] | select(.blocks) | .code] | join(" ")' "$LAB_DIR/check.json"
    [[ $status == 0 || $status == 4 ]] || echo "status $status"
}

seen() { jq -r --arg code "$1" '.findings[] | select(.code == $code).seen' "$LAB_DIR/check.json"; }
shows() { [[ $(seen "$1") == *"$2"* ]] || { seen "$1"; false; }; }

# How long each of TRIES checks takes, in ms, sorted.
times_ms() { # times_ms GUEST TRIES
    local i begin
    for ((i = 0; i < $2; i++)); do
        begin=${EPOCHREALTIME/./}
        ctl a -j check "$1" "$target" >/dev/null
        echo $(((${EPOCHREALTIME/./} - begin) / 1000))
    done | sort -n
}

median() { sed -n "$((($(wc -l <<<"$1") + 1) / 2))p" <<<"$1"; }

# --- the tests ---

test_nothing_wrong() {
    local times
    diag "the first check, with a target libvirtd that has not probed its QEMU yet: $(times_ms plain 1) ms"
    is "a guest that can migrate has no blocker" "$(blockers plain)" ""
    ok "... and its kernel, which is in no pool of the target, is a warning" shows FILE_UNSEEN guest.elf
    times=$(times_ms plain 20)
    diag "20 more, in ms: $(tr '\n' ' ' <<<"$times")"
    num "a check is quick: median of 20, in ms (goal: 300; a busy machine takes longer)" "$(median "$times")" '<=' 2000
}

test_memory() {
    set_free_memory b 32768
    is "a target short of memory" "$(blockers plain)" TARGET_MEMORY
    ok "... with what it has and what the guest needs" shows TARGET_MEMORY "has 64 MiB of memory, but the target has only 32 MiB free"
    is "... waiting may help" "$(jq '.findings[0].transient' "$LAB_DIR/check.json")" true
    set_free_memory b 4194304
    is "... and then it has enough" "$(blockers plain)" ""
}

test_disks() {
    is "a local disk that is not copied" "$(blockers disk)" DISK_LOCAL
    is "a disk to copy into an image that does not exist" "$(blockers disk -o copy_disks=incremental)" DISK_MISSING
    ok "... by path" shows DISK_MISSING "vda ($images/disk.img)"
    is "... unless it is created there, in a pool" "$(blockers disk -o copy_disks=all)" ""
    "$LAB" virsh b vol-create-as images disk.img 16777215B --format raw >/dev/null
    is "an image at the target that is a byte too small" "$(blockers disk -o copy_disks=incremental)" DISK_TOO_SMALL
    ok "... to the byte" shows DISK_TOO_SMALL "16777215 bytes at the target, 16777216 at the source"
    "$LAB" virsh b vol-resize --pool images disk.img 16777216B --shrink >/dev/null ||
        "$LAB" virsh b vol-resize --pool images disk.img 16777216B >/dev/null
    is "... and one that just fits" "$(blockers disk -o copy_disks=incremental)" ""
}

test_unlike_cpu() {
    is "a CPU model that the target lacks" "$(blockers nehalem)" CPU_INCOMPATIBLE
    ok "... and the missing feature" shows CPU_INCOMPATIBLE sse4.2
    is "... and a model that it has" "$(blockers penryn)" ""
}

test_bridge() {
    is "a bridge that the target lacks" "$(blockers bridged)" INTERFACE_MISSING
    ok "... by name" shows INTERFACE_MISSING "br7 (vnet"
    "$LAB" exec b ip link add br7 type bridge
    is "... and one that it has" "$(blockers bridged)" ""
    "$LAB" exec b ip link del br7
}

test_machine_type() {
    is "a machine type that the target's QEMU lacks" "$(blockers q35)" MACHINE_TYPE
    ok "... by name, with what the target has" shows MACHINE_TYPE pc-q35-7.2
}

warnings() { jq -r '[.findings[] | select(.blocks | not) | .code] | join(" ")' "$LAB_DIR/check.json"; }

test_what_libvirt_does_with_it() {
    "$LAB" virsh a blockcopy disk vda --dest "$images/copy.img" --format raw --bandwidth 1 --transient-job >/dev/null
    is "a running block job on a disk" "$(blockers disk)" "BLOCK_JOB DISK_LOCAL"
    "$LAB" virsh a blockjob disk vda --abort >/dev/null
    is "... and one that was aborted" "$(blockers disk)" DISK_LOCAL
    "$LAB" virsh a suspend penryn >/dev/null
    is "a paused guest can migrate" "$(blockers penryn)" ""
    is "... with a warning" "$(warnings)" "DOMAIN_PAUSED FILE_UNSEEN EMULATOR_FORGETS"
    "$LAB" virsh a destroy penryn >/dev/null
    is "one that is shut off cannot" "$(blockers penryn)" DOMAIN_STATE
    "$LAB" virsh b define "$LAB_DIR/penryn.xml" >/dev/null
    "$LAB" virsh b start penryn >/dev/null
    is "... nor one that runs at the target" "$(blockers penryn)" "DOMAIN_STATE DOMAIN_EXISTS"
    "$LAB" virsh b destroy penryn >/dev/null
    "$LAB" virsh b undefine penryn >/dev/null
}

# The directory is below the node's /etc/libvirt: under tests/run a tmpfs covers /tmp, and then the agent rightly does not claim
# that a file below /tmp is missing.
test_tls() {
    local dir=$LAB_DIR/node-a/etc-libvirt
    mkdir -p "$dir/tls"
    printf 'migrate_tls_x509_cert_dir = "/etc/libvirt/tls"\n' >>"$dir/qemu.conf"
    is "TLS is required, and this node has no certificates" "$(blockers plain -o tls=require)" TLS_CERTIFICATES
    ctl a -j migrate plain "$target" -o tls=require >/dev/null
    is "... which fails a job before anything moves" "$(job a plain '[.phase, .failure.cause, .started_usec_realtime] | tostring')" \
        '["failed","REFUSED",null]'
    : >"$dir/tls/ca-cert.pem"
    is "... with a directory that has some, it is the target that may have none" "$(blockers plain -o tls=require)" ""
    ok "... and that is a warning" shows TLS_UNSEEN "Cannot tell whether the target has"
}

test_six_at_once() {
    local six="NAME_TAKEN DISK_LOCAL CPU_INCOMPATIBLE MACHINE_TYPE TARGET_MEMORY INTERFACE_MISSING" status=0 times
    set_free_memory b 32768
    is "six blockers are six codes in one answer" "$(blockers six)" "$six"
    times=$(times_ms six 20)
    diag "20 checks of it, in ms: $(tr '\n' ' ' <<<"$times")"
    num "... quickly: median of 20, in ms (goal: 300)" "$(median "$times")" '<=' 2000
    ctl a check six "$target" >"$LAB_DIR/six.log" || status=$?
    is "... exit 4, and said so in words" "$status $(head -n 1 "$LAB_DIR/six.log")" \
        "4 six cannot be migrated to $target: 6 blockers, 2 warnings."

    "$LAB" mark six >/dev/null
    status=0
    ctl a migrate six "$target" >"$LAB_DIR/six.log" 2>&1 || status=$?
    is "a job for it is refused at once, exit 4, with all of them" \
        "$status $(job a six '[.findings[] | select(.blocks) | .code] | join(" ")')" "4 $six"
    is "... before anything moved" "$(job a six '[.phase, .failure.phase, .started_usec_realtime] | tostring')" \
        '["failed","preparing",null]'
    is "... it left no trace at the target" "$("$LAB" virsh b list --name | tr -d '\n')" ""
    num "... and no stream on the wire, only queries: bytes" "$("$LAB" wire | jq .bytes_a_to_b)" '<=' 1000000
    is "... and the guest keeps running" "$(truth six '[.running_on[], .bad_pages, .restarts] | join(" ")')" "a 0 0"
    diag "from accepted to finished: $(job a six '(.finished_usec_realtime - .created_usec_realtime) / 1000 | floor') ms"
}

test_waiting() {
    local pid status=0
    set_free_memory b 32768
    ctl a migrate plain "$target" >"$LAB_DIR/plain.log" 2>&1 &
    pid=$!
    ok "a job waits if waiting may help, and says for what" wait_until 20 job_is a plain .pending.reason TARGET_MEMORY
    is "... nothing has moved" "$(job a plain '.started_usec_realtime')" null
    is "... a check reports the job" "$(blockers plain)" "DOMAIN_BUSY TARGET_MEMORY"
    set_free_memory b 4194304
    wait "$pid" || status=$?
    is "... it migrates once the target has memory" "$status $(job a plain .phase)" "0 succeeded"
    diag "its checks took $(job a plain '[.events[] | select(.kind == "phase")] | [.[-3:-1][].time_usec_realtime] | (.[1] - .[0]) / 1000 | floor') ms before it moved"
}

test_target_away() {
    local begin
    "$LAB" libvirtd b stop
    is "a target whose libvirtd is down, next to the guest's own blocker" "$(blockers disk)" \
        "TARGET_UNREACHABLE DISK_LOCAL"
    "$LAB" libvirtd b start
    "$LAB" libvirtd b pause
    begin=$SECONDS
    is "a target whose libvirtd hangs" "$(blockers disk)" "TARGET_UNREACHABLE DISK_LOCAL"
    num "... after the ConnectTimeout= of 2 s: seconds" "$((SECONDS - begin))" '<=' 10
    "$LAB" libvirtd b resume
    is "... and once it answers again" "$(blockers disk)" DISK_LOCAL
    is "an unknown domain: exit 5" "$(ctl a check nobody "$target" >/dev/null 2>&1; echo $?)" 5
    is "this node as its own target" "$(target=$("$LAB" uri a --tcp) blockers disk)" "SAME_HOST DISK_LOCAL"
}

tap_lab
prepare_node a
prepare_node b
target=$("$LAB" uri b --tcp)
mkdir -p "$(agent_dir a)"
printf '[Agent]\nUnschedulableTimeout=60s\nConnectTimeout=2s\n' >"$(agent_dir a)/conf"
agent_start a

"$LAB" exec a ip link add br7 type bridge
for name in disk six; do
    "$LAB" exec a truncate --size 16777216 "$images/$name.img"
done
"$LAB" virsh b pool-create-as images dir --target "$images" >/dev/null
start_guest plain
start_guest disk "$(disk disk.img)"
start_guest nehalem "" "$(model Nehalem)"
start_guest penryn "" "$(model Penryn)"
"$LAB" virsh a dumpxml penryn --migratable >"$LAB_DIR/penryn.xml"
start_guest bridged "$(bridge br7)"
start_guest q35 "" "" --machine pc-q35-7.2
start_guest six "$(disk six.img)$(bridge br7)" "$(model Nehalem)" --machine pc-q35-7.2
"$LAB" guest six --uuid 11111111-2222-4333-8444-555555555555 --print-xml >"$LAB_DIR/namesake.xml"

test_nothing_wrong
edit_capabilities b "/<machine [^>]*name='pc-q35-7.2'/d
    /<hostCPU type='tcg'/,/<\/hostCPU>/s/(name='sse4.2' type='boolean' value)='true'/\1='false'/"
"$LAB" virsh b pool-create-as images dir --target "$images" >/dev/null 2>&1
"$LAB" virsh b define "$LAB_DIR/namesake.xml" >/dev/null
test_memory
test_disks
test_unlike_cpu
test_bridge
test_machine_type
test_what_libvirt_does_with_it
test_tls
test_six_at_once
test_waiting
test_target_away
agent_end a TERM
is "SIGTERM stops the agent cleanly" "$agent_status" 0
done_testing
