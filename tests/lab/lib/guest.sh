# SPDX-License-Identifier: LGPL-2.1-or-later
# shellcheck shell=bash
# Guests: bare metal (guest/guest.c), with the serial port in a file that all nodes share.

check_name() { [[ ${1:-} =~ ^[A-Za-z0-9][A-Za-z0-9_.-]{0,40}$ ]] || usage_error "not a valid guest name: '${1:-}'"; }

need_guest() {
    check_name "$1"
    need_lab
    [[ -d $LAB_DIR/guests/$1 ]] || usage_error "no such guest: '$1'"
}

print_domain_xml() {
    local name=$1 uuid=$2 memory_mib=$3 cmdline=$4 devices=$5 domain=$6 machine=$7 on_reboot=$8
    cat <<TEXT
<domain type='qemu'>
  <name>$name</name>
  <uuid>$uuid</uuid>
  <memory unit='MiB'>$memory_mib</memory>
  <vcpu>1</vcpu>
  <os>
    <type arch='x86_64' machine='$machine'>hvm</type>
    <kernel>$LAB_BIN/guest.elf</kernel>
    <cmdline>$cmdline</cmdline>
  </os>
  <features><acpi/></features>
  <on_reboot>$on_reboot</on_reboot>
  <devices>
    <emulator>/usr/bin/qemu-system-x86_64</emulator>
    <controller type='usb' model='none'/>
    <memballoon model='none'/>
    <serial type='file'>
      <source path='$LAB_DIR/guests/$name/serial' append='on'/>
      <target port='0'/>
    </serial>
$devices
  </devices>
$domain
</domain>
TEXT
}

guest_talks() { grep -q '^# ' "$LAB_DIR/guests/$1/serial"; }

verb_guest() {
    local node=a memory=256 ws=0 rate=0 phases='' fill='' sweep=4 work=0 uuid='' kind=persistent
    local machine=pc devices='' domain='' end='' on_reboot=destroy print='' name=${1:-} dir xml
    check_name "$name"
    shift
    while (($#)); do
        case $1 in
        --node) node=${2:?}; shift ;;
        --memory) memory=${2:?}; shift ;;
        --ws) ws=${2:?}; shift ;;
        --rate) rate=${2:?}; shift ;;
        --phases) phases=${2:?}; shift ;;
        --fill) fill=${2:?}; shift ;;
        --sweep) sweep=${2:?}; shift ;;
        --work) work=${2:?}; shift ;;
        --end) end=${2:?}; shift ;;
        --uuid) uuid=${2:?}; shift ;;
        --machine) machine=${2:?}; shift ;;
        --xml-extra) devices=$(cat "${2:?}"); shift ;;
        --xml-domain) domain=$(cat "${2:?}"); shift ;;
        --transient | --persistent) kind=${1#--} ;;
        --print-xml) print=yes ;;
        *) usage_error "unknown option $1" ;;
        esac
        shift
    done
    need_node "$node"
    [[ -n $phases ]] || phases=$ws/$rate
    [[ $phases =~ ^[0-9]+/[0-9]+(:[0-9]+)?(,[0-9]+/[0-9]+:[0-9]+)*$ ]] || usage_error "not a list of phases: '$phases'"
    [[ $memory$fill$sweep$work =~ ^[0-9]+$ ]] || usage_error "sizes and rates are in whole MiB; --work takes a whole number"
    [[ -z $end || $end =~ ^(poweroff|reboot|crash):[0-9]+$ ]] || usage_error "--end takes poweroff, reboot or crash, and seconds, as in poweroff:5; not '$end'"
    [[ $end != reboot:* ]] || on_reboot=restart
    [[ $end != crash:* ]] || devices+="<panic model='isa'/>"
    ((memory >= 8)) || usage_error "a guest needs at least 8 MiB"
    [[ -n $uuid ]] || uuid=$(uuid_of "$LAB_DIR/guest/$name")

    dir=$LAB_DIR/guests/$name
    [[ -e $LAB_DIR/tsc-khz ]] || "$LAB_BIN/lab-record" tsc-khz >"$LAB_DIR/tsc-khz"
    xml=$(print_domain_xml "$name" "$uuid" "$memory" \
        "tsc_khz=$(cat "$LAB_DIR/tsc-khz") phases=$phases sweep=$sweep work=$work${fill:+ fill=$fill}${end:+ end=${end%:*} end_ms=$((${end#*:} * 1000))}" \
        "$devices" "$domain" "$machine" "$on_reboot")
    if [[ -n $print ]]; then
        printf '%s\n' "$xml"
        return
    fi
    [[ ! -e $dir ]] || die "guest '$name' exists already; lab guest-rm $name removes it"
    mkdir -p "$dir"
    : >"$dir/serial"
    printf '%s\n' "$xml" >"$dir/domain.xml"
    start_recorder "$(live_pid "$LAB_DIR/init.pid")" serial "$dir/serial" "$dir/growth.log"
    wait_for 5 test -e "$dir/growth.log" || die "the recorder did not start; see $LAB_DIR/recorder.log"

    if [[ $kind == transient ]]; then
        LAB_VIRSH_TIMEOUT_S=30 node_virsh "$node" create "$dir/domain.xml" >/dev/null
    else
        node_virsh "$node" define "$dir/domain.xml" >/dev/null &&
            LAB_VIRSH_TIMEOUT_S=30 node_virsh "$node" start "$name" >/dev/null
    fi || guest_failed "$node" "$name" "did not start"
    # 10 s, and 1 s per GiB that it fills
    wait_for $((10 + memory / 1024)) guest_talks "$name" || guest_failed "$node" "$name" "is silent"
    ! grep -a '^!' "$dir/serial" >&2 || guest_failed "$node" "$name" "reports a problem"
    now_us >"$dir/mark" # the silence while it filled its memory does not count
}

guest_failed() {
    say "guest $2 $3. The end of its QEMU's log:"
    tail -n 10 "$LAB_DIR/node-$1/log-libvirt/qemu/$2.log" >&2 || true
    remove_guest "$2"
    exit 1
}

remove_guest() {
    local node
    for node in $(nodes_up); do
        node_virsh "$node" destroy "$1" >/dev/null 2>&1 || true
        node_virsh "$node" undefine "$1" >/dev/null 2>&1 || true
    done
    rm -rf -- "${LAB_DIR:?}/guests/$1" # its recorder ends with its file
}

verb_guest_rm() {
    (($# == 1)) || usage_error "guest-rm needs a guest"
    need_guest "$1"
    remove_guest "$1"
}
