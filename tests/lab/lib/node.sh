# SPDX-License-Identifier: LGPL-2.1-or-later
# shellcheck shell=bash
# Nodes: bringing them up, taking them down, running commands on them.

# A socket path that is too long fails later in ways that are hard to recognize:
# sun_path has 108 bytes.
check_lab_dir() {
    ((${#LAB_DIR} <= 70)) || die "LAB_DIR is too long for Unix sockets below it (${#LAB_DIR} > 70): $LAB_DIR"
    [[ $LAB_DIR != *[[:space:]\'\"\&\<\>\?]* ]] || die "LAB_DIR has a character that needs quoting in URIs or XML: $LAB_DIR"
    [[ -f $LAB_DIR/.handoffd-lab || ! -e $LAB_DIR || -z $(ls -A "$LAB_DIR") ]] ||
        die "$LAB_DIR is not empty, and not a lab's directory"
    [[ ! -e $LAB_DIR || -O $LAB_DIR ]] || die "$LAB_DIR belongs to another user"
}

write_configuration() {
    local node=$1 dir=$LAB_DIR/node-$1 uuid
    mkdir -p "$dir"/{etc,lib,log,cache}-libvirt "$dir/run"
    uuid=$(uuid_of "$LAB_DIR/node-$node")
    cat >"$dir/etc-libvirt/libvirtd.conf" <<TEXT
# two hosts with one UUID would refuse to migrate to each other
host_uuid = "$uuid"
listen_tls = 0
listen_tcp = 1
listen_addr = "$(node_address "$node")"
auth_tcp = "none"
auth_unix_rw = "none"
log_outputs = "3:file:/var/log/libvirt/libvirtd.log"
TEXT
    cat >"$dir/etc-libvirt/qemu.conf" <<'TEXT'
user = "root"
group = "root"
dynamic_ownership = 0
remember_owner = 0
cgroup_controllers = []
namespaces = []
seccomp_sandbox = 0
stdio_handler = "file"
TEXT
    # libvirt's QEMU driver needs these users and groups; libvirt-daemon-system adds them
    cat /etc/passwd >"$dir/passwd"
    cat /etc/group >"$dir/group"
    grep -q ^libvirt-qemu: "$dir/passwd" || printf 'libvirt-qemu:x:64055:64055::/var/lib/libvirt:/usr/sbin/nologin\n' >>"$dir/passwd"
    grep -q ^libvirt-qemu: "$dir/group" || printf 'libvirt-qemu:x:64055:\n' >>"$dir/group"
    grep -q ^kvm: "$dir/group" || printf 'kvm:x:64056:\n' >>"$dir/group"
    {
        printf '127.0.0.1 localhost\n'
        for peer in "${LAB_NODES[@]}"; do
            printf '%s lab-%s\n' "$(node_address "$peer")" "$peer"
        done
    } >"$dir/hosts"
}

start_node() {
    local node=$1 dir=$LAB_DIR/node-$1 lab_pid
    write_configuration "$node"
    lab_pid=$(live_pid "$LAB_DIR/init.pid")
    "$LAB_BIN/lab-ns" enter -n p -d "$dir/setup.log" "$lab_pid" \
        unshare --net --mount --uts --pid --fork --kill-child \
        bash "$LAB_HOME/lib/node-setup.sh" "$LAB_DIR" "$node" "$LAB_REPO" "${LAB_NODE_ROOTS[$node]:-}"
    wait_for 10 live_pid "$dir/init.pid" >/dev/null ||
        { cat "$dir/setup.log" >&2; die "node $node did not come up"; }
}

libvirtd_pid() { cat "$LAB_DIR/node-$1/run/libvirtd.pid" 2>/dev/null; } # in the node's namespace

libvirtd_alive() {
    local pid
    pid=$(libvirtd_pid "$1") && in_node "$1" pm kill -0 "$pid" 2>/dev/null
}

libvirtd_answers() { LAB_VIRSH_TIMEOUT_S=3 node_virsh "$1" list >/dev/null 2>&1; }

libvirtd_explain() {
    local dir=$LAB_DIR/node-$1
    say "node $1: libvirtd $2. The end of its logs:"
    tail -n 15 "$dir/libvirtd.out" "$dir/log-libvirt/libvirtd.log" >&2 2>/dev/null || true
    die "hint: are the packages listed in tests/lab/packages installed, and may this user create namespaces?"
}

libvirtd_launch() {
    local pid
    pid=$(node_pid "$1")
    "$LAB_BIN/lab-ns" enter -d "$LAB_DIR/node-$1/libvirtd.out" "$pid" "$LAB_HOME/lib/in-root" "$LAB_DIR/node-$1" libvirtd --listen
}

libvirtd_start() {
    libvirtd_launch "$1"
    wait_for 20 libvirtd_answers "$1" || libvirtd_explain "$1" "does not answer"
}

libvirtd_signal() {
    local pid
    pid=$(libvirtd_pid "$1") || die "libvirtd is not running on node $1"
    in_node "$1" pm kill "-$2" "$pid" || die "libvirtd is not running on node $1"
}

libvirtd_gone() { ! libvirtd_alive "$1"; }

owner_lives() { [[ -z $LAB_OWNER || -d /proc/$LAB_OWNER ]] || die "the owner, process $LAB_OWNER, has ended"; }

give_up() {
    trap - EXIT
    (($1 == 0)) || end_lab
    exit "$1"
}

# wanted_nodes 3, or wanted_nodes a,b,c: their names, in order; prints nothing for anything else
wanted_nodes() {
    local name
    if [[ $1 == [2-5] ]]; then
        printf '%s\n' "${LAB_NODES[@]:0:$1}"
    elif [[ $1 =~ ^[a-e](,[a-e])+$ ]]; then
        for name in "${LAB_NODES[@]}"; do
            [[ ,$1, != *,"$name",* ]] || printf '%s\n' "$name"
        done
    fi
}

# From LAB_RELEASES, NODE=RELEASE,...; makes the roots that are missing.
choose_roots() {
    local pair
    for pair in ${LAB_RELEASES//,/ }; do
        [[ $pair =~ ^[a-e]=[a-z][a-z-]*$ ]] || usage_error "--root takes NODE=RELEASE, such as b=trixie; not '$pair'"
        LAB_NODE_ROOTS[${pair%%=*}]=$("$LAB_HOME/roots" path "${pair#*=}") || exit 1
    done
}

verb_up() {
    local nodes node pid
    LAB_OWNER=
    mapfile -t nodes < <(wanted_nodes 2)
    while (($#)); do
        case $1 in
        --owner) LAB_OWNER=${2:?}; shift 2 ;;
        --nodes)
            mapfile -t nodes < <(wanted_nodes "${2:?}")
            ((${#nodes[@]} >= 2)) || usage_error "--nodes takes 2 to 5, or names from a to e such as a,b,c; not '$2'"
            shift 2
            ;;
        --root)
            LAB_RELEASES=${2:?}
            shift 2
            ;;
        *) usage_error "unknown option $1" ;;
        esac
    done
    [[ -z $LAB_OWNER || -d /proc/$LAB_OWNER ]] || usage_error "--owner: no such process: $LAB_OWNER"
    ((EUID == 0)) || die "must run as root, to create namespaces and network links: use sudo"
    need_commands libvirtd virsh qemu-system-x86_64 ip tc unshare flock jq
    check_lab_dir
    choose_roots
    lock_lab
    ! lab_is_up || say "a lab is up already; taking it down"
    end_lab
    lock_lab
    touch "$LAB_DIR/.handoffd-lab"
    install_helpers

    # From here on, everything ends if the owner dies or a step below fails.
    trap 'give_up $?' EXIT
    "$LAB_BIN/lab-ns" keep "${LAB_OWNER:-0}" /dev/null \
        env "LAB_DIR=$LAB_DIR" "$LAB_HOME/lab" down >"$LAB_DIR/init.tmp"
    read -r pid <"$LAB_DIR/init.tmp"
    printf '%s %s\n' "$pid" "$(start_time_of "$pid")" >"$LAB_DIR/init.pid"
    rm "$LAB_DIR/init.tmp"

    for node in "${nodes[@]}"; do
        owner_lives
        start_node "$node"
    done
    connect_nodes
    for node in "${nodes[@]}"; do
        libvirtd_launch "$node"
    done
    for node in "${nodes[@]}"; do
        owner_lives
        wait_for 20 libvirtd_answers "$node" || libvirtd_explain "$node" "does not answer"
    done
    # libvirt probes an emulator once, which takes seconds: here rather than in
    # the first migration's Prepare phase.
    for node in "${nodes[@]}"; do
        LAB_VIRSH_TIMEOUT_S=60 node_virsh "$node" domcapabilities --virttype qemu >/dev/null 2>"$LAB_DIR/node-$node/warm.err" &
    done
    wait
    for node in "${nodes[@]}"; do
        owner_lives
        [[ ! -s $LAB_DIR/node-$node/warm.err ]] ||
            { cat "$LAB_DIR/node-$node/warm.err" >&2; libvirtd_explain "$node" "cannot use QEMU"; }
    done
    now_us >"$LAB_DIR/mark"
    say "up: ${nodes[*]} in $LAB_DIR"
}

# Needs the lock. Killing the lab's init ends all processes, and with them the
# namespaces, mounts and links.
end_lab() {
    local pid
    if pid=$(live_pid "$LAB_DIR/init.pid"); then
        kill -KILL "$pid"
        wait_for 20 lab_is_down || die "the lab's init, process $pid, does not die"
    fi
    # What a guest with huge pages needed of the machine; see allow_huge_pages.
    [[ ! -s $LAB_DIR/huge-pages-before ]] || cat "$LAB_DIR/huge-pages-before" >/proc/sys/vm/nr_overcommit_hugepages || true
    if [[ -f $LAB_DIR/.handoffd-lab ]]; then
        # the marker goes last, so that an interrupted run can be repeated
        find "$LAB_DIR" -xdev -mindepth 1 -maxdepth 1 ! -name .handoffd-lab -exec rm -rf --one-file-system -- {} +
        rm -f -- "$LAB_DIR/.handoffd-lab"
    fi
    rmdir --ignore-fail-on-non-empty -- "$LAB_DIR"
}

lab_is_down() { ! lab_is_up; }

verb_down() {
    local keep='' node
    while (($#)); do
        case $1 in
        --keep-logs) keep=${2:?}; shift 2 ;;
        *) usage_error "unknown option $1" ;;
        esac
    done
    [[ -d $LAB_DIR ]] || return 0
    check_lab_dir
    lock_lab
    if [[ -n $keep ]]; then
        mkdir -p "$keep"
        for node in $(nodes_up); do
            mkdir -p "$keep/node-$node"
            cp -r "$LAB_DIR/node-$node"/{log-libvirt,setup.log,libvirtd.out} "$keep/node-$node/" 2>/dev/null || true
        done
        cp -r "$LAB_DIR"/{guests,wire,recorder.log} "$keep/" 2>/dev/null || true
    fi
    end_lab
}

verb_exec() {
    local pid
    (($# >= 2)) || usage_error "exec needs a node and a command"
    need_node "$1"
    pid=$(node_pid "$1")
    exec "$LAB_BIN/lab-ns" enter "$pid" "${@:2}"
}

verb_virsh() {
    (($# >= 1)) || usage_error "virsh needs a node"
    need_node "$1"
    exec virsh -c "$(node_uri "$1")" "${@:2}"
}

verb_uri() {
    (($# >= 1)) || usage_error "uri needs a node"
    need_node "$1"
    case ${2:-} in
    '') node_uri "$1" ;;
    --tcp) printf 'qemu+tcp://%s/system\n' "$(node_address "$1")" ;;
    *) usage_error "unknown option $2" ;;
    esac
}

verb_libvirtd() {
    (($# == 2)) || usage_error "libvirtd needs a node and an action"
    need_node "$1"
    case $2 in
    start) libvirtd_start "$1" ;;
    stop)
        libvirtd_signal "$1" TERM
        wait_for 20 libvirtd_gone "$1" || libvirtd_explain "$1" "does not stop"
        ;;
    kill)
        libvirtd_signal "$1" KILL
        wait_for 5 libvirtd_gone "$1" || libvirtd_explain "$1" "does not die"
        ;;
    pause) libvirtd_signal "$1" STOP ;;
    resume) libvirtd_signal "$1" CONT ;;
    *) usage_error "unknown action '$2'" ;;
    esac
}

verb_qemu() {
    local file pid signal
    (($# == 3)) || usage_error "qemu needs a node, a guest and an action"
    need_node "$1"
    file=$LAB_DIR/node-$1/run/libvirt/qemu/$2.pid # in the node's namespace
    case $3 in
    kill) signal=KILL ;;
    pause) signal=STOP ;;
    resume) signal=CONT ;;
    *) usage_error "unknown action '$3'" ;;
    esac
    pid=$(cat "$file" 2>/dev/null) || die "guest $2 has no QEMU on node $1"
    in_node "$1" pm kill "-$signal" "$pid"
}

verb_log() {
    (($# >= 1)) || usage_error "log needs a node"
    need_node "$1"
    local dir=$LAB_DIR/node-$1
    if [[ -n ${2:-} ]]; then
        cat "$dir/log-libvirt/qemu/$2.log"
    else
        cat "$dir/libvirtd.out" "$dir/log-libvirt/libvirtd.log"
    fi
}

libvirtd_state() {
    if libvirtd_answers "$1"; then
        echo answers
    elif libvirtd_alive "$1"; then
        echo hangs
    else
        echo down
    fi
}

verb_status() {
    local node pid guest
    if ! lab_is_up; then
        printf 'down (%s)\n' "$LAB_DIR"
        return
    fi
    printf 'up (%s)\n' "$LAB_DIR"
    for node in $(nodes_up); do
        pid=$(node_pid "$node")
        printf 'node %s  init %s  %s  libvirtd %s\n' "$node" "$pid" "$(node_address "$node")" \
            "$(libvirtd_state "$node")"
    done
    print_links
    for guest in "$LAB_DIR"/guests/*/; do
        [[ ! -d $guest ]] || printf 'guest %s  runs on %s\n' "$(basename "$guest")" "$(running_on "$(basename "$guest")")"
    done
}
