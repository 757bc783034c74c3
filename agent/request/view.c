/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* A job as clients see it now. */
#include "agent/request/view.h"

#include "agent/base/clock.h"
#include "agent/move/admit.h"
#include "agent/move/hangs.h"

/* From the monotonic clock to realtime. */
static int64_t to_realtime_usec(const JobContext *context, uint64_t ms) {
  return ms == 0 ? 0 : context->now_usec + ((int64_t)ms - (int64_t)context->now_ms) * 1000;
}

json_t *view_job(const Requests *requests, const Job *job, JobDetail view) {
  JobContext context = {.now_ms = clock_now_ms(), .now_usec = g_get_real_time()};
  g_autofree char *message = NULL;
  json_t *object;

  if (job->lease) {
    context.pending_reason = "LEASED";
    context.pending_message = "its room is reserved; nothing has arrived yet";
    context.pending_until_usec = job->lease->expires_usec;
  } else if (job->phase == MIG_PHASE_PENDING) {
    JobPending pending;

    job_queue_explain(requests->jobs->queue, job, context.now_ms, &pending);
    message = pending.message;
    context.queue_position = job_queue_position(job);
    context.pending_reason = pending.reason;
    context.pending_message = message;
    context.pending_until_usec = admit_until_usec(requests->mover, job);
    context.held_since_usec = to_realtime_usec(&context, pending.held_since_ms);
    context.retry_usec = to_realtime_usec(&context, pending.retry_ms);
    context.tries = pending.condition ? pending.condition->tries : 0;
  }
  object = job_to_json(job, &context, view);
  if (!job_is_final(job)) {
    json_t *hanging = hangs_to_json(requests->mover->hangs, job->domain_uuid);

    if (json_array_size(hanging) > 0)
      json_object_set(object, "hanging", hanging);
    json_decref(hanging);
  }
  return object;
}

json_t *view_job_reply(const Requests *requests, const Job *job, JobDetail view) {
  return json_pack("{so}", "job", view_job(requests, job, view));
}

json_t *view_summary(const Requests *requests, const Job *job) {
  JobContext context = {0};

  if (job->lease) {
    context.pending_reason = "LEASED";
    context.pending_until_usec = job->lease->expires_usec;
  } else if (job->phase == MIG_PHASE_PENDING) {
    context.queue_position = job_queue_position(job);
    context.pending_reason = job_queue_reason(requests->jobs->queue, job);
    context.pending_until_usec = admit_until_usec(requests->mover, job);
  }
  return job_to_summary(job, &context);
}
