#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# The agent's promises, tested against a third node, an owner with virsh, and an agent that was down while things happened: no
# guest runs twice, none is lost, no guest's disk is removed, and nobody else's work is undone.
# shellcheck disable=SC2317  # functions are called through ok and wait_until
set -u
# shellcheck source=lib/tap.sh
. "$(dirname "$(readlink -f "$0")")/lib/tap.sh"
# shellcheck source=lib/agent.sh
. "$TAP_HOME/lib/agent.sh"

PORT=16600 # of node a's forwarder to b's libvirtd
slow_b=qemu+tcp://10.77.0.1:$PORT/system
images=/var/lib/libvirt/images # private to each node


refused() { ! "$@"; }
on_node() { "$LAB" exec "$1" "${@:2}"; }
state() { "$LAB" virsh "$1" -q domstate --reason "$2" 2>/dev/null | head -n 1; }
runs_at() { [[ $(state "$1" "$2") == running* ]]; }
is_defined() { "$LAB" virsh "$1" list --all --name | grep -x "$2" >/dev/null; }
moves() { job_is a "$1" '(.phase == "migrating") and ((.progress.memory_processed_bytes // 0) > 10000000)' true; }
awaits_operator() { job_is "$1" "$2" '(.phase == "recovering") and (.next_action | test("operator"))' true; }

running_on() { truth "$1" '.running_on | join(" ")'; }

# Succeeds if the command keeps succeeding for SECONDS; fails as soon as it does not.
stays() { # stays SECONDS COMMAND...
    local until=$((SECONDS + $1))
    shift
    while ((SECONDS < until)); do
        "$@" || return 1
        sleep 0.2
    done
}

runs_only_on() { # runs_only_on GUEST NODE
    [[ $(running_on "$1") == "$2" ]] || { "$LAB" truth "$1" --no-wait | jq -c .states; return 1; }
}

# What a job says about itself, to help explain a failure.
tell() {
    diag "$(job "$1" "$2" '[.phase, .failure.cause // "-", .next_action // "-", .recovery.evidence // "-"], (.events[-4:][].message)
        | tostring')"
}

forget() {
    "$LAB" guest-rm "$1"
}

# --- a guest that has arrived, and a source that does not know ---

# The source's libvirtd and agent are killed before the target's reply to libvirt's Finish reaches them. The guest then runs at b,
# and a holds a stopped copy of it. With "seen", the agent dies a moment later, after it has seen that.
arrive_unheard() { # arrive_unheard GUEST [seen]
    "$LAB" guest "$1" --memory 128
    ctl a migrate "$1" "$slow_b" -o completion_timeout_s_per_gib=0 --detach >/dev/null
    wait_until 20 moves "$1" || bail "$1 does not migrate: $(ctl a show "$1")"
    "$LAB" hold a answers
    wait_until 30 runs_at b "$1" || bail "$1 does not arrive at b: $(ctl a show "$1")"
    [[ -n ${2:-} ]] || agent_end a KILL
    "$LAB" libvirtd a kill
    "$LAB" hold a nothing
    if [[ -n ${2:-} ]]; then
        wait_until 30 sees_it_at_target "$1" || bail "the agent did not query b: $(ctl a show "$1")"
        agent_end a KILL
    fi
}

sees_it_at_target() { grep -q 'target: running' <<<"$(job a "$1" .recovery.evidence)"; }

come_back() {
    "$LAB" libvirtd a start
    diag "the copy at a is $(state a "$1")"
    agent_start a
}

# What must hold whatever became of the guest at b: it ran there, so the copy at a is out of date.
copy_is_left_alone() { # copy_is_left_alone GUEST NODE-IT-RUNS-ON [knows]
    wait_until 20 is_settled a "$1"
    if [[ ${3:-} == knows ]]; then
        is "... the job says that it migrated, but not where it is now" "$(job a "$1" '[.phase, .result.running_at] | join(" ")')" \
            "succeeded unknown"
    else
        ok "... the job waits for an operator" awaits_operator a "$1"
    fi
    ok "... the copy at a is not resumed: the guest runs only on ${2:-no node}" stays 4 runs_only_on "$1" "$2"
    is "... but stays as the migration left it" "$(state a "$1")" "paused (migrating)"
    tell a "$1"
}

is_settled() { awaits_operator "$@" || job_is_over "$@"; }

# names GUEST: the commands for a copy that the job gives to an operator
names() { ctl a show "$1" | grep -Eo 'virsh [^;,`]*(resume|destroy)\>' | grep -Eo '(resume|destroy)$' | sort -u | xargs; }

test_sent_on_to_a_third_node() {
    arrive_unheard web
    ok "a guest that arrived at b is sent on to c by b's agent" ctl b migrate web node-c
    is "... and b no longer knows it" "$(is_defined b web && echo known)" ""
    come_back web
    copy_is_left_alone web c
    is "... and the job gives a command for each of the two cases" "$(names web)" "destroy resume"
    "$LAB" virsh a destroy web >/dev/null
    ok "... it ends by itself once the operator has destroyed the copy" wait_until 20 job_is_over a web
    is "... and does not say that the guest is stopped" "$(job a web '.result.running_at == "none"')" false
    is "... and the guest keeps running" "$(truth web '[.running_on[], .bad_pages, .restarts] | join(" ")')" "c 0 0"
    forget web
}

test_seen_there_by_an_agent_that_was_killed() {
    arrive_unheard web seen
    ok "a guest that a's agent saw at b, before it was killed, is sent on to c" ctl b migrate web node-c
    come_back web
    copy_is_left_alone web c knows
    is "... and it has not forgotten that the guest ran at b: only destroy is left to do" "$(names web)" "destroy"
    forget web
}

test_a_later_start_failed() {
    arrive_unheard web
    "$LAB" virsh b destroy web >/dev/null
    # The kernel that it boots from is missing, only at b.
    on_node b mount --bind /dev/null "$kernel"
    "$LAB" virsh b start web >/dev/null 2>&1
    on_node b umount "$kernel"
    is "a guest that ran at b was shut down there, and did not start again" "$(state b web)" "shut off (failed)"
    come_back web
    copy_is_left_alone web ""
    is "... and the job gives a command for each of the two cases" "$(names web)" "destroy resume"
    forget web
}

# --- its only disk ---

disk() { # disk FILE
    printf "<disk type='file' device='disk'><driver name='qemu' type='raw' cache='none'/><source file='%s'/>%s</disk>" \
        "$1" "<target dev='vda' bus='virtio'/>"
}

start_guest_with_disk() { # start_guest_with_disk NAME
    on_node a dd if=/dev/urandom of="$images/$1.img" bs=1M count=8 status=none
    disk "$images/$1.img" >"$LAB_DIR/$1.devices"
    "$LAB" guest "$1" --memory 128 --xml-extra "$LAB_DIR/$1.devices"
}

# prepared NAME [OPTIONS...]: gets a lease at b, with an image; leaves its id in $lease
prepared() {
    lease=$(ctl b -j prepare "$1" "$("$LAB" uri a --tcp)" --make-disks -o copy_disks=all "${@:2}" | jq -r .job.id)
    on_node b test -e "$images/$1.img" || bail "no image was created at b for $1"
}

content() { on_node "$1" sha256sum "$images/$2.img" 2>&1 | cut -d' ' -f1; }
move_with_disk() { ctl a migrate "$1" node-b -o copy_disks=all --detach >/dev/null; }

# keeps_its_disk NAME CONTENT: checked once b's agent is back and has settled the lease
keeps_its_disk() {
    agent_start b
    wait_until 20 job_is_over b "$lease"
    diag "the lease: $(job_end b "$lease")" "$(job b "$lease" '.events[] | select(.kind == "warning" or .kind == "action") | .message')"
    is "... the agent leaves its only disk in place, unchanged" "$(content b "$1")" "$2"
    "$LAB" guest-rm "$1"
    on_node b rm -f "$images/$1.img"
    on_node a rm -f "$images/$1.img"
}

test_target_away_from_mid_move_on() {
    local lease before
    start_guest_with_disk db1
    before=$(content a db1)
    prepared db1
    move_with_disk db1
    wait_until 30 job_is b "$lease" .phase migrating || tell b "$lease"
    wait_until 30 moves db1
    agent_end b KILL
    wait_until 60 job_is_over a db1
    is "a guest arrives with its disk while b's agent is down" "$(job_end a db1)" "succeeded - target"
    "$LAB" virsh b destroy db1 >/dev/null
    is "... and is powered off" "$(state b db1)" "shut off (destroyed)"
    keeps_its_disk db1 "$before"
}

test_target_away_all_along() {
    local lease before prepared_s
    start_guest_with_disk db2
    before=$(content a db2)
    prepared db2 --timeout 3s
    prepared_s=$SECONDS
    agent_end b KILL
    move_with_disk db2
    wait_until 60 job_is_over a db2
    is "a guest arrives with its disk, and b's agent has been down since it granted the lease" "$(job_end a db2)" "succeeded - target"
    "$LAB" virsh b destroy db2 >/dev/null
    # Its owner removes even the definition, but keeps the disk.
    "$LAB" virsh b undefine db2 >/dev/null
    while ((SECONDS <= prepared_s + 3)); do sleep 0.2; done
    is "... is powered off and undefined, and the lease has expired" "$(is_defined b db2 && echo known)" ""
    keeps_its_disk db2 "$before"
}

# --- storage that is hidden from the agent ---

codes() {
    ctl a -j check "$1" node-b "${@:2}" |
        jq -r '[.findings[].code | select(startswith("DISK_LOCAL") or startswith("STORAGE"))] | join(" ")'
}

# Like a service with ProtectHome=yes: libvirtd and QEMU see what is mounted there, the agent sees an empty tmpfs.
# shellcheck disable=SC2016  # for the shell there
agent_start_blindfolded() {
    agent_start a unshare --mount sh -c 'mount -t tmpfs -o mode=0,ro none "$0" && exec "$@"' "$1"
}

test_masked_storage() {
    local shared=$images/shared node
    mkdir -p "$LAB_DIR/shared"
    for node in a b; do
        on_node "$node" mkdir -p "$shared"
        on_node "$node" mount --bind "$LAB_DIR/shared" "$shared"
    done
    truncate --size 8M "$LAB_DIR/shared/nfs.img"
    disk "$shared/nfs.img" >"$LAB_DIR/nfs.devices"
    "$LAB" guest nfs --memory 64 --xml-extra "$LAB_DIR/nfs.devices"
    agent_end a TERM
    agent_start_blindfolded "$images"
    is "a disk in a directory that is hidden from the agent: its storage is unknown" "$(codes nfs)" STORAGE_UNKNOWN
    is "... so it is not taken for one to copy" "$(codes nfs -o copy_disks=all)" STORAGE_UNKNOWN
    agent_end a TERM
    agent_start a
    forget nfs
}

# --- an action, and the look that justifies it ---

# Is the agent querying the target? Sets $asking to that thread. Starts no process to find out, because the query is short.
asks_target() {
    local file name
    for file in /proc/"$program"/task/*/comm; do
        read -r name 2>/dev/null <"$file" || continue
        [[ $name == ask-target ]] || continue
        asking=$file
        return 0
    done
    return 1
}

soon() { # soon COMMAND...: within 5 s, 200 times a second
    local until=$((SECONDS + 5))
    until "$@"; do
        ((SECONDS < until)) || return 1
        read -r -t 0.005 <>/dev/zero || true
    done
}

hold() { kill -"RTMIN+$1" "$forwarder"; } # as `lab hold` does, at once: 2 is answers, 4 later, 0 nothing

# Passes on answers one at a time, until the agent's query has ended.
is_answered() {
    hold 4
    [[ ! -e $1 ]]
}

# Starts a's agent, and stops a's libvirtd between its answer about the guest and the agent's action: while the agent, which asks
# the source first, waits for the target's answer. The agent acts after a second look, a second after the first, so each look
# is drawn out, and the last of LOOKS counts.
stop_source_as_agent_acts() { # stop_source_as_agent_acts LOOKS WHAT-HAPPENS-IN-THE-FIRST-ONE...
    local look=0 looks=$1 program forwarder asking this
    forwarder=$(pgrep -f "^$LAB_DIR/bin/lab-forward ")
    hold 2
    agent_start a
    program=$(pgrep -P "${agent_pid[a]}")
    while ((look < looks)); do
        soon asks_target || return 1
        this=$asking
        ((look > 0)) || "${@:2}" >/dev/null
        sleep 1.1
        if [[ -e $this ]]; then ((++look)); fi
        ((look < looks)) || "$LAB" libvirtd a pause
        soon is_answered "$this" || return 1
    done
    hold 0
}

# Sets the scene for the guest web, again and again until a's libvirtd was stopped at the right moment. UNTOUCHED succeeds if the
# agent has not acted yet; on a busy machine this may come too late.
at_the_moment() { # at_the_moment SCENE UNTOUCHED LOOKS WHAT-HAPPENS-IN-THE-FIRST-ONE...
    local attempt
    for attempt in 1 2 3; do
        "$1" web
        stop_source_as_agent_acts "${@:3}" && "$2" && return 0
        diag "missed, attempt $attempt: $(job a web '[.events[].message][-1]')"
        "$LAB" hold a nothing
        "$LAB" libvirtd a resume
        forget web
    done
    bail "could not stop libvirtd between the agent's look and its action"
}

# It has given up its query to a's libvirtd, and asks again.
has_waited() { [[ $(job a "$1" .recovery.evidence) == "source: unknown"* ]]; }

arrive_with_a_copy_left() {
    arrive_unheard "$1"
    "$LAB" libvirtd a start
}

has_definition_file() { [[ -e $LAB_DIR/node-a/etc-libvirt/qemu/web.xml ]]; }

test_a_lost_undefine() {
    # The operator destroys the stopped copy that the agent has found; the agent is left to remove its definition.
    at_the_moment arrive_with_a_copy_left has_definition_file 4 "$LAB" virsh a destroy web
    ok "a's libvirtd hangs as the agent is about to undefine a guest that has migrated to b" wait_until 20 has_waited web
    is "... where it runs" "$(state b web)" "running (migrated)"
    "$LAB" virsh b destroy web >/dev/null
    "$LAB" virsh b undefine web >/dev/null
    "$LAB" libvirtd a resume
    ok "... its owner undefines it there; the last definition, at a, survives when a's libvirtd continues" stays 6 is_defined a web
    tell a web
    forget web
}

# libvirt's Finish does not reach the target: the guest never ran there, and a holds a stopped copy, the only one.
stop_short_of_the_target() { # stop_short_of_the_target GUEST
    "$LAB" guest "$1" --memory 128
    ctl a migrate "$1" "$slow_b" -o completion_timeout_s_per_gib=0 --detach >/dev/null
    wait_until 20 moves "$1" || bail "$1 does not migrate: $(ctl a show "$1")"
    "$LAB" hold a all
    wait_until 30 is_stopped a "$1"
    # until QEMU has sent the rest
    stays 2 is_stopped a "$1"
    agent_end a KILL
    "$LAB" libvirtd a kill
    "$LAB" break a
    "$LAB" hold a nothing
    "$LAB" libvirtd a start
    wait_until 20 refused is_defined b "$1"
}

is_stopped() { [[ $(state "$1" "$2") == paused* ]]; }

is_silent() {
    local size
    size=$(stat -c %s "$LAB_DIR/guests/web/serial")
    sleep 0.2
    [[ $size == "$(stat -c %s "$LAB_DIR/guests/web/serial")" ]]
}

test_a_lost_resume() {
    at_the_moment stop_short_of_the_target is_silent 3 true
    ok "a's libvirtd hangs as the agent is about to resume a guest that never ran at b" wait_until 20 has_waited web
    is "... and b does not have it" "$(is_defined b web && echo known)" ""
    "$LAB" virsh b create "$LAB_DIR/guests/web/domain.xml" >/dev/null
    "$LAB" libvirtd a resume
    ok "... its owner starts it at b; it runs only there when a's libvirtd continues" stays 6 runs_only_on web b
    tell a web
    forget web
}

# --- what others do with a guest ---

test_an_abort_is_of_its_own_migration_only() {
    local status=0
    "$LAB" guest web --memory 192 --ws 100 --rate 200
    ctl a migrate web node-b -o completion_timeout_s_per_gib=0 --detach >/dev/null
    wait_until 20 moves web
    "$LAB" libvirtd b pause
    ctl a abort web --no-wait >/dev/null
    sleep 1
    "$LAB" libvirtd b kill
    ok "a migration is aborted while its target is down: the outcome is unknown" wait_until 30 job_is a web .phase recovering
    is "... the guest runs at a" "$(state a web | cut -d' ' -f1)" running
    "$LAB" link 400mbit a c
    timeout 90 "$LAB" virsh a migrate --live --p2p --persistent --undefinesource --auto-converge --timeout 5 --timeout-suspend \
        web "$("$LAB" uri c --tcp)" >"$LAB_DIR/owner.log" 2>&1 || status=$?
    diag "the owner's virsh migrate: status $status, $(xargs -0 <"$LAB_DIR/owner.log")"
    is "... its owner migrates it to c with virsh, and nobody cancels that" "$status $(running_on web)" "0 c"
    "$LAB" libvirtd b start
    wait_until 30 job_is_over a web
    is "... and its job, which does not know about c, does not say that it is stopped" \
        "$(job a web '.result.running_at == "none"')" false
    tell a web
    forget web
    "$LAB" link none a c
}

# --- addresses where nobody answers ---

knows_its_libvirtd() { [[ $(ctl a -j node | jq .libvirt_reachable) == true ]]; }

test_dead_addresses() {
    local i pids=()
    "$LAB" guest web --memory 64
    # c silently drops packets to these addresses.
    on_node c ip route add blackhole 10.78.0.0/24
    on_node a ip route add 10.78.0.0/24 via 10.77.0.3 dev to-c onlink
    for ((i = 1; i <= 80; i++)); do
        ctl a check web "qemu+tcp://10.78.0.$i/system" >/dev/null 2>&1 &
        pids+=($!)
    done
    wait "${pids[@]}"
    diag "one more check says: $(ctl a -j check web qemu+tcp://10.78.0.99/system |
        jq -r '.findings[] | select(.code == "TARGET_UNREACHABLE").seen')"
    "$LAB" libvirtd a kill
    wait_until 10 refused knows_its_libvirtd
    "$LAB" libvirtd a start
    ok "80 addresses where nobody answers: the agent still reaches its own libvirtd" wait_until 20 knows_its_libvirtd
    timeout 60 "$HANDOFFCTL" --socket "$(agent_dir a)/socket" migrate web node-b >/dev/null 2>&1
    is "... and migrates to a target that answers" "$(running_on web)" b
    on_node a ip route del 10.78.0.0/24
    forget web
}

tap_lab --nodes a,b,c
kernel=$LAB_DIR/bin/guest.elf # all guests boot from it
for name in a b; do
    on_node "$name" mkdir -p "$images"
    "$LAB" virsh "$name" pool-create-as images dir --target "$images" >/dev/null
done
agent_configure a PollInterval=200ms ConnectTimeout=1s
agent_configure b "IncomingURI=$("$LAB" uri b --tcp)" IncomingMigrateURI=tcp://10.77.0.2
"$LAB" link 400mbit a b
"$LAB" forward a $PORT b 16509
agent_start a
agent_start b
tests=(sent_on_to_a_third_node seen_there_by_an_agent_that_was_killed a_later_start_failed target_away_from_mid_move_on
    target_away_all_along masked_storage a_lost_undefine a_lost_resume an_abort_is_of_its_own_migration_only dead_addresses)
# arguments: only these
(($# == 0)) || tests=("$@")
for name in "${tests[@]}"; do
    begun=$SECONDS
    "test_$name"
    diag "$name: $((SECONDS - begun)) s"
done
for name in a b; do
    agent_end "$name" TERM
    # shellcheck disable=SC2154  # set by agent_end
    is "SIGTERM stops the agent of node $name cleanly" "$agent_status" 0
done
done_testing
