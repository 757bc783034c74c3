# SPDX-License-Identifier: LGPL-2.1-or-later
# shellcheck shell=bash
# handoffd on the lab's nodes, for tests. Needs lib/tap.sh and a lab that is up. The programs are those in HANDOFFD and
# HANDOFFCTL, or in the checkout's build directory.

HANDOFFD=${HANDOFFD:-$TAP_HOME/../../build/agent/handoffd}
HANDOFFCTL=${HANDOFFCTL:-$TAP_HOME/../../build/agent/ctl/handoffctl}
declare -A agent_pid

agent_dir() { printf '%s/agent-%s' "$LAB_DIR" "$1"; }

# agent_configure NODE [LINE...]: puts the lines into [Agent]; every other node of the lab is a target, node-b and so on
agent_configure() {
    local dir peer
    dir=$(agent_dir "$1")
    mkdir -p "$dir"
    {
        printf '%s\n' '[Agent]' "${@:2}"
        for peer in "$LAB_DIR"/node-?; do
            peer=${peer##*-}
            [[ $peer == "$1" ]] || printf '[Target node-%s]\nLibvirtURI=%s\n' "$peer" "$("$LAB" uri "$peer" --tcp)"
        done
    } >"$dir/conf"
}

# agent_start NODE [WRAPPER...]: keeps the state from before an agent_end. A wrapper is a program that runs its other arguments
agent_start() {
    local dir
    dir=$(agent_dir "$1")
    mkdir -p "$dir"
    [[ -e $dir/conf ]] || : >"$dir/conf"
    "$LAB" exec "$1" "${@:2}" "$HANDOFFD" --config "$dir/conf" --socket "$dir/socket" --state-dir "$dir/state" \
        >>"$dir/log" 2>&1 &
    agent_pid[$1]=$!
    wait_until 10 agent_answers "$1" || { cat "$dir/log"; bail "handoffd did not start on node $1"; }
}

agent_answers() { [[ $(ctl "$1" -j node 2>/dev/null | jq .libvirt_reachable) == true ]]; }

# agent_signal NODE SIGNAL: to the agent; lab exec passes it on
agent_signal() { kill "-$2" "${agent_pid[$1]}"; }

# shellcheck disable=SC2034  # agent_status is for the caller
# agent_end NODE SIGNAL: sends the signal, waits for the agent to exit, puts its status in agent_status. Not for a subshell.
agent_end() {
    agent_status=0
    agent_signal "$1" "$2"
    wait "${agent_pid[$1]}" 2>/dev/null || agent_status=$?
}

# ctl NODE ARGUMENTS...: runs handoffctl against the node's agent
ctl() {
    local node=$1
    shift
    "$HANDOFFCTL" --socket "$(agent_dir "$node")/socket" "$@"
}

# job NODE JOB FILTER: one fact of a job
job() { ctl "$1" -j show "$2" | jq -r ".job | $3"; }

job_is() { # job_is NODE JOB FILTER VALUE, for wait_until
    [[ $(job "$1" "$2" "$3") == "$4" ]]
}

job_is_over() { # job_is_over NODE JOB, for wait_until
    [[ $(job "$1" "$2" .phase) == @(succeeded|failed|aborted) ]]
}

# stopwatch COMMAND...: runs it, and puts what it took in $stopwatch_ms
# shellcheck disable=SC2034  # for the caller
stopwatch() {
    local begin=${EPOCHREALTIME/./} status=0
    "$@" || status=$?
    stopwatch_ms=$(((${EPOCHREALTIME/./} - begin) / 1000))
    return "$status"
}

# near MS TRUTH_MS: within 5 %, or within 50 ms
near() { jq -en "($1 - $2 | fabs) <= ([50, 0.05 * $2] | max)" >/dev/null; }

# times_are_true NAME NODE JOB STOPWATCH_MS: the job's total is the stopwatch's, and its parts add up to it
times_are_true() {
    local result
    result=$(job "$2" "$3" .result)
    ok "$1: the total, $(jq .total_time_ms <<<"$result") ms, is that of a stopwatch, $4 ms" \
        near "$(jq .total_time_ms <<<"$result")" "$4"
    ok "... its parts add up to it" jq -e '([.parts | del(.exact)[]] | add) == .total_time_ms' <<<"$result"
    diag "$(jq -c '.parts' <<<"$result")"
}

# job_end NODE JOB: phase, cause or "-", and where the job says that the guest runs
job_end() { job "$1" "$2" '[.phase, .failure.cause // "-", .result.running_at] | join(" ")'; }
