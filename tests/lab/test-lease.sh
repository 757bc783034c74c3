#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# Two agents, and a controller that migrates guests between them with leases: Prepare at the target, Start at the source. A
# lease survives a kill of the agent. It ends with the migration, also an aborted one, or when it expires. Images made for a
# guest that did not come are removed; what may be a guest's disk stays.
# shellcheck disable=SC2317  # functions are called through ok and wait_until
set -u
# shellcheck source=lib/tap.sh
. "$(dirname "$(readlink -f "$0")")/lib/tap.sh"
# shellcheck source=lib/agent.sh
. "$TAP_HOME/lib/agent.sh"

images=/var/lib/libvirt/images # private to each node
declare -A uri

# --- the controller: it knows nodes only through their agents ---

# prepare GUEST FROM TO [OPTIONS...]: leaves the reply in lease.json
prepare() { ctl "$3" -j prepare "$1" "${uri[$2]}" "${@:4}" >"$LAB_DIR/lease.json"; }
leased() { jq -r ".job.lease.$1" "$LAB_DIR/lease.json"; }

# send GUEST FROM [OPTIONS...]: to where the lease says
send() {
    ctl "$2" -j migrate "$1" "$(leased libvirt_uri)" --migrate-uri "$(leased migrate_uri)" "${@:3}" >"$LAB_DIR/move.log"
}

node() { ctl "$1" -j node | jq -r "$2"; }

# A released lease ends a moment later.
holds_nothing() { [[ $(node b '[.incoming, .reserved_bytes] | join(" ")') == "0 0" ]]; }

# --- a disk of which each node has its own ---

on_node() { "$LAB" exec "$1" "${@:2}"; }
has_image() { on_node "$1" test -e "$images/$2"; }
has_no_image() { ! has_image "$@"; }
is_written() { [[ $(on_node "$1" stat -c %b "$images/$2") -gt 0 ]]; }
runs_at() { [[ $(truth "$1" '.running_on[]') == "$2" ]]; }

disk() { # disk FILE
    printf "<disk type='file' device='disk'><driver name='qemu' type='raw' cache='none'/><source file='%s'/>%s</disk>" \
        "$images/$1" "<target dev='vda' bus='virtio'/>"
}

start_guest_with_disk() { # start_guest_with_disk NAME [OPTIONS...]
    on_node a dd if=/dev/urandom of="$images/$1.img" bs=1M count=16 status=none
    disk "$1.img" >"$LAB_DIR/$1.devices"
    "$LAB" guest "$1" --xml-extra "$LAB_DIR/$1.devices" "${@:2}"
}

# --- the tests ---

test_a_move_by_a_lease() {
    local id status=0
    "$LAB" guest web --memory 128 --ws 32 --rate 20
    "$LAB" link 400mbit
    "$LAB" mark web >/dev/null
    prepare web a b || status=$?
    id=$(leased id)
    is "the target grants a lease" "$status $(job b "$id" '[.direction, .phase, .pending.reason] | join(" ")')" "0 incoming pending LEASED"
    is "... and says where to send the guest" "$(leased libvirt_uri) $(leased migrate_uri)" "${uri[b]} tcp://10.77.0.2"
    is "... with its memory set aside" "$(node b '[.incoming, .reserved_bytes] | join(" ")')" "1 134217728"
    agent_end b KILL
    agent_start b
    is "killed and restarted, the target's agent still has it" "$(job b "$id" .phase) $(node b .reserved_bytes)" "pending 134217728"
    send web a --detach
    ok "the incoming job follows the guest" wait_until 30 job_is b "$id" .phase migrating
    is "... with its stage" "$(job b "$id" .stage)" pre_copy
    ok "... to its end" wait_until 60 job_is b "$id" .phase succeeded
    ok "... as the source's does" wait_until 30 job_is a web .phase succeeded
    ok "the lease has ended" holds_nothing
    is "one copy, good memory" "$(truth web '[.running_on[], .bad_pages, .restarts] | join(" ")')" "b 0 0"
    is "both ends report the same downtime" "$(job b "$id" .result.libvirt_downtime_ms)" "$(job a web .result.libvirt_downtime_ms)"
    ok "its history has no gap" jq -e '[.job.events[].seq] | . == [range(1; length + 1)]' <<<"$(ctl b -j show "$id")"
    status=0
    ctl b migrate web "${uri[a]}" >/dev/null || status=$?
    is "it can go back at once, without a lease" "$status $(job b web .phase)" "0 succeeded"
    ok "... which the target follows as well" wait_until 30 job_is a web '[.direction, .phase] | join(" ")' "incoming succeeded"
    "$LAB" guest-rm web
}

test_a_kill_in_the_middle() {
    local id
    "$LAB" guest web --memory 256 --ws 64 --rate 20
    "$LAB" link 400mbit
    prepare web a b
    id=$(leased id)
    send web a --detach
    wait_until 30 job_is b "$id" .phase migrating
    agent_end b KILL
    agent_start b
    ok "killed in the middle, the target's agent resumes following it, to its end" wait_until 60 job_is b "$id" .phase succeeded
    is "... one copy, good memory" "$(truth web '[.running_on[], .bad_pages] | join(" ")')" "b 0"
    "$LAB" guest-rm web
}

test_a_lease_expires() {
    local id
    "$LAB" guest web --memory 64
    prepare web a b --timeout 1s
    id=$(leased id)
    ok "a lease expires if nothing comes" wait_until 30 job_is b "$id" .failure.cause LEASE_EXPIRED
    ok "... and sets nothing aside any more" holds_nothing
    is "... the guest is unaffected" "$(truth web '.running_on[]')" a
    "$LAB" guest-rm web
}

test_what_keeps_it_away() {
    local status=0
    "$LAB" guest one --memory 64
    "$LAB" guest two --memory 64
    prepare one a b
    prepare two a b || status=$?
    is "there is only one place (MaxIncoming=1)" "$status $(jq -r '[.parameters.findings[].code] | join(" ")' "$LAB_DIR/lease.json" | grep -ow INCOMING_LIMIT)" \
        "4 INCOMING_LIMIT"
    ctl b release one >/dev/null
    ok "... which is free again once released" wait_until 30 prepare two a b
    ctl b release two >/dev/null
    ok "... every time" wait_until 30 holds_nothing
    status=0
    ctl b cordon >/dev/null
    prepare one a b || status=$?
    is "a cordoned node grants none" "$status $(jq -r .error "$LAB_DIR/lease.json")" "4 io.handoffd.Agent.NodeCordoned"
    ctl b uncordon >/dev/null
    "$LAB" guest-rm one
    "$LAB" guest-rm two
}

test_disks() {
    local status=0 id
    start_guest_with_disk db --memory 128 --ws 32 --rate 20
    prepare db a b || status=$?
    is "a disk that the target lacks" "$status $(jq -r '.parameters.findings[0].code' "$LAB_DIR/lease.json")" "4 DISK_MISSING"
    status=0
    prepare db a b --make-disks -o copy_disks=all || status=$?
    is "... is created on request" "$status $(leased 'images[0].path')" "0 $images/db.img"
    ok "... through libvirt" has_image b db.img
    ctl b release db >/dev/null
    ok "... and removed with its lease" wait_until 30 has_no_image b db.img
    ok "... only there" has_image a db.img
    wait_until 30 holds_nothing

    "$LAB" link 100mbit
    prepare db a b --make-disks -o copy_disks=all
    id=$(leased id)
    send db a -o copy_disks=all --detach
    ok "a migration is running" wait_until 30 job_is b "$id" .phase migrating
    ok "... and copies the disk" wait_until 30 is_written b db.img
    ctl a abort db >/dev/null
    ok "... aborted at the source, it ends at the target" wait_until 60 job_is b "$id" .failure.cause CANCELLED_ELSEWHERE
    ok "... with the lease" holds_nothing
    ok "... what was written to stays" has_image b db.img
    ok "... and an operator is told so" grep -q "db.img (vda) in place: it has been written to since it was created" <<<"$(ctl b -j show "$id")"
    is "... the guest runs on" "$(truth db '[.running_on[], .bad_pages] | join(" ")')" "a 0"

    "$LAB" link none
    wait_until 30 job_is a db .phase aborted
    prepare db a b --make-disks -o copy_disks=all
    id=$(leased id)
    status=0
    send db a -o copy_disks=all || status=$?
    is "a migration with its disk, into the leftover image" "$status $(job a db .phase)" "0 succeeded"
    ok "... is followed at the target" wait_until 30 job_is b "$id" .phase succeeded
    ok "... which keeps the image" has_image b db.img
    is "... one copy, good memory" "$(truth db '[.running_on[], .bad_pages] | join(" ")')" "b 0"
    "$LAB" guest-rm db
}

# The guest arrives and is shut down while nobody watches: the image made for it is now its only disk.
test_the_only_disk() {
    local id
    start_guest_with_disk one --memory 64
    "$LAB" link 400mbit
    prepare one a b --make-disks -o copy_disks=all
    id=$(leased id)
    send one a -o copy_disks=all --detach
    wait_until 30 job_is b "$id" .phase migrating
    agent_end b KILL
    ok "the target's agent is killed in the middle, and the guest arrives" wait_until 60 runs_at one b
    wait_until 30 job_is a one .phase succeeded
    on_node a rm -f "$images/one.img"
    "$LAB" virsh b destroy one >/dev/null
    agent_start b
    ok "the guest is shut down before the agent is back: the agent does not claim to know what it did not see" \
        wait_until 30 job_is b "$id" .failure.cause NOT_WATCHED
    ok "... leaves the disk alone" has_image b one.img
    ok "... and says so" grep -q "one.img (vda) in place" <<<"$(ctl b -j show "$id")"
    ok "... and the guest can be started again" "$LAB" virsh b start one
    "$LAB" guest-rm one
}

tap_lab
for name in a b; do
    uri[$name]=$("$LAB" uri "$name" --tcp)
    mkdir -p "$(agent_dir "$name")"
    on_node "$name" mkdir -p "$images"
    "$LAB" virsh "$name" pool-create-as images dir --target "$images" >/dev/null
done
printf '[Agent]\nMaxIncoming=1\nIncomingURI=%s\nIncomingMigrateURI=tcp://10.77.0.2\n' "${uri[b]}" >"$(agent_dir b)/conf"
agent_start a
agent_start b
test_a_move_by_a_lease
test_a_kill_in_the_middle
test_a_lease_expires
test_what_keeps_it_away
test_disks
test_the_only_disk
for name in a b; do
    agent_end $name TERM
    is "SIGTERM stops the agent of node $name cleanly" "$agent_status" 0
done
done_testing
