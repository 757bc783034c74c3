# SPDX-License-Identifier: LGPL-2.1-or-later
# shellcheck shell=bash
# shellcheck disable=SC2154  # build is the including script's
# The lab and the agents on it, for benchmarks. Needs BENCH_REPO (the checkout), build (where the programs are) and die().

lab() { "$BENCH_REPO/tests/lab/lab" "$@"; }

# lab_begin LINK [FILE...]: a lab of its own, which ends with this shell, and takes the files along. A guest has moved
# over the link of RATE; link_bytes_per_s says what that carries.
lab_begin() {
    local rate=$1
    shift
    ((EUID == 0)) || die "the lab takes root"
    LAB_DIR=$(mktemp -d "${TMPDIR:-/tmp}/handoffd-bench.XXXXXX")
    export LAB_DIR
    rmdir "$LAB_DIR"
    lab_leaves=("$@")
    trap 'lab down >/dev/null 2>&1 || true; rm -f "${lab_leaves[@]}"' EXIT
    lab up --owner $$ >&2 || die "the lab does not come up"
    # The first use of an emulator costs seconds. A guest that moves there has all be used once.
    lab guest warm --memory 64 >/dev/null
    lab exec a virsh -q migrate --live --p2p warm "$(lab uri b --tcp)" >/dev/null || die "no guest moves in the lab"
    lab guest-rm warm
    link_set "$rate"
}

# link_set RATE: also for agents that start from now on
link_set() {
    lab link "$1"
    # tc's rate counts Ethernet frames; a sixteenth of it are headers and what TCP wastes.
    link_bytes_per_s=$(numfmt --from=si "$(sed 's/mbit/M/; s/gbit/G/' <<<"$1")")
    link_bytes_per_s=$((link_bytes_per_s * 1448 / 1514 / 8))
}

# zoo NAME KEY: what the zoo says of a guest that is called zoo:NAME; nothing for others
zoo() { [[ $1 != zoo:* ]] || "$build/tests/zoo/zoo" show "${1#zoo:}" | sed -n "s/^$2=//p"; }

# guest_start NAME KIND: of idle, WS/RATE (MiB, MiB/s), bursty (100/200, five seconds on, five off), of 256 MiB; or zoo:NAME
guest_start() {
    local phases=$2 work=0
    case $2 in
    zoo:*) lab guest "$1" --zoo "${2#zoo:}" >/dev/null && return ;;
    idle) phases=0/0 ;;
    bursty) phases=100/200:5,0/0:5 ;;
    # Busy, as who writes so much is: with 4, it uses some 55 % of its CPU, with 0 a tenth of it.
    100/200) work=4 ;;
    esac
    lab guest "$1" --memory 256 --phases "$phases" --work "$work" >/dev/null
}

# The daemon on a node; one for all runs over a link, as it would be. It ends with the lab.
agent_start() {
    local dir=$LAB_DIR/agent-$1
    if [[ -e $dir ]]; then
        ! grep -qx "LinkBandwidth=$link_bytes_per_s" "$dir/conf" || return 0
        kill "$(cat "$dir/pid")"
        wait "$(cat "$dir/pid")" || true
        rm -rf "$dir"
    fi
    mkdir "$dir"
    printf '[Agent]\nLinkBandwidth=%s\n' "$link_bytes_per_s" >"$dir/conf"
    lab exec "$1" "$build/agent/handoffd" --config "$dir/conf" --socket "$dir/socket" --state-dir "$dir/state" \
        >"$dir/log" 2>&1 &
    printf '%s\n' $! >"$dir/pid"
    for _ in {1..100}; do
        [[ $(ctl "$1" -j node 2>/dev/null | jq .libvirt_reachable) != true ]] || return 0
        sleep 0.1
    done
    die "handoffd does not start: $(tail -n 3 "$dir/log")"
}

# ctl NODE ARGUMENTS...
ctl() {
    local node=$1
    shift
    "$build/agent/ctl/handoffctl" --socket "$LAB_DIR/agent-$node/socket" "$@"
}
