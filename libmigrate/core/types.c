/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Names of phases, stages and causes, and the legal ways from phase to phase. */
#include "libmigrate/core/types.h"

#include "libmigrate/core/table.h"

static const char *const phase_names[] = {
    [MIG_PHASE_PENDING] = "pending",     [MIG_PHASE_PREPARING] = "preparing",
    [MIG_PHASE_MIGRATING] = "migrating", [MIG_PHASE_RECOVERING] = "recovering",
    [MIG_PHASE_SUCCEEDED] = "succeeded", [MIG_PHASE_FAILED] = "failed",
    [MIG_PHASE_ABORTED] = "aborted",
};
TABLE_COVERS(phase_names, MIG_PHASE_COUNT);

static const char *const stage_names[] = {
    [MIG_STAGE_NONE] = "none",
    [MIG_STAGE_PRE_COPY] = "pre_copy",
    [MIG_STAGE_AUTO_CONVERGE] = "auto_converge",
    [MIG_STAGE_STOP_AND_COPY] = "stop_and_copy",
    [MIG_STAGE_POST_COPY] = "post_copy",
};
TABLE_COVERS(stage_names, MIG_STAGE_COUNT);

static const char *const direction_names[] = {
    [MIG_DIRECTION_OUTGOING] = "outgoing",
    [MIG_DIRECTION_INCOMING] = "incoming",
};
TABLE_COVERS(direction_names, MIG_DIRECTION_COUNT);

static const char *const cause_names[] = {
    [MIG_CAUSE_NONE] = "NONE",
    [MIG_CAUSE_USER_ABORT] = "USER_ABORT",
    [MIG_CAUSE_DEADLINE] = "DEADLINE",
    [MIG_CAUSE_NO_PROGRESS] = "NO_PROGRESS",
    [MIG_CAUSE_LINK_STALLED] = "LINK_STALLED",
    [MIG_CAUSE_LINK_LOST] = "LINK_LOST",
    [MIG_CAUSE_NOT_CONVERGING] = "NOT_CONVERGING",
    [MIG_CAUSE_PENDING_TIMEOUT] = "PENDING_TIMEOUT",
    [MIG_CAUSE_PREPARE_TIMEOUT] = "PREPARE_TIMEOUT",
    [MIG_CAUSE_TARGET_UNREACHABLE] = "TARGET_UNREACHABLE",
    [MIG_CAUSE_SAME_HOST] = "SAME_HOST",
    [MIG_CAUSE_DOMAIN_NOT_RUNNING] = "DOMAIN_NOT_RUNNING",
    [MIG_CAUSE_DOMAIN_BUSY] = "DOMAIN_BUSY",
    [MIG_CAUSE_DOMAIN_EXISTS_AT_TARGET] = "DOMAIN_EXISTS_AT_TARGET",
    [MIG_CAUSE_REFUSED] = "REFUSED",
    [MIG_CAUSE_POLICY_CONFLICT] = "POLICY_CONFLICT",
    [MIG_CAUSE_GUEST_STOPPED] = "GUEST_STOPPED",
    [MIG_CAUSE_OUTCOME_UNKNOWN] = "OUTCOME_UNKNOWN",
    [MIG_CAUSE_SOURCE_UNREACHABLE] = "SOURCE_UNREACHABLE",
    [MIG_CAUSE_POST_COPY_FAILED] = "POST_COPY_FAILED",
    [MIG_CAUSE_CANCELLED_ELSEWHERE] = "CANCELLED_ELSEWHERE",
    [MIG_CAUSE_HOST_SHUTDOWN] = "HOST_SHUTDOWN",
    [MIG_CAUSE_LEASE_EXPIRED] = "LEASE_EXPIRED",
    [MIG_CAUSE_NOT_WATCHED] = "NOT_WATCHED",
    [MIG_CAUSE_LIBVIRT_ERROR] = "LIBVIRT_ERROR",
    [MIG_CAUSE_INTERNAL] = "INTERNAL",
};
TABLE_COVERS(cause_names, MIG_CAUSE_COUNT);

/* refusal: found before anything moves. The guest was never touched, and asking again without a change on
 * either host gives the same answer, or needs waiting. */
static const struct {
  bool refusal;
  const char *describe;
} causes[] = {
    [MIG_CAUSE_NONE] = {false, "Nothing went wrong."},
    [MIG_CAUSE_USER_ABORT] = {false, "Aborted on request; the guest stays at the source."},
    [MIG_CAUSE_DEADLINE] = {false,
                            "Not finished by the deadline; a longer completion_timeout_s_per_gib, more "
                            "bandwidth or allow_auto_converge would help."},
    [MIG_CAUSE_NO_PROGRESS] = {false,
                               "Data flows, but no pass over the memory got further than the best before "
                               "it; more bandwidth or allow_auto_converge would help."},
    [MIG_CAUSE_LINK_STALLED] = {false, "No data flows between the hosts; look at the network between them."},
    [MIG_CAUSE_LINK_LOST] = {false,
                             "The connection between the hosts broke; look at the network and at libvirtd "
                             "on the target."},
    [MIG_CAUSE_NOT_CONVERGING] = {false,
                                  "The guest changes its memory faster than the link carries it; "
                                  "allow_post_copy, allow_auto_converge or a max_pause_ms would help."},
    [MIG_CAUSE_PENDING_TIMEOUT] = {true,
                                   "It waited for its turn for longer than it may; look at what runs, and "
                                   "at MaxOutgoing= and PendingTimeout=."},
    [MIG_CAUSE_PREPARE_TIMEOUT] = {true,
                                   "The checks before the start did not end in time; look whether libvirtd "
                                   "answers on both hosts."},
    [MIG_CAUSE_TARGET_UNREACHABLE] = {true,
                                      "No connection to libvirtd on the target; check its URI, its listener "
                                      "and the credentials."},
    [MIG_CAUSE_SAME_HOST] = {true, "The target is the host on which the domain runs; name another one."},
    [MIG_CAUSE_DOMAIN_NOT_RUNNING] = {true, "The domain is not running; there is nothing to move live."},
    [MIG_CAUSE_DOMAIN_BUSY] = {true, "Another operation holds the domain; wait for its end or abort it."},
    [MIG_CAUSE_DOMAIN_EXISTS_AT_TARGET] = {true,
                                           "A domain of that name or UUID is active on the target; find out "
                                           "which of the two is the right one before anything else."},
    [MIG_CAUSE_REFUSED] = {true, "A check found what keeps the domain from moving; see the findings."},
    [MIG_CAUSE_POLICY_CONFLICT] = {true,
                                   "Keys of the policy exclude each other for this domain or these hosts."},
    [MIG_CAUSE_GUEST_STOPPED] = {false,
                                 "The guest powered off, crashed or was destroyed while it was moving."},
    [MIG_CAUSE_OUTCOME_UNKNOWN] =
        {false, "Neither end has the guest any more, and nobody saw where it went: it was shut "
                "down, or was moved to another node."},
    [MIG_CAUSE_SOURCE_UNREACHABLE] = {false, "libvirtd on this host does not answer; look at its service."},
    [MIG_CAUSE_POST_COPY_FAILED] = {false,
                                    "Post-copy could not be brought to its end; what each host holds of "
                                    "the guest is in the evidence. Destroy neither before you have read it."},
    [MIG_CAUSE_CANCELLED_ELSEWHERE] = {false, "Somebody other than this agent cancelled the migration."},
    [MIG_CAUSE_HOST_SHUTDOWN] =
        {false, "This host goes down, and the move would not have ended before; the guest stays, "
                "and is stopped with the host."},
    [MIG_CAUSE_LEASE_EXPIRED] = {false,
                                 "A place was held for it here, and nothing was seen to come in time."},
    [MIG_CAUSE_NOT_WATCHED] = {false, "What came here is gone again, and nobody watched all the time: "
                                      "whether the guest ran here is not known."},
    [MIG_CAUSE_LIBVIRT_ERROR] = {false, "libvirt reported an error; see its own text."},
    [MIG_CAUSE_INTERNAL] = {false, "The agent itself failed; please report it with the journal of this job."},
};
TABLE_COVERS(causes, MIG_CAUSE_COUNT);

/* A set of phases. */
#define TO(phase) (1u << MIG_PHASE_##phase)

/* The legal ways. What is not here is a bug of the caller.
 *
 * pending    → preparing   its turn has come.
 *            → failed      waited too long, or the domain is no longer there.
 *            → aborted     nothing was done yet: an abort is at once.
 *              Not to recovering: nothing was begun, so after a restart it is still simply pending.
 * preparing  → migrating   the record says so before libvirt is called: a migration that runs is never unrecorded.
 *            → pending     a condition that waiting can cure (the target is full): back into the queue.
 *            → recovering  a restart finds a migration under way that the record does not know of: somebody's call went
 *                          out, so both ends must be asked before anything is said.
 *            → failed      a check refused, or an end did not answer in time.
 *            → aborted
 *            Not to succeeded: what never migrated cannot have arrived.
 * migrating  → recovering  the agent or libvirtd was restarted, or the link was lost: the outcome is not known.
 *            → succeeded | failed | aborted
 *            Not back to pending or preparing: a second try is a new job, so that the first one's cause is kept.
 * recovering → migrating   it was found running, and is steered again.
 *            → preparing   it never began: the agent was killed between the record of the start and the start.
 *            → succeeded | failed | aborted: both ends gave positive evidence.
 * Final phases lead nowhere. */
static const unsigned phase_ways[] = {
    [MIG_PHASE_PENDING] = TO(PREPARING) | TO(FAILED) | TO(ABORTED),
    [MIG_PHASE_PREPARING] = TO(PENDING) | TO(MIGRATING) | TO(RECOVERING) | TO(FAILED) | TO(ABORTED),
    [MIG_PHASE_MIGRATING] = TO(RECOVERING) | TO(SUCCEEDED) | TO(FAILED) | TO(ABORTED),
    [MIG_PHASE_RECOVERING] = TO(PREPARING) | TO(MIGRATING) | TO(SUCCEEDED) | TO(FAILED) | TO(ABORTED),
    [MIG_PHASE_SUCCEEDED] = 0,
    [MIG_PHASE_FAILED] = 0,
    [MIG_PHASE_ABORTED] = 0,
};
TABLE_COVERS(phase_ways, MIG_PHASE_COUNT);

const char *mig_phase_name(MigPhase phase) {
  return table_name(phase_names, MIG_PHASE_COUNT, (int)phase);
}

const char *mig_stage_name(MigStage stage) {
  return table_name(stage_names, MIG_STAGE_COUNT, (int)stage);
}

const char *mig_direction_name(MigDirection direction) {
  return table_name(direction_names, MIG_DIRECTION_COUNT, (int)direction);
}

const char *mig_cause_name(MigCause cause) {
  return table_name(cause_names, MIG_CAUSE_COUNT, (int)cause);
}

int mig_phase_from_name(const char *name) {
  return table_find(phase_names, MIG_PHASE_COUNT, name);
}

int mig_stage_from_name(const char *name) {
  return table_find(stage_names, MIG_STAGE_COUNT, name);
}

int mig_direction_from_name(const char *name) {
  return table_find(direction_names, MIG_DIRECTION_COUNT, name);
}

int mig_cause_from_name(const char *name) {
  return table_find(cause_names, MIG_CAUSE_COUNT, name);
}

const char *mig_cause_describe(MigCause cause) {
  return (unsigned)cause < MIG_CAUSE_COUNT ? causes[cause].describe : "For an unknown cause.";
}

bool mig_cause_is_refusal(MigCause cause) {
  return (unsigned)cause < MIG_CAUSE_COUNT && causes[cause].refusal;
}

bool mig_phase_is_final(MigPhase phase) {
  return (unsigned)phase < MIG_PHASE_COUNT && phase_ways[phase] == 0;
}

bool mig_phase_may_follow(MigPhase from, MigPhase to) {
  return (unsigned)from < MIG_PHASE_COUNT && (unsigned)to < MIG_PHASE_COUNT &&
         (phase_ways[from] & (1u << to)) != 0;
}
