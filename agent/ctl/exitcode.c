/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Exit statuses, and what leads to each. */
#include "agent/ctl/exitcode.h"

#include <assert.h>

static const ExitStatusInfo statuses[] = {
    {EXIT_DONE, "done: for migrate, the domain runs at the target"},
    {EXIT_INTERNAL, "internal: the agent or handoffctl met what it did not expect"},
    {EXIT_USAGE, "usage: the command line, or a policy key or value, cannot be"},
    {EXIT_UNREACHABLE, "the agent cannot be reached, or does not answer"},
    {EXIT_REFUSED, "refused by a check: nothing was moved; for check, the domain cannot move; for forecast, "
                   "no permitted way ends the move"},
    {EXIT_NOT_FOUND, "no such job, domain, target or policy"},
    {EXIT_FAILED, "failed: the domain was not moved, or the request was not granted"},
    {EXIT_ABORTED, "aborted: by a request or by the agent; the domain runs at the source"},
    {EXIT_TIMED_OUT, "timed out: a deadline passed; the domain runs at the source"},
    {EXIT_PERMISSION, "no permission"},
    {EXIT_DETACHED, "detached by a signal (128 + its number): the move goes on"},
    {0, NULL},
};

typedef struct CauseRow {
  bool timed_out;
  const char *next_step;
} CauseRow;

static const CauseRow causes[] = {
    [MIG_CAUSE_NONE] = {false, "Look at the job's events: handoffctl show JOB."},
    [MIG_CAUSE_USER_ABORT] = {false, "Nothing to do. Start the move again when it suits."},
    [MIG_CAUSE_DEADLINE] =
        {true,
         "Give it more time (completion_timeout_s_per_gib), let it switch over in another way "
         "(allow_auto_converge, allow_post_copy, max_downtime_ms), or move it while the guest writes less."},
    [MIG_CAUSE_NO_PROGRESS] = {false, "The guest writes faster than the link carries: allow auto-converge, "
                                      "post-copy or a longer downtime, or "
                                      "raise bandwidth_bytes_per_s if it is set."},
    [MIG_CAUSE_LINK_STALLED] =
        {false,
         "Look at the network between the two nodes, at the address and port of the migration stream first."},
    [MIG_CAUSE_LINK_LOST] = {false, "Look at the network between the two nodes, then start the move again."},
    [MIG_CAUSE_NOT_CONVERGING] =
        {false,
         "Allow auto-converge, post-copy or a longer downtime, or move it while the guest writes less."},
    [MIG_CAUSE_PENDING_TIMEOUT] =
        {true, "See what holds the queue up (handoffctl list), then start the move again."},
    [MIG_CAUSE_PREPARE_TIMEOUT] =
        {true, "See whether libvirtd at both ends answers (virsh -c URI list), then start the move again."},
    [MIG_CAUSE_TARGET_UNREACHABLE] =
        {false, "Try the target's URI on this node, as the agent's user: virsh -c URI version."},
    [MIG_CAUSE_SAME_HOST] = {false, "Name another node. If it is another node, its host_uuid in "
                                    "libvirtd.conf must differ from this node's."},
    [MIG_CAUSE_DOMAIN_NOT_RUNNING] = {false, "Only a running domain can be moved: virsh list --all."},
    [MIG_CAUSE_DOMAIN_BUSY] = {false, "Wait for what is under way on the domain: virsh domjobinfo DOMAIN."},
    [MIG_CAUSE_DOMAIN_EXISTS_AT_TARGET] =
        {false,
         "Find out what the domain of that name or UUID at the target is before you touch either of them."},
    [MIG_CAUSE_REFUSED] = {false, "Remove what was found, then start the move again."},
    [MIG_CAUSE_POLICY_CONFLICT] = {false, "Leave one of the goals out that exclude each other."},
    [MIG_CAUSE_GUEST_STOPPED] = {false, "The guest ended by itself or was stopped. Nothing is left to move."},
    [MIG_CAUSE_OUTCOME_UNKNOWN] =
        {false, "Look for the guest on the other nodes (virsh list --all) before it is started "
                "anywhere."},
    [MIG_CAUSE_SOURCE_UNREACHABLE] = {false, "See to the libvirtd of this node: systemctl status libvirtd."},
    [MIG_CAUSE_POST_COPY_FAILED] =
        {false, "Look at both ends before you touch anything: part of the guest's memory may be at either."},
    [MIG_CAUSE_CANCELLED_ELSEWHERE] = {false, "Somebody aborted it at libvirt itself (virsh domjobabort?). "
                                              "Start the move again when that is settled."},
    [MIG_CAUSE_HOST_SHUTDOWN] =
        {false, "Start the move again when the host is up. To empty a host, drain it before it goes down."},
    [MIG_CAUSE_LEASE_EXPIRED] = {true,
                                 "Prepare it again, for longer if need be, and start the move at once."},
    [MIG_CAUSE_NOT_WATCHED] =
        {false, "Ask its source where the guest is: handoffctl show DOMAIN there. Start it nowhere, and "
                "remove no disk, before that is known."},
    [MIG_CAUSE_LIBVIRT_ERROR] =
        {false,
         "Look at the journal of libvirtd and the domain's log in /var/log/libvirt/qemu at both ends."},
    [MIG_CAUSE_INTERNAL] = {false, "A fault in handoffd: journalctl -u handoffd has more."},
};
static_assert(sizeof(causes) / sizeof(causes[0]) == MIG_CAUSE_COUNT, "a row for each cause");

const ExitStatusInfo *exit_status_table(void) {
  return statuses;
}

static const CauseRow *cause_row(MigCause cause) {
  if ((int)cause >= 0 && cause < MIG_CAUSE_COUNT)
    return &causes[cause];
  return &causes[MIG_CAUSE_NONE]; /* a newer agent's */
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
