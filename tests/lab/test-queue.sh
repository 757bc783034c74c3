#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# Four guests, two at a time, under one bandwidth limit. The limits hold, by the records and by the bytes on the wire; a waiting
# job says what it waits for, and a running one what share it has.
set -u
# shellcheck source=lib/tap.sh
. "$(dirname "$(readlink -f "$0")")/lib/tap.sh"
# shellcheck source=lib/agent.sh
. "$TAP_HOME/lib/agent.sh"
# shellcheck source=lib/limits.sh
. "$TAP_HOME/lib/limits.sh"

cap=$((32 << 20))
guests=(g1 g2 g3 g4)
declare -A memory=([g1]=144 [g2]=144 [g3]=144 [g4]=208) # the last one is alone at the end

share_is() { job_is a "$1" .bandwidth_share_bytes_per_s "$2"; }

all_ended() {
    [[ $(ctl a -j list | jq '[.jobs[] | select(.phase | IN("succeeded", "failed", "aborted"))] | length') == "${#guests[@]}" ]]
}

test_shares() {
    local guest wire since until rates
    for guest in "${guests[@]}"; do "$LAB" guest "$guest" --memory "${memory[$guest]}" --ws 8 --rate 1; done
    since=$("$LAB" mark g1)
    for guest in "${guests[@]}"; do ctl a migrate "$guest" "$target" --detach >/dev/null; done

    ok "the first two share the bandwidth" wait_until 10 share_is g1 $((cap / 2))
    ok "... in equal parts" wait_until 10 share_is g2 $((cap / 2))
    ok "... and show says so" grep -q '^bandwidth  *16.* MiB/s, its share of MaxBandwidth=' <(ctl a show g2)
    is "the third waits for a slot" "$(job a g3 '[.pending.reason, .pending.queue_position] | join(" ")')" "OUTGOING_LIMIT 1"
    ok "... which show tells, since when and until when" \
        grep -Eq '^queue  *position 1, waiting since .*, times out at ' <(ctl a show g3)
    ok "... and node tells the bandwidth" grep -q '^bandwidth  *limited to 32.* MiB/s' <(ctl a node)

    ok "all of them end" wait_until 60 all_ended
    is "... at the target" "$(ctl a -j list | jq '[.jobs[] | select(.phase == "succeeded")] | length')" "${#guests[@]}"
    is "... never more than two at a time" "$(for guest in "${guests[@]}"; do ctl a -j show "$guest"; done | most_at_once)" 2
    ok "... and the last one has the full bandwidth at the end" share_is g4 $cap

    wire=$("$LAB" wire --since "$since")
    until=$(jq .stream_end_us <<<"$wire")
    rates=$(rates_on_the_wire "$(jq .stream_begin_us <<<"$wire")" "$until" | sort -n)
    diag "MiB/s on the wire, over two seconds: $(jq -sc 'map(. / 1048576 | round) | [min, .[length / 4 | floor], .[length / 2 | floor], .[length * 3 / 4 | floor], max]' <<<"$rates"); $(jq -c '{stream_ms, bytes_a_to_b}' <<<"$wire")"
    num "no two-second window on the wire exceeds the cap by more than 10 %" "$(jq -s 'max' <<<"$rates")" '<=' "$cap * 1.1"
    num "... and the median is the cap, within 10 %" "$(jq -s "(.[length / 2 | floor] / $cap - 1) | fabs" <<<"$rates")" '<=' 0.1
    for guest in "${guests[@]}"; do
        is "$guest runs at the target with good memory" "$(truth "$guest" '[.running_on[], .bad_pages, .restarts] | join(" ")')" "b 0 0"
    done
}

tap_lab
target=$("$LAB" uri b --tcp)
mkdir -p "$(agent_dir a)"
printf '[Agent]\nMaxOutgoing=2\nMaxBandwidth=32M\n' >"$(agent_dir a)/conf"
agent_start a
test_shares
agent_end a TERM
# shellcheck disable=SC2154  # set by agent_end
is "SIGTERM stops the agent cleanly" "$agent_status" 0
done_testing
