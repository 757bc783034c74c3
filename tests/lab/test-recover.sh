#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# Faults during a migration, one by one: the link, the stream, the agent, libvirtd and QEMU at either end, the guest itself.
# tests/lab/chaos injects them at random; here each has its place, its time limit and its outcome.
set -u
# shellcheck source=lib/tap.sh
. "$(dirname "$(readlink -f "$0")")/lib/tap.sh"
# shellcheck source=lib/agent.sh
. "$TAP_HOME/lib/agent.sh"

PORT=49300

# hopeless NAME: a guest that migrates by post-copy or not at all
hopeless() { "$LAB" guest "$1" --memory 192 --ws 100 --rate 200; }
# steady NAME: a guest that takes about five seconds on this link and needs no decision
steady() { "$LAB" guest "$1" --memory 192 --ws 16 --rate 5; }

# begin NAME OPTION...: starts its migration, with options of `handoffctl migrate`
begin() {
    "$LAB" mark "$1" >/dev/null
    ctl a migrate "$1" "$target" --detach "${@:2}" >/dev/null
}

moves() { job_is a "$1" '(.phase == "migrating") and ((.progress.memory_processed_bytes // 0) > 10000000)' true; }
in_post_copy() { job_is a "$1" .stage post_copy; }
half_way() { job_is a "$1" '(.stage == "post_copy") and (.progress.memory_remaining_bytes < .progress.memory_total_bytes / 2)' true; }
is_over() { job_is_over a "$1"; }
recovering() { job_is a "$1" .phase recovering; }

# ended NAME SECONDS: waits for its end, and prints phase, cause, where the job says it runs, and then what the lab says
ended() {
    wait_until "$2" is_over "$1"
    printf '%s %s\n' "$(job_end a "$1")" \
        "$(truth "$1" '[.running_on[], .bad_pages, .time_backwards, .restarts] | join(" ")')"
}

left_at() { # left_at NODE: domains and QEMUs there
    "$LAB" virsh "$1" list --all --name | xargs
    "$LAB" exec "$1" pgrep -c qemu-system
}
# known_at NAME: the nodes that know it, one per line
known_at() {
    local node
    for node in a b; do
        if "$LAB" virsh "$node" list --all --name | grep -x "$1" >/dev/null; then echo "$node"; fi
    done
}
nothing_at() { [[ $(left_at "$1" | xargs) == 0 ]]; }

# The time to the first heartbeat after TIME_US, in ms; -1 if there is none.
heartbeat_after() { # heartbeat_after NAME TIME_US
    awk -v from="$2" '$1 > from {print ($1 - from) / 1000; found = 1; exit} END {if (!found) print -1}' \
        "$LAB_DIR/guests/$1/growth.log"
}

now_us() { "$LAB_DIR/bin/lab-record" now; }

# --- the link is down for 40 s ---

# Two migrations at once: one in post-copy, whose stream is also broken, and one in pre-copy.
test_link_away() {
    local healed_us healed_s back_ms words
    "$LAB" guest calm --memory 256 --ws 16 --rate 5
    hopeless wild
    begin calm -o completion_timeout_s_per_gib=0
    begin wild -o allow_post_copy=yes --migrate-uri "tcp://10.77.0.1:$PORT"
    wait_until 20 half_way wild
    # The agent meets both at once: a resume that it asked for in between would sit in TCP's retransmissions.
    "$LAB" exec a pkill -STOP -x handoffd
    "$LAB" break a
    "$LAB" cut --silent
    "$LAB" exec a pkill -CONT -x handoffd
    ok "stream broken and link cut in post-copy: phase recovering within 10 s" wait_until 10 recovering wild
    sleep 40
    words=$(ctl a show wild)
    # Its last look may date from before the cut, if it was quick enough.
    ok "... meanwhile show says what holds it up" \
        grep -Eq '^seen .*(cannot reach 10\.77\.0\.2|resumes post-copy once the link is back)' <<<"$words"
    diag "$(grep -E '^(recovering|seen|attempts|next) ' <<<"$words")"
    ok "in pre-copy it is said, too, and nothing more before the target can be asked" recovering calm
    ok "... with the answers of both ends" grep -q 'source: running; target: unknown' <<<"$(job a calm .recovery.evidence)"
    healed_us=$(now_us) healed_s=$EPOCHREALTIME
    "$LAB" heal
    wait_until 10 is_over calm
    num "the link is back: the one in pre-copy is settled soon: s" "$(jq -n "now - $healed_s")" '<=' 15
    is "... LINK_LOST, runs at the source" "$(ended calm 60)" "failed LINK_LOST source a 0 0 0"
    is "the one in post-copy recovers without help, memory good" "$(ended wild 30)" "succeeded - target b 0 0 0"
    back_ms=$(heartbeat_after wild "$healed_us")
    num "... the guest runs again soon after the link is back: ms (goal: 3000)" "$back_ms" '<=' 10000
    num "... and had stopped before" "$back_ms" '>' 0
    ok "... neither has left anything behind" wait_until 30 only_these calm wild
    "$LAB" guest-rm calm
    "$LAB" guest-rm wild
}

test_short_outage() {
    steady web
    begin web
    wait_until 10 moves web
    "$LAB" cut --silent
    sleep 8
    "$LAB" heal
    is "the link is down for 8 s in pre-copy: the migration continues" "$(ended web 60)" "succeeded - target b 0 0 0"
    "$LAB" guest-rm web
}

# --- the agent ---

test_agent_killed_then_stream_broken() {
    hopeless web
    begin web -o allow_post_copy=yes --migrate-uri "tcp://10.77.0.1:$PORT"
    wait_until 20 in_post_copy web
    agent_end a KILL
    "$LAB" break a
    sleep 1
    agent_start a
    is "the agent is killed in post-copy, the stream broken, the agent restarted: recovered" \
        "$(ended web 30)" "succeeded - target b 0 0 0"
    ok "... its history has no gap" jq -e '[.job.events[].seq] | . == [range(1; length + 1)]' <<<"$(ctl a -j show web)"
    ok "... nothing is left at the source" wait_until 5 nothing_at a
    "$LAB" guest-rm web
}

# --- libvirtd ---

# libvirtd_killed NODE CAUSE: two migrations at once, one in pre-copy, one in post-copy
libvirtd_killed() {
    steady calm
    hopeless wild
    begin calm
    begin wild -o allow_post_copy=yes
    wait_until 20 in_post_copy wild
    wait_until 10 moves calm
    "$LAB" libvirtd "$1" kill
    sleep 1
    "$LAB" libvirtd "$1" start
    is "libvirtd of $1 is killed: the guest in post-copy migrates anyway" "$(ended wild 60)" "succeeded - target b 0 0 0"
    is "... the guest in pre-copy stays, and the job says so" "$(ended calm 60)" "failed $2 source a 0 0 0"
    ok "... calm leaves nothing at the target, wild nothing at the source" wait_until 10 only_these calm wild
    "$LAB" guest-rm calm
    "$LAB" guest-rm wild
}

test_source_libvirtd_killed() { libvirtd_killed a SOURCE_UNREACHABLE; }
test_target_libvirtd_killed() { libvirtd_killed b LINK_LOST; }

only_these() { # only_these AT-SOURCE AT-TARGET
    [[ "$(left_at a | xargs) $(left_at b | xargs)" == "$1 1 $2 1" ]]
}

# --- the guest ---

test_guest_stops() {
    steady one
    hopeless two
    begin one
    begin two -o allow_post_copy=yes
    wait_until 20 in_post_copy two
    wait_until 10 moves one
    "$LAB" virsh a destroy one >/dev/null
    "$LAB" virsh b destroy two >/dev/null
    is "destroyed at the source in pre-copy: failed, GUEST_STOPPED, runs nowhere" "$(ended one 30)" \
        "failed GUEST_STOPPED none 0 0 0"
    is "destroyed at the target in post-copy: the same" "$(ended two 30)" "failed GUEST_STOPPED none 0 0 0"
    "$LAB" guest-rm one
    "$LAB" guest-rm two

    steady one
    begin one
    wait_until 10 moves one
    "$LAB" qemu b one kill
    is "the target's QEMU is killed in pre-copy: failed, keeps running at the source" "$(ended one 30)" "failed LIBVIRT_ERROR source a 0 0 0"
    ok "... nothing is left at the target" wait_until 5 nothing_at b
    begin one
    wait_until 10 moves one
    "$LAB" qemu a one kill
    is "the source's QEMU is killed in pre-copy: GUEST_STOPPED" "$(ended one 30)" "failed GUEST_STOPPED none 0 0 0"
    ok "... nothing is left at the target" wait_until 5 nothing_at b
    "$LAB" guest-rm one
}

# The guest ends by itself while it migrates: migrations of 12 s, and the end 6 s after the guest's boot.
test_guest_ends_by_itself() {
    "$LAB" guest off --memory 96 --end poweroff:6
    begin off -o bandwidth_bytes_per_s=8M
    "$LAB" guest crash --memory 96 --end crash:6
    begin crash -o bandwidth_bytes_per_s=8M -o completion_timeout_s_per_gib=0
    is "it powers off in pre-copy: failed, GUEST_STOPPED, runs nowhere" "$(ended off 60)" "failed GUEST_STOPPED none 0 0 0"
    "$LAB" guest again --memory 96 --end reboot:6
    begin again -o bandwidth_bytes_per_s=8M -o completion_timeout_s_per_gib=0
    # libvirt acts on a panic only after the migration has ended, wherever the guest is then.
    is "it crashes: the same" "$(ended crash 60)" "failed GUEST_STOPPED none 0 0 0"
    wait_until 60 is_over again
    is "it reboots: it migrates anyway" "$(job a again '[.phase, .result.running_at] | join(" ")')" "succeeded target"
    num "... and did reboot" "$(truth again .restarts)" '>=' 1
    is "... its memory is good" "$(truth again .bad_pages)" 0
    is "... the two that ended leave one definition each, and no QEMU" \
        "$(known_at off | wc -l) $(known_at crash | wc -l) $(left_at a | tail -n 1) $(left_at b | tail -n 1)" "1 1 0 1"
    "$LAB" guest-rm off
    "$LAB" guest-rm crash
    "$LAB" guest-rm again
}

# The target is short of memory, and says so when it starts its QEMU.
test_target_out_of_memory() {
    local pid
    "$LAB" guest big --memory 3072 --fill 32
    pid=$("$LAB" exec b pgrep -x libvirtd)
    "$LAB" exec b prlimit --pid "$pid" --as=$((3 << 30)):
    begin big
    is "the target is out of memory: failed, keeps running at the source" "$(ended big 60)" "failed LIBVIRT_ERROR source a 0 0 0"
    ok "... with QEMU's own message" grep -q 'Cannot allocate memory' <<<"$(ctl a show big)"
    ok "... nothing is left at the target" wait_until 10 nothing_at b
    "$LAB" exec b prlimit --pid "$pid" --as=unlimited:
    begin big
    is "once it has memory again, the guest migrates" "$(ended big 60)" "succeeded - target b 0 0 0"
    "$LAB" guest-rm big
}

tap_lab
target=$("$LAB" uri b --tcp)
agent_start a
"$LAB" link 300mbit
"$LAB" forward a $PORT b
tests=(link_away short_outage agent_killed_then_stream_broken source_libvirtd_killed target_libvirtd_killed guest_stops guest_ends_by_itself target_out_of_memory)
# arguments: only these
(($# == 0)) || tests=("$@")
for name in "${tests[@]}"; do
    begun=$SECONDS
    "test_$name"
    diag "$name: $((SECONDS - begun)) s"
done
agent_end a TERM
# shellcheck disable=SC2154  # set by agent_end
is "SIGTERM stops the agent cleanly" "$agent_status" 0
done_testing
