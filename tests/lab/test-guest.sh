#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# What the lab's guest says that it does is seen from outside: how fast and where it writes, which of its pages are zero, which
# of its CPUs are busy, what arrives on its disk. And after a move nothing of it is wrong.
set -u
# shellcheck source=lib/tap.sh
. "$(dirname "$(readlink -f "$0")")/lib/tap.sh"

move() { "$LAB" virsh a migrate --live --p2p --persistent --undefinesource "${@:2}" "$1" "$("$LAB" uri b --tcp)"; }

# Of a guest's memory, MiB of which QEMU sees that they change within a second. It compares a sixteenth of the pages.
dirtied_mib() {
    "$LAB" virsh a qemu-monitor-command "$1" \
        '{"execute": "calc-dirty-rate", "arguments": {"calc-time": 1, "sample-pages": 16384}}' >/dev/null
    wait_until 5 measured "$1"
    "$LAB" virsh a qemu-monitor-command "$1" '{"execute": "query-dirty-rate"}' | jq '.return["dirty-rate"]'
}

measured() { [[ $("$LAB" virsh a qemu-monitor-command "$1" '{"execute": "query-dirty-rate"}' | jq -r .return.status) == measured ]]; }

# writes WHAT GUEST MIB: within 20 %, in one of three measurements: the machine has others to serve
writes() {
    local mib seen=()
    for _ in 1 2 3; do
        mib=$(dirtied_mib "$2")
        seen+=("$mib")
        if jq -en "$mib / $3 - 1 | fabs < 0.2" >/dev/null; then
            pass "$1: $mib MiB in a second, of $3"
            return
        fi
    done
    fail "$1" "${seen[*]} MiB in a second, not $3; work lost: $(truth "$2" .work_lost_ms) ms"
}

test_writers() {
    local guest
    "$LAB" guest turn --memory 256 --ws 64 --rate 20
    "$LAB" guest random --zoo random-near &
    "$LAB" guest zipf --zoo zipf &
    "$LAB" guest heaps --zoo two-heaps &
    "$LAB" guest four --zoo four-of-four &
    "$LAB" guest stopgo --memory 256 --phases 64/80:250ms,0/0:250ms &
    wait
    "$LAB" guest ramp --memory 256 --phases 96/5:4,96/30:10,96/30:10
    writes "a ramp begins low" ramp 5
    writes "in turn: as many as its rate says" turn 20
    writes "at random: 96 (1 - e^(-45/96))" random 35.9
    writes "by Zipf's law: what four regions of 2, 8, 32 and 128 MiB make of 24" zipf 17.4
    writes "two small heaps at high rates: no more than both" heaps 12
    writes "four CPUs together" four 24
    writes "stop and go: the mean" stopgo 40
    wait_until 15 ramps
    writes "the ramp has risen" ramp 30
    for guest in turn random zipf heaps stopgo ramp; do "$LAB" guest-rm "$guest" & done
    wait
}

ramps() { [[ $(truth ramp .phase) != 0 ]]; }

# cpu_ms GUEST: of each of its CPUs
cpu_ms() { "$LAB" virsh a domstats --vcpu "$1" | sed -n 's/^ *vcpu\.[0-9]*\.time=\([0-9]*\)[0-9]\{6\}$/\1/p; s/^ *vcpu\.[0-9]*\.time=0$/0/p'; }

test_cpus() {
    local one four
    "$LAB" guest one --zoo one-of-four
    sleep 1
    readarray -t one < <(cpu_ms one)
    readarray -t four < <(cpu_ms four)
    diag "CPU times in ms: one busy: ${one[*]}; four: ${four[*]}"
    is "four CPUs" "${#one[@]} ${#four[@]}" "4 4"
    num "one is busy: the others together take less than a tenth of it" "${one[1]} + ${one[2]} + ${one[3]}" '<' "${one[0]} / 10"
    num "four are busy: each of the others takes more than a tenth of the first" \
        "[${four[1]}, ${four[2]}, ${four[3]}] | min" '>' "${four[0]} / 10"
    "$LAB" guest-rm one
}

# zero_at GUEST MIB...: for each whether the page there is zero: 0 or 1
zero_at() {
    local pid begin mib
    read -r pid begin < <(memory_of "$LAB_DIR" "$1" 256)
    for mib in "${@:2}"; do
        dd if="/proc/$pid/mem" bs=4096 skip=$((begin / 4096 + mib * 256)) count=1 status=none | cmp -s -n 4096 - /dev/zero && echo 1 || echo 0
    done | xargs
}

constant_pct() { "$LAB" virsh b domjobinfo "$1" --completed --keep-completed | awk '/^Constant pages/ { print $3 * 100 / 65536 }'; }

# moves_well GUEST OPTION...: to b; all pages are read there
moves_well() {
    local before
    ok "$1 moves" move "$@"
    before=$(truth "$1" .sweeps)
    wait_until 20 swept_again "$1" "$before" || fail "... and is read once more"
    is "... and all of its memory is good" "$(truth "$1" '[.running_on[], .bad_pages, .restarts, .notes[]] | join(" ")')" "b 0 0"
}

swept_again() { (($(truth "$1" .sweeps) > $2 + 1)); }

test_zeroes() {
    local guest
    "$LAB" guest first --zoo zero-first --sweep 512 &
    "$LAB" guest last --memory 256 --ws 48 --rate 16 --fill 128 --sweep 512 &
    "$LAB" guest scattered --zoo zero-scattered --memory 256 --fill 128 --sweep 512 &
    wait
    is "the first half is zero" "$(zero_at first 8 60 120 140 200 250)" "1 1 1 0 0 0"
    is "the last half is zero" "$(zero_at last 8 60 120 140 200 250)" "0 0 0 1 1 1"
    for guest in first scattered; do
        moves_well "$guest"
        num "... with half of its pages as zeroes, in percent" "$(constant_pct "$guest") - 50 | fabs" '<' 3
    done
    is "scattered ones are everywhere" "$(scattered_zeroes 16) $(scattered_zeroes 100) $(scattered_zeroes 240)" "0 1 1"
    ok "a zero page can be spoilt" spoil_memory "$LAB_DIR" first 256 60
    ok "... and it says so" wait_until 20 is_bad first 1
    for guest in first last scattered; do "$LAB" guest-rm "$guest" & done
    wait
}

# Whether some but not all of the 64 pages from there on are zero: 0 or 1
scattered_zeroes() {
    local pid begin zeroes
    read -r pid begin < <(memory_of "$LAB_DIR" scattered 256)
    zeroes=$(for page in {0..63}; do
        dd if="/proc/$pid/mem" bs=4096 skip=$((begin / 4096 + $1 * 256 + page)) count=1 status=none | cmp -s -n 4096 - /dev/zero && echo
    done | wc -l)
    echo $((zeroes > 16 && zeroes < 48))
}

is_bad() { [[ $(truth "$1" .bad_pages) == "$2" ]]; }

test_four_cpus_move() {
    "$LAB" guest-rm four
    "$LAB" guest four --zoo four-of-four --sweep 512
    moves_well four
    # the heap begins at 1 MiB; the last quarter of it is the last CPU's
    ok "a page of the last CPU can be spoilt" spoil_memory "$LAB_DIR" four 256 60
    ok "... and it is found" wait_until 20 is_bad four 1
    "$LAB" guest-rm four
}

test_disk() {
    local begin_us before after image
    "$LAB" guest disk --zoo disk-writer --sweep 512
    sleep 2
    before=$(truth disk '[.disk_writes, .last_status_us] | join(" ")')
    begin_us=${before#* } before=${before% *}
    moves_well disk --copy-storage-all
    after=$(truth disk '[.disk_writes, .last_status_us] | join(" ")')
    num "it writes 4 MiB/s to its disk, within 20 %" "(${after% *} - $before) * 65536 * 1000000 / (${after#* } - $begin_us) / 4194304 - 1 | fabs" '<' 0.2
    "$LAB" virsh b suspend disk >/dev/null
    image=$("$LAB" disk b disk)
    num "what it wrote has arrived" "$(jq .newest <<<"$image")" '>=' "$(truth disk .disk_writes)"
    num "... more than before the move" "$(jq .newest <<<"$image")" '>' "$before"
    is "... and is right" "$(jq .bad_sectors <<<"$image")" 0
    printf '!' | dd of="$LAB_DIR/node-b/lib-libvirt/images/lab-disk.img" bs=1 seek=70000 conv=notrunc status=none
    is "a spoilt sector is found" "$("$LAB" disk b disk | jq .bad_sectors)" 1
    "$LAB" guest-rm disk
}

test_huge_pages() {
    local pid begin
    if ! "$LAB" exec a mountpoint -q /run/hugepages || ! [[ -w /proc/sys/vm/nr_overcommit_hugepages ]]; then
        diag "huge pages: this machine lends none"
        return
    fi
    "$LAB" guest huge --zoo huge-pages --memory 128 --sweep 512
    read -r pid begin < <(memory_of "$LAB_DIR" huge 128)
    is "its memory is huge pages" "$(awk -v at="$(printf '%x' "$begin")-" 'index($1, at) == 1 { here = 1 } here && /^KernelPageSize/ { print $2; exit }' "/proc/$pid/smaps")" 2048
    moves_well huge
    "$LAB" guest-rm huge
}

tap_lab
"$LAB" virsh b domcapabilities >/dev/null # else the first move pays for probing
test_writers
test_cpus
test_four_cpus_move
test_zeroes
test_disk
test_huge_pages
is "a guest that the lab cannot hold is refused" "$("$LAB" guest big --zoo in-memory-24t 2>/dev/null; echo $?)" 1
is "... and so is an unknown one" "$("$LAB" guest big --zoo nobody 2>/dev/null; echo $?)" 1
done_testing
