#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# TLS with real certificates: for memory and disks, where the test looks at the wire instead of asking; and between the libvirtds.
set -u
# shellcheck source=lib/tap.sh
. "$(dirname "$(readlink -f "$0")")/lib/tap.sh"
# shellcheck source=lib/agent.sh
. "$TAP_HOME/lib/agent.sh"

PORT=49300

# --- certificates ---

# sign NAME ARGUMENTS...: creates NAME-key.pem and NAME-cert.pem
sign() {
    openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 2 -subj "/CN=handoffd lab" \
        -keyout "$1-key.pem" -out "$1-cert.pem" "${@:2}" 2>"$LAB_DIR/openssl.log" || bail "$(cat "$LAB_DIR/openssl.log")"
}

make_authority() { sign "$LAB_DIR/$1" -addext basicConstraints=critical,CA:TRUE -addext keyUsage=keyCertSign; }

pki() { printf '%s/node-%s/etc-libvirt/pki' "$LAB_DIR" "$1"; }

# give NODE AUTHORITY: QEMU's certificates for either end. Issued to both nodes, because a forwarder may stand in for one.
give() {
    local role
    for role in client server; do
        sign "$(pki "$1")/$role" -addext subjectAltName=DNS:lab-a,DNS:lab-b,IP:10.77.0.1,IP:10.77.0.2 \
            -addext basicConstraints=critical,CA:FALSE -addext keyUsage=digitalSignature \
            -addext extendedKeyUsage=clientAuth,serverAuth -CA "$LAB_DIR/$2-cert.pem" -CAkey "$LAB_DIR/$2-key.pem"
    done
    cp "$LAB_DIR/$2-cert.pem" "$(pki "$1")/ca-cert.pem"
}

take_away() { rm -f "$(pki "$1")"/*.pem; }

# libvirtd's own certificates, under the names that it expects.
give_libvirtd() {
    local role dir
    dir=$(pki "$1")/libvirtd
    mkdir -p "$dir"
    cp "$(pki "$1")/ca-cert.pem" "$dir/cacert.pem"
    for role in client server; do
        cp "$(pki "$1")/$role-cert.pem" "$dir/${role}cert.pem"
        cp "$(pki "$1")/$role-key.pem" "$dir/${role}key.pem"
    done
}

# From now on libvirtd accepts only TLS, and only with a certificate of ours.
close_tcp() {
    local conf=$LAB_DIR/node-$1/etc-libvirt/libvirtd.conf dir=/etc/libvirt/pki/libvirtd
    sed -i '/^listen_/d' "$conf"
    printf '%s\n' 'listen_tls = 1' 'listen_tcp = 0' "ca_file = \"$dir/cacert.pem\"" "cert_file = \"$dir/servercert.pem\"" \
        "key_file = \"$dir/serverkey.pem\"" >>"$conf"
    "$LAB" libvirtd "$1" kill
    "$LAB" libvirtd "$1" start
}

configure() {
    mkdir -p "$(pki "$1")"
    printf 'migrate_tls_x509_cert_dir = "/etc/libvirt/pki"\n' >>"$LAB_DIR/node-$1/etc-libvirt/qemu.conf"
    "$LAB" libvirtd "$1" kill
    "$LAB" libvirtd "$1" start
}

# --- a disk of which each node has its own ---

images=/var/lib/libvirt/images
sum_at() { "$LAB" exec "$1" sha256sum "$images/web.img"; }

have_disk() {
    "$LAB" exec a mkdir -p "$images"
    "$LAB" exec b mkdir -p "$images"
    "$LAB" exec a dd if=/dev/urandom of="$images/web.img" bs=1M count=16 status=none
    "$LAB" exec b truncate --size 16M "$images/web.img"
    printf "<disk type='file' device='disk'><driver name='qemu' type='raw' cache='none'/><source file='%s'/>%s</disk>" \
        "$images/web.img" "<target dev='vda' bus='virtio'/>" >"$LAB_DIR/devices"
    devices=(--xml-extra "$LAB_DIR/devices")
}

# --- migrations ---

# Does each stream from a to b begin with a TLS handshake? Prints "tls" or "clear" for each.
watch_wire() {
    "$LAB" exec b python3 -c '
import socket
wire = socket.socket(socket.AF_PACKET, socket.SOCK_DGRAM, socket.htons(0x0800))
wire.setsockopt(socket.SOL_SOCKET, 33, 32 << 20)  # SO_RCVBUFFORCE
begins = {}  # ports: sequence number of the next byte, and what came before
while True:
    packet, address = wire.recvfrom(256)
    tcp = packet[(packet[0] & 15) * 4 :]
    if address[2] != socket.PACKET_HOST or packet[9] != socket.IPPROTO_TCP or address[0] == "lo":
        continue
    ports, sequence, data = tcp[:4], int.from_bytes(tcp[4:8], "big"), tcp[(tcp[12] >> 4) * 4 :]
    if not 49152 <= int.from_bytes(ports[2:], "big") < 49500:
        continue
    if tcp[13] & 2:  # SYN
        begins[ports] = (sequence + 1) % 2**32, b""
    elif data and begins.get(ports, (None,))[0] == sequence:
        begin = begins.pop(ports)[1] + data
        # An NBD client, which copies disks, first sends its flags, and as its first option, 5, that it wants TLS.
        if begin[:3] == bytes(3) and len(begin) < 16:
            begins[ports] = (sequence + len(data)) % 2**32, begin
        elif begin[:2] == b"\x16\x03" or begin[4:16] == b"IHAVEOPT\0\0\0\5":
            print("tls", flush=True)
        else:
            print("clear", flush=True)
' >>"$LAB_DIR/streams" &
    watcher=$!
}

# begin GOAL...: migrates a new guest; with rate=200 it takes post-copy to finish
begin() {
    local goal options=()
    for goal; do options+=(-o "$goal"); done
    "$LAB" guest web --memory 192 --ws 100 --rate "$rate" "${devices[@]}"
    "$LAB" mark web >/dev/null
    : >"$LAB_DIR/streams"
    ctl a migrate web "$target" --detach "${options[@]}" "${by_forwarder[@]}" >/dev/null
}

in_post_copy() { job_is a web .stage post_copy; }

# outcome: what the job says, then what the lab says, then what was on the wire
outcome() {
    wait_until 120 job_is_over a web
    printf '%s %s %s\n' "$(job_end a web)" \
        "$(truth web '[.running_on[], .bad_pages, .restarts] | join(" ")')" "$(sort "$LAB_DIR/streams" | uniq | xargs)"
    "$LAB" guest-rm web
}

kind_for() { if [[ $1 == tls=no ]]; then echo clear; else echo tls; fi; }
told_in_clear() { job a web '.events[].message' | grep -o '^no TLS certificates; .* has no certificates'; }
clear_for() { printf 'no TLS certificates; migrating UNENCRYPTED (tls=yes allows fallback): %s has no certificates' "$1"; }
failure() { job a web .failure.message; }

# break_post_copy: breaks the stream while the agent is down
break_post_copy() {
    wait_until 60 in_post_copy
    agent_end a KILL
    "$LAB" break a
    agent_start a
}

# --- the tests ---

test_target_without() {
    begin tls=require
    is "TLS is required, and the target has no certificates: not a byte is sent" "$(outcome)" \
        "failed REFUSED source a 0 0 "
    ok "... and the job says which end, and which file is missing" grep 'target has no certificates.*ca-cert\.pem' <<<"$(failure)"
    begin tls=yes
    is "tls=yes: it migrates in clear text" "$(outcome)" "succeeded - target b 0 0 clear"
    is "... and the job says so" "$(told_in_clear)" "$(clear_for 'the target')"
}

test_target_without_broken() {
    begin tls=yes allow_post_copy=yes
    break_post_copy
    is "tls=yes, the stream breaks in post-copy while the agent is down: recovered in clear text" "$(outcome)" \
        "succeeded - target b 0 0 clear"
}

test_source_without() {
    begin tls=yes
    is "this node has no certificates: it migrates in clear text" "$(outcome)" "succeeded - target b 0 0 clear"
    is "... and the job says so" "$(told_in_clear)" "$(clear_for 'this node')"
}

test_both_have() {
    local goals
    for goals in tls=yes tls=require "tls=require parallel_connections=3"; do
        # shellcheck disable=SC2086  # two goals
        begin $goals
        is "both ends have certificates, $goals: encrypted" "$(outcome)" "succeeded - target b 0 0 tls"
        is "... and nothing is said about clear text" "$(told_in_clear)" ""
    done
}

test_both_have_broken() {
    begin tls=require allow_post_copy=yes
    break_post_copy
    is "TLS is required, the stream breaks in post-copy: recovered, encrypted again" "$(outcome)" \
        "succeeded - target b 0 0 tls"
}

test_disks() {
    local goal sum
    have_disk
    for goal in tls=no tls=require; do
        "$LAB" exec b truncate --size 0 "$images/web.img"
        "$LAB" exec b truncate --size 16M "$images/web.img"
        sum=$(sum_at a)
        begin "$goal" copy_disks=all
        wait_until 120 job_is_over a web
        is "a disk is copied, $goal: by a stream of its own, $(kind_for $goal) as well" \
            "$(grep -c "$(kind_for $goal)" "$LAB_DIR/streams") $(outcome)" "2 succeeded - target b 0 0 $(kind_for $goal)"
        is "... and complete" "$(sum_at b)" "$sum"
    done
    devices=()
}

test_another_authority() {
    local goal
    for goal in tls=yes tls=require; do
        begin $goal
        is "the target's certificate is from another authority, $goal: nothing is sent, not even in clear text" "$(outcome)" \
            "failed REFUSED source a 0 0 tls"
        ok "... and it says so" grep "certificate hasn't got a known issuer" <<<"$(failure)"
    done
}

blockers() { ctl a -j check web "$target" -o tls=require | jq -r '.findings[] | select(.blocks) | "\(.code) \(.seen)"'; }

test_libvirtds() {
    give a theirs
    give b ours
    give_libvirtd a
    give_libvirtd b
    close_tcp b
    "$LAB" guest web --memory 64
    ok "a libvirtd that cannot be reached in clear text" grep '^TARGET_UNREACHABLE ' <(blockers)
    target=by-tls
    ok "... nor by qemu+tls:// with a certificate from another authority" grep '^TARGET_REFUSES .*certificate' <(blockers)
    give a ours
    give_libvirtd a
    is "... but with ours" "$(blockers)" ""
    "$LAB" guest-rm web
    begin tls=require
    is "... and a guest migrates, all encrypted" "$(outcome)" "succeeded - target b 0 0 tls"
    is "... without a warning" "$(job a web '.findings[]?.code | select(startswith("TLS_CONTROL"))')" ""
}

tap_lab
target=$("$LAB" uri b --tcp)
make_authority ours
make_authority theirs
configure a
configure b
"$LAB" forward a "$PORT" b
"$LAB" link 400mbit
# A caller may not give a URI parameters; the configuration may.
mkdir -p "$(agent_dir a)"
printf '[Target by-tls]\nLibvirtURI=qemu+tls://lab-b/system?pkipath=/etc/libvirt/pki/libvirtd\n' >"$(agent_dir a)/conf"
agent_start a
watch_wire

devices=() rate=5 by_forwarder=()
give b ours
test_source_without
take_away b
give a ours
test_target_without
rate=200 by_forwarder=(--migrate-uri "tcp://10.77.0.1:$PORT")
test_target_without_broken
give b ours
test_both_have_broken
rate=5 by_forwarder=()
test_both_have
test_disks
give b theirs
test_another_authority
test_libvirtds
kill "$watcher"
agent_end a TERM
done_testing
