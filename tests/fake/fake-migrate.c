/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* What is done to the fake's domains: the migration, and the calls that steer it. */
#include "tests/fake/fake-private.h"

#include <string.h>

static bool check_start(MigConn *conn, FakeDomain *domain, const MigMigrateRequest *request,
                        char **ret_target, GError **error) {
  FakeWorld *world = conn->world;
  g_autofree char *path = NULL, *target = NULL;
  MigEndState at_target;

  if (!fake_parse_uri(request->target_uri, &path, &target))
    return fake_refuse(error, MIG_VIRT_ERROR_INVALID, "not a URI of the fake");
  if (strcmp(path, world->path) != 0 || !fake_host_reachable(world, target))
    return fake_refuse(error, MIG_VIRT_ERROR_UNREACHABLE, "the target cannot be reached");
  if (strcmp(target, conn->host) == 0)
    return fake_refuse(error, MIG_VIRT_ERROR_SAME_HOST, "attempt to migrate guest to the same host");

  if (mig_policy_get(request->policy, MIG_POLICY_TLS) != MIG_TLS_NO &&
      !fake_flag(fake_world_host(world, target), "certificates", true))
    return fake_refuse(error, MIG_VIRT_ERROR_NO_TLS, "Unable to access credentials");

  if (request->resume_post_copy) {
    if (domain->job.phase == FAKE_PHASE_POST_COPY)
      return fake_refuse(error, MIG_VIRT_ERROR_STILL_RUNNING, "QEMU reports migration is still running");
    if (domain->job.phase != FAKE_PHASE_POST_COPY_FAILED)
      return fake_refuse(error, MIG_VIRT_ERROR_NOT_RUNNING, "no failed post-copy migration");
    if (world->link_cut)
      return fake_refuse(error, MIG_VIRT_ERROR_UNREACHABLE, "the link is cut");
    return true;
  }

  if (!fake_guard_pass(conn, request->uuid, request->guard, error))
    return false;
  if (domain->job.phase != FAKE_PHASE_NONE)
    return fake_refuse(error, MIG_VIRT_ERROR_BUSY, "another migration job is already running");
  if (g_strcmp0(domain->host, conn->host) != 0 ||
      (domain->state != MIG_END_RUNNING && domain->state != MIG_END_PAUSED))
    return fake_refuse(error, MIG_VIRT_ERROR_NOT_RUNNING, "domain is not running");
  at_target = fake_domain_state_at(domain, target);
  if (fake_world_said_state(world, domain, target))
    at_target = fake_end_state(json_string_value(fake_world_said_state(world, domain, target)));
  if (at_target == MIG_END_RUNNING || at_target == MIG_END_PAUSED)
    return fake_refuse(error, MIG_VIRT_ERROR_EXISTS, "the domain is already active at the target");
  *ret_target = g_steal_pointer(&target);
  return true;
}

/* Waits for the end of migration `serial`, as the thread in virDomainMigrateToURI3() does. */
static bool sit_in(MigConn *conn, FakeDomain *domain, gint64 serial, gint64 detach_us, GError **error) {
  FakeWorld *world = conn->world;
  gint64 started = g_get_monotonic_time(), hung_since = 0;

  for (;;) {
    gint64 now = g_get_monotonic_time();

    if (conn->broken)
      return fake_refuse(error, MIG_VIRT_ERROR_UNREACHABLE, "the connection to the source broke");
    if (detach_us && now - started >= detach_us)
      return fake_refuse(error, MIG_VIRT_ERROR_UNREACHABLE, "scripted: the call's answer was lost");

    if (fake_host_hung(world, conn->host)) {
      hung_since = hung_since ? hung_since : now;
      if (now - hung_since >= world->keepalive_us) {
        conn->broken = true;
        continue;
      }
    } else {
      hung_since = 0;
      if (domain->job.phase == FAKE_PHASE_POST_COPY_FAILED)
        return fake_refuse(error, MIG_VIRT_ERROR_UNREACHABLE, "client socket is closed");
      if (domain->serial != serial || domain->job.phase == FAKE_PHASE_NONE) {
        if (domain->ok || domain->serial != serial)
          return true;
        return fake_refuse(error, (MigVirtError)domain->error,
                           domain->error_text ? domain->error_text : "failed");
      }
    }
    fake_wait_tick(world);
  }
}

/* Answers at once: time is what tests have least of. */
bool fake_probe_dirty_rate(MigConn *conn, const char *uuid, unsigned seconds, MigProbe *probe,
                           GError **error) {
  FakeDomain *domain;

  if (!fake_enter(conn, "probe_dirty_rate", NULL, error))
    return false;
  domain = fake_find(conn, uuid, error);
  if (!domain)
    return fake_leave(conn, false);
  mig_dirty_curve_observe(&probe->curve, seconds, fake_dirtied(domain, seconds));
  probe->cpu_share = 1;
  return fake_leave(conn, true);
}

bool fake_write_profile(MigConn *conn, const char *uuid, const MigProfile *profile, GError **error) {
  char text[MIG_PROFILE_TEXT_SIZE];
  FakeDomain *domain;

  if (!fake_enter(conn, "write_profile", NULL, error))
    return false;
  domain = fake_find(conn, uuid, error);
  if (domain && domain->job.phase != FAKE_PHASE_NONE)
    return fake_leave(conn, fake_refuse(error, MIG_VIRT_ERROR_BUSY, "the domain is being migrated"));
  if (domain) {
    mig_profile_format(profile, text);
    g_free(domain->profile);
    domain->profile = g_strdup(text);
    conn->world->dirty = true;
  }
  return fake_leave(conn, domain != NULL);
}

bool fake_migrate(MigConn *conn, const MigMigrateRequest *request, GError **error) {
  g_autofree char *target = NULL;
  json_t *knob = NULL;
  FakeDomain *domain;
  bool ok;

  if (!fake_enter(conn, "migrate", &knob, error))
    return false;
  domain = fake_find(conn, request->uuid, error);
  ok = domain && check_start(conn, domain, request, &target, error);
  if (ok) {
    if (request->resume_post_copy) {
      domain->job.phase = FAKE_PHASE_POST_COPY;
      fake_event_state(conn->world, domain->job.source, domain, MIG_END_PAUSED_POSTCOPY,
                       "suspended: post-copy");
      fake_event_state(conn->world, domain->job.target, domain, MIG_END_RUNNING_POSTCOPY,
                       "resumed: post-copy");
      conn->world->dirty = true;
    } else {
      fake_job_start(conn->world, domain, conn->host, target, request->policy, g_get_monotonic_time());
    }
    fake_world_save(conn->world, g_get_monotonic_time(), true);
    ok = sit_in(conn, domain, domain->serial, fake_integer(knob, "detach_after_ms") * 1000, error);
  }
  if (ok && json_object_get(knob, "fail_after")) {
    fake_set_scripted(error, fake_error(json_string_value(json_object_get(knob, "fail_after"))),
                      "scripted failure", knob);
    ok = false;
  }
  json_decref(knob);
  return fake_leave(conn, ok);
}

bool fake_job_stats(MigConn *conn, const char *uuid, MigVcpus *vcpus, MigSample *ret_sample, GError **error) {
  FakeDomain *domain;
  MigSample sample = {.valid = true};

  if (!fake_enter(conn, "job_stats", NULL, error))
    return false;
  domain = fake_world_domain(conn->world, conn->host, uuid);
  if (domain && domain->job.phase != FAKE_PHASE_NONE) {
    if (strcmp(domain->job.source, conn->host) != 0)
      return fake_leave(conn, fake_refuse(error, MIG_VIRT_ERROR_UNSUPPORTED,
                                          "migration statistics are available only on the source host"));
    fake_job_sample(conn->world, domain, &sample);
  }
  *ret_sample = sample;
  return fake_leave(conn, true);
}

bool fake_final_stats(MigConn *conn, const char *uuid, MigFinalStats *ret_stats, GError **error) {
  FakeDomain *domain;

  if (!fake_enter(conn, "final_stats", NULL, error))
    return false;
  domain = fake_find(conn, uuid, error);
  if (!domain)
    return fake_leave(conn, false);
  if (!domain->final_source ||
      (strcmp(domain->final_source, conn->host) != 0 && strcmp(domain->final_target, conn->host) != 0))
    return fake_leave(conn, fake_refuse(error, MIG_VIRT_ERROR_NOT_RUNNING, "no finished migration is known"));
  *ret_stats = domain->final;
  return fake_leave(conn, true);
}

bool fake_abort_job(MigConn *conn, const char *uuid, const MigGuard *guard, GError **error) {
  FakeDomain *domain;

  if (!fake_enter(conn, "abort_job", NULL, error))
    return false;
  if (!fake_guard_pass(conn, uuid, guard, error))
    return fake_leave(conn, false);
  domain = fake_find_job(conn, uuid, error);
  if (!domain)
    return fake_leave(conn, false);
  if (domain->job.phase == FAKE_PHASE_POST_COPY || domain->job.phase == FAKE_PHASE_POST_COPY_FAILED)
    return fake_leave(
        conn, fake_refuse(error, MIG_VIRT_ERROR_UNSUPPORTED, "cannot abort migration in post-copy mode"));
  fake_job_fail(conn->world, domain, MIG_VIRT_ERROR_ABORTED, "job 'migration out' canceled by client");
  return fake_leave(conn, true);
}

bool fake_set_max_downtime(MigConn *conn, const char *uuid, uint64_t downtime_ms, const MigGuard *guard,
                           GError **error) {
  FakeDomain *domain;

  if (!fake_enter(conn, "set_max_downtime", NULL, error))
    return false;
  if (!fake_guard_pass(conn, uuid, guard, error))
    return fake_leave(conn, false);
  domain = fake_find(conn, uuid, error);
  if (domain) {
    domain->job.max_downtime_ms = (gint64)downtime_ms;
    conn->world->dirty = true;
  }
  return fake_leave(conn, domain != NULL);
}

bool fake_set_bandwidth(MigConn *conn, const char *uuid, uint64_t bytes_per_s, bool post_copy,
                        const MigGuard *guard, GError **error) {
  FakeDomain *domain;

  if (!fake_enter(conn, "set_bandwidth", NULL, error))
    return false;
  if (!fake_guard_pass(conn, uuid, guard, error))
    return fake_leave(conn, false);
  domain = fake_find(conn, uuid, error);
  if (domain) {
    *(post_copy ? &domain->job.post_copy_bandwidth : &domain->job.bandwidth) = (gint64)bytes_per_s;
    conn->world->dirty = true;
  }
  return fake_leave(conn, domain != NULL);
}

bool fake_start_post_copy(MigConn *conn, const char *uuid, const MigGuard *guard, GError **error) {
  FakeDomain *domain;

  if (!fake_enter(conn, "start_post_copy", NULL, error))
    return false;
  if (!fake_guard_pass(conn, uuid, guard, error))
    return fake_leave(conn, false);
  domain = fake_find_job(conn, uuid, error);
  if (!domain)
    return fake_leave(conn, false);
  if (!domain->job.allow_post_copy)
    return fake_leave(
        conn,
        fake_refuse(error, MIG_VIRT_ERROR_UNSUPPORTED,
                    "switching to post-copy requires migration to be started with VIR_MIGRATE_POSTCOPY"));
  if (domain->job.phase != FAKE_PHASE_PRE_COPY)
    return fake_leave(conn,
                      fake_refuse(error, MIG_VIRT_ERROR_NOT_RUNNING,
                                  "post-copy can only be started while outgoing migration is in progress"));
  fake_job_post_copy(conn->world, domain);
  return fake_leave(conn, true);
}

static bool set_running(MigConn *conn, const char *call, const char *uuid, MigEndState from, MigEndState to,
                        const char *detail, const MigGuard *guard, GError **error) {
  FakeDomain *domain;

  if (!fake_enter(conn, call, NULL, error))
    return false;
  if (!fake_guard_pass(conn, uuid, guard, error))
    return fake_leave(conn, false);
  domain = fake_find(conn, uuid, error);
  if (!domain)
    return fake_leave(conn, false);
  /* A guest that a migration left stopped can be resumed like any other. */
  if (domain->state == MIG_END_PAUSED_MIGRATION && to == MIG_END_RUNNING)
    from = MIG_END_PAUSED_MIGRATION;
  if (g_strcmp0(domain->host, conn->host) != 0 || (domain->state != from && domain->state != to))
    return fake_leave(conn, fake_refuse(error, MIG_VIRT_ERROR_NOT_RUNNING, "domain is not running"));
  if (domain->state != to) {
    domain->state = to;
    conn->world->dirty = true;
    fake_event_state(conn->world, conn->host, domain, to, detail);
  }
  return fake_leave(conn, true);
}

bool fake_suspend(MigConn *conn, const char *uuid, const MigGuard *guard, GError **error) {
  return set_running(conn, "suspend", uuid, MIG_END_RUNNING, MIG_END_PAUSED, "suspended: paused", guard,
                     error);
}

bool fake_resume(MigConn *conn, const char *uuid, const MigGuard *guard, GError **error) {
  return set_running(conn, "resume", uuid, MIG_END_PAUSED, MIG_END_RUNNING, "resumed: unpaused", guard,
                     error);
}

bool fake_undefine(MigConn *conn, const char *uuid, const MigGuard *guard, GError **error) {
  FakeDomain *domain;

  if (!fake_enter(conn, "undefine", NULL, error))
    return false;
  if (!fake_guard_pass(conn, uuid, guard, error))
    return fake_leave(conn, false);
  domain = fake_find(conn, uuid, error);
  if (!domain)
    return fake_leave(conn, false);
  if (fake_domain_state_at(domain, conn->host) != MIG_END_INACTIVE)
    return fake_leave(conn, fake_refuse(error, MIG_VIRT_ERROR_INVALID, "domain is active"));
  fake_domain_set_defined(domain, conn->host, false);
  conn->world->dirty = true;
  return fake_leave(conn, true);
}

/* What the control file says was written to it. */
static void read_stamp(MigConn *conn, const char *path, MigImageStamp *ret_stamp) {
  json_t *written = json_object_get(fake_world_host(conn->world, conn->host), "written");
  json_t *bytes = json_object_get(written, path);

  *ret_stamp = (MigImageStamp){
      .known = true, .allocation_bytes = (uint64_t)json_integer_value(bytes), .physical_bytes = 0};
  g_snprintf(ret_stamp->mtime, sizeof ret_stamp->mtime, "%d.5", bytes ? 2 : 1);
}

/* Images that are made are kept with the domains' state. */
bool fake_make_image(MigConn *conn, const MigImage *image, MigImageStamp *ret_stamp, GError **error) {
  if (!fake_enter(conn, "make_image", NULL, error))
    return false;
  if (fake_image_find(conn->world, conn->host, image->path, NULL))
    return fake_leave(conn, fake_refuse(error, MIG_VIRT_ERROR_EXISTS, "it already exists"));
  fake_image_set(conn->world, conn->host, image->path, (gint64)image->capacity_bytes);
  read_stamp(conn, image->path, ret_stamp);
  return fake_leave(conn, true);
}

bool fake_remove_image(MigConn *conn, const MigImage *image, const MigImageGuard *guard, GError **error) {
  const FakeDomain *domain;
  gint64 capacity_bytes = 0;
  MigImageStamp now;

  if (!fake_enter(conn, "remove_image", NULL, error))
    return false;
  if (fake_image_find(conn->world, conn->host, image->path, &capacity_bytes) &&
      (uint64_t)capacity_bytes != image->capacity_bytes)
    return fake_leave(conn, fake_refuse(error, MIG_VIRT_ERROR_INVALID, "it has another size"));
  read_stamp(conn, image->path, &now);
  if (!guard->stamp.known || strcmp(now.mtime, guard->stamp.mtime) != 0 ||
      now.allocation_bytes != guard->stamp.allocation_bytes)
    return fake_leave(
        conn, fake_refuse(error, MIG_VIRT_ERROR_INVALID, "it has been written to since it was created"));
  domain = fake_world_domain(conn->world, NULL, guard->domain_uuid);
  if (domain && fake_domain_state_at(domain, conn->host) != MIG_END_ABSENT)
    return fake_leave(conn, fake_refuse(error, MIG_VIRT_ERROR_BUSY, "the domain exists on this host"));
  if (g_atomic_int_get(guard->called_off) || g_get_monotonic_time() >= guard->until_us)
    return fake_leave(conn,
                      fake_refuse(error, MIG_VIRT_ERROR_TIMEOUT, "there was news of the domain meanwhile"));
  fake_image_set(conn->world, conn->host, image->path, -1);
  return fake_leave(conn, true);
}
