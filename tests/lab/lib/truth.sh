# SPDX-License-Identifier: LGPL-2.1-or-later
# shellcheck shell=bash
# What the guest and the wire saw.

verb_mark() {
    (($# == 1)) || usage_error "mark needs a guest"
    need_guest "$1"
    now_us | tee "$LAB_DIR/guests/$1/mark" "$LAB_DIR/mark"
}

# The nodes where the guest runs; "b?" is a node that gives no answer.
running_on() {
    local node state
    for node in $(nodes_up); do
        state=$(domain_state "$node" "$1")
        case $state in
        running*) printf '%s ' "$node" ;;
        unknown*) printf '%s? ' "$node" ;;
        esac
    done
}

domain_state() {
    local state status=0
    state=$(LAB_VIRSH_TIMEOUT_S=5 node_virsh "$1" domstate --reason "$2" 2>&1) || status=$?
    if ((status == 0)); then
        printf '%s\n' "${state%%$'\n'*}"
    elif [[ $state == *'failed to get domain'* || $state == *'Domain not found'* ]]; then
        printf 'absent\n'
    elif ((status == 124)); then
        printf 'unknown (libvirtd does not answer)\n'
    else
        printf 'unknown (%s)\n' "${state%%$'\n'*}"
    fi
}

states_json() {
    local node
    for node in $(nodes_up); do
        jq -n --arg node "$node" --arg state "$(domain_state "$node" "$1")" '{($node): $state}'
    done | jq -s 'add as $states | {
        running_on: [$states | to_entries[] | select(.value | startswith("running")) | .key],
        states: $states}'
}

verb_truth() {
    local name=${1:-} since='' silence_ms=30 wait_for_status=yes dir report called_us until
    need_guest "$name"
    shift
    dir=$LAB_DIR/guests/$name
    while (($#)); do
        case $1 in
        --since) since=${2:?}; shift ;;
        --silence) silence_ms=${2:?}; shift ;;
        --no-wait) wait_for_status= ;;
        *) usage_error "unknown option $1" ;;
        esac
        shift
    done
    [[ -n $since ]] || since=$(cat "$dir/mark")
    [[ $since$silence_ms =~ ^[0-9]+$ ]] || usage_error "--since and --silence take whole numbers"

    # Bad pages and lost work show up with the next status line.
    called_us=$(now_us)
    until=$((SECONDS + 3))
    while :; do
        report=$("$LAB_BIN/lab-report" serial "$dir/growth.log" "$dir/serial" "$since" "$silence_ms")
        [[ -n $wait_for_status ]] || break
        (($(jq .last_status_us <<<"$report") < called_us && SECONDS < until)) || break
        sleep 0.1
    done
    jq -s 'add' <(printf '%s\n' "$report") <(states_json "$name")
}

verb_wire() {
    local since='' threshold=16384 link=ab
    while (($#)); do
        case $1 in
        --since) since=${2:?}; shift ;;
        --threshold) threshold=${2:?}; shift ;;
        --link) link=${2:?}; shift ;;
        *) usage_error "unknown option $1" ;;
        esac
        shift
    done
    need_lab
    [[ -e $LAB_DIR/wire/$link.log ]] || usage_error "no such link: '$link'"
    [[ -n $since ]] || since=$(cat "$LAB_DIR/mark")
    [[ $since$threshold =~ ^[0-9]+$ ]] || usage_error "--since and --threshold take whole numbers"
    "$LAB_BIN/lab-report" wire "$LAB_DIR/wire/$link.log" "$since" "$threshold" |
        jq --arg link "$link" '. + {
            link: $link,
            ("bytes_" + $link[0:1] + "_to_" + $link[1:2]): .bytes_there,
            ("bytes_" + $link[1:2] + "_to_" + $link[0:1]): .bytes_back
        } | del(.bytes_there, .bytes_back)'
}

verb_disk() {
    (($# == 2)) || usage_error "disk needs a node and a guest"
    need_node "$1"
    need_guest "$2"
    "$LAB_BIN/lab-report" disk "$(image_path "$1" "$2")"
}
