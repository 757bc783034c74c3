# SPDX-License-Identifier: LGPL-2.1-or-later
# shellcheck shell=bash
# Guests: bare metal (guest/guest.c), with the serial port in a file that all nodes share.

check_name() { [[ ${1:-} =~ ^[A-Za-z0-9][A-Za-z0-9_.-]{0,40}$ ]] || usage_error "not a valid guest name: '${1:-}'"; }

need_guest() {
    check_name "$1"
    need_lab
    [[ -d $LAB_DIR/guests/$1 ]] || usage_error "no such guest: '$1'"
}

# zoo_options GUEST: the options that make a guest of the zoo, a word each
zoo_options() {
    local key value memory_mib=0
    "$LAB_BIN/zoo" show "$1" | while IFS='=' read -r key value; do
        case $key:$value in
        memory_mib:*) memory_mib=$value && printf '%s\n' --memory "$value" ;;
        phases:*) printf '%s\n' --phases "$value" ;;
        vcpus:*) printf '%s\n' --vcpus "$value" ;;
        busy_vcpus:*) printf '%s\n' --busy-vcpus "$value" ;;
        busy_pct:*) printf '%s\n' --busy "$value" ;;
        zero_pct:*) printf '%s\n' --fill $((memory_mib - memory_mib * value / 100)) ;;
        zero_where:*) printf '%s\n' --zeros "$value" ;;
        huge_pages:yes) printf '%s\n' --huge-pages ;;
        disk_mib:[1-9]*) printf '%s\n' --disk "$value" ;;
        disk_write_kib_per_s:[1-9]*) printf '%s\n' --disk-rate "$value" ;;
        lab:no) say "the lab cannot start the guest '$1'" && return 1 ;;
        esac
    done
}

# The disk of a guest, of which each node has an image of its own. Tests make others there.
disk_path() { printf '/var/lib/libvirt/images/lab-%s.img\n' "$1"; }
image_path() { printf '%s/node-%s/lib-libvirt/images/lab-%s.img\n' "$LAB_DIR" "$1" "$2"; } # from outside: NODE GUEST

make_images() { # make_images GUEST MIB
    local node image
    for node in $(nodes_up); do
        image=$(image_path "$node" "$1")
        mkdir -p "$(dirname "$image")"
        truncate -s "$2M" "$image"
    done
}

# Huge pages belong to the machine. The kernel makes so many more when a QEMU wants them, and takes them back when it ends.
allow_huge_pages() { # allow_huge_pages MIB
    local file=/proc/sys/vm/nr_overcommit_hugepages pages=$(($1 * 2 + 64))
    [[ -e $LAB_DIR/huge-pages-before ]] || cat "$file" >"$LAB_DIR/huge-pages-before"
    (($(cat "$file") >= pages)) || printf '%d\n' "$pages" >"$file" || die "this machine lends no huge pages"
}

print_domain_xml() {
    local name=$1 uuid=$2 memory_mib=$3 cmdline=$4 devices=$5 domain=$6 machine=$7 on_reboot=$8 vcpus=$9
    cat <<TEXT
<domain type='qemu'>
  <name>$name</name>
  <uuid>$uuid</uuid>
  <memory unit='MiB'>$memory_mib</memory>
  <vcpu>$vcpus</vcpu>
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
    local node=a memory=256 ws=0 rate=0 phases='' fill='' sweep=4 work=0 uuid='' kind=persistent words
    local machine=pc devices='' domain='' end='' on_reboot=destroy print='' name=${1:-} dir xml
    local vcpus=1 busy_vcpus=1 busy=0 zeros=last disk='' disk_rate=0 huge=''
    local heap='[0-9]+/[0-9]+[rz]?' heaps
    heaps="$heap(\\+$heap)*"
    check_name "$name"
    shift
    while (($#)); do
        case $1 in
        --zoo)
            words=$(zoo_options "${2:?}") || exit 1
            readarray -t words <<<"$words"
            set -- "$1" "${words[@]}" "${@:3}"
            ;;
        --vcpus) vcpus=${2:?}; shift ;;
        --busy-vcpus) busy_vcpus=${2:?}; shift ;;
        --busy) busy=${2:?}; shift ;;
        --zeros) zeros=${2:?}; shift ;;
        --disk) disk=${2:?}; shift ;;
        --disk-rate) disk_rate=${2:?}; shift ;;
        --huge-pages) huge=yes ;;
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
    [[ $phases =~ ^$heaps(:[0-9]+(ms)?)?(,$heaps:[0-9]+(ms)?)*$ ]] || usage_error "not a list of phases: '$phases'"
    [[ $memory$fill$sweep$work$vcpus$busy_vcpus$busy$disk$disk_rate =~ ^[0-9]+$ ]] ||
        usage_error "sizes and rates are in whole MiB, a disk's rate in KiB; --work, --busy and the vCPUs are whole numbers"
    [[ $zeros =~ ^(first|last|scattered)$ ]] || usage_error "--zeros takes first, last or scattered, not '$zeros'"
    [[ -n $disk ]] || ((disk_rate == 0)) || usage_error "--disk-rate needs --disk"
    if [[ -n $disk ]]; then
        devices+="<disk type='file' device='disk'><driver name='qemu' type='raw' cache='none'/>"
        devices+="<source file='$(disk_path "$name")'/><target dev='vda' bus='virtio'/></disk>"
    fi
    [[ -z $huge ]] || domain+='<memoryBacking><hugepages/></memoryBacking>'
    [[ -z $end || $end =~ ^(poweroff|reboot|crash):[0-9]+$ ]] || usage_error "--end takes poweroff, reboot or crash, and seconds, as in poweroff:5; not '$end'"
    [[ $end != reboot:* ]] || on_reboot=restart
    [[ $end != crash:* ]] || devices+="<panic model='isa'/>"
    ((memory >= 8)) || usage_error "a guest needs at least 8 MiB"
    [[ -n $uuid ]] || uuid=$(uuid_of "$LAB_DIR/guest/$name")

    dir=$LAB_DIR/guests/$name
    [[ -e $LAB_DIR/tsc-khz ]] || "$LAB_BIN/lab-record" tsc-khz >"$LAB_DIR/tsc-khz"
    xml=$(print_domain_xml "$name" "$uuid" "$memory" \
        "tsc_khz=$(cat "$LAB_DIR/tsc-khz") phases=$phases sweep=$sweep work=$work${fill:+ fill=$fill zeros=$zeros} vcpus=$vcpus busy_vcpus=$busy_vcpus busy=$busy disk_kib=$disk_rate${end:+ end=${end%:*} end_ms=$((${end#*:} * 1000))}" \
        "$devices" "$domain" "$machine" "$on_reboot" "$vcpus")
    if [[ -n $print ]]; then
        printf '%s\n' "$xml"
        return
    fi
    [[ ! -e $dir ]] || die "guest '$name' exists already; lab guest-rm $name removes it"
    mkdir -p "$dir"
    [[ -z $disk ]] || make_images "$name" "$disk"
    [[ -z $huge ]] || allow_huge_pages "$memory"
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
        rm -f -- "$(image_path "$node" "$1")"
    done
    rm -rf -- "${LAB_DIR:?}/guests/$1" # its recorder ends with its file
}

verb_guest_rm() {
    (($# == 1)) || usage_error "guest-rm needs a guest"
    need_guest "$1"
    remove_guest "$1"
}
