#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# The lab itself: guests migrate by plain virsh, the truth is plausible, cut
# links heal, and nothing is left behind however the lab ends.
# shellcheck disable=SC2317,SC2119  # functions are called through ok and wait_until
set -u
# shellcheck source=lib/tap.sh
. "$(dirname "$(readlink -f "$0")")/lib/tap.sh"

# Inodes of the namespaces that a lab's nodes and guests live in.
namespaces_of() {
    local file pid
    for file in "$1"/init.pid "$1"/node-*/init.pid; do
        read -r pid _ <"$file"
        readlink "/proc/$pid/ns/pid" "/proc/$pid/ns/net" "/proc/$pid/ns/mnt"
    done | sort -u | grep -vxF "$(readlink /proc/$$/ns/{pid,net,mnt})"
}

# Processes still in them, mounts of the lab, its directory, links outside.
leftovers() {
    local lab_dir=$1 namespaces=$2
    [[ ! -e $lab_dir ]] || echo "directory $lab_dir"
    # by inode; the numbers are reused, so look before there is a new lab
    find /proc -mindepth 3 -maxdepth 3 -path '/proc/[0-9]*/ns/*' -printf '%l %p\n' 2>/dev/null | grep -F "$namespaces"
    grep -lF "$lab_dir" /proc/[0-9]*/mountinfo 2>/dev/null
    ip -o link show type veth | grep -F ' to-'
    ip netns list 2>/dev/null | grep -F handoffd
}

nothing_is_left() { [[ -z $(leftovers "$@") ]]; }

nothing_is_left_within() {
    wait_until "$1" nothing_is_left "$2" "$3" || { leftovers "$2" "$3"; return 1; }
}

move() { # move FROM TO GUEST
    "$LAB" virsh "$1" migrate --live --p2p --persistent --undefinesource "$3" "$("$LAB" uri "$2" --tcp)"
}

reachable() { "$LAB" exec a timeout 2 bash -c '</dev/tcp/10.77.0.2/16509' 2>/dev/null; }
refused() { ! "$@"; }

check_move() { # check_move FROM TO: checks the facts about the last migration
    local from=$1 to=$2 facts wire silence_ms
    facts=$("$LAB" truth mover)
    wire=$("$LAB" wire)
    silence_ms=$(jq .longest_silence_ms <<<"$facts")
    is "$from to $to: one running copy" "$(jq -c .running_on <<<"$facts")" "[\"$to\"]"
    num "$from to $to: memory is good" "$(jq .bad_pages <<<"$facts")" == 0
    is "$from to $to: no problem reported, no restart" "$(jq -c '[.notes, .restarts, .time_backwards]' <<<"$facts")" '[[],0,0]'
    num "$from to $to: the silence is plausible" "$silence_ms" '>' 5
    num "$from to $to: ... and bounded, in ms" "$silence_ms" '<' 2000
    num "$from to $to: the guest's stopped clock agrees, within 100 ms" \
        "$(jq '.longest_silence_ms - .clock_stopped_ms | fabs' <<<"$facts")" '<' 100
    num "$from to $to: all memory crossed the wire" "$(jq ".bytes_${from}_to_$to" <<<"$wire")" '>' 256000000
    num "$from to $to: the stream took as long as its bytes take at 400 Mbit/s, within 10 %" \
        "$(jq --arg way "bytes_${from}_to_$to" '.stream_ms / (.[$way] * 8 / 400000) - 1 | fabs' <<<"$wire")" '<' 0.1
    num "$from to $to: the guest came back when the stream ended, within 100 ms" \
        "$(jq -n "$facts as \$t | $wire as \$w | \$t.longest_silence_begin_us + \$t.longest_silence_ms * 1000 - \$w.stream_end_us | fabs / 1000")" '<' 100
    diag "$from to $to: silence $silence_ms ms, stream $(jq .stream_ms <<<"$wire") ms," \
        "$(jq .stream_bytes <<<"$wire") bytes, work lost $(jq .work_lost_ms <<<"$facts") ms"
}

tap_lab
is "an unknown verb is a usage error" "$("$LAB" fly 2>/dev/null; echo $?)" 2
is "each node has its own hostname" "$("$LAB" exec a hostname) $("$LAB" exec b hostname)" "lab-a lab-b"
is "exec returns the command's status" "$("$LAB" exec a sh -c 'exit 42'; echo $?)" 42
is "exec passes standard input on" "$(echo word | "$LAB" exec b cat)" word
ok "exec sees the checkout" "$LAB" exec a test -x "$LAB"

"$LAB" exec a bash -c 'trap "exit 7" TERM; touch /run/ready; while :; do sleep 0.05; done' &
pid=$!
wait_until 5 test -e "$LAB_DIR/node-a/run/ready"
kill "$pid"
wait "$pid"
is "exec passes signals on" $? 7
"$LAB" exec a sleep 1234 &
pid=$!
wait_until 5 "$LAB" exec a pgrep -fx 'sleep 1234' >/dev/null
kill -KILL "$pid"
wait "$pid" 2>/dev/null
ok "a killed exec takes its command along" wait_until 5 refused "$LAB" exec a pgrep -fx 'sleep 1234'

ok "a guest starts" "$LAB" guest mover --ws 64 --rate 20 --sweep 16
is "a second one with the same name does not" "$("$LAB" guest mover 2>/dev/null; echo $?)" 1
ok "the link takes a rate" "$LAB" link 400mbit
is "... but not an invalid one" "$("$LAB" link soon 2>/dev/null; echo $?)" 2
sleep 2
facts=$("$LAB" truth mover)
num "at rest it keeps its rate" "$(jq '.work_lost_pages / .work_owed_pages | fabs' <<<"$facts")" '<' 0.05
num "at rest it is not silent for long, in ms" "$(jq .longest_silence_ms <<<"$facts")" '<' 200

"$LAB" mark mover >/dev/null
ok "it migrates from a to b" move a b mover
check_move a b
"$LAB" mark mover >/dev/null
ok "it migrates back" move b a mover
check_move b a

# An outage of 2 s is shorter than libvirt's timeouts: the stream continues.
"$LAB" mark mover >/dev/null
move a b mover >/dev/null 2>&1 &
pid=$!
sleep 2
ok "the link can be cut" "$LAB" cut
ok "a cut link carries nothing" refused reachable
sleep 2
"$LAB" heal
ok "a healed one does" reachable
wait "$pid"
diag "cut for 2 s while migrating: virsh exited with status $?"
facts=$("$LAB" truth mover)
num "cut while migrating: one running copy" "$(jq '.running_on | length' <<<"$facts")" == 1
is "cut while migrating: memory is good" "$(jq -c '[.bad_pages, .notes]' <<<"$facts")" '[0,[]]'
num "cut while migrating: the wire saw the gap, in ms" "$("$LAB" wire | jq .longest_gap_ms)" '>' 1000
"$LAB" cut --silent
ok "a link can be cut silently" refused reachable
"$LAB" heal
ok "... and healed" reachable

node=$(jq -r '.running_on[0]' <<<"$facts")
"$LAB" libvirtd "$node" pause
is "a paused libvirtd is unknown, not absent" "$("$LAB" truth mover | jq -r ".states.$node" | cut -d' ' -f1)" unknown
"$LAB" libvirtd "$node" resume
is "a resumed one answers" "$(truth mover '.running_on[0]')" "$node"
ok "libvirtd can be killed" "$LAB" libvirtd "$node" kill
ok "... and started" "$LAB" libvirtd "$node" start
ok "... and stopped" "$LAB" libvirtd "$node" stop
ok "... and started again" "$LAB" libvirtd "$node" start
is "the guest lived through it" "$(truth mover '[.running_on[0], .restarts, .silent_now_ms < 1000] | join(" ")')" "$node 0 true"

# A second lab next to this one; its owner is killed.
other=$LAB_DIR-other
LAB_DIR=$other bash -c '"$LAB" up --owner $$ && exec sleep 300' 2>/dev/null &
owner=$!
ok "a second lab comes up next to this one" wait_until 30 test -e "$other/mark"
ok "... and works" env LAB_DIR="$other" "$LAB" guest twin --memory 64 --sweep 64 --transient
is "... with guests of its own" "$("$LAB" virsh a list --all --name | tr -d '\n') $(LAB_DIR=$other "$LAB" virsh a list --all --name | tr -d '\n')" \
    "$([[ $node == a ]] && echo mover) twin"
ok "a guest's memory can be corrupted" spoil_memory "$other" twin 64
sleep 2
is "... and the guest reports it, once" "$(LAB_DIR=$other truth twin '[.bad_pages, (.notes | length)] | join(" ")')" "1 1"
namespaces=$(namespaces_of "$other")
kill -KILL "$owner"
wait "$owner" 2>/dev/null
ok "once its owner is killed, nothing of it is left" nothing_is_left_within 10 "$other" "$namespaces"
is "... and the first one is still up" "$(truth mover '.running_on[0]')" "$node"

LAB_DIR=$other bash -c '"$LAB" up --owner $$ && exec sleep 300' 2>/dev/null &
owner=$!
wait_until 10 test -e "$other/node-a/init.pid"
kill -KILL "$owner"
wait "$owner" 2>/dev/null
ok "an owner killed while the lab comes up leaves nothing behind" nothing_is_left_within 30 "$other" "none"

ok "a guest can be removed" "$LAB" guest-rm mover
ok "... and its recorder ends" wait_until 5 refused pgrep -f "^$LAB_DIR/bin/lab-record serial"
namespaces=$(namespaces_of "$LAB_DIR")
read -r pid _ <"$LAB_DIR/init.pid"
kill -KILL "$pid" # as a crash would
only_files_are_left() { [[ $(leftovers "$@") == "directory $1" ]]; }
ok "a crash of the lab leaves only files" wait_until 5 only_files_are_left "$LAB_DIR" "$namespaces"
ok "a crashed lab can be brought up again" "$LAB" up --owner $$
namespaces=$(namespaces_of "$LAB_DIR")
ok "down takes it down" "$LAB" down
ok "... and nothing is left" nothing_is_left_within 2 "$LAB_DIR" "$namespaces"
ok "down can be repeated" "$LAB" down

is "unknown nodes are a usage error" "$("$LAB" up --nodes a,f 2>/dev/null; echo $?)" 2
ok "three nodes come up" "$LAB" up --owner $$ --nodes a,b,c
ok "... and a guest on one of them" "$LAB" guest mover --memory 64
for pair in "a b" "b c" "c a"; do
    read -r from to <<<"$pair"
    ok "it migrates from $from to $to" move "$from" "$to" mover
    is "... and runs there and nowhere else" "$(truth mover '[.running_on[], .bad_pages, .restarts] | join(" ")')" "$to 0 0"
done
done_testing
