#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# The kinds of migration stream, on two real hypervisors: each is what was asked for, and migrates a guest.
set -u
# shellcheck source=lib/tap.sh
. "$(dirname "$(readlink -f "$0")")/lib/tap.sh"
# shellcheck source=lib/agent.sh
. "$TAP_HOME/lib/agent.sh"

begin() {
    local goal options=()
    for goal; do options+=(-o "$goal"); done
    "$LAB" guest web --memory 192 --ws 32 --rate 10
    "$LAB" mark web >/dev/null
    ctl a migrate web "$target" --detach "${options[@]}" >/dev/null
}

moves() { job_is a web '(.progress.memory_processed_bytes // 0) > 20000000' true; }
# How QEMU sends, by its own account, and over how many connections.
sends() {
    "$LAB" virsh a qemu-monitor-command web '{"execute": "query-migrate-capabilities"}' |
        jq -r '[.return[] | select(.state).capability | select(IN("multifd", "xbzrle", "zero-copy-send"))] | sort | .[]'
    "$LAB" exec a ss -Htn state established dst 10.77.0.2 dport ge 49152 dport le 49215 | wc -l
}

outcome() {
    wait_until 120 job_is_over a web
    printf '%s %s\n' "$(job_end a web)" \
        "$(truth web '[.running_on[], .bad_pages, .restarts] | join(" ")')"
    "$LAB" guest-rm web
}

# travels NAME HOW GOAL...
travels() {
    begin "${@:3}"
    wait_until 60 moves
    is "$1" "$(sends | xargs)" "$2"
    is "... and it migrates" "$(outcome)" "succeeded - target b 0 0"
}

# libvirt must allow QEMU to lock its memory, which not every container permits.
may_lock_memory() { "$LAB" exec a prlimit --memlock=unlimited:unlimited true 2>/dev/null; }

test_without_a_copy() {
    if may_lock_memory; then
        travels "zero copy" "multifd zero-copy-send 3" parallel_connections=2 zerocopy=yes
        return
    fi
    begin parallel_connections=2 zerocopy=yes
    is "zero copy, where memory cannot be locked: refused, the guest keeps running" "$(outcome)" "failed REFUSED source a 0 0"
    ok "... and it says why" grep 'cannot limit locked memory' <<<"$(job a web .failure.message)"
}

tap_lab
target=$("$LAB" uri b --tcp)
agent_start a
"$LAB" link 400mbit
travels "one stream" 1
travels "three more connections" "multifd 4" parallel_connections=3
travels "compressed" "xbzrle 1" compression=xbzrle
travels "inside libvirtd's own connection" 0 tunnelled=yes
test_without_a_copy
agent_end a TERM
done_testing
