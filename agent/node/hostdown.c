/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* This host goes down.
 *
 * Theory of Operation. While a move is under way the agent holds logind's lock, which delays a shutdown by some seconds.
 * When one begins, nothing new starts: jobs that wait, or are only being checked, wait until the host is up again, for they
 * are on stable storage. What migrates may end by itself until shortly before logind's patience ends; what is then in
 * pre-copy is aborted (HOST_SHUTDOWN), so that its guest stops where it is, in order and with a record that says so. A
 * post-copy cannot be taken back, and is left to run for as long as it can. The lock goes back as soon as nothing is
 * under way. If the shutdown is called off, jobs start again. */
#include "agent/node/hostdown.h"

#include "agent/base/clock.h"
#include "agent/job/log.h"
#include "agent/move/admit.h"
#include "agent/move/lifecycle.h"
#include "agent/move/run.h"

#include <gio/gio.h>

/* What an abort takes: libvirt's cancelling, the question to both ends, the record. At most half of the delay. */
#define ABORT_MS 2000

static bool is_under_way(const Job *job) {
  return job->direction == MIG_DIRECTION_OUTGOING &&
         (job->phase == MIG_PHASE_MIGRATING || job->phase == MIG_PHASE_RECOVERING);
}

static unsigned count_under_way(const Agent *agent) {
  const GPtrArray *all = job_table_all(agent->jobs);
  unsigned n = 0;

  for (guint i = 0; i < all->len; i++)
    n += is_under_way(all->pdata[i]);
  return n;
}

/* Those that are only being checked have lost nothing by waiting. */
static void hold_those_that_prepare(Agent *agent) {
  g_autoptr(GPtrArray) preparing = g_ptr_array_new();
  const GPtrArray *all = job_table_all(agent->jobs);
  g_autoptr(GError) error = g_error_new_literal(G_IO_ERROR, G_IO_ERROR_CLOSED, "this host goes down");

  for (guint i = 0; i < all->len; i++) {
    const Job *job = all->pdata[i];

    if (job->direction == MIG_DIRECTION_OUTGOING && job->phase == MIG_PHASE_PREPARING && job->run)
      g_ptr_array_add(preparing, all->pdata[i]);
  }
  for (guint i = 0; i < preparing->len; i++)
    admit_hold(agent, preparing->pdata[i], MIG_HOLD_NODE, mig_cause_name(MIG_CAUSE_HOST_SHUTDOWN),
               MIG_CAUSE_HOST_SHUTDOWN, error);
}

static void take_back(Agent *agent) {
  g_autoptr(GPtrArray) moving = g_ptr_array_new();
  const GPtrArray *all = job_table_all(agent->jobs);

  for (guint i = 0; i < all->len; i++)
    if (is_under_way(all->pdata[i]))
      g_ptr_array_add(moving, all->pdata[i]);
  for (guint i = 0; i < moving->len; i++) {
    Job *job = moving->pdata[i];

    if (lifecycle_take_back(agent, job, MIG_CAUSE_HOST_SHUTDOWN, NULL,
                            "this host goes down, and the move would not end before") !=
        LIFECYCLE_ABORT_POST_COPY)
      continue;
    job_add_event(
        job, "warning", MIG_CAUSE_HOST_SHUTDOWN,
        "this host goes down, and a post-copy cannot be taken back: it goes on for as long as it can");
    log_job(job, LOG_WARNING, NAMES_MESSAGE_HOST_SHUTDOWN,
            "this host goes down in the middle of its post-copy, which cannot be taken back");
    lifecycle_state_changed(agent, job);
  }
}

void hostdown_on_shutdown(bool begins, uint64_t delay_ms, void *user_data) {
  Agent *agent = user_data;

  if (begins == agent->host_down.on)
    return;
  agent->host_down = (HostDown){.on = begins};
  if (begins) {
    agent->host_down.until_ms = clock_now_ms() + delay_ms - MIN(ABORT_MS, delay_ms / 2);
    log_message(
        LOG_NOTICE, NAMES_MESSAGE_HOST_SHUTDOWN, NULL, 0,
        "this host goes down: no move starts any more; %u under way may end within %.1f s, then they are "
        "taken back",
        count_under_way(agent), (double)(agent->host_down.until_ms - clock_now_ms()) / 1000);
    hold_those_that_prepare(agent);
  } else {
    log_message(LOG_NOTICE, NAMES_MESSAGE_HOST_SHUTDOWN, NULL, 0, "this host stays up: moves start again");
  }
  admit_jobs(agent);
  hostdown_tick(agent);
  if (agent->status_changed)
    agent->status_changed(agent);
}

void hostdown_tick(Agent *agent) {
  HostDown *down = &agent->host_down;

  if (down->on && !down->taken_back && clock_now_ms() >= down->until_ms) {
    down->taken_back = true;
    take_back(agent);
  }
  logind_want_lock(agent->logind, count_under_way(agent) > 0);
}
