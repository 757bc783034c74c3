#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# The library's example, built against the installed library, moves a live guest without an agent: forecast, progress,
# verdict. It gives up a guest that cannot be moved within its goals, and is refused what cannot work.
set -u
# shellcheck source=lib/tap.sh
. "$(dirname "$(readlink -f "$0")")/lib/tap.sh"

# example DOMAIN TARGET-URI BYTES-PER-SECOND: on node a; leaves $output and $status
example() {
    status=0
    output=$("$LAB" exec a "$LAB_DIR/library/example" "$@" 2>&1) || status=$?
}

test_move() {
    local status output facts percents
    "$LAB" link 400mbit
    "$LAB" guest web --memory 160 --ws 48 --rate 20
    "$LAB" mark web >/dev/null
    example web "$target" 45M
    facts=$("$LAB" truth web)
    diag "$output"
    is "the example moves a guest, and exits with 0" "$status" 0
    is "... it runs at the target alone, with good memory" \
        "$(jq -c '[.running_on, .bad_pages, .restarts, .time_backwards]' <<<"$facts")" '[["b"],0,0,0]'
    ok "... as the verdict says" grep -q '^SUCCEEDED: ' <<<"$output"
    ok "... and the forecast, in the first line" grep -q '^forecast: ' <<<"$(head -n 1 <<<"$output")"
    num "its silence is within the goal, and what the switch takes: ms" "$(jq .longest_silence_ms <<<"$facts")" '<=' 800
    percents=$(grep -oE '^ *[0-9]+%' <<<"$output" | tr -d ' %')
    num "progress was printed on the way: lines" "$(wc -l <<<"$percents")" '>=' 8
    is "... and never ran backwards" "$percents" "$(sort -n <<<"$percents")"
    "$LAB" guest-rm web
}

test_hopeless() {
    local status output
    "$LAB" link 100mbit
    "$LAB" guest hot --memory 128 --ws 64 --rate 200
    "$LAB" mark hot >/dev/null
    example hot "$target" 11M
    diag "$(tail -n 4 <<<"$output")"
    is "a guest that writes faster than the link carries is given up: exit 1" "$status" 1
    ok "... with the goals that would do" grep -q max_pause_ms <<<"$output"
    ok "... as both ends say, it is at the source" grep -q '^AT_SOURCE: ' <<<"$output"
    is "... and so it is, unharmed" "$(truth hot '[.running_on[], .bad_pages, .restarts] | join(" ")')" "a 0 0"
}

test_refused() {
    local status output
    example hot "$("$LAB" uri a --tcp)" 11M
    is "a target that is the source: refused, exit 1" "$status" 1
    ok "... by the check's code" grep -q SAME_HOST <<<"$output"
    example nobody "$target" 11M
    is "an unknown domain: exit 1" "$status" 1
    ok "... and it is named" grep -q nobody <<<"$output"
    example hot "$target" much
    ok "a bandwidth that is no number is refused by the policy" grep -q bandwidth_bytes_per_s <<<"$output"
    "$LAB" guest-rm hot
}

tap_lab
ok "the library installs, and the example is built against it" \
    "$TAP_HOME/../library/stage" "${LAB_BUILD:-$TAP_HOME/../../build/tests/lab}/../.." "$LAB_DIR/library"
target=$("$LAB" uri b --tcp)
test_move
test_hopeless
test_refused
done_testing
