# SPDX-License-Identifier: LGPL-2.1-or-later
# shellcheck shell=bash
# For tests that use the lab: TAP, and a lab that ends with the test.
#
#   . "$(dirname "$0")/lib/tap.sh"
#   tap_lab                        # brings it up; "$LAB" is the command
#   ok "it answers" "$LAB" virsh a list
#   is "one copy" "$(truth g .running_on[0])" b
#   num "no bad page" "$(truth g .bad_pages)" == 0
#   done_testing                   # the plan; exit 1 if anything failed
#
# A test that cannot run says why and fails: no lab test may be skipped
# unnoticed.

TAP_HOME=$(cd "$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")/.." && pwd -P)
export LAB=$TAP_HOME/lab
export LC_ALL=C
tap_count=0 tap_failed=0

diag() {
    local text="$*"
    printf '# %s\n' "${text//$'\n'/$'\n'# }"
}

bail() {
    printf 'Bail out! %s\n' "$*"
    exit 1
}

pass() { printf 'ok %d - %s\n' $((++tap_count)) "$1"; }

fail() {
    printf 'not ok %d - %s\n' $((++tap_count)) "$1"
    ((++tap_failed))
    [[ -z ${2:-} ]] || diag "$2"
}

# ok NAME COMMAND...: passes if the command succeeds; shows its output if not
ok() {
    local name=$1 output
    shift
    if output=$("$@" 2>&1); then
        pass "$name"
    else
        fail "$name" "status $? of: $*"$'\n'"$output"
    fi
}

is() {
    if [[ $2 == "$3" ]]; then
        pass "$1"
    else
        fail "$1" "got '$2', wanted '$3'"
    fi
}

# num NAME VALUE OPERATOR LIMIT: numbers may have a fraction
num() {
    if jq -en "($2) $3 ($4)" >/dev/null 2>&1; then
        pass "$1 ($2 $3 $4)"
    else
        fail "$1" "$2 is not $3 $4"
    fi
}

done_testing() {
    printf '1..%d\n' "$tap_count"
    ((tap_failed == 0)) || diag "$tap_failed of $tap_count failed"
    exit $((tap_failed > 0))
}

# wait_until SECONDS COMMAND...: 10 times a second
wait_until() {
    local until=$((SECONDS + $1))
    shift
    until "$@"; do
        ((SECONDS < until)) || return 1
        sleep 0.1
    done
}

tap_down() {
    [[ -z ${TAP_KEEP_LOGS:-} ]] || set -- --keep-logs "$TAP_KEEP_LOGS/$(basename "$LAB_DIR")"
    "$LAB" down "$@"
}

# Gives this test a lab of its own, which ends with it however it ends: by the
# trap, or after SIGKILL by the lab's watchdog.
tap_lab() {
    ((EUID == 0)) || bail "the lab needs root"
    LAB_DIR=${TMPDIR:-/tmp}/handoffd-$(basename "$0" .sh)-$$
    export LAB_DIR
    trap tap_down EXIT
    "$LAB" up --owner $$ "$@" || bail "could not bring the lab up"
}

# truth GUEST FILTER: one fact; queries the lab each time
truth() { "$LAB" truth "$1" | jq -r "$2"; }

# memory_of LAB_DIR GUEST MEMORY_MIB: "PID ADDRESS", where a running guest's memory lies in its QEMU
memory_of() {
    local pid begin end
    pid=$(pgrep -f "guest=$2,.*$1/bin/guest.elf") || return
    while IFS='- ' read -r begin end _; do
        ((0x$end - 0x$begin == $3 << 20)) || continue
        printf '%d %d\n' "$pid" "0x$begin"
        return
    done <"/proc/$pid/maps"
    return 1
}

# spoil_memory LAB_DIR GUEST MEMORY_MIB [MIB]: overwrites a byte of it
spoil_memory() {
    local pid begin
    read -r pid begin < <(memory_of "$1" "$2" "$3") || return
    printf '!' | dd of="/proc/$pid/mem" bs=1 seek=$((begin + (${4:-40} << 20))) conv=notrunc status=none
}
