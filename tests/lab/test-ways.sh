#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# The ways out of a migration that does not converge, on two real hypervisors: each where it is permitted, none where none is,
# and none at all when the link is at fault.
set -u
# shellcheck source=lib/tap.sh
. "$(dirname "$(readlink -f "$0")")/lib/tap.sh"
# shellcheck source=lib/agent.sh
. "$TAP_HOME/lib/agent.sh"

# migrate GOAL...: migrates the hopeless guest; leaves the outcome in $outcome
migrate() {
    local goal options=() status=0
    for goal; do options+=(-o "$goal"); done
    "$LAB" guest hot --memory 256 --ws 100 --rate 200
    "$LAB" mark hot >/dev/null
    stopwatch ctl a migrate hot "$target" "${options[@]}" >"$LAB_DIR/hot.log" 2>&1 || status=$?
    outcome=$(job a hot '[.phase, .failure.cause // "-", .result.running_at] | join(" ")')
    outcome="$status $outcome $(truth hot '[.running_on[], .bad_pages, .restarts] | join(" ")')"
}

events() { job a hot '.events[] | select(.kind == "decision" or .kind == "stage") | .message'; }

test_nothing_permitted() {
    migrate
    is "no way is permitted: aborted as NOT_CONVERGING, the guest keeps running at the source" "$outcome" \
        "11 aborted NOT_CONVERGING source a 0 0"
    num "... waited for as long as the first pass took, and no longer: ms" "$(job a hot .progress.elapsed_ms)" '<=' 30000
    ok "... and it says which pause would do" grep -Eq 'Would finish with max_pause_ms=[0-9]+' "$LAB_DIR/hot.log"
    "$LAB" guest-rm hot
}

test_pause() {
    migrate max_pause_ms=4000
    is "a pause is permitted: it migrates" "$outcome" "0 succeeded - target b 0 0"
    num "... within the permitted pause" "$(truth hot .longest_silence_ms)" '<=' 4000
    ok "... by a pause that was decided on" grep -q '^pause: ' <(events)
    times_are_true "... request to end" a hot "$stopwatch_ms"
    ok "... downtime matches the guest's silence" near "$(job a hot .result.downtime_ms)" "$(truth hot .longest_silence_ms)"
    diag "forecast: $(events | grep '^pause: ' | grep -o 'silent for [0-9]* ms' | head -1); measured: $(truth hot .longest_silence_ms) ms"
    "$LAB" guest-rm hot
}

test_post_copy() {
    migrate allow_post_copy=yes
    is "post-copy is permitted: it migrates" "$outcome" "0 succeeded - target b 0 0"
    ok "... by post-copy" grep -q 'now in post_copy' <(events)
    times_are_true "... request to end" a hot "$stopwatch_ms"
    is "... and every part was seen to begin" "$(job a hot .result.parts.exact)" true
    # The silence is longer: at the target, the guest waits for the pages that it touches.
    ok "... downtime matches how long the guest's clock stood still" \
        near "$(job a hot .result.downtime_ms)" "$(truth hot .clock_stopped_ms)"
    num "... and is part of its silence" "$(job a hot .result.downtime_ms)" '<=' "$(truth hot .longest_silence_ms)"
    diag "downtime $(job a hot .result.downtime_ms) ms, silence $(truth hot .longest_silence_ms) ms"
    ctl a report hot --svg "$LAB_DIR/hot.svg" >"$LAB_DIR/hot.report"
    ok "... and a report shows it" grep -Eq '^ +stages .*[|]post-copy-' "$LAB_DIR/hot.report"
    is "... with a well-formed chart" "$(xmllint --xpath 'local-name(/*)' "$LAB_DIR/hot.svg")" svg
    "$LAB" guest-rm hot
}

# What was on record before counts.
test_killed_in_post_copy() {
    local begin
    "$LAB" guest hot --memory 256 --ws 100 --rate 200
    "$LAB" mark hot >/dev/null
    begin=${EPOCHREALTIME/./}
    ctl a migrate hot "$target" -o allow_post_copy=yes --detach >/dev/null
    wait_until 20 job_is a hot .stage post_copy
    agent_end a KILL
    agent_start a
    ctl a watch hot >/dev/null
    times_are_true "killed in post-copy" a hot $(((${EPOCHREALTIME/./} - begin) / 1000))
    ok "... its downtime is what was heard before" near "$(job a hot .result.downtime_ms)" "$(truth hot .clock_stopped_ms)"
    is "... the guest runs at the target, its memory is good" "$(truth hot '[.running_on[], .bad_pages] | join(" ")')" "b 0"
    "$LAB" guest-rm hot
}

stalled() { grep -q 'No data has moved' <(job a web '.events[].message'); }

test_link_at_fault() {
    local pid status=0
    "$LAB" guest web --memory 256 --ws 64 --rate 20
    ctl a migrate web "$target" -o max_pause_ms=4000 -o progress_timeout_s=5 >"$LAB_DIR/cut.log" 2>&1 &
    pid=$!
    wait_until 10 job_is a web .stage pre_copy
    wait_until 10 job_is a web '(.progress.memory_processed_bytes // 0) > 20000000' true
    "$LAB" cut --silent
    ok "the link is cut in pre-copy: it counts as stalled at the progress timeout" wait_until 15 stalled
    "$LAB" heal
    wait "$pid" || status=$?
    is "... aborted as LINK_STALLED" "$status $(job a web '[.phase, .failure.cause, .result.running_at] | join(" ")')" \
        "11 aborted LINK_STALLED source"
    is "... without a pause or post-copy" "$(job a web '[.events[] | select(.message | test("^(pause|start_post_copy): "))] | length')" 0
    is "... and the guest keeps running at the source" "$(truth web '[.running_on[], .bad_pages, .restarts] | join(" ")')" "a 0 0"
}

tap_lab
target=$("$LAB" uri b --tcp)
agent_start a
"$LAB" link 400mbit
test_nothing_permitted
test_pause
test_post_copy
test_killed_in_post_copy
test_link_at_fault
agent_end a TERM
# shellcheck disable=SC2154  # set by agent_end
is "SIGTERM stops the agent cleanly" "$agent_status" 0
done_testing
