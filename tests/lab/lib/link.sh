# SPDX-License-Identifier: LGPL-2.1-or-later
# shellcheck shell=bash
# Links: a veth pair between every two nodes, created inside their namespaces,
# so that it is invisible outside. On node a the device to b is "to-b".

NOBODY=02:00:00:00:00:00

# pairs [ONE TWO]: the pairs that a verb applies to: the given one, or all
pairs() {
    local nodes i j
    if (($# == 2)); then
        need_node "$1"
        need_node "$2"
        [[ $1 < $2 ]] && printf '%s %s\n' "$1" "$2" || printf '%s %s\n' "$2" "$1"
    elif (($# == 0)); then
        mapfile -t nodes < <(nodes_up)
        for ((i = 0; i < ${#nodes[@]}; i++)); do
            for ((j = i + 1; j < ${#nodes[@]}; j++)); do
                printf '%s %s\n' "${nodes[i]}" "${nodes[j]}"
            done
        done
    else
        usage_error "a link needs two nodes"
    fi
}

connect_nodes() {
    local one two pid_one pid_two
    mkdir -p "$LAB_DIR/wire"
    while read -r one two; do
        pid_one=$(node_pid "$one")
        pid_two=$(node_pid "$two")
        ip link add "to-$two" netns "$pid_one" type veth peer name "to-$one" netns "$pid_two"
        in_node "$one" n ip address add "$(node_address "$one")" peer "$(node_address "$two")" dev "to-$two"
        in_node "$two" n ip address add "$(node_address "$two")" peer "$(node_address "$one")" dev "to-$one"
        in_node "$one" n ip link set "to-$two" up
        in_node "$two" n ip link set "to-$one" up
        printf 'none\n' >"$LAB_DIR/wire/$one$two.rate"
        start_recorder "$pid_one" wire "to-$two" "$LAB_DIR/wire/$one$two.log"
    done < <(pairs)
}

# both_ends ONE TWO COMMAND...: runs it on both nodes; DEV in it stands for the device there
both_ends() {
    local one=$1 two=$2
    shift 2
    in_node "$one" n "${@//DEV/to-$two}"
    in_node "$two" n "${@//DEV/to-$one}"
}

shape() {
    if [[ $3 == none ]]; then
        both_ends "$1" "$2" tc qdisc delete dev DEV root 2>/dev/null || true
    else
        both_ends "$1" "$2" tc qdisc replace dev DEV root tbf rate "$3" burst 512kb latency 50ms
    fi
}

verb_link() {
    local rate=${1:-} one two
    (($# == 1 || $# == 3)) || usage_error "link needs a rate"
    need_lab
    while read -r one two; do
        shape "$one" "$two" "$rate" || usage_error "tc does not accept the rate '$rate'"
        printf '%s\n' "$rate" >"$LAB_DIR/wire/$one$two.rate"
    done < <(pairs "${@:2}")
}

verb_cut() {
    local silent='' one two
    if [[ ${1:-} == --silent ]]; then
        silent=yes
        shift
    fi
    need_lab
    while read -r one two; do
        if [[ -n $silent ]]; then
            # Frames go out to an address that nobody has. If a qdisc dropped them, the sender's TCP would know, take that for local
            # congestion, and has been seen to give up a connection within seconds.
            in_node "$one" n ip neigh replace "$(node_address "$two")" lladdr "$NOBODY" nud permanent dev "to-$two"
            in_node "$two" n ip neigh replace "$(node_address "$one")" lladdr "$NOBODY" nud permanent dev "to-$one"
        else
            both_ends "$one" "$two" ip link set DEV down
        fi
        touch "$LAB_DIR/wire/$one$two.cut"
    done < <(pairs "$@")
}

verb_heal() {
    local one two rate
    need_lab
    while read -r one two; do
        read -r rate <"$LAB_DIR/wire/$one$two.rate"
        both_ends "$one" "$two" ip link set DEV up
        in_node "$one" n ip neigh flush dev "to-$two" nud permanent
        in_node "$two" n ip neigh flush dev "to-$one" nud permanent
        shape "$one" "$two" "$rate"
        rm -f "$LAB_DIR/wire/$one$two.cut"
    done < <(pairs "$@")
}

print_links() {
    local one two
    while read -r one two; do
        printf 'link %s-%s  rate %s%s\n' "$one" "$two" "$(cat "$LAB_DIR/wire/$one$two.rate")" \
            "$([[ ! -e $LAB_DIR/wire/$one$two.cut ]] || echo '  cut')"
    done < <(pairs)
}

# A migration stream that goes through the forwarder can be broken while the link is fine: with `forward a 49300 b` the
# migrate URI is tcp://10.77.0.1:49300, and b's QEMU listens at 49300. libvirt's own connection goes through `forward a
# 16600 b 16509`, with the URI qemu+tcp://10.77.0.1:16600/system.
verb_forward() {
    local dir pid
    (($# == 3 || $# == 4)) || usage_error "forward needs a node, a port and the node to forward to"
    need_node "$1"
    need_node "$3"
    [[ $2 =~ ^[0-9]+$ && ${4:-$2} =~ ^[0-9]+$ ]] || usage_error "not a port: '$2' or '${4:-}'"
    dir=$LAB_DIR/node-$1
    forward_end "$1"
    pid=$(node_pid "$1")
    "$LAB_BIN/lab-ns" enter -d "$dir/forward.log" "$pid" \
        "$LAB_BIN/lab-forward" /run/lab-forward.pid "$(node_address "$1")" "$2" "$(node_address "$3")" "${4:-$2}"
    wait_for 5 test -e "$dir/run/lab-forward.pid" || die "the forwarder did not start; see $dir/forward.log"
}

forward_signal() { in_node "$1" pm kill "-$2" "$(cat "$LAB_DIR/node-$1/run/lab-forward.pid")"; }

forward_end() {
    [[ -e $LAB_DIR/node-$1/run/lab-forward.pid ]] || return 0
    forward_signal "$1" KILL 2>/dev/null || true
    rm -f "$LAB_DIR/node-$1/run/lab-forward.pid"
}

need_forward() {
    need_node "$1"
    [[ -e $LAB_DIR/node-$1/run/lab-forward.pid ]] || usage_error "no forwarder is running on node $1"
}

verb_break() {
    (($# == 1)) || usage_error "break needs a node"
    need_forward "$1"
    forward_signal "$1" USR1
}

# What one end sends does not reach the other, and the connection stays up: whoever waits for an answer keeps waiting.
verb_hold() {
    local bits
    (($# == 2)) || usage_error "hold needs a node and what to hold back"
    need_forward "$1"
    case $2 in
    nothing) bits=0 ;;
    requests) bits=1 ;;
    answers) bits=2 ;;
    all) bits=3 ;;
    later) bits=4 ;;
    *) usage_error "hold takes requests, answers, all, nothing or later; not '$2'" ;;
    esac
    forward_signal "$1" "RTMIN+$bits"
}
