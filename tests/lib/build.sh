# SPDX-License-Identifier: LGPL-2.1-or-later
# shellcheck shell=bash
# Building for tests/demo and tests/run, in directories of their own below build-run. Source it with `root` set to the
# checkout.

# Debian's own programs come first; a root shell from su may lack the sbin directories.
export PATH=/usr/sbin:/usr/bin:/sbin:/bin:$PATH

# configure_in DIRECTORY OPTION...: does nothing if it is configured already
configure_in() {
    local directory=$1 log=$1.log
    shift
    [[ ! -f $directory/build.ninja ]] || return 0
    rm -rf "$directory"
    mkdir -p "$directory"
    # shellcheck disable=SC2154  # the including script's
    meson setup "$directory" "$root" "$@" >"$log" 2>&1 </dev/null || build_failed "$log"
}

# build_in DIRECTORY TARGETS: TARGETS are words, or empty for all. Quiet; prints the end of the log on failure.
build_in() {
    # shellcheck disable=SC2086  # targets are words
    ninja -C "$1" $2 >"$1.log" 2>&1 </dev/null || build_failed "$1.log"
}

build_failed() {
    tail -n 40 "$1" >&2
    # shellcheck disable=SC2154  # the including script's
    printf '%s: the build failed; the full log is %s\n' "$program" "$1" >&2
    return 1
}
