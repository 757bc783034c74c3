#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# handoffd migrates a live guest between two real hypervisors: twenty times back and forth, aborted, past its deadline,
# refused where it cannot work, with libvirtd hung, and with the agent killed.
set -u
# shellcheck source=lib/tap.sh
. "$(dirname "$(readlink -f "$0")")/lib/tap.sh"
# shellcheck source=lib/agent.sh
. "$TAP_HOME/lib/agent.sh"

declare -A uri

# --- there and back ---

# Migrates once; the facts go into the arrays for the summary.
move() { # move NUMBER FROM TO
    local number=$1 from=$2 to=$3 output status=0 facts
    "$LAB" mark web >/dev/null
    output=$(ctl "$from" -j migrate web "${uri[$to]}") || status=$?
    facts=$("$LAB" truth web)
    if [[ $status == 0 && $(jq -c '[.running_on, .bad_pages, .restarts, .time_backwards]' <<<"$facts") == "[[\"$to\"],0,0,0]" ]]; then
        ((moved++))
    else
        diag "migration $number, $from to $to: status $status" "$(tail -1 <<<"$output")" "$facts"
    fi
    silences+=("$(jq .longest_silence_ms <<<"$facts")")
    downtimes+=("$(job "$from" web .result.downtime_ms)")
}

# A target looks for itself, and so may notice a moment after the source has reported the end.
targets_saw() { # targets_saw COUNT
    [[ $(for i in a b; do ctl "$i" -j list; done |
        jq -s '[.[].jobs[] | select(.phase == "succeeded" and .direction == "incoming")] | length') == "$1" ]]
}

test_there_and_back() {
    local i silences=() downtimes=() moved=0 list
    "$LAB" guest web --memory 128 --ws 32 --rate 20
    "$LAB" link 1gbit
    for i in {1..10}; do
        move $((2 * i - 1)) a b
        move $((2 * i)) b a
    done
    is "20 migrations back and forth: one running copy and good memory after each" "$moved" 20
    is "every one of them succeeded, says the source" \
        "$(for i in a b; do ctl $i -j list; done | jq -s '[.[].jobs[] | select(.phase == "succeeded" and .direction == "outgoing")] | length')" 20
    ok "... and so says the target, independently" wait_until 30 targets_saw 20
    list=$(printf '%s\n' "${silences[@]}" | sort -n | tr '\n' ' ')
    diag "the guest's silences in ms: $list"
    # A guest that waits for the host's CPU is silent as well: on a busy machine that can spoil one of many migrations.
    num "the agent's downtime matches the guest's silence within 50 ms, with at most two exceptions: how many" \
        "$(for i in "${!silences[@]}"; do echo "[${silences[i]}, ${downtimes[i]}]"; done | jq -s 'map(select(.[0] - .[1] | fabs > 50)) | length')" '<=' 2
    "$LAB" guest-rm web
}

# --- what the agent says, and what the wire and the guest saw ---

# Migrates a fresh guest; sets $progress, $facts, $wire, $stopwatch_ms
move_near_the_link() {
    "$LAB" guest web --memory 256 --ws 64 --rate 20
    "$LAB" mark web >/dev/null
    stopwatch ctl a -j migrate web "${uri[b]}" >"$LAB_DIR/progress"
    progress=$(<"$LAB_DIR/progress")
    facts=$("$LAB" truth web)
    wire=$("$LAB" wire --threshold 100000) # not the checks' questions
}

numbers_agree() {
    near "$(job a web .result.downtime_ms)" "$(jq .longest_silence_ms <<<"$facts")" &&
        near "$(job a web "$streaming")" "$(jq .stream_ms <<<"$wire")" &&
        near "$(job a web .result.total_time_ms)" "$stopwatch_ms"
}

test_agent_tells_the_truth() {
    local facts wire progress attempt stopwatch_ms streaming='.result.parts | .first_pass_ms + .passes_ms + .switch_ms'
    "$LAB" link 400mbit
    # Retries at most twice, in case a busy host interfered: a real fault fails three times.
    for attempt in 1 2 3; do
        ((attempt == 1)) || "$LAB" guest-rm web
        move_near_the_link
        ! numbers_agree >/dev/null || break
        diag "silence $(jq .longest_silence_ms <<<"$facts") ms, stream $(jq .stream_ms <<<"$wire") ms: $(job a web '.result | tojson')"
    done
    is "a guest that writes near the link's rate migrates" "$(tail -1 <<<"$progress" | jq -r .job.phase)" succeeded
    ok "downtime matches the guest's silence" near "$(job a web .result.downtime_ms)" "$(jq .longest_silence_ms <<<"$facts")"
    is "... by the events of both ends" "$(job a web .result.downtime_source)" events
    ok "... and libvirt's own count matches, too" \
        near "$(job a web .result.libvirt_downtime_ms)" "$(jq .longest_silence_ms <<<"$facts")"
    ok "the passes and the switch match the stream on the wire" near "$(job a web "$streaming")" "$(jq .stream_ms <<<"$wire")"
    times_are_true "request to end" a web "$stopwatch_ms"
    is "... and every part was seen to begin" "$(job a web .result.parts.exact)" true
    num "transferred bytes match the wire, within 5 %" \
        "$(jq -n "$(job a web .result.transferred_bytes) / $(jq .stream_bytes <<<"$wire") - 1 | fabs")" '<=' 0.05
    diag "silence $(jq .longest_silence_ms <<<"$facts") ms, downtime $(job a web .result.downtime_ms) ms;" \
        "stream $(jq .stream_ms <<<"$wire") ms, libvirt's time $(job a web .result.libvirt_time_ms) ms"
    ok "progress never went backwards, and ended at 100" \
        jq -es '[.[].job | .progress.percent // 0] | . == sort and last == 100' <<<"$progress"
    ok "dirty rate and bandwidth were reported meanwhile, in bytes/s" \
        jq -es '[.[].job.progress // empty] | (map(.dirty_rate_bytes_per_s) | max | . > 10e6 and . < 40e6)
            and (map(.bandwidth_bytes_per_s) | max | . > 30e6 and . < 60e6)' <<<"$progress"
    "$LAB" guest-rm web
}

# --- aborts and deadlines ---

nothing_at_target() {
    [[ -z $("$LAB" virsh b list --all --name | tr -d '[:space:]') ]] && ! "$LAB" exec b pgrep qemu-system >/dev/null
}

test_abort() {
    local status=0 pid
    "$LAB" guest hot --memory 256 --ws 100 --rate 200
    "$LAB" mark hot >/dev/null
    ctl a migrate hot "${uri[b]}" >"$LAB_DIR/abort.log" &
    pid=$!
    wait_until 10 job_is a hot .phase migrating
    sleep 1
    ok "abort after a second is accepted" ctl a abort hot
    wait "$pid" || status=$?
    is "the attached migrate exits with 11" "$status" 11
    is "the cause is USER_ABORT" "$(job a hot '[.phase, .failure.cause, .result.running_at] | join(" ")')" \
        "aborted USER_ABORT source"
    is "the guest keeps running at the source" "$(truth hot '[.running_on[], .bad_pages, .restarts] | join(" ")')" "a 0 0"
    ok "no trace is left at the target" wait_until 5 nothing_at_target
    is "a second abort says that the job has ended" "$(ctl a abort hot >/dev/null 2>&1; echo $?)" 10
}

test_deadline() {
    local status=0 took_ms
    ctl a migrate hot "${uri[b]}" -o completion_timeout_s_per_gib=5 >"$LAB_DIR/deadline.log" || status=$?
    is "a guest that cannot converge in time: exit 12" "$status" 12
    is "... cause DEADLINE, keeps running at the source" \
        "$(job a hot '[.phase, .failure.cause, .result.running_at] | join(" ")')" "aborted DEADLINE source"
    took_ms=$(job a hot '(.finished_usec_realtime - .started_usec_realtime) / 1000')
    num "... within a second of the deadline, 1.25 s for 256 MiB at 5 s/GiB: ms off" \
        "$(jq -n "$took_ms - 1250 | fabs")" '<=' 1000
    ok "... and says so with numbers" grep -Eq '5 s/GiB.*MiB of memory remain' "$LAB_DIR/deadline.log"
    is "... the guest's memory is good" "$(truth hot '[.running_on[], .bad_pages] | join(" ")')" "a 0"
    ok "... no trace is left at the target" wait_until 5 nothing_at_target
}

# --- what cannot work ---

test_refusals() {
    local status log=$LAB_DIR/refused.log
    status=0
    ctl a migrate nobody "${uri[b]}" >"$log" 2>&1 || status=$?
    is "an unknown domain: exit 5" "$status" 5
    ok "... and the message names it" grep -q nobody "$log"
    status=0
    ctl a migrate hot "${uri[a]}" >"$log" 2>&1 || status=$?
    is "target = same host: refused, exit 4" "$status $(job a hot .failure.cause)" "4 SAME_HOST"
    status=0
    ctl a migrate hot qemu+tcp://10.77.0.99/system >"$log" 2>&1 &
    ok "a job waits for an unreachable target, and says so" wait_until 10 job_is a hot .pending.reason TARGET_UNREACHABLE
    wait "$!" || status=$?
    is "... for UnschedulableTimeout=: exit 4" "$status $(job a hot .failure.cause)" "4 TARGET_UNREACHABLE"
    ok "... and the message has the address" grep -q "10\.77\.0\.99" "$log"
    status=0
    ctl a migrate hot nowhere >"$log" 2>&1 || status=$?
    is "a target that is neither configured nor a URI: exit 5" "$status" 5
    status=0
    ctl a migrate hot "${uri[b]}" -o allow_post_copy=yes -o parallel_connections=4 >"$log" 2>&1 || status=$?
    ok "conflicting goals are refused before anything starts" grep -q post_copy "$log"
    is "... exit 4" "$status" 4
}

# --- a hung libvirtd, a killed agent ---

# The longest time that Get and List together took, in ms, called over and over for SECONDS.
worst_answer_ms() { # worst_answer_ms SECONDS JOB
    local until=$((SECONDS + $1)) begin worst=0 took
    while ((SECONDS < until)); do
        begin=${EPOCHREALTIME/./}
        ctl a -j show "$2" >/dev/null && ctl a -j list >/dev/null || worst=999999
        took=$((${EPOCHREALTIME/./} - begin))
        ((took <= worst)) || worst=$took
        sleep 0.05
    done
    echo $((worst / 1000))
}

test_hung_libvirtd() {
    local pid status=0 id
    "$LAB" guest web --memory 256 --ws 64 --rate 20
    "$LAB" mark web >/dev/null
    ctl a migrate web "${uri[b]}" >"$LAB_DIR/hung.log" &
    pid=$!
    wait_until 10 job_is a web .stage pre_copy
    id=$(job a web .id)
    "$LAB" libvirtd a pause
    num "with the source's libvirtd stopped, Get and List still answer within 100 ms each, together in ms" "$(worst_answer_ms 5 "$id")" '<=' 200
    "$LAB" libvirtd a resume
    wait "$pid" || status=$?
    is "libvirtd continues, and the migration succeeds" "$status $(job a web .phase)" "0 succeeded"
    is "one copy, good memory" "$(truth web '[.running_on[], .bad_pages] | join(" ")')" "b 0"
    "$LAB" guest-rm web
}

test_killed_agent() {
    local id status=0 begin
    "$LAB" guest web --memory 256 --ws 64 --rate 20
    "$LAB" mark web >/dev/null
    begin=${EPOCHREALTIME/./}
    ctl a migrate web "${uri[b]}" --detach >/dev/null
    id=$(job a web .id)
    wait_until 10 job_is a web .stage pre_copy
    agent_end a KILL
    agent_start a
    ok "killed in the middle and restarted, the agent has the job" job a "$id" .id
    ctl a watch "$id" >/dev/null || status=$?
    times_are_true "killed in the middle" a "$id" $(((${EPOCHREALTIME/./} - begin) / 1000))
    ok "... its downtime matches the guest's silence" near "$(job a "$id" .result.downtime_ms)" "$(truth web .longest_silence_ms)"
    is "... follows it to its end, and reports success" "$status $(job a "$id" .phase)" "0 succeeded"
    ok "... its history has no gap" jq -e '[.job.events[].seq] | . == [range(1; length + 1)]' <<<"$(ctl a -j show "$id")"
    is "... one copy, good memory" "$(truth web '[.running_on[], .bad_pages] | join(" ")')" "b 0"
}

tap_lab
uri[a]=$("$LAB" uri a --tcp)
uri[b]=$("$LAB" uri b --tcp)
mkdir -p "$(agent_dir a)"
printf '[Agent]\nUnschedulableTimeout=5s\n' >"$(agent_dir a)/conf"
agent_start a
agent_start b
test_there_and_back
test_agent_tells_the_truth
test_abort
test_deadline
test_refusals
test_hung_libvirtd
test_killed_agent
for node in a b; do
    agent_end $node TERM
    is "SIGTERM stops the agent of node $node cleanly" "$agent_status" 0
done
done_testing
