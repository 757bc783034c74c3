#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# What the next start would change, on two real hypervisors: changes made by virsh are reported, the remedy named for each
# applies it, and nothing that libvirt does by itself counts as a change.
set -u
# shellcheck source=lib/tap.sh
. "$(dirname "$(readlink -f "$0")")/lib/tap.sh"
# shellcheck source=lib/agent.sh
. "$TAP_HOME/lib/agent.sh"

mac=52:54:00:00:00:01
console="<graphics type='vnc' port='-1' autoport='yes'/>"
edited_console="s/port='[-0-9]*' autoport='yes'/port='5999' autoport='no'/"
# nic BRIDGE [MAC]
nic() { echo "<interface type='bridge'><mac address='${2:-$mac}'/><source bridge='$1'/><model type='virtio'/></interface>"; }
# with NODE VERB XML OPTIONS...: gives virsh a device
with() {
    echo "$3" >"$LAB_DIR/device.xml"
    "$LAB" virsh "$1" "$2" web "$LAB_DIR/device.xml" "${@:4}" >/dev/null
}

# changes NODE: code, remedy and item of each, one per line
changes() { ctl "$1" -j evaluate web | jq -r '.domains[0].changes[] | [.code, .remedy, .by_migration, .item] | join(" ")'; }
one() { changes "$1" | grep "^$2 "; }

test_nothing() {
    echo "$console" >"$LAB_DIR/extra.xml"
    "$LAB" guest web --memory 64 --xml-extra "$LAB_DIR/extra.xml"
    with a attach-device "$(nic br0)" --live --config
    is "freshly started, with one device plugged into both: nothing would change" "$(changes a)" ""
    ok "... and it says so" grep -qx 'The next start of web would change nothing.' <(ctl a evaluate web)
}

test_changes_of_the_definition() {
    with a update-device "$(nic br1)" --config
    with a attach-device "$(nic br0 52:54:00:00:00:02)" --config
    "$LAB" virsh a setmaxmem web 128M --config >/dev/null
    "$LAB" virsh a setvcpus web 4 --maximum --config >/dev/null
    "$LAB" virsh a desc web --config --title 'Shop window' >/dev/null
    "$LAB" virsh a vcpupin web 0 0 --config >/dev/null
    # virsh has no verb for this one: edited
    "$LAB" virsh a dumpxml web --inactive | sed "$edited_console" >"$LAB_DIR/edited.xml"
    "$LAB" virsh a define "$LAB_DIR/edited.xml" >/dev/null
    is "an interface on another bridge" "$(one a INTERFACE_MOVED)" "INTERFACE_MOVED hotplug true interface $mac"
    is "one more interface" "$(one a INTERFACE_ADDED)" "INTERFACE_ADDED hotplug false interface 52:54:00:00:00:02"
    is "more memory" "$(one a MEMORY)" "MEMORY restart false "
    is "a higher vCPU maximum" "$(one a VCPUS)" "VCPUS restart false "
    is "another title" "$(one a METADATA)" "METADATA hotplug true "
    is "a vCPU pinned to a CPU" "$(one a CPU_PINNING)" "CPU_PINNING hotplug true "
    is "a console on a fixed port" "$(one a GRAPHICS)" "GRAPHICS migration true graphics vnc"
    diag "all: $(changes a | cut -d' ' -f1 | paste -sd' ')"
    num "reported for all domains as well" "$(ctl a -j evaluate | jq '.domains[0].changes_total')" '>=' 7
    is "... and counted by the node" "$(ctl a -j node | jq -c '.pending_changes | [.domains, .hotplug, .migration, .restart, .unread]')" \
        "[1,1,1,1,0]"
}

test_hotplug_does_it() {
    "$LAB" virsh a desc web --live --title 'Shop window' >/dev/null
    "$LAB" virsh a vcpupin web 0 0 --live >/dev/null
    with a attach-device "$(nic br0 52:54:00:00:00:02)" --live
    is "changes made to the running domain as well are no longer pending" "$(changes a | grep -E '^(METADATA|CPU_PINNING|INTERFACE_ADDED) ')" ""
}

test_a_move_takes_pending_changes_along() {
    local before
    before=$(changes a)
    ok "a migration by the agent" ctl a migrate web "$("$LAB" uri b --tcp)"
    is "... applies no change, and loses none" "$(changes b)" "$before"
    is "... and the first node no longer counts them" "$(ctl a -j evaluate | jq -c .domains)" "[]"
}

# From b back to a, with a definition for the target that has the changes for which the remedy is a migration.
test_a_migration_with_a_definition_does_it() {
    "$LAB" virsh b dumpxml web --migratable |
        sed "s/bridge='br0'/bridge='br1'/; $edited_console" >"$LAB_DIR/target.xml"
    # only the first of the two interfaces goes to the other bridge
    awk -v n=0 '/bridge=.br1./ && n++ { sub(/br1/, "br0") } { print }' "$LAB_DIR/target.xml" >"$LAB_DIR/target2.xml"
    ok "a migration with a definition for its target" env LAB_VIRSH_TIMEOUT_S=60 "$LAB" virsh b migrate --live --p2p --persistent \
        --undefinesource web "$("$LAB" uri a --tcp)" --xml "$LAB_DIR/target2.xml"
    is "... applies what it should" "$(changes a | grep -E '^(INTERFACE_MOVED|GRAPHICS) ')" ""
    is "... and the guest is on the other bridge" "$("$LAB" exec a ls /sys/class/net/br1/brif | wc -l)" 1
    is "what needs a restart is still pending" "$(changes a | cut -d' ' -f2 | sort -u)" restart
    is "... and the guest survived it all" "$(truth web '[.running_on[], .bad_pages, .restarts] | join(" ")')" "a 0 0"
}

test_a_restart_does_it() {
    "$LAB" virsh a destroy web >/dev/null
    ok "shut off, it has no changes" grep -qx 'web is not running: .*' <(ctl a evaluate web)
    env LAB_VIRSH_TIMEOUT_S=30 "$LAB" virsh a start web >/dev/null
    is "started again, nothing would change" "$(changes a)" ""
    "$LAB" guest-rm web
}

# Gives the node two bridges that its libvirtd sees.
prepare_node() { # prepare_node NODE
    local bridge
    "$LAB" libvirtd "$1" stop
    "$LAB" exec "$1" mount -t sysfs sysfs /sys
    for bridge in br0 br1; do
        "$LAB" exec "$1" ip link add "$bridge" type bridge
        "$LAB" exec "$1" ip link set "$bridge" up
    done
    "$LAB" libvirtd "$1" start
    agent_start "$1"
}

tap_lab
prepare_node a
prepare_node b
test_nothing
test_changes_of_the_definition
test_hotplug_does_it
test_a_move_takes_pending_changes_along
test_a_migration_with_a_definition_does_it
test_a_restart_does_it
agent_end a TERM
agent_end b TERM
done_testing
