/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The fake's model of a migration: passes over memory, a link, a guest that dirties. */
#include "tests/fake/fake-world.h"

#include <math.h>
#include <string.h>

#define PAGE_BYTES  4096.0
#define MIN_PASS_S  0.005 /* so that a pass over nothing still takes time */
#define SECONDS(us) ((double)(us) / G_USEC_PER_SEC)
#define MICROS(s)   ((gint64)ceil((s)*G_USEC_PER_SEC))
#define NEVER_S     1e12

void fake_job_clear(FakeJob *job) {
  g_free(job->source);
  g_free(job->target);
  memset(job, 0, sizeof *job);
}

bool fake_domain_defined(const FakeDomain *domain, const char *host) {
  return g_ptr_array_find_with_equal_func(domain->defined, host, g_str_equal, NULL);
}

void fake_domain_set_defined(FakeDomain *domain, const char *host, bool defined) {
  guint at;

  if (g_ptr_array_find_with_equal_func(domain->defined, host, g_str_equal, &at)) {
    if (!defined)
      g_ptr_array_remove_index(domain->defined, at);
  } else if (defined) {
    g_ptr_array_add(domain->defined, g_strdup(host));
  }
}

MigEndState fake_domain_state_at(const FakeDomain *domain, const char *host) {
  static const struct {
    MigEndState source, target; /* UNKNOWN: its own */
  } during[] = {
      [FAKE_PHASE_SETUP] = {MIG_END_UNKNOWN, MIG_END_PAUSED_MIGRATION},
      [FAKE_PHASE_DISK] = {MIG_END_UNKNOWN, MIG_END_PAUSED_MIGRATION},
      [FAKE_PHASE_PRE_COPY] = {MIG_END_UNKNOWN, MIG_END_PAUSED_MIGRATION},
      [FAKE_PHASE_SWITCHOVER] = {MIG_END_PAUSED_MIGRATION, MIG_END_PAUSED_MIGRATION},
      [FAKE_PHASE_POST_COPY] = {MIG_END_PAUSED_POSTCOPY, MIG_END_RUNNING_POSTCOPY},
      [FAKE_PHASE_POST_COPY_FAILED] = {MIG_END_PAUSED_POSTCOPY_FAILED, MIG_END_RUNNING_POSTCOPY_FAILED},
  };

  if (domain->job.phase != FAKE_PHASE_NONE) {
    if (strcmp(host, domain->job.target) == 0)
      return during[domain->job.phase].target;
    if (strcmp(host, domain->job.source) == 0 && during[domain->job.phase].source != MIG_END_UNKNOWN)
      return during[domain->job.phase].source;
  }
  if (g_strcmp0(host, domain->host) == 0 &&
      (domain->state != MIG_END_INACTIVE || fake_domain_defined(domain, host)))
    return domain->state;
  return fake_domain_defined(domain, host) ? MIG_END_INACTIVE : MIG_END_ABSENT;
}

void fake_event(FakeWorld *world, const char *host, const FakeDomain *domain, MigVirtEvent event) {
  FakeEvent *entry = g_new0(FakeEvent, 1);

  entry->host = g_strdup(host);
  entry->event = event;
  g_strlcpy(entry->event.uuid, domain->uuid, sizeof entry->event.uuid);
  g_strlcpy(entry->event.name, domain->name, sizeof entry->event.name);
  g_queue_push_tail(&world->events, entry);
}

void fake_event_state(FakeWorld *world, const char *host, const FakeDomain *domain, MigEndState state,
                      const char *detail) {
  MigVirtEvent event = {.kind = MIG_VIRT_EVENT_STATE,
                        .state = state,
                        .arriving = strcmp(detail, "started: migrated") == 0,
                        .ended = strcmp(detail, "stopped: crashed") == 0 &&
                                 (state == MIG_END_INACTIVE || state == MIG_END_CRASHED)};

  g_strlcpy(event.detail, detail, sizeof event.detail);
  fake_event(world, host, domain, event);
}

static void event_iteration(FakeWorld *world, const FakeDomain *domain) {
  MigVirtEvent event = {.kind = MIG_VIRT_EVENT_ITERATION, .iteration = (uint64_t)domain->job.iteration};

  g_snprintf(event.detail, sizeof event.detail, "iteration %d", (int)domain->job.iteration);
  fake_event(world, domain->job.source, domain, event);
}

void fake_job_start(FakeWorld *world, FakeDomain *domain, const char *source, const char *target,
                    const MigPolicy *policy, gint64 now_us) {
  FakeJob *job = &domain->job;
  bool copy = mig_policy_get(policy, MIG_POLICY_COPY_DISKS) != MIG_COPY_DISKS_NONE;

  fake_job_clear(job);
  *job = (FakeJob){
      .phase = FAKE_PHASE_SETUP,
      .source = g_strdup(source),
      .target = g_strdup(target),
      .start_us = now_us,
      .at_us = now_us,
      .setup_left_s = world->setup_s,
      .disk_total = copy ? domain->local_disk : 0,
      .disk_left = copy ? domain->local_disk : 0,
      .pass_bytes = domain->memory,
      .iteration = 1,
      .max_downtime_ms = (gint64)mig_policy_get(policy, MIG_POLICY_MAX_DOWNTIME_MS),
      .bandwidth = (gint64)mig_policy_get(policy, MIG_POLICY_BANDWIDTH_BYTES_PER_S),
      .post_copy_bandwidth = (gint64)mig_policy_get(policy, MIG_POLICY_POST_COPY_BANDWIDTH_BYTES_PER_S),
      .allow_post_copy = mig_policy_get(policy, MIG_POLICY_ALLOW_POST_COPY),
      .auto_converge = mig_policy_get(policy, MIG_POLICY_ALLOW_AUTO_CONVERGE),
      .persist = mig_policy_get(policy, MIG_POLICY_PERSIST_TARGET),
      .undefine = mig_policy_get(policy, MIG_POLICY_UNDEFINE_SOURCE),
  };
  domain->serial++;
  domain->ok = false;
  domain->error = MIG_VIRT_ERROR_FAILED;
  g_clear_pointer(&domain->error_text, g_free);
  fake_event_state(world, target, domain, MIG_END_PAUSED_MIGRATION, "started: migrated");
  world->dirty = true;
}

void fake_job_fail(FakeWorld *world, FakeDomain *domain, MigVirtError error, const char *text) {
  g_autofree char *source = g_strdup(domain->job.source), *target = g_strdup(domain->job.target);
  bool stopped = domain->job.phase == FAKE_PHASE_SWITCHOVER;

  if (domain->leftovers && domain->job.persist && domain->persistent)
    fake_domain_set_defined(domain, target, true);
  fake_job_clear(&domain->job);
  domain->ok = false;
  domain->error = error;
  g_free(domain->error_text);
  domain->error_text = g_strdup(text);
  if (stopped && domain->state == MIG_END_RUNNING)
    fake_event_state(world, source, domain, MIG_END_RUNNING, "resumed: migrated");
  fake_event_state(world, target, domain, MIG_END_INACTIVE, "stopped: failed");
  /* No JOB_DONE: libvirt 9.0 sends none for a migration that failed or was cancelled. */
  world->dirty = true;
}

static void succeed(FakeWorld *world, FakeDomain *domain) {
  FakeJob *job = &domain->job;
  MigVirtEvent done = {.kind = MIG_VIRT_EVENT_JOB_DONE, .success = true};
  MigFinalStats final = {
      .have_downtime = true,
      .downtime_ms = (uint64_t)(job->downtime_s * 1000 + 0.5),
      .downtime_net_ms = (uint64_t)(job->downtime_s * 1000 + 0.5),
      .total_time_ms = (uint64_t)((job->at_us - job->start_us) / 1000),
      .transferred_bytes = (uint64_t)(job->memory_processed + job->disk_total),
  };
  g_autofree char *source = g_strdup(job->source), *target = g_strdup(job->target);

  fake_job_sample(world, domain, &final.last);
  final.last.memory_remaining_bytes = 0;
  final.last.expected_downtime_ms = 0;
  final.last.active = false;
  domain->final = final;
  g_free(domain->final_source);
  g_free(domain->final_target);
  domain->final_source = g_strdup(source);
  domain->final_target = g_strdup(target);

  if (job->persist && domain->persistent)
    fake_domain_set_defined(domain, target, true);
  if (job->undefine && !domain->leftovers)
    fake_domain_set_defined(domain, source, false);
  g_free(domain->host);
  domain->host = g_strdup(target);
  domain->state = MIG_END_RUNNING;
  domain->ok = true;
  fake_job_clear(job);

  fake_event_state(world, target, domain, MIG_END_RUNNING, "resumed: migrated");
  fake_event_state(world, source, domain, MIG_END_INACTIVE, "stopped: migrated");
  done.final = final;
  g_strlcpy(done.detail, "job completed", sizeof done.detail);
  fake_event(world, source, domain, done);
  world->dirty = true;
}

static double rate_of(const FakeWorld *world, const FakeJob *job) {
  gint64 limit = job->phase == FAKE_PHASE_POST_COPY ? job->post_copy_bandwidth : job->bandwidth;

  if (world->link_cut || job->phase == FAKE_PHASE_POST_COPY_FAILED)
    return 0;
  return limit > 0 ? MIN(world->link_rate, (double)limit) : world->link_rate;
}

/* How many bytes are dirty again after the guest ran for so long. */
double fake_dirtied(const FakeDomain *domain, double seconds) {
  if (domain->working_set <= 0 || domain->dirty_rate <= 0)
    return 0;
  return domain->working_set * (1 - exp(-domain->dirty_rate * seconds / domain->working_set));
}

static void boundary(FakeWorld *world, FakeDomain *domain, double rate) {
  FakeJob *job = &domain->job;
  double next = fake_dirtied(domain, job->dirty_s);

  job->stuck = next > job->pass_bytes / 2 ? job->stuck + 1 : 0;
  if (job->auto_converge && job->stuck >= 2) {
    job->throttle_pct = job->throttle_pct ? MIN(job->throttle_pct + 10, 99) : 20;
    job->stuck = 0;
  }

  job->iteration++;
  job->pass_s = job->dirty_s = job->pass_sent = 0;
  if (next * 1000 <= (double)job->max_downtime_ms * rate) {
    job->phase = FAKE_PHASE_SWITCHOVER;
    job->pass_bytes = next;
    job->switch_left_s = world->switch_s;
    fake_event_state(world, job->source, domain, MIG_END_PAUSED_MIGRATION, "suspended: migrated");
  } else {
    job->pass_bytes = MAX(next, rate * MIN_PASS_S);
  }
  event_iteration(world, domain);
  world->dirty = true;
}

void fake_job_post_copy(FakeWorld *world, FakeDomain *domain) {
  FakeJob *job = &domain->job;

  job->pass_bytes =
      MIN(job->pass_bytes - job->pass_sent + fake_dirtied(domain, job->dirty_s), domain->memory);
  job->pass_sent = 0;
  job->throttle_pct = 0;
  job->downtime_s = world->switch_s;
  job->phase = FAKE_PHASE_POST_COPY;
  fake_event_state(world, job->source, domain, MIG_END_PAUSED_POSTCOPY, "suspended: post-copy");
  fake_event_state(world, job->target, domain, MIG_END_RUNNING_POSTCOPY, "resumed: post-copy");
  world->dirty = true;
}

/* Moves up to `seconds` worth of one phase. Returns how long that took. */
static double step(FakeWorld *world, FakeDomain *domain, double seconds) {
  FakeJob *job = &domain->job;
  double rate = rate_of(world, job), take, need;

  switch (job->phase) {
  case FAKE_PHASE_NONE:
  case FAKE_PHASE_POST_COPY_FAILED:
    return seconds;

  case FAKE_PHASE_SETUP:
    take = MIN(seconds, job->setup_left_s);
    job->setup_left_s -= take;
    if (job->setup_left_s <= 0) {
      job->phase = job->disk_total > 0 ? FAKE_PHASE_DISK : FAKE_PHASE_PRE_COPY;
      if (job->phase == FAKE_PHASE_PRE_COPY)
        event_iteration(world, domain);
      world->dirty = true;
    }
    return take;

  case FAKE_PHASE_DISK:
    need = rate > 0 ? job->disk_left / rate : NEVER_S;
    take = MIN(seconds, need);
    job->disk_left = take >= need ? 0 : job->disk_left - take * rate;
    if (job->disk_left <= 0) {
      job->phase = FAKE_PHASE_PRE_COPY;
      event_iteration(world, domain);
    }
    return take;

  case FAKE_PHASE_PRE_COPY:
    need = rate > 0 ? (job->pass_bytes - job->pass_sent) / rate : NEVER_S;
    take = MIN(seconds, need);
    job->pass_s += take;
    if (domain->state == MIG_END_RUNNING)
      job->dirty_s += take * (double)(100 - job->throttle_pct) / 100;
    job->memory_processed += take * rate;
    job->pass_sent += take * rate;
    if (take >= need)
      boundary(world, domain, rate);
    return take;

  case FAKE_PHASE_SWITCHOVER:
    need = rate > 0 ? (job->pass_bytes - job->pass_sent) / rate + job->switch_left_s : NEVER_S;
    take = MIN(seconds, need);
    job->downtime_s += take;
    job->memory_processed += MIN(take * rate, job->pass_bytes - job->pass_sent);
    if (take >= need) {
      job->at_us += MICROS(take);
      succeed(world, domain);
      return seconds;
    }
    if (take * rate > job->pass_bytes - job->pass_sent) {
      job->switch_left_s -= take - (job->pass_bytes - job->pass_sent) / rate;
      job->pass_sent = job->pass_bytes;
    } else {
      job->pass_sent += take * rate;
    }
    return take;

  case FAKE_PHASE_POST_COPY:
    need = rate > 0 ? (job->pass_bytes - job->pass_sent) / rate : NEVER_S;
    take = MIN(seconds, need);
    job->memory_processed += take * rate;
    job->pass_sent += take * rate;
    if (take >= need) {
      job->at_us += MICROS(take);
      succeed(world, domain);
      return seconds;
    }
    return take;
  }
  return seconds;
}

/* What libvirt does when its own keepalive between the hosts gives up. */
static void lose_link(FakeWorld *world, FakeDomain *domain) {
  FakeJob *job = &domain->job;

  if (job->phase == FAKE_PHASE_POST_COPY) {
    job->phase = FAKE_PHASE_POST_COPY_FAILED;
    domain->error = MIG_VIRT_ERROR_UNREACHABLE;
    g_free(domain->error_text);
    domain->error_text = g_strdup("client socket is closed");
    fake_event_state(world, job->source, domain, MIG_END_PAUSED_POSTCOPY_FAILED,
                     "suspended: post-copy failed");
    fake_event_state(world, job->target, domain, MIG_END_RUNNING_POSTCOPY_FAILED,
                     "resumed: post-copy failed");
    world->dirty = true;
  } else if (job->phase != FAKE_PHASE_POST_COPY_FAILED) {
    fake_job_fail(world, domain, MIG_VIRT_ERROR_UNREACHABLE, "client socket is closed");
  }
}

void fake_job_advance(FakeWorld *world, FakeDomain *domain, gint64 now_us) {
  FakeJob *job = &domain->job;

  if (job->phase == FAKE_PHASE_NONE)
    return;
  if (domain->state != MIG_END_RUNNING && domain->state != MIG_END_PAUSED) {
    fake_job_fail(world, domain, MIG_VIRT_ERROR_NOT_RUNNING, "domain is not running");
    return;
  }

  if (!world->link_cut)
    job->cut_since_us = 0;
  else if (!job->cut_since_us)
    job->cut_since_us = job->at_us;

  while (job->phase != FAKE_PHASE_NONE && job->at_us < now_us) {
    double took = step(world, domain, SECONDS(now_us - job->at_us));

    if (job->phase != FAKE_PHASE_NONE)
      job->at_us = MIN(now_us, job->at_us + MAX(MICROS(took), 1));
  }
  if (job->phase != FAKE_PHASE_NONE && job->cut_since_us && now_us - job->cut_since_us >= world->keepalive_us)
    lose_link(world, domain);
}

void fake_job_sample(FakeWorld *world, const FakeDomain *domain, MigSample *ret_sample) {
  const FakeJob *job = &domain->job;
  double rate = rate_of(world, job);
  double dirty =
      domain->state == MIG_END_RUNNING ? domain->dirty_rate * (double)(100 - job->throttle_pct) / 100 : 0;

  *ret_sample = (MigSample){
      .valid = true,
      .active = true,
      .post_copy = job->phase == FAKE_PHASE_POST_COPY || job->phase == FAKE_PHASE_POST_COPY_FAILED,
      .elapsed_ms = (uint64_t)((job->at_us - job->start_us) / 1000),
      .disk_total_bytes = (uint64_t)job->disk_total,
      .disk_processed_bytes = (uint64_t)(job->disk_total - job->disk_left),
      .disk_remaining_bytes = (uint64_t)job->disk_left,
  };
  if (job->phase < FAKE_PHASE_PRE_COPY)
    return; /* as QEMU: no numbers of memory before it is looked at */

  ret_sample->memory_total_bytes = (uint64_t)domain->memory;
  ret_sample->memory_processed_bytes = (uint64_t)job->memory_processed;
  ret_sample->memory_remaining_bytes = (uint64_t)MAX(job->pass_bytes - job->pass_sent, 0);
  ret_sample->memory_bps_bytes_per_s = (uint64_t)rate;
  ret_sample->page_size_bytes = (uint64_t)PAGE_BYTES;
  ret_sample->iteration = (uint64_t)job->iteration;
  ret_sample->throttle_pct = (uint64_t)job->throttle_pct;
  ret_sample->post_copy_requests =
      job->phase == FAKE_PHASE_POST_COPY ? (uint64_t)(job->pass_sent / 65536) : 0;
  /* QEMU knows it from the end of the first pass on. */
  if (job->iteration > 1 && job->phase == FAKE_PHASE_PRE_COPY) {
    ret_sample->dirty_rate_bytes_per_s = (uint64_t)dirty;
    ret_sample->expected_downtime_ms = rate > 0 ? (uint64_t)(job->pass_bytes / rate * 1000) : 0;
  }
}
