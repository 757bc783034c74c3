#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# Goals that show only on the hypervisors: where the domain is defined afterwards, what was copied of its disks, and which limits
# QEMU got.
set -u
# shellcheck source=lib/tap.sh
. "$(dirname "$(readlink -f "$0")")/lib/tap.sh"
# shellcheck source=lib/agent.sh
. "$TAP_HOME/lib/agent.sh"

# move GOAL...: migrates, and prints the outcome
move() {
    local goal options=()
    for goal; do options+=(-o "$goal"); done
    "$LAB" mark web >/dev/null
    ctl a migrate web "$target" --detach "${options[@]}" >/dev/null
    wait_until 60 job_is_over a web
    printf '%s %s\n' "$(job_end a web)" \
        "$(truth web '[.running_on[], .bad_pages] | join(" ")')"
}

# What each node knows of the domain: NODE STATE PERSISTENT, for one after the other.
known() {
    local node
    for node in a b; do
        "$LAB" virsh "$node" dominfo web 2>/dev/null |
            awk -F': *' -v node="$node" '$1 == "State" {state = $2} $1 == "Persistent" {print node, state, $2}'
    done | xargs
}

forget() {
    "$LAB" guest-rm web
    "$LAB" virsh a undefine web >/dev/null 2>&1
    "$LAB" virsh b undefine web >/dev/null 2>&1
}

# leaves NAME KNOWN GUEST_OPTION GOAL...
leaves() {
    local name=$1 expected=$2 option=$3
    # shellcheck disable=SC2086  # none, or one
    "$LAB" guest web --memory 64 $option
    is "$name: it migrates" "$(move "${@:4}")" "succeeded - target b 0"
    is "... and both nodes know it as they should" "$(known)" "$expected"
    forget
}

# --- a disk over a backing image that both nodes have, each in a directory of its own ---

images=/var/lib/libvirt/images
# image NODE PROGRAM ARGUMENTS...: runs a program of qemu-utils there
image() { "$LAB" exec "$1" env -C "$images" "${@:2}" >/dev/null; }

make_disk() {
    local node
    for node in a b; do
        "$LAB" exec $node mkdir -p "$images"
        image $node qemu-img create -f qcow2 base.qcow2 16M
        image $node qemu-io -f qcow2 -c 'write -P 0x11 0 8M' base.qcow2
        image $node qemu-img create -f qcow2 -F qcow2 -b base.qcow2 web.qcow2
    done
    image a qemu-io -f qcow2 -c 'write -P 0x22 1M 1M' web.qcow2
    printf "<disk type='file' device='disk'><driver name='qemu' type='qcow2' cache='none'/><source file='%s'/>%s</disk>" \
        "$images/web.qcow2" "<target dev='vda' bus='virtio'/>" >"$LAB_DIR/devices"
}

test_incremental() {
    make_disk
    "$LAB" guest web --memory 64 --xml-extra "$LAB_DIR/devices"
    is "a disk whose backing image the target has: it migrates" "$(move copy_disks=incremental)" "succeeded - target b 0"
    ok "... with the overlay's data and the backing image's" \
        image b qemu-io -r -U -f qcow2 -c 'read -P 0x11 0 1M' -c 'read -P 0x22 1M 1M' -c 'read -P 0x11 2M 6M' web.qcow2
    num "... and only the overlay was copied: bytes" "$("$LAB" exec b du -B1 "$images/web.qcow2" | cut -f1)" '<' 3000000
    forget
}

told() { "$LAB" virsh a qemu-monitor-command web '{"execute": "query-migrate-parameters"}' | jq "$1"; }

bandwidth_is() { [[ $(told '.return["max-bandwidth"]') == "$1" ]]; }

test_limits() {
    "$LAB" guest web --memory 256 --ws 16 --rate 1
    ctl a migrate web "$target" --detach -o max_downtime_ms=123 -o bandwidth_bytes_per_s=8M \
        -o allow_post_copy=yes -o post_copy_bandwidth_bytes_per_s=32M -o completion_timeout_s_per_gib=0 >/dev/null
    wait_until 30 job_is a web '(.progress.memory_processed_bytes // 0) > 0' true
    is "QEMU has the limits from the beginning" \
        "$(told '.return | [.["downtime-limit"] <= 123, .["max-bandwidth"], .["max-postcopy-bandwidth"]] | join(" ")')" '"true 8388608 33554432"'
    ctl a tune web bandwidth_bytes_per_s=16M >/dev/null
    ok "... and when they are changed" wait_until 10 bandwidth_is 16777216
    ctl a abort web >/dev/null
    wait_until 30 job_is_over a web
    is "... and the migration can be aborted" "$(job_end a web)" "aborted USER_ABORT source"
    forget
}

tap_lab
target=$("$LAB" uri b --tcp)
agent_start a
leaves "a domain" "b running yes" ""
leaves "persist_target=no" "b running no" "" persist_target=no
leaves "undefine_source=no" "a shut off yes b running yes" "" undefine_source=no
leaves "a transient domain" "b running no" --transient
test_incremental
"$LAB" link 400mbit
test_limits
agent_end a TERM
done_testing
