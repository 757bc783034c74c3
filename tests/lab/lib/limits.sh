# SPDX-License-Identifier: LGPL-2.1-or-later
# shellcheck shell=bash
# Did the limits hold, by the bytes on the wire and by the records? Needs lib/tap.sh.

# bytes/s over a two-second window that slides by a tenth of a second; one per line
rates_on_the_wire() { # rates_on_the_wire SINCE UNTIL, in µs
    awk -v since="$1" -v until="$2" '
        $1 >= since && $1 <= until { last = int(($1 - since) / 100000); sent[last] = $2 }
        END {
            for (i = 0; i <= last; i++) if (!(i in sent)) sent[i] = i ? sent[i - 1] : 0
            for (i = 20; i <= last; i++) printf "%d\n", (sent[i] - sent[i - 20]) / 2
        }' "$LAB_DIR/wire/ab.log"
}

# The most jobs that ran at the same time.
most_at_once() {
    jq -s '[.[].job | [.started_usec_realtime, 1], [.finished_usec_realtime, -1]] | sort
        | reduce .[] as [$at, $step] ({now: 0, most: 0}; .now += $step | .most = ([.most, .now] | max)) | .most'
}
