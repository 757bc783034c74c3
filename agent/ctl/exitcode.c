/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Exit statuses and what they mean. */
#include "agent/ctl/exitcode.h"

#include <assert.h>

static const ExitStatusInfo statuses[] = {
    {EXIT_DONE, "success; for migrate: the domain runs on the target"},
    {EXIT_INTERNAL, "internal error in the agent or in handoffctl"},
    {EXIT_USAGE, "usage error: invalid command line, policy key or policy value"},
    {EXIT_UNREACHABLE, "the agent cannot be reached or does not answer"},
    {EXIT_REFUSED,
     "refused by a check, nothing was migrated; for check: the domain cannot be migrated; for forecast: "
     "no permitted way completes the migration"},
    {EXIT_NOT_FOUND, "no such job, domain, target or policy"},
    {EXIT_FAILED, "failed: the domain was not migrated, or the request was rejected"},
    {EXIT_ABORTED, "aborted on request or by the agent; the domain runs on the source"},
    {EXIT_TIMED_OUT, "timed out: a deadline passed; the domain runs on the source"},
    {EXIT_PERMISSION, "permission denied"},
    {EXIT_DETACHED, "detached by a signal (128 + signal number); the migration continues"},
    {0, NULL},
};

typedef struct CauseRow {
  bool timed_out;
  const char *next_step;
} CauseRow;

static const CauseRow causes[] = {
    [MIG_CAUSE_NONE] = {false, "Check the job's events: handoffctl show JOB."},
    [MIG_CAUSE_USER_ABORT] = {false, "Nothing to do. Start the migration again when it suits you."},
    [MIG_CAUSE_DEADLINE] =
        {true,
         "Give it more time (completion_timeout_s_per_gib), allow another way to complete "
         "(allow_auto_converge, allow_post_copy, max_downtime_ms), or migrate when the guest is less busy."},
    [MIG_CAUSE_NO_PROGRESS] = {false, "The guest dirties memory faster than the link can carry it: allow "
                                      "auto-converge, post-copy or a longer downtime, or raise "
                                      "bandwidth_bytes_per_s if it is set."},
    [MIG_CAUSE_LINK_STALLED] = {false, "Check the network between the two nodes, starting with the address "
                                       "and port of the migration stream."},
    [MIG_CAUSE_LINK_LOST] = {false,
                             "Check the network between the two nodes, then start the migration again."},
    [MIG_CAUSE_NOT_CONVERGING] =
        {false,
         "Allow auto-converge, post-copy or a longer downtime, or migrate when the guest is less busy."},
    [MIG_CAUSE_PENDING_TIMEOUT] =
        {true, "Check what is holding up the queue (handoffctl list), then start the migration again."},
    [MIG_CAUSE_PREPARE_TIMEOUT] =
        {true,
         "Check that libvirtd answers on both ends (virsh -c URI list), then start the migration again."},
    [MIG_CAUSE_TARGET_UNREACHABLE] =
        {false, "Try the target's URI from this node, as the agent's user: virsh -c URI version."},
    [MIG_CAUSE_SAME_HOST] = {false,
                             "Name a different node. If it is a different node, set a unique host_uuid "
                             "in its libvirtd.conf."},
    [MIG_CAUSE_DOMAIN_NOT_RUNNING] = {false, "Only a running domain can be migrated: virsh list --all."},
    [MIG_CAUSE_DOMAIN_BUSY] = {false,
                               "Wait for the domain's current job to finish: virsh domjobinfo DOMAIN."},
    [MIG_CAUSE_DOMAIN_EXISTS_AT_TARGET] =
        {false,
         "Find out what the domain with that name or UUID on the target is before you touch either of them."},
    [MIG_CAUSE_REFUSED] = {false, "Fix what the checks found, then start the migration again."},
    [MIG_CAUSE_POLICY_CONFLICT] = {false, "Drop one of the conflicting goals."},
    [MIG_CAUSE_GUEST_STOPPED] = {false,
                                 "The guest shut down or was stopped. There is nothing left to migrate."},
    [MIG_CAUSE_OUTCOME_UNKNOWN] =
        {false, "Look for the guest on the other nodes (virsh list --all) before you start it "
                "anywhere."},
    [MIG_CAUSE_SOURCE_UNREACHABLE] = {false, "Check libvirtd on this node: systemctl status libvirtd."},
    [MIG_CAUSE_POST_COPY_FAILED] =
        {false, "Check both ends before you touch anything: each may hold part of the guest's memory."},
    [MIG_CAUSE_CANCELLED_ELSEWHERE] =
        {false, "Somebody aborted the migration through libvirt (virsh domjobabort?). Find "
                "out why, then start the migration again."},
    [MIG_CAUSE_HOST_SHUTDOWN] = {false, "Start the migration again when the host is back up. To empty a "
                                        "host, drain it before the shutdown."},
    [MIG_CAUSE_LEASE_EXPIRED] =
        {true, "Run prepare again, with a longer timeout if necessary, and start the migration promptly."},
    [MIG_CAUSE_NOT_WATCHED] = {false, "Ask the source where the guest is: run handoffctl show DOMAIN there. "
                                      "Until that is known, do not start "
                                      "the guest anywhere and do not remove any disk."},
    [MIG_CAUSE_LIBVIRT_ERROR] =
        {false, "Check libvirtd's journal and the domain's log in /var/log/libvirt/qemu on both ends."},
    [MIG_CAUSE_INTERNAL] = {false, "This is a bug in handoffd; see journalctl -u handoffd for details."},
};
static_assert(sizeof(causes) / sizeof(causes[0]) == MIG_CAUSE_COUNT, "a row for each cause");

const ExitStatusInfo *exit_status_table(void) {
  return statuses;
}

static const CauseRow *cause_row(MigCause cause) {
  if ((int)cause >= 0 && cause < MIG_CAUSE_COUNT)
    return &causes[cause];
  return &causes[MIG_CAUSE_NONE]; /* from a newer agent */
}

ExitStatus exit_status_of_job(MigPhase phase, MigCause cause) {
  if (phase == MIG_PHASE_SUCCEEDED)
    return EXIT_DONE;
  if (phase != MIG_PHASE_FAILED && phase != MIG_PHASE_ABORTED)
    return EXIT_INTERNAL;
  if (cause_row(cause)->timed_out)
    return EXIT_TIMED_OUT;
  if (phase == MIG_PHASE_ABORTED)
    return EXIT_ABORTED;
  return mig_cause_is_refusal(cause) ? EXIT_REFUSED : EXIT_FAILED;
}

const char *cause_next_step(MigCause cause) {
  return cause_row(cause)->next_step;
}
