# SPDX-License-Identifier: LGPL-2.1-or-later
# shellcheck shell=bash
# For every part of the lab: names, messages, processes, the helpers.

: "${LAB_DIR:=${XDG_RUNTIME_DIR:-/tmp}/handoffd-lab-$UID-$(sha256sum <<<"$LAB_REPO" | cut -c1-8)}"
LAB_DIR=$(realpath -m -- "$LAB_DIR")
LAB_BIN=$LAB_DIR/bin
LAB_NODES=(a b c d e)
: "${LAB_RELEASES:=}"    # as for up --root
# shellcheck disable=SC2034  # node.sh uses it
declare -A LAB_NODE_ROOTS # of nodes that have one of their own
LAB_HELPERS=(lab-ns lab-record lab-report lab-forward guest.elf zoo)
export LC_ALL=C

say() { printf 'lab: %s\n' "$*" >&2; }
die() { say "$*"; exit 1; }
usage_error() { say "$*"; printf 'usage: %s\n' "$LAB_USAGE" >&2; exit 2; }

need_commands() {
    local command missing=()
    for command; do
        [[ -n $(type -P "$command") ]] || missing+=("$command")
    done
    ((${#missing[@]} == 0)) ||
        die "missing commands: ${missing[*]}; install the packages listed in tests/lab/packages"
}

# A pid may have been reused; together with its start time it is unique.
# Field 22 of stat; the name in field 2 may contain anything.
start_time_of() {
    local stat
    { read -r -d '' stat <"/proc/$1/stat"; } 2>/dev/null || [[ -n ${stat:-} ]] || return 1
    read -r -a stat <<<"${stat##*) }"
    # shellcheck disable=SC2128  # a zombie has ended, even if nobody reaped it
    [[ $stat != Z ]] || return 1
    printf '%s\n' "${stat[19]}"
}

# live_pid FILE: FILE holds "PID STARTTIME"; prints the pid if that very process is alive
live_pid() {
    local pid started
    read -r pid started 2>/dev/null <"$1" || return 1
    [[ $(start_time_of "$pid") == "$started" ]] || return 1
    printf '%s\n' "$pid"
}

# wait_for SECONDS COMMAND...: bounded, 20 times a second
wait_for() {
    local until=$((SECONDS + $1))
    shift
    until "$@"; do
        ((SECONDS < until)) || return 1
        sleep 0.05
    done
}

# One `up` or `down` at a time. The lock is the directory itself, so that no
# lock file is left behind; hence the check that it is still that directory.
lock_lab() {
    while :; do
        mkdir -p -- "$(dirname "$LAB_DIR")"
        mkdir -m 700 -- "$LAB_DIR" 2>/dev/null || [[ -d $LAB_DIR ]] || die "could not create $LAB_DIR"
        exec 9<"$LAB_DIR"
        flock -w 120 9 || die "another lab up or down has held $LAB_DIR for 120 s"
        [[ ! /proc/self/fd/9 -ef $LAB_DIR ]] || return 0
    done
}

# sources_of HELPER
sources_of() {
    case $1 in
    guest.elf) printf '%s\n' "$LAB_HOME"/guest/*.c ;;
    zoo) printf '%s\n' "$LAB_REPO"/tests/zoo/{main,zoo,named,draw}.c ;;
    *) printf '%s\n' "$LAB_HOME/$1.c" ;;
    esac
}

# is_newer FILE OTHER...: than all others, and there
is_newer() {
    local file
    for file in "${@:2}"; do
        [[ -f $1 && $1 -nt $file ]] || return 1
    done
}

# Meson's helpers, or our own, because a fresh clone has no build directory. They
# are copied, so that a rebuild cannot change them under a running lab.
install_helpers() {
    local build=${LAB_BUILD:-$LAB_REPO/build/tests/lab} helper built sources
    mkdir -p "$LAB_BIN"
    for helper in "${LAB_HELPERS[@]}"; do
        built=$build/$helper
        [[ $helper != zoo ]] || built=$build/../zoo/zoo
        readarray -t sources < <(sources_of "$helper")
        if is_newer "$built" "${sources[@]}"; then
            cp "$built" "$LAB_BIN/"
        else
            compile_helper "$helper" "${sources[@]}"
        fi
    done
}

# compile_helper HELPER SOURCE...
compile_helper() {
    local cc=${CC:-cc} flags
    need_commands "$cc"
    if [[ $1 == guest.elf ]]; then
        read -r -d '' -a flags <"$LAB_HOME/guest/cflags" || true
        "$cc" "${flags[@]}" "-Wl,-T,$LAB_HOME/guest/guest.ld" -o "$LAB_BIN/$1" "${@:2}"
    else
        "$cc" -D_GNU_SOURCE -O2 -Wall -Wextra "-I$LAB_REPO" -o "$LAB_BIN/$1" "${@:2}" -lm
    fi || die "could not compile $1"
}

lab_is_up() { live_pid "$LAB_DIR/init.pid" >/dev/null; }
need_lab() { lab_is_up || die "the lab is not up ($LAB_DIR); run lab up"; }

nodes_up() {
    local node
    for node in "${LAB_NODES[@]}"; do
        [[ ! -d $LAB_DIR/node-$node ]] || printf '%s\n' "$node"
    done
}

need_node() {
    need_lab
    [[ $1 == [a-e] && -d $LAB_DIR/node-$1 ]] || usage_error "no such node: '$1'"
}

node_pid() {
    live_pid "$LAB_DIR/node-$1/init.pid" || die "node $1 has died; see $LAB_DIR/node-$1/setup.log"
}

node_address() {
    local order=abcde before
    before=${order%%"$1"*}
    printf '10.77.0.%d\n' $((${#before} + 1))
}

node_uri() { printf 'qemu+unix:///system?socket=%s/node-%s/run/libvirt/libvirt-sock\n' "$LAB_DIR" "$1"; }

# The same text always gives the same UUID.
uuid_of() {
    local hex
    hex=$(md5sum <<<"$1")
    printf '%s-%s-4%s-8%s-%s\n' "${hex:0:8}" "${hex:8:4}" "${hex:13:3}" "${hex:17:3}" "${hex:20:12}"
}

# in_node NODE KINDS COMMAND...: runs a command in some namespaces of a node
in_node() {
    local pid
    pid=$(node_pid "$1")
    "$LAB_BIN/lab-ns" enter -n "$2" "$pid" "${@:3}"
}

# Bounded, because a hung libvirtd must not hang the lab. In a session of its own: on a terminal virsh starts polkit's
# agent, which complains on stderr.
node_virsh() { setsid --wait timeout "${LAB_VIRSH_TIMEOUT_S:-10}" virsh -q -c "$(node_uri "$1")" "${@:2}"; }

# start_recorder NODE_PID ARGUMENTS...: it lives as long as the lab, in the node's network namespace
start_recorder() {
    local lab_pid node_pid=$1
    lab_pid=$(live_pid "$LAB_DIR/init.pid")
    "$LAB_BIN/lab-ns" enter -n p -d "$LAB_DIR/recorder.log" "$lab_pid" \
        "$LAB_BIN/lab-ns" enter -n n "$node_pid" "$LAB_BIN/lab-record" "${@:2}"
}

now_us() { "$LAB_BIN/lab-record" now; }
