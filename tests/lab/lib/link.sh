# SPDX-License-Identifier: LGPL-2.1-or-later
# shellcheck shell=bash
# Links: a veth pair between each two nodes, made inside their namespaces, so
# that nothing of it has a name outside. On node a the device to b is "to-b".

# The pairs that a verb is about: the two given, else all.
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
        usage_error "a link has two nodes"
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

# both_ends ONE TWO COMMAND...: DEV in the command is the device there
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
        shape "$one" "$two" "$rate" || usage_error "tc does not take the rate '$rate'"
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
            # a bucket too small for any packet: each is dropped
            both_ends "$one" "$two" tc qdisc replace dev DEV root tbf rate 8bit burst 10 limit 1
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
