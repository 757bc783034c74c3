#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# First process of a node, in its new namespaces: does the mounts, then becomes the node's init.
# Usage: node-setup.sh LAB_DIR NODE REPO [ROOT]
set -euo pipefail

lab_dir=$1 node=$2 repo=$3 root=${4:-}
dir=$lab_dir/node-$node

# /proc is still the outer one, so this is our pid as seen from outside.
read -r -d '' stat </proc/self/stat || true
outside_pid=${stat%% *}
read -r -a fields <<<"${stat##*) }"
started=${fields[19]}

mount --make-rprivate /
hostname "lab-$node"

# LAB_DIR may be under /run and the checkout under /var/lib, which are about to
# be covered: both are mounted back in their places afterwards.
exec 7<"$lab_dir" 8<"$repo"

for pair in etc-libvirt:/etc/libvirt lib-libvirt:/var/lib/libvirt log-libvirt:/var/log/libvirt \
    cache-libvirt:/var/cache/libvirt passwd:/etc/passwd group:/etc/group hosts:/etc/hosts; do
    # libvirt's packages leave some of these for libvirtd to create
    if [[ ! -e ${pair#*:} && -d $dir/${pair%%:*} ]]; then
        mkdir -p "${pair#*:}"
    elif [[ ! -e ${pair#*:} ]]; then
        : >"${pair#*:}"
    fi
    mount --bind "$dir/${pair%%:*}" "${pair#*:}"
done
mkdir -p "$dir/run/lock" "$dir/run/libvirt"
mount --bind "$dir/run" /run
# libvirtd looks for it when it starts. Without it, guests have no huge pages here.
mkdir -p /run/hugepages
mount -t hugetlbfs hugetlbfs /run/hugepages || true

for pair in "7:$lab_dir" "8:$repo"; do
    [[ /proc/self/fd/${pair%%:*} -ef ${pair#*:} ]] && continue
    mkdir -p "${pair#*:}"
    mount --no-canonicalize --bind "/proc/self/fd/${pair%%:*}" "${pair#*:}"
done
exec 7<&- 8<&-

ip link set lo up
mount -t proc proc /proc

# Another release: its files below the node's own. What the node has of its own is there as well, in the same places. Writes go to
# a layer of this lab.
if [[ -n $root ]]; then
    mkdir -p "$dir"/root{,-upper,-work}
    mount -t overlay overlay -o "lowerdir=$root,upperdir=$dir/root-upper,workdir=$dir/root-work" "$dir/root"
    for path in /etc/libvirt /var/lib/libvirt /var/log/libvirt /var/cache/libvirt /etc/passwd /etc/group /etc/hosts /run /dev /sys /proc \
        "$lab_dir" "$repo"; do
        if [[ -d $path ]]; then
            mkdir -p "$dir/root$path"
        elif [[ ! -e $dir/root$path ]]; then
            : >"$dir/root$path"
        fi
        mount --bind "$path" "$dir/root$path"
    done
    for path in /dev/pts /dev/shm; do
        mount --bind "$path" "$dir/root$path"
    done
fi
cd /
printf '%s %s\n' "$outside_pid" "$started" >"$dir/init.tmp"
mv "$dir/init.tmp" "$dir/init.pid"
exec "$lab_dir/bin/lab-ns" init
