/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* A worker's counting thread: polls the progress of the migration. */
#include "agent/worker/worker-private.h"

#include "agent/base/clock.h"
/* Interval of reports while libvirtd is away. */
#define ACQUIRE_MS 1000

/* At most one is in flight. Takes `error`. */
static void post_sample(Worker *worker, const MigSample *sample, GError *error) {
  if (g_atomic_int_compare_and_exchange(&worker->sample_on_its_way, 0, 1))
    worker_post(worker, &(WorkerReport){.kind = WORKER_SAMPLE,
                                        .sample = *sample,
                                        .job_began_ms = worker_job_began_ms(worker),
                                        .error = error});
  else
    g_clear_error(&error);
}

static void read_sample(Worker *worker, MigConn *conn, MigBandwidth *bandwidth, MigVcpus *vcpus,
                        GError **error) {
  MigSample sample = {0};
  bool ok;

  ok = worker->driver->ops->job_stats(conn, worker->domain_uuid, vcpus, &sample, error);
  if (!ok)
    sample = (MigSample){0};
  /* Someone else's migration does not count. */
  if (ok && sample.active && !worker_owns_job(worker, sample.elapsed_ms))
    sample = (MigSample){.valid = true};
  sample.now_ms = clock_now_ms();
  if (ok && sample.active)
    sample.bandwidth_bytes_per_s = mig_bandwidth_update(
        bandwidth, sample.now_ms, sample.memory_processed_bytes + sample.disk_processed_bytes);
  post_sample(worker, &sample, *error ? g_error_copy(*error) : NULL);
}

/* True: the worker is over. */
static bool wait_until(Worker *worker, uint64_t due_ms) {
  uint64_t now = clock_now_ms();
  gint64 until = g_get_monotonic_time() + (gint64)(due_ms > now ? due_ms - now : 0) * 1000;
  g_autoptr(GMutexLocker) G_GNUC_UNUSED locker = g_mutex_locker_new(&worker->mutex);

  while (!worker->over && g_cond_wait_until(&worker->cond, &worker->mutex, until))
    ;
  return worker->over;
}

void worker_count(Worker *worker) {
  MigBandwidth bandwidth = {0};
  MigVcpus vcpus = {0};
  uint64_t due_ms = 0;

  while (!wait_until(worker, due_ms)) {
    g_autoptr(GError) error = NULL;
    HypervisorConn *conn =
        hypervisor_acquire(worker->hypervisor, MIN(worker->connect_timeout_ms, ACQUIRE_MS), &error);

    if (conn) {
      read_sample(worker, conn->conn, &bandwidth, &vcpus, &error);
      hypervisor_release(conn, error);
    } else {
      post_sample(worker, &(MigSample){.now_ms = clock_now_ms()}, g_steal_pointer(&error));
    }
    due_ms = clock_now_ms() + worker->poll_interval_ms;
  }
}
