#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# Profiles of guests, on two real hypervisors: a running guest is measured, its profile is right and travels with it, no migration
# has to begin with a measurement, and nobody takes the profile for a change of the definition.
set -u
# shellcheck source=lib/tap.sh
. "$(dirname "$(readlink -f "$0")")/lib/tap.sh"
# shellcheck source=lib/agent.sh
. "$TAP_HOME/lib/agent.sh"

namespace=https://handoffd.io/xmlns/profile/1
# profile NODE FIELD: of "1 AT PROBES SHORT LONG CPU HOUR...", in KiB/s
profile() { "$LAB" virsh "$1" metadata web "$namespace" 2>/dev/null | sed 's/<[^>]*>//g' | cut -d' ' -f"$2"; }
has_probes() { [[ $(profile "$1" 3) -ge $2 ]]; }

# How long the move prepared, in ms, by the agent's own events.
preparing_ms() { # preparing_ms NODE JOB
    job "$1" "$2" '[.events[] | select(.kind == "phase") | .time_usec_realtime // .usec_realtime] | (.[1] - .[0]) / 1000 | floor'
}

# move FROM TO: the job's id
move() { ctl "$1" -j migrate web "$("$LAB" uri "$2" --tcp)" -o allow_post_copy=yes --detach | jq -r .job.id; }

tap_lab
"$LAB" link 400mbit
agent_configure a ProfileInterval=0
agent_configure b ProfileInterval=0
agent_start a
agent_start b
"$LAB" guest web --memory 128 --ws 48 --rate 20

id=$(move a b)
wait_until 60 job_is_over a "$id"
is "a guest without a profile is measured first, and moves" "$(job_end a "$id")" "succeeded - target"
diag "without a profile the move prepares for $(preparing_ms a "$id") ms"
is "... and has none after it" "$(profile b 3)" ""

agent_end b TERM
agent_configure b ProfileInterval=1s
agent_start b
ok "it is measured now and then" wait_until 30 has_probes b 4
short=$(profile b 4)
num "what it dirties in a second is right: KiB/s" "$short" '>=' 12000
num "... to a third" "$short" '<=' 28000
is "its next start would change nothing" "$(ctl b evaluate web)" "The next start of web would change nothing."
ok "the node says how often, and what it cost" grep -Eq 'profiles *[0-9]+ measurements of running guests, .* in all' <(ctl b node)

id=$(move b a)
wait_until 60 job_is_over b "$id"
is "with a profile it moves" "$(job_end b "$id")" "succeeded - target"
diag "with a profile the move prepares for $(preparing_ms b "$id") ms"
num "the profile travelled with it" "$(profile a 3)" '>=' 4
is "... also with the definition that the next start uses, and is no change" "$(ctl a evaluate web)" \
    "The next start of web would change nothing."
is "the guest survived it all" "$(truth web '[.running_on[], .bad_pages, .restarts] | join(" ")')" "a 0 0"

for node in a b; do
    agent_end $node TERM
done
"$LAB" guest-rm web
done_testing
