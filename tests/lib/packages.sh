# SPDX-License-Identifier: LGPL-2.1-or-later
# shellcheck shell=bash
# shellcheck disable=SC2154  # root and program are the including script's
# The Debian 12 packages that tests/demo and tests/run need, and their installation. Source it with `root` set to the
# checkout and `program` to the name for messages.

# package | needed by (build: meson and the compiler; demo; test; versions) | for what
packages_table='
meson               | build | the build system
ninja-build         | build | runs the build files from meson
gcc                 | build | also brings the sanitizers
libc6-dev           | build | headers
binutils            | build | nm, readelf: what the core calls, what libmigrate exports
pkg-config          | build | finds the libraries below
python3             | build | embeds the interface file
libglib2.0-dev      | build | main loop, threads, containers
libvirt-dev         | build | the hypervisor
libxml2-dev         | build | domain XML
libjansson-dev      | build | JSON
libsystemd-dev      | build | journal, sd_notify, socket activation
libcairo2-dev       | build | the charts of handoffctl report
scdoc               | build | manual pages
systemd             | demo  | journald and journalctl
libcmocka-dev       | test  | unit tests
libxml2-utils       | test  | xmllint: is a chart well-formed
python3-prometheus-client | test | parses the metrics
varlink-go          | test  | an independent varlink client and server
systemd             | test  | systemd-analyze, sysusers, tmpfiles, journalctl
systemd-container   | test  | systemd-nspawn, to boot the units
dbus                | test  | the booted system needs it; a bus for a logind of our own
polkitd             | test  | libvirt asks it who may connect
socat               | test  | raw bytes to a socket
openssl             | test  | certificates for TLS
qemu-utils          | test  | disks with a backing file
bc                  | test  | sums with a fraction
gdb                 | test  | stacks of what hangs; how public types lie in memory
git                 | test  | which files are ours
clang-format        | test  | style
cppcheck            | test  | style
shellcheck          | test  | style
mmdebstrap          | versions | roots of other releases of Debian
'

# packages_for PURPOSE...: their names, one per line; demo and test include the lab's own list
packages_for() {
    local name purpose wanted
    while IFS='| ' read -r name purpose _; do
        for wanted; do
            [[ -z $name || $purpose != "$wanted" ]] || printf '%s\n' "$name"
        done
    done <<<"$packages_table"
    for wanted; do
        [[ $wanted != demo && $wanted != test ]] || cat "$root/tests/lab/packages"
    done
}

# packages_missing PACKAGE...
packages_missing() {
    local installed
    installed=$(dpkg-query -W -f='${db:Status-Status} ${Package}\n' "$@" 2>/dev/null | sed -n 's/^installed //p' | sort -u)
    comm -23 <(printf '%s\n' "$@" | sort -u) <(printf '%s\n' "$installed")
}

# packages_install PURPOSE...: installs what is missing; changes nothing if nothing is missing
packages_install() {
    local wanted missing log
    if ! command -v dpkg-query >/dev/null; then
        printf '%s: this is not Debian; make sure that these are installed:\n%s\n' "$program" "$(packages_for "$@" | sort -u | xargs)" >&2
        return 0
    fi
    mapfile -t wanted < <(packages_for "$@" | sort -u)
    mapfile -t missing < <(packages_missing "${wanted[@]}")
    ((${#missing[@]})) || return 0
    printf '%s: installing %d packages: %s\n' "$program" "${#missing[@]}" "${missing[*]}"
    log=$root/build-run/packages.log
    if ! {
        apt-get update &&
            DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends "${missing[@]}"
    } >"$log" 2>&1 </dev/null; then
        tail -n 20 "$log" >&2
        printf '%s: apt-get could not install them; the full log is %s\n' "$program" "$log" >&2
        return 1
    fi
}

# need_root WHY
need_root() {
    ((EUID != 0)) || return 0
    printf '%s: must run as root: %s. Use sudo, or a machine that you can throw away.\n' "$program" "$1" >&2
    exit 1
}
