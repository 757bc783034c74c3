/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* A job as a client sees it now. */
#include "agent/view.h"

#include "libmigrate/core/admission.h"

int64_t view_pending_until_usec(const Agent *agent, const Job *job) {
  if (agent->config->pending_timeout_ms == 0)
    return 0;
  return job->pending_since_usec + (int64_t)agent->config->pending_timeout_ms * 1000;
}

json_t *view_job(const Agent *agent, const Job *job, JobView view) {
  JobContext context = {.now_ms = agent_now_ms(), .now_usec = g_get_real_time()};

  if (job->phase == MIG_PHASE_PENDING) {
    context.queue_position = job_table_queue_position(agent->jobs, job);
    context.pending_reason = mig_admission_name(MIG_ADMISSION_OUTGOING_LIMIT);
    context.pending_until_usec = view_pending_until_usec(agent, job);
    g_snprintf(context.pending_message, sizeof context.pending_message,
               "%u of at most %u migrations out of this node are running (MaxOutgoing=%u)",
               job_table_count_running(agent->jobs), agent->config->max_outgoing,
               agent->config->max_outgoing);
  }
  return job_to_json(job, &context, view);
}

json_t *view_job_reply(const Agent *agent, const Job *job, JobView view) {
  return json_pack("{so}", "job", view_job(agent, job, view));
}
