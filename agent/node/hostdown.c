/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* A shutdown of this host.
 *
 * Theory of Operation. While a migration is in progress the agent holds an inhibitor lock of logind, which delays a shutdown
 * by a few seconds. When a shutdown begins, nothing new starts: jobs that wait or are being checked wait until the host is up
 * again, since they are on stable storage. Migrations may finish until shortly before logind's delay ends. Those still in
 * pre-copy are then aborted (HOST_SHUTDOWN), so that their guests shut down in order on this host, and the record says so.
 * Post-copy cannot be aborted and runs for as long as it can. The lock is released as soon as no migration is in progress. If
 * the shutdown is cancelled, jobs start again. */
#include "agent/node/hostdown.h"

#include "agent/base/clock.h"
#include "agent/job/log.h"
#include "agent/move/admit.h"
#include "agent/move/lifecycle.h"
#include "agent/move/run.h"
#include "agent/node/node.h"

#include <gio/gio.h>

/* Time for an abort: libvirt cancels, both ends are asked, the record is written. At most half of the delay. */
#define ABORT_MS 2000

static bool is_under_way(const Job *job) {
  return job->direction == MIG_DIRECTION_OUTGOING &&
         (job->phase == MIG_PHASE_MIGRATING || job->phase == MIG_PHASE_RECOVERING);
}

static unsigned count_under_way(const Node *node) {
  const GPtrArray *all = job_table_all(node->jobs->table);
  unsigned n = 0;

  for (guint i = 0; i < all->len; i++)
    n += is_under_way(all->pdata[i]);
  return n;
}

/* Jobs that are being checked lose nothing by waiting. */
static void hold_those_that_prepare(Node *node) {
  g_autoptr(GPtrArray) preparing = g_ptr_array_new();
  const GPtrArray *all = job_table_all(node->jobs->table);
  g_autoptr(GError) error = g_error_new_literal(G_IO_ERROR, G_IO_ERROR_CLOSED, "this host is shutting down");

  for (guint i = 0; i < all->len; i++) {
    const Job *job = all->pdata[i];

    if (job->direction == MIG_DIRECTION_OUTGOING && job->phase == MIG_PHASE_PREPARING && job->run)
      g_ptr_array_add(preparing, all->pdata[i]);
  }
  for (guint i = 0; i < preparing->len; i++)
    admit_hold(node->mover, preparing->pdata[i], MIG_HOLD_NODE, mig_cause_name(MIG_CAUSE_HOST_SHUTDOWN),
               MIG_CAUSE_HOST_SHUTDOWN, error);
}

static void take_back(Node *node) {
  g_autoptr(GPtrArray) moving = g_ptr_array_new();
  const GPtrArray *all = job_table_all(node->jobs->table);

  for (guint i = 0; i < all->len; i++)
    if (is_under_way(all->pdata[i]))
      g_ptr_array_add(moving, all->pdata[i]);
  for (guint i = 0; i < moving->len; i++) {
    Job *job = moving->pdata[i];

    if (lifecycle_take_back(node->mover, job, MIG_CAUSE_HOST_SHUTDOWN, NULL,
                            "this host is shutting down, and the migration would not finish in time") !=
        LIFECYCLE_ABORT_POST_COPY)
      continue;
    job_add_event(
        job, "warning", MIG_CAUSE_HOST_SHUTDOWN,
        "this host is shutting down, and post-copy cannot be aborted: it continues for as long as it can");
    log_job(job, LOG_WARNING, NAMES_MESSAGE_HOST_SHUTDOWN,
            "this host is shutting down during its post-copy, which cannot be aborted");
    jobs_state_changed(node->jobs, job);
  }
}

void hostdown_on_shutdown(bool begins, uint64_t delay_ms, void *user_data) {
  Node *node = user_data;

  if (begins == node->mover->host_going_down)
    return;
  node->host_down = (HostDown){0};
  node->mover->host_going_down = begins;
  if (begins) {
    node->host_down.until_ms = clock_now_ms() + delay_ms - MIN(ABORT_MS, delay_ms / 2);
    log_message(
        LOG_NOTICE, NAMES_MESSAGE_HOST_SHUTDOWN, NULL, 0,
        "this host is shutting down: no more migrations start; those in progress (%u) have %.1f s to finish, "
        "then they are aborted",
        count_under_way(node), (double)(node->host_down.until_ms - clock_now_ms()) / 1000);
    hold_those_that_prepare(node);
  } else {
    log_message(LOG_NOTICE, NAMES_MESSAGE_HOST_SHUTDOWN, NULL, 0,
                "the shutdown of this host was cancelled: migrations start again");
  }
  admit_jobs(node->mover);
  hostdown_tick(node);
  mover_status_changed(node->mover);
}

void hostdown_tick(Node *node) {
  HostDown *down = &node->host_down;

  if (node->mover->host_going_down && !down->taken_back && clock_now_ms() >= down->until_ms) {
    down->taken_back = true;
    take_back(node);
  }
  logind_want_lock(node->logind, count_under_way(node) > 0);
}
