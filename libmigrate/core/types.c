/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Names of phases, stages and causes, and the legal transitions between phases. */
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

/* refusal: found before any data is sent. The guest was never touched, and asking again gives the same answer until
 * something changes on a host. */
static const struct {
  bool refusal;
  const char *describe;
} causes[] = {
    [MIG_CAUSE_NONE] = {false, "Nothing went wrong."},
    [MIG_CAUSE_USER_ABORT] = {false, "Aborted on request; the guest stays at the source."},
    [MIG_CAUSE_DEADLINE] = {false, "Not finished by the deadline; a larger completion_timeout_s_per_gib, "
                                   "more bandwidth or allow_auto_converge would help."},
    [MIG_CAUSE_NO_PROGRESS] = {false, "Data is moving, but no pass over the memory improves on the best one "
                                      "so far; more bandwidth or allow_auto_converge would help."},
    [MIG_CAUSE_LINK_STALLED] = {false,
                                "No data is moving between the hosts; check the network between them."},
    [MIG_CAUSE_LINK_LOST] =
        {false, "The connection between the hosts was lost; check the network and libvirtd on the target."},
    [MIG_CAUSE_NOT_CONVERGING] = {false, "The guest dirties memory faster than the link can carry it; "
                                         "allow_post_copy, allow_auto_converge or max_pause_ms would help."},
    [MIG_CAUSE_PENDING_TIMEOUT] = {true, "The job waited in the queue for longer than PendingTimeout=; check "
                                         "which jobs are running, and MaxOutgoing=."},
    [MIG_CAUSE_PREPARE_TIMEOUT] =
        {true,
         "The checks before the start did not finish in time; check whether libvirtd answers on both hosts."},
    [MIG_CAUSE_TARGET_UNREACHABLE] =
        {true, "Cannot connect to libvirtd on the target; check its URI, its listener and the credentials."},
    [MIG_CAUSE_SAME_HOST] = {true,
                             "The target is the host that the domain already runs on; name another one."},
    [MIG_CAUSE_DOMAIN_NOT_RUNNING] = {true, "The domain is not running; there is nothing to migrate live."},
    [MIG_CAUSE_DOMAIN_BUSY] = {true,
                               "Another operation is in progress on the domain; wait for it or abort it."},
    [MIG_CAUSE_DOMAIN_EXISTS_AT_TARGET] = {true, "A domain with this name or UUID already exists on the "
                                                 "target; first find out which of the two is the right one."},
    [MIG_CAUSE_REFUSED] = {true, "A check found that the domain cannot migrate; see the findings."},
    [MIG_CAUSE_POLICY_CONFLICT] = {true, "Policy keys exclude each other for this domain or these hosts."},
    [MIG_CAUSE_GUEST_STOPPED] = {false,
                                 "The guest powered off, crashed or was destroyed during the migration."},
    [MIG_CAUSE_OUTCOME_UNKNOWN] = {false, "Neither end has the guest any more, and nobody saw where it went: "
                                          "it was shut down or migrated to another node."},
    [MIG_CAUSE_SOURCE_UNREACHABLE] = {false,
                                      "libvirtd on the source host does not answer; check its service."},
    [MIG_CAUSE_POST_COPY_FAILED] = {false,
                                    "Post-copy could not be completed; the evidence says what each host "
                                    "holds of the guest. Read it before you destroy either copy."},
    [MIG_CAUSE_CANCELLED_ELSEWHERE] = {false,
                                       "The migration was cancelled by someone other than this agent."},
    [MIG_CAUSE_HOST_SHUTDOWN] = {false, "The source host is shutting down and the migration would not have "
                                        "finished in time; the guest stays and stops with the host."},
    [MIG_CAUSE_LEASE_EXPIRED] = {false,
                                 "The target held a lease for the guest, and no migration arrived in time."},
    [MIG_CAUSE_NOT_WATCHED] = {false, "The incoming copy is gone again, and the target did not watch it "
                                      "without a gap: whether the guest ran there is unknown."},
    [MIG_CAUSE_LIBVIRT_ERROR] = {false, "libvirt reported an error; see its own text."},
    [MIG_CAUSE_INTERNAL] = {false,
                            "The agent itself failed; please report this with the journal of the job."},
};
TABLE_COVERS(causes, MIG_CAUSE_COUNT);

/* A set of phases. */
#define TO(phase) (1u << MIG_PHASE_##phase)

/* The legal transitions. Any other is a bug in the caller.
 *
 * pending    → preparing   its turn has come.
 *            → failed      it waited too long, or the domain is gone.
 *            → aborted     nothing has been done yet, so an abort takes effect at once.
 *              Not to recovering: nothing has begun, so after a restart it is simply pending.
 * preparing  → migrating   recorded before libvirt is called, so that no migration runs unrecorded.
 *            → pending     something that waiting can clear (the target is full): back into the queue.
 *            → recovering  a restart finds a running migration that is not on record: some call went out, so both ends
 *                          must be asked first.
 *            → failed      a check refused, or one end did not answer in time.
 *            → aborted
 *            Not to succeeded: a guest that never migrated cannot have arrived.
 * migrating  → recovering  the agent or libvirtd was restarted, or the link was lost: outcome unknown.
 *            → succeeded | failed | aborted
 *            Not back to pending or preparing: a retry is a new job, so that the first cause is kept.
 * recovering → migrating   it was found running and is steered again.
 *            → preparing   it never began: the agent was killed after it recorded the start and before the start.
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
  return (unsigned)cause < MIG_CAUSE_COUNT ? causes[cause].describe : "The cause is unknown.";
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
