#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# From one release of Debian to the next and back, on real hypervisors of both: guests move with good memory, and what is known to go
# wrong between these releases is said beforehand and planned around. Usage: test-releases.sh [OLD NEW], by default bookworm trixie.
set -u
# shellcheck source=lib/tap.sh
. "$(dirname "$(readlink -f "$0")")/lib/tap.sh"
# shellcheck source=lib/agent.sh
. "$TAP_HOME/lib/agent.sh"

old=${1:-bookworm} new=${2:-trixie}
machine=pc-i440fx-7.2

# move FROM TO GOAL...: phase, cause and place; then the guest's own account
move() {
    local id options=() goal
    for goal in "${@:3}"; do options+=(-o "$goal"); done
    id=$(ctl "$1" -j migrate web "$("$LAB" uri "$2" --tcp)" --detach "${options[@]}" | jq -r .job.id)
    wait_until 120 job_is_over "$1" "$id"
    printf '%s %s\n' "$(job_end "$1" "$id")" "$(truth web '[.running_on[], .bad_pages, .restarts] | join(" ")')"
}

findings() { # findings GOAL...
    local options=() goal
    for goal; do options+=(-o "$goal"); done
    ctl a -j check web "$("$LAB" uri b --tcp)" "${options[@]}" | jq -r '[.findings[].code] | sort | join(" ")'
}
stages() { ctl a -j show web | jq -r '[.job.events[] | select(.kind == "stage").message] | unique | join(" ")'; }

tap_lab --root "b=$new$([[ $old == bookworm ]] || printf ',a=%s' "$old")"
"$LAB" link 300mbit
agent_start a
agent_start b
diag "a: $(ctl a -j node | jq -r '[.libvirt_version, .hypervisor_version] | join(", QEMU ")'); b: $(ctl b -j node | jq -r '[.libvirt_version, .hypervisor_version] | join(", QEMU ")')"

"$LAB" guest web --memory 128 --ws 32 --rate 15 --machine "$machine"
is "$old to $new" "$(move a b)" "succeeded - target b 0 0"
is "$new to $old, with a machine type of $old" "$(move b a)" "succeeded - target a 0 0"
"$LAB" guest-rm web

# More than the link carries: only post-copy could end it soon.
"$LAB" guest web --memory 160 --ws 80 --rate 150 --machine "$machine"
codes=$(findings allow_post_copy=yes)
is "a hopeless guest, with post-copy and a pause permitted" "$(move a b allow_post_copy=yes max_pause_ms=20s)" "succeeded - target b 0 0"
if [[ $new == trixie ]]; then
    ok "the check said that an interrupted post-copy could not be resumed there" grep -qw POST_COPY_UNRECOVERABLE <<<"$codes"
    is "... and it went without" "$(stages | grep -ow post_copy)" ""
    ok "... for that reason" grep -q 'POST_COPY_UNRECOVERABLE: .* Post-copy is not used' <(ctl a show web)
else
    is "nothing speaks against post-copy" "$(grep -ow POST_COPY_UNRECOVERABLE <<<"$codes")" ""
    is "... and it was used" "$(stages | grep -ow post_copy)" "post_copy"
fi
"$LAB" guest-rm web

printf "<cpu mode='custom' match='exact'><model>qemu64</model><topology sockets='1' cores='1' threads='2'/></cpu>" >"$LAB_DIR/threads.xml"
"$LAB" guest web --memory 64 --vcpus 2 --xml-domain "$LAB_DIR/threads.xml" --machine "$machine"
codes=$(findings)
case $old-$new in
bookworm-trixie)
    ok "two threads in a core: the check says that they may be refused" grep -qw THREADS_REFUSED <<<"$codes"
    is "... and they are, unharmed" "$(move a b)" "failed LIBVIRT_ERROR source a 0 0"
    ;;
trixie-forky)
    ok "two threads in a core: the check says that the target's CPU has none" grep -qw CPU_INCOMPATIBLE <<<"$codes"
    is "... so nothing starts" "$(move a b)" "failed REFUSED source a 0 0"
    ;;
*)
    is "two threads in a core: nothing is said against them" "$(grep -ow THREADS_REFUSED <<<"$codes")" ""
    is "... and they move" "$(move a b)" "succeeded - target b 0 0"
    ;;
esac
"$LAB" guest-rm web
agent_end a TERM
agent_end b TERM
done_testing
