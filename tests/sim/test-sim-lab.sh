#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# Six moves in the lab by plain virsh, and the same ones simulated, side by side: total time within 15 %,
# downtime within 15 % or 50 ms. (QEMU looks at what remains each 50 ms: by so much the downtime of two equal
# moves differs.) A move that is off is repeated, twice at most, and the median counts: the machine has others to serve.
set -u
here=$(dirname "$(readlink -f "$0")")
# shellcheck source=../lab/lib/tap.sh
. "$here/../lab/lib/tap.sh"
SIM_CHECK_LAB=${SIM_CHECK_LAB:-$here/../../build/tests/sim/sim-check-lab}

# One move; its numbers go to total_ms, downtime_ms, silence_ms, mib.
move() { # move NAME WS RATE OPTIONS...
    local name=$1 ws=$2 rate=$3 begin facts status=0
    shift 3
    "$LAB" guest "$name" --memory 256 --ws "$ws" --rate "$rate" >/dev/null
    sleep 1.5 # until it has filled its memory
    "$LAB" mark "$name" >/dev/null
    begin=${EPOCHREALTIME/./}
    "$LAB" virsh a migrate --live --p2p --persistent --undefinesource "$@" "$name" "$("$LAB" uri b --tcp)" \
        >"$LAB_DIR/virsh.log" 2>&1 || status=$?
    total_ms=$(((${EPOCHREALTIME/./} - begin) / 1000))
    facts=$("$LAB" truth "$name")
    downtime_ms=$(jq '.clock_stopped_ms | round' <<<"$facts")
    silence_ms=$(jq '.longest_silence_ms | round' <<<"$facts")
    mib=$("$LAB" wire | jq '.stream_bytes / 1048576 | round')
    "$LAB" guest-rm "$name" >/dev/null
    ((status == 0)) || diag "virsh says: $(cat "$LAB_DIR/virsh.log")"
    return $status
}

median() { printf '%s\n' "$@" | sort -n | sed -n "$((($# + 1) / 2))p"; }

# off MEASURED SIMULATED SLACK_MS
off() { jq -en "($1 - $2 | fabs) > ([0.15 * $1, $3] | max)" >/dev/null; }

compare() { # compare NAME WS RATE OPTIONS...
    local name=$1 sim sim_total sim_downtime tries=0 totals=() downtimes=() total downtime
    sim=$("$SIM_CHECK_LAB" run "$name")
    sim_total=$(jq .total_ms <<<"$sim")
    sim_downtime=$(jq .downtime_ms <<<"$sim")
    while ((tries++ < 3)); do
        move "$@" || continue
        totals+=("$total_ms")
        downtimes+=("$downtime_ms")
        total=$(median "${totals[@]}")
        downtime=$(median "${downtimes[@]}")
        off "$total" "$sim_total" 0 || off "$downtime" "$sim_downtime" 50 || break
    done
    if ((${#totals[@]} == 0)); then
        fail "$name: it moves"
        return
    fi
    table+=("$(printf '%-20s %9d %9d %+6.1f %% %9d %9d %+6d ms %8d %8d %7d %7d %4d' "$name" \
        "$total" "$sim_total" "$(jq -n "($sim_total / $total - 1) * 100")" \
        "$downtime" "$sim_downtime" $((sim_downtime - downtime)) \
        "$silence_ms" "$(jq .silence_ms <<<"$sim")" "$mib" "$(jq .mib <<<"$sim")" "${#totals[@]}")")
    if off "$total" "$sim_total" 0; then
        fail "$name: total time within 15 %" "measured ${totals[*]} ms, simulated $sim_total"
    else
        pass "$name: total time within 15 %"
    fi
    if off "$downtime" "$sim_downtime" 50; then
        fail "$name: downtime within 15 % or 50 ms" "measured ${downtimes[*]} ms, simulated $sim_downtime"
    else
        pass "$name: downtime within 15 % or 50 ms"
    fi
}

table=()
[[ -x $SIM_CHECK_LAB ]] || bail "no program $SIM_CHECK_LAB"
tap_lab
"$LAB" virsh b domcapabilities >/dev/null # else the first move pays for probing
"$LAB" link 400mbit
while read -r -a line <&3; do
    compare "${line[@]}"
done 3< <("$SIM_CHECK_LAB" list)
diag "$(printf '%-20s %19s %8s %19s %9s %17s %15s' move 'total ms: lab, sim' '' 'downtime: lab, sim' '' 'silence: lab, sim' 'MiB: lab, sim')"
for row in "${table[@]}"; do diag "$row"; done
done_testing
