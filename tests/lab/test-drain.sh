#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# Twelve guests leave a node, two at a time and under one bandwidth limit, and the agent is killed in the middle. One of them has
# a device that is bound to its host: the drain says so at once, and the guest keeps running where it is.
set -u
# shellcheck source=lib/tap.sh
. "$(dirname "$(readlink -f "$0")")/lib/tap.sh"
# shellcheck source=lib/agent.sh
. "$TAP_HOME/lib/agent.sh"
# shellcheck source=lib/limits.sh
. "$TAP_HOME/lib/limits.sh"

cap=$((12 << 20))
bound=d7
guests=(d1 d2 d3 d4 d5 d6 d7 d8 d9 d10 d11 d12)

# A lab without an IOMMU has no device to pass through. Memory shared with the host binds a guest just as much: QEMU itself
# refuses to migrate it.
start_guests() {
    local guest
    cat >"$LAB_DIR/bound.xml" <<TEXT
<shmem name='drain-$$'>
  <model type='ivshmem-plain'/>
  <size unit='M'>1</size>
</shmem>
TEXT
    for guest in "${guests[@]}"; do
        if [[ $guest == "$bound" ]]; then
            "$LAB" guest "$guest" --memory 64 --sweep 1 --xml-extra "$LAB_DIR/bound.xml"
        else
            "$LAB" guest "$guest" --memory 64 --ws 2 --rate 1 --sweep 1
        fi
    done
}

# Counts the streams that leave node a, ten times a second, one count per line.
watch_streams() {
    "$LAB" exec a bash -c 'while sleep 0.1; do
        ss -Htn state established "( dport >= :49152 and dport <= :49215 )" | wc -l
    done' >"$LAB_DIR/streams"
}

node_drain() { ctl a -j node | jq -r ".drain | $1"; }
has_moved() { (($(node_drain .moved) >= $1)); }

test_drain() {
    local since follower streams status=0 id wire rates guest jobs
    since=$("$LAB" mark d1)
    watch_streams &
    streams=$!
    # By default a guest of 64 MiB has to arrive within 10 s; at half of the cap it takes 11 s.
    ctl a drain "$target" -o completion_timeout_s_per_gib=1500 >"$LAB_DIR/drain.log" 2>&1 &
    follower=$!

    ok "what cannot move is told at once, and why" wait_until 60 grep -q "$bound cannot be migrated: .*: SHMEM" "$LAB_DIR/drain.log"
    is "... before anything goes" "$(grep -Eo 'cannot be migrated|is migrating to' "$LAB_DIR/drain.log" | head -1)" "cannot be migrated"
    ok "the node is cordoned" grep -q '^cordoned .*cordoned for a drain' <(ctl a node)
    ok "four have migrated" wait_until 180 has_moved 4
    id=$(node_drain .id)
    agent_end a KILL
    agent_start a
    is "killed and restarted, the agent resumes the drain" "$(node_drain .id)" "$id"
    wait "$follower" || status=$?
    kill "$streams"
    wait "$streams" 2>/dev/null
    ((status == 4)) || diag "$(cat "$LAB_DIR/drain.log" "$(agent_dir a)/log")"
    is "who followed it is told of the rest; the exit status says that one cannot move" "$status" 4
    ok "... over the restart" grep -q 'Reconnected to the agent' "$LAB_DIR/drain.log"
    ok "... with a line for each domain" grep -Eq "^$bound +cannot be migrated " "$LAB_DIR/drain.log"
    ok "... and the sum of them" grep -q 'The drain has finished: 11 of 12 migrated, 1 cannot be migrated' "$LAB_DIR/drain.log"
    diag "the drain took $(node_drain '(.finished_usec_realtime - .started_usec_realtime) / 100000 | round / 10') s"

    jobs=$(ctl a -j list --all | jq -r '.jobs[].id')
    is "one job for each that migrated, all with the drain's id" \
        "$(for guest in $jobs; do ctl a -j show "$guest"; done | jq -rs --arg id "$id" 'map(select(.job.drain == $id) | .job.domain.name) | "\(length) \(unique | length)"')" "11 11"
    is "two at a time and never more, by the records" "$(for guest in $jobs; do ctl a -j show "$guest"; done | most_at_once)" 2
    is "... and by the streams on the wire" "$(sort -n "$LAB_DIR/streams" | tail -1)" 2

    wire=$("$LAB" wire --since "$since")
    rates=$(rates_on_the_wire "$(jq .stream_begin_us <<<"$wire")" "$(jq .stream_end_us <<<"$wire")" | sort -n)
    diag "MiB/s on the wire, over two seconds: $(jq -sc 'map(. / 1048576 | round) | [min, .[length / 4 | floor], .[length / 2 | floor], .[length * 3 / 4 | floor], max]' <<<"$rates"); $(jq -c '{stream_ms, bytes_a_to_b}' <<<"$wire")"
    num "no two-second window on the wire exceeds the cap by more than 10 %" "$(jq -s 'max' <<<"$rates")" '<=' "$cap * 1.1"
    num "... and the upper quartile is the cap, within 10 %: it is what limits" \
        "$(jq -s "(.[length * 3 / 4 | floor] / $cap - 1) | fabs" <<<"$rates")" '<=' 0.1

    is "all but one run at the target with good memory" \
        "$(for guest in "${guests[@]}"; do truth "$guest" '[.running_on[], .bad_pages, .restarts] | join(" ")'; done | sort | uniq -c | xargs)" "1 a 0 0 11 b 0 0"
    is "... and the other one at the source" "$(truth "$bound" '[.running_on[], .bad_pages, .restarts] | join(" ")')" "a 0 0"
    status=0
    ctl a drain "$target" >"$LAB_DIR/again.log" 2>&1 || status=$?
    is "a second drain has nothing to move" "$status $(grep -c 'is migrating to' "$LAB_DIR/again.log")" "4 0"
}

tap_lab
target=$("$LAB" uri b --tcp)
mkdir -p "$(agent_dir a)"
printf '[Agent]\nMaxOutgoing=2\nMaxBandwidth=12M\n' >"$(agent_dir a)/conf"
agent_start a
start_guests
test_drain
agent_end a TERM
# shellcheck disable=SC2154  # set by agent_end
is "SIGTERM stops the agent cleanly" "$agent_status" 0
done_testing
