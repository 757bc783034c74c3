/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The fake's vtable: knobs first, then the model. */
#include "tests/fake/fake-driver.h"

#include "libmigrate/virt/xml.h"
#include "tests/fake/fake-survey.h"
#include "tests/fake/fake-world.h"

#include <string.h>

#define TICK_US (10 * 1000)

/* Threads. A ticker runs every world's model every 10 ms and delivers events, as libvirtd would without
 * anybody asking. Calls come on threads of the caller's; each takes the world's lock and gives it up while it
 * waits. Lock order: driver, world; a connection's lock (held while an event is delivered) is never taken
 * inside either. */
typedef struct FakeDriver {
  MigDriver driver;
  GMutex lock;
  GPtrArray *worlds;
  GThread *ticker;
  gint stop;
} FakeDriver;

struct MigConn {
  gint refs;
  FakeWorld *world;
  char *host;
  GRecMutex lock; /* of the two below */
  MigVirtEventFunc events;
  gpointer user_data;
  bool broken, told; /* under the world's lock */
};

static MigConn *conn_ref(MigConn *conn) {
  g_atomic_int_inc(&conn->refs);
  return conn;
}

static void conn_unref(MigConn *conn) {
  if (!g_atomic_int_dec_and_test(&conn->refs))
    return;
  fake_world_unref(conn->world);
  g_rec_mutex_clear(&conn->lock);
  g_free(conn->host);
  g_free(conn);
}

static void conn_deliver(MigConn *conn, const MigVirtEvent *event) {
  g_rec_mutex_lock(&conn->lock);
  if (conn->events)
    conn->events(event, conn->user_data);
  g_rec_mutex_unlock(&conn->lock);
}

static bool flag(json_t *object, const char *key, bool fallback) {
  json_t *value = json_object_get(object, key);

  return value ? json_is_true(value) : fallback;
}

static gint64 integer(json_t *object, const char *key) {
  return (gint64)json_number_value(json_object_get(object, key));
}

static bool host_reachable(FakeWorld *world, const char *host) {
  json_t *object = fake_world_host(world, host);

  return object && flag(object, "reachable", true);
}

static bool host_hung(FakeWorld *world, const char *host) {
  return flag(fake_world_host(world, host), "hung", false);
}

/* The world up to now, with the world's lock held. */
static bool catch_up(FakeWorld *world) {
  gint64 now = g_get_monotonic_time();
  bool known;

  fake_world_advance(world, now);
  known = fake_world_refresh(world);
  fake_world_advance(world, now);
  for (guint i = 0; i < world->conns->len; i++) {
    MigConn *conn = g_ptr_array_index(world->conns, i);

    if (!host_reachable(world, conn->host))
      conn->broken = true;
  }
  fake_world_save(world, now, false);
  return known;
}

static void wait_tick(FakeWorld *world) {
  g_cond_wait_until(&world->tick, &world->lock, g_get_monotonic_time() + TICK_US);
  catch_up(world);
}

static void set_scripted(GError **error, MigVirtError code, const char *call, json_t *knob) {
  const char *message = json_string_value(json_object_get(knob, "message"));

  g_set_error(error, MIG_VIRT_ERROR, (int)code, "%s", message ? message : call);
}

/* Takes the lock and lets the knobs of `call` do their work. True: the lock is held, and *ret_knob, if
 * wanted, is the caller's to release. `limit_us` bounds a hang. */
static bool enter_at(FakeWorld *world, const char *host, MigConn *conn, const char *call, gint64 limit_us,
                     MigVirtError limit_error, json_t **ret_knob, GError **error) {
  gint64 started = g_get_monotonic_time(), delay_us;
  g_autoptr(GError) failure = NULL;
  json_t *knob;
  guint64 generation;

  g_mutex_lock(&world->lock);
  if (!catch_up(world)) {
    g_set_error(error, MIG_VIRT_ERROR, MIG_VIRT_ERROR_UNREACHABLE, "no control file %s", world->path);
    g_mutex_unlock(&world->lock);
    return false;
  }

  generation = world->generation;
  knob = json_incref(fake_world_knob(world, host, call));
  delay_us = integer(knob, "delay_ms") * 1000;
  for (;;) {
    gint64 waited = g_get_monotonic_time() - started;

    if (!host_reachable(world, host) || (conn && conn->broken)) {
      g_set_error(&failure, MIG_VIRT_ERROR, MIG_VIRT_ERROR_UNREACHABLE, "%s: host %s cannot be reached", call,
                  host);
      break;
    }
    if (generation != world->generation) {
      json_decref(knob);
      generation = world->generation;
      knob = json_incref(fake_world_knob(world, host, call));
    }
    if (host_hung(world, host) || flag(knob, "hang", false)) {
      if (waited >= (limit_us ? limit_us : world->keepalive_us)) {
        if (conn)
          conn->broken = true;
        g_set_error(&failure, MIG_VIRT_ERROR, (int)limit_error, "%s: host %s does not answer", call, host);
        break;
      }
    } else if (waited >= delay_us) {
      break;
    }
    if (limit_us && waited >= limit_us) {
      g_set_error(&failure, MIG_VIRT_ERROR, (int)limit_error, "%s: host %s does not answer in time", call,
                  host);
      break;
    }
    wait_tick(world);
  }

  if (!failure && json_object_get(knob, "fail"))
    set_scripted(&failure, fake_error(json_string_value(json_object_get(knob, "fail"))), call, knob);
  if (failure) {
    json_decref(knob);
    g_mutex_unlock(&world->lock);
    g_propagate_error(error, g_steal_pointer(&failure));
    return false;
  }
  if (ret_knob)
    *ret_knob = knob;
  else
    json_decref(knob);
  return true;
}

static bool enter(MigConn *conn, const char *call, json_t **ret_knob, GError **error) {
  bool ok;

  conn_ref(conn);
  ok = enter_at(conn->world, conn->host, conn, call, 0, MIG_VIRT_ERROR_UNREACHABLE, ret_knob, error);
  if (!ok)
    conn_unref(conn);
  return ok;
}

static bool leave(MigConn *conn, bool result) {
  fake_world_save(conn->world, g_get_monotonic_time(), true);
  g_mutex_unlock(&conn->world->lock);
  conn_unref(conn);
  return result;
}

static bool refuse(GError **error, MigVirtError code, const char *text) {
  g_set_error_literal(error, MIG_VIRT_ERROR, (int)code, text);
  return false;
}

static FakeDomain *find(MigConn *conn, const char *name_or_uuid, GError **error) {
  FakeDomain *domain = fake_world_domain(conn->world, conn->host, name_or_uuid);

  if (!domain)
    g_set_error(error, MIG_VIRT_ERROR, MIG_VIRT_ERROR_NO_DOMAIN, "no domain %s on host %s", name_or_uuid,
                conn->host);
  return domain;
}

/* The domain with its outgoing job here, or an error. */
static FakeDomain *find_job(MigConn *conn, const char *uuid, GError **error) {
  FakeDomain *domain = find(conn, uuid, error);

  if (domain && (domain->job.phase == FAKE_PHASE_NONE || strcmp(domain->job.source, conn->host) != 0)) {
    refuse(error, MIG_VIRT_ERROR_NOT_RUNNING, "no job is active on the domain");
    return NULL;
  }
  return domain;
}

/* ---- connections
 * ------------------------------------------------------------------------------------------- */

static bool parse_uri(const char *uri, char **ret_path, char **ret_host) {
  g_autoptr(GUri) parsed = g_uri_parse(uri ? uri : "", G_URI_FLAGS_NONE, NULL);
  const char *query = parsed ? g_uri_get_query(parsed) : NULL;

  if (!query || strcmp(g_uri_get_scheme(parsed), "fake") != 0 || !g_str_has_prefix(query, "host="))
    return false;
  *ret_path = g_strdup(g_uri_get_path(parsed));
  *ret_host = g_strdup(query + strlen("host="));
  return true;
}

static FakeWorld *world_of(FakeDriver *self, const char *path) {
  FakeWorld *world = NULL;

  g_mutex_lock(&self->lock);
  for (guint i = 0; !world && i < self->worlds->len; i++)
    if (strcmp(((FakeWorld *)g_ptr_array_index(self->worlds, i))->path, path) == 0)
      world = g_ptr_array_index(self->worlds, i);
  if (!world) {
    world = fake_world_new(path);
    g_ptr_array_add(self->worlds, world);
  }
  fake_world_ref(world);
  g_mutex_unlock(&self->lock);
  return world;
}

static MigConn *fake_open(MigDriver *driver, const char *uri, unsigned timeout_ms, MigVirtEventFunc events,
                          gpointer user_data, GError **error) {
  g_autofree char *path = NULL, *host = NULL;
  FakeWorld *world;
  MigConn *conn;

  if (!parse_uri(uri, &path, &host)) {
    g_set_error(error, MIG_VIRT_ERROR, MIG_VIRT_ERROR_INVALID, "not a URI of the fake: %s", uri);
    return NULL;
  }
  world = world_of((FakeDriver *)driver, path);
  if (!enter_at(world, host, NULL, "open", (gint64)timeout_ms * 1000, MIG_VIRT_ERROR_TIMEOUT, NULL, error)) {
    fake_world_unref(world);
    return NULL;
  }

  conn = g_new0(MigConn, 1);
  conn->refs = 1;
  conn->world = world;
  conn->host = g_steal_pointer(&host);
  g_rec_mutex_init(&conn->lock);
  conn->events = events;
  conn->user_data = user_data;
  g_ptr_array_add(world->conns, conn);
  g_mutex_unlock(&world->lock);
  return conn;
}

static void fake_close(MigConn *conn) {
  if (!conn)
    return;
  g_mutex_lock(&conn->world->lock);
  g_ptr_array_remove_fast(conn->world->conns, conn);
  g_mutex_unlock(&conn->world->lock);

  g_rec_mutex_lock(&conn->lock);
  conn->events = NULL;
  g_rec_mutex_unlock(&conn->lock);
  conn_unref(conn);
}

static bool fake_is_alive(MigConn *conn) {
  bool alive;

  g_mutex_lock(&conn->world->lock);
  catch_up(conn->world);
  alive = !conn->broken;
  g_mutex_unlock(&conn->world->lock);
  return alive;
}

static bool fake_reachable(MigDriver *driver, const char *uri, unsigned timeout_ms, GError **error) {
  g_autofree char *path = NULL, *host = NULL;
  FakeWorld *world;
  bool ok;

  if (!parse_uri(uri, &path, &host))
    return true;
  world = world_of((FakeDriver *)driver, path);
  /* The kernel of a host answers for a libvirtd that hangs. */
  g_mutex_lock(&world->lock);
  ok = catch_up(world) && host_reachable(world, host);
  g_mutex_unlock(&world->lock);
  if (!ok)
    g_set_error(error, MIG_VIRT_ERROR, MIG_VIRT_ERROR_UNREACHABLE, "no way to host %s", host);
  fake_world_unref(world);
  return ok;
}

/* ---- facts
 * ------------------------------------------------------------------------------------------------- */

/* With the world's lock held. */
static bool host_facts(FakeWorld *world, const char *name, MigHostFacts *ret_facts, GError **error) {
  json_t *host = fake_world_host(world, name), *value = json_object_get(host, "uuid");
  g_autofree char *hostname = g_strdup_printf("node-%s", name);

  if (!fake_survey_host(host, ret_facts, error))
    return false;
  if (value) {
    g_strlcpy(ret_facts->uuid, json_string_value(value), sizeof ret_facts->uuid);
  } else {
    g_autofree char *hash = g_compute_checksum_for_string(G_CHECKSUM_SHA1, name, -1);

    g_snprintf(ret_facts->uuid, sizeof ret_facts->uuid, "%.8s-%.4s-4%.3s-9%.3s-%.12s", hash, hash + 8,
               hash + 12, hash + 15, hash + 18);
  }
  value = json_object_get(host, "hostname");
  ret_facts->hostname = mig_store_string(ret_facts->store, value ? json_string_value(value) : hostname);
  ret_facts->libvirt_version =
      json_object_get(host, "libvirt_version") ? (uint64_t)integer(host, "libvirt_version") : 9000000;
  ret_facts->hypervisor_version =
      json_object_get(host, "hypervisor_version") ? (uint64_t)integer(host, "hypervisor_version") : 7002000;
  return true;
}

static bool fake_host_facts(MigConn *conn, MigHostFacts *ret_facts, GError **error) {
  return enter(conn, "host_facts", NULL, error) &&
         leave(conn, host_facts(conn->world, conn->host, ret_facts, error));
}

/* By name, so that the order is the same each time. */
static gint compare_active(gconstpointer a, gconstpointer b) {
  return strcmp((*(MigActiveDomain *const *)a)->name, (*(MigActiveDomain *const *)b)->name);
}

static GPtrArray *fake_list_active(MigConn *conn, GError **error) {
  GPtrArray *list;
  GHashTableIter iter;
  gpointer value;

  if (!enter(conn, "list_active", NULL, error))
    return NULL;
  list = g_ptr_array_new_with_free_func(mig_active_domain_free);
  g_hash_table_iter_init(&iter, conn->world->domains);
  while (g_hash_table_iter_next(&iter, NULL, &value)) {
    const FakeDomain *domain = value;
    MigEndState state = fake_domain_state_at(domain, conn->host);
    MigActiveDomain *active;

    if (state == MIG_END_ABSENT || state == MIG_END_INACTIVE)
      continue;
    active = g_new0(MigActiveDomain, 1);
    g_strlcpy(active->uuid, domain->uuid, sizeof active->uuid);
    active->name = g_strdup(domain->name);
    g_ptr_array_add(list, active);
  }
  g_ptr_array_sort(list, compare_active);
  leave(conn, true);
  return list;
}

static json_t *domain_script(FakeWorld *world, const FakeDomain *domain) {
  return json_object_get(json_object_get(world->control, "domains"), domain->name);
}

static void read_tags(FakeWorld *world, const FakeDomain *domain, MigDomainTags *ret_tags) {
  json_t *object = json_object_get(json_object_get(world->control, "domains"), domain->name);
  const char *path;
  json_t *value;

  ret_tags->title = g_strdup(json_string_value(json_object_get(object, "title")));
  json_object_foreach (json_object_get(object, "metadata"), path, value)
    mig_domain_tags_add(ret_tags, path, json_string_value(value));
}

/* With the world's lock held. What the XML says, if there is one, and for the rest what the control file does. */
static bool domain_facts(MigConn *conn, const char *name_or_uuid, MigDomainFacts *ret_facts, GError **error) {
  FakeDomain *domain = find(conn, name_or_uuid, error);
  MigDomainFacts facts = {0};
  json_t *script;

  if (!domain)
    return false;
  script = domain_script(conn->world, domain);
  if (json_object_get(script, "xml")) {
    if (!fake_survey_parse(script, fake_world_host(conn->world, conn->host), &facts, error))
      return false;
  } else {
    facts = (MigDomainFacts){
        .store = mig_store_new(),
        .emulator = "/usr/bin/qemu-system-x86_64",
        .machine = "pc-q35-7.2",
        .arch = "x86_64",
        .virt_type = "qemu",
        .vcpus = 1,
        .local_disk_bytes = (uint64_t)domain->local_disk,
        .local_disks = (unsigned)domain->local_disks,
        .passthrough = domain->passthrough,
    };
  }
  facts.name = mig_store_string(facts.store, domain->name);
  facts.state = fake_domain_state_at(domain, conn->host);
  facts.persistent = fake_domain_defined(domain, conn->host);
  facts.memory_bytes = (uint64_t)domain->memory;
  g_strlcpy(facts.uuid, domain->uuid, sizeof facts.uuid);
  read_tags(conn->world, domain, &facts.tags);
  *ret_facts = facts;
  return true;
}

static bool fake_domain_facts(MigConn *conn, const char *name_or_uuid, MigDomainFacts *ret_facts,
                              GError **error) {
  return enter(conn, "domain_facts", NULL, error) &&
         leave(conn, domain_facts(conn, name_or_uuid, ret_facts, error));
}

static bool fake_survey_domain_op(MigConn *conn, const char *name_or_uuid, MigDomainFacts *ret_facts,
                                  GError **error) {
  FakeDomain *domain;

  if (!enter(conn, "survey_domain", NULL, error))
    return false;
  if (!domain_facts(conn, name_or_uuid, ret_facts, error))
    return leave(conn, false);
  domain = find(conn, name_or_uuid, NULL);
  fake_survey_domain(domain_script(conn->world, domain), fake_world_host(conn->world, conn->host), ret_facts);
  if (domain->job.phase != FAKE_PHASE_NONE)
    ret_facts->job = "outgoing migration";
  return leave(conn, true);
}

static bool parse_definition(const char *xml, MigDefinition *ret_definition, GError **error) {
  return mig_definition_parse(xml ? xml : "<domain/>", ret_definition, error);
}

static bool definitions(MigConn *conn, const char *name_or_uuid, MigDefinitions *ret_definitions,
                        GError **error) {
  FakeDomain *domain = find(conn, name_or_uuid, error);
  json_t *script = domain ? domain_script(conn->world, domain) : NULL;
  const char *xml = json_string_value(json_object_get(script, "xml"));
  const char *next_xml = json_string_value(json_object_get(script, "next_xml"));
  g_auto(MigDefinitions) found = {0};
  MigEndState state;

  if (!domain)
    return false;
  state = fake_domain_state_at(domain, conn->host);
  found.running = state != MIG_END_INACTIVE && state != MIG_END_ABSENT;
  found.persistent = fake_domain_defined(domain, conn->host);
  found.name = g_strdup(domain->name);
  g_strlcpy(found.uuid, domain->uuid, sizeof found.uuid);
  if (!parse_definition(xml, &found.live, error) ||
      !parse_definition(found.running && found.persistent && next_xml ? next_xml : xml, &found.next, error))
    return false;
  *ret_definitions = found;
  found = (MigDefinitions){0};
  return true;
}

static bool fake_definitions(MigConn *conn, const char *name_or_uuid, MigDefinitions *ret_definitions,
                             GError **error) {
  return enter(conn, "definitions", NULL, error) &&
         leave(conn, definitions(conn, name_or_uuid, ret_definitions, error));
}

static bool survey_target(MigConn *conn, const MigDomainFacts *domain, const MigHostFacts *source,
                          MigTargetFacts *ret_facts, GError **error) {
  FakeDomain *here = fake_world_domain(conn->world, NULL, domain->uuid);
  json_t *said = here ? fake_world_said_state(conn->world, here, conn->host) : NULL;
  g_auto(MigTargetFacts) facts = {0};
  json_t *host;

  mig_target_facts_init(&facts, domain);
  if (!host_facts(conn->world, conn->host, &facts.host, error))
    return false;
  if (said && g_strcmp0(json_string_value(said), "error") == 0)
    return refuse(error, MIG_VIRT_ERROR_FAILED, "scripted: no status");
  facts.domain_state = said   ? fake_end_state(json_string_value(said))
                       : here ? fake_domain_state_at(here, conn->host)
                              : MIG_END_ABSENT;
  host = fake_world_host_now(conn->world, conn->host);
  fake_survey_target(host, domain, source, &facts);
  json_decref(host);
  *ret_facts = facts;
  facts = (MigTargetFacts){0};
  return true;
}

static bool fake_survey_target_op(MigConn *conn, const MigDomainFacts *domain, const MigHostFacts *source,
                                  MigTargetFacts *ret_facts, GError **error) {
  return enter(conn, "survey_target", NULL, error) &&
         leave(conn, survey_target(conn, domain, source, ret_facts, error));
}

static bool fake_domain_status(MigConn *conn, const char *uuid, MigDomainStatus *ret_status, GError **error) {
  FakeDomain *domain;
  MigDomainStatus status = {.state = MIG_END_ABSENT};
  json_t *said;

  if (!enter(conn, "domain_status", NULL, error))
    return false;
  domain = fake_world_domain(conn->world, NULL, uuid);
  if (domain) {
    bool outgoing = domain->job.phase != FAKE_PHASE_NONE && strcmp(domain->job.source, conn->host) == 0;
    bool incoming = domain->job.phase != FAKE_PHASE_NONE && strcmp(domain->job.target, conn->host) == 0;

    said = fake_world_said_state(conn->world, domain, conn->host);
    if (said && g_strcmp0(json_string_value(said), "error") == 0)
      return leave(conn, refuse(error, MIG_VIRT_ERROR_FAILED, "scripted: no status"));
    status.state = said ? fake_end_state(json_string_value(said)) : fake_domain_state_at(domain, conn->host);
    status.persistent = fake_domain_defined(domain, conn->host);
    status.start_failed =
        status.state == MIG_END_INACTIVE && g_strcmp0(domain->host, conn->host) != 0 && domain->start_failed;
    status.job_active = outgoing || incoming;
    status.job_outgoing = outgoing;
    status.migrated = status.state == MIG_END_RUNNING && g_strcmp0(domain->final_target, conn->host) == 0;
  }
  *ret_status = status;
  return leave(conn, true);
}

/* ---- the migration
 * ----------------------------------------------------------------------------------------- */

static bool check_start(MigConn *conn, FakeDomain *domain, const MigMigrateRequest *request,
                        char **ret_target, GError **error) {
  FakeWorld *world = conn->world;
  g_autofree char *path = NULL, *target = NULL;
  MigEndState at_target;

  if (!parse_uri(request->target_uri, &path, &target))
    return refuse(error, MIG_VIRT_ERROR_INVALID, "not a URI of the fake");
  if (strcmp(path, world->path) != 0 || !host_reachable(world, target))
    return refuse(error, MIG_VIRT_ERROR_UNREACHABLE, "the target cannot be reached");
  if (strcmp(target, conn->host) == 0)
    return refuse(error, MIG_VIRT_ERROR_SAME_HOST, "attempt to migrate guest to the same host");

  if (mig_policy_get(&request->policy, MIG_POLICY_TLS) != MIG_TLS_NO &&
      !flag(fake_world_host(world, target), "certificates", true))
    return refuse(error, MIG_VIRT_ERROR_NO_TLS, "Unable to access credentials");

  if (request->resume_post_copy) {
    if (domain->job.phase == FAKE_PHASE_POST_COPY)
      return refuse(error, MIG_VIRT_ERROR_STILL_RUNNING, "QEMU reports migration is still running");
    if (domain->job.phase != FAKE_PHASE_POST_COPY_FAILED)
      return refuse(error, MIG_VIRT_ERROR_NOT_RUNNING, "no failed post-copy migration");
    if (world->link_cut)
      return refuse(error, MIG_VIRT_ERROR_UNREACHABLE, "the link is cut");
    return true;
  }

  if (domain->job.phase != FAKE_PHASE_NONE)
    return refuse(error, MIG_VIRT_ERROR_BUSY, "another migration job is already running");
  if (g_strcmp0(domain->host, conn->host) != 0 ||
      (domain->state != MIG_END_RUNNING && domain->state != MIG_END_PAUSED))
    return refuse(error, MIG_VIRT_ERROR_NOT_RUNNING, "domain is not running");
  at_target = fake_domain_state_at(domain, target);
  if (fake_world_said_state(world, domain, target))
    at_target = fake_end_state(json_string_value(fake_world_said_state(world, domain, target)));
  if (at_target == MIG_END_RUNNING || at_target == MIG_END_PAUSED)
    return refuse(error, MIG_VIRT_ERROR_EXISTS, "the domain is already active at the target");
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
      return refuse(error, MIG_VIRT_ERROR_UNREACHABLE, "the connection to the source broke");
    if (detach_us && now - started >= detach_us)
      return refuse(error, MIG_VIRT_ERROR_UNREACHABLE, "scripted: the call's answer was lost");

    if (host_hung(world, conn->host)) {
      hung_since = hung_since ? hung_since : now;
      if (now - hung_since >= world->keepalive_us) {
        conn->broken = true;
        continue;
      }
    } else {
      hung_since = 0;
      if (domain->job.phase == FAKE_PHASE_POST_COPY_FAILED)
        return refuse(error, MIG_VIRT_ERROR_UNREACHABLE, "client socket is closed");
      if (domain->serial != serial || domain->job.phase == FAKE_PHASE_NONE) {
        if (domain->ok || domain->serial != serial)
          return true;
        return refuse(error, (MigVirtError)domain->error, domain->error_text ? domain->error_text : "failed");
      }
    }
    wait_tick(world);
  }
}

/* Answers at once: time is what tests have least of. */
static bool fake_probe_dirty_rate(MigConn *conn, const char *uuid, unsigned seconds,
                                  uint64_t *ret_bytes_per_s, double *ret_cpu_share, GError **error) {
  FakeDomain *domain;

  if (!enter(conn, "probe_dirty_rate", NULL, error))
    return false;
  domain = find(conn, uuid, error);
  if (!domain)
    return leave(conn, false);
  *ret_bytes_per_s = (uint64_t)(fake_dirtied(domain, seconds) / seconds);
  *ret_cpu_share = 1;
  return leave(conn, true);
}

static bool fake_migrate(MigConn *conn, const MigMigrateRequest *request, GError **error) {
  g_autofree char *target = NULL;
  json_t *knob = NULL;
  FakeDomain *domain;
  bool ok;

  if (!enter(conn, "migrate", &knob, error))
    return false;
  domain = find(conn, request->uuid, error);
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
      fake_job_start(conn->world, domain, conn->host, target, &request->policy, g_get_monotonic_time());
    }
    fake_world_save(conn->world, g_get_monotonic_time(), true);
    ok = sit_in(conn, domain, domain->serial, integer(knob, "detach_after_ms") * 1000, error);
  }
  if (ok && json_object_get(knob, "fail_after")) {
    set_scripted(error, fake_error(json_string_value(json_object_get(knob, "fail_after"))),
                 "scripted failure", knob);
    ok = false;
  }
  json_decref(knob);
  return leave(conn, ok);
}

static bool fake_job_stats(MigConn *conn, const char *uuid, MigSample *ret_sample, GError **error) {
  FakeDomain *domain;
  MigSample sample = {.valid = true};

  if (!enter(conn, "job_stats", NULL, error))
    return false;
  domain = fake_world_domain(conn->world, conn->host, uuid);
  if (domain && domain->job.phase != FAKE_PHASE_NONE) {
    if (strcmp(domain->job.source, conn->host) != 0)
      return leave(conn, refuse(error, MIG_VIRT_ERROR_UNSUPPORTED,
                                "migration statistics are available only on the source host"));
    fake_job_sample(conn->world, domain, &sample);
  }
  *ret_sample = sample;
  return leave(conn, true);
}

static bool fake_final_stats(MigConn *conn, const char *uuid, MigFinalStats *ret_stats, GError **error) {
  FakeDomain *domain;

  if (!enter(conn, "final_stats", NULL, error))
    return false;
  domain = find(conn, uuid, error);
  if (!domain)
    return leave(conn, false);
  if (!domain->final_source ||
      (strcmp(domain->final_source, conn->host) != 0 && strcmp(domain->final_target, conn->host) != 0))
    return leave(conn, refuse(error, MIG_VIRT_ERROR_NOT_RUNNING, "no finished migration is known"));
  *ret_stats = domain->final;
  return leave(conn, true);
}

static bool fake_abort_job(MigConn *conn, const char *uuid, GError **error) {
  FakeDomain *domain;

  if (!enter(conn, "abort_job", NULL, error))
    return false;
  domain = find_job(conn, uuid, error);
  if (!domain)
    return leave(conn, false);
  if (domain->job.phase == FAKE_PHASE_POST_COPY || domain->job.phase == FAKE_PHASE_POST_COPY_FAILED)
    return leave(conn, refuse(error, MIG_VIRT_ERROR_UNSUPPORTED, "cannot abort migration in post-copy mode"));
  fake_job_fail(conn->world, domain, MIG_VIRT_ERROR_ABORTED, "job 'migration out' canceled by client");
  return leave(conn, true);
}

static bool fake_set_max_downtime(MigConn *conn, const char *uuid, uint64_t downtime_ms, GError **error) {
  FakeDomain *domain;

  if (!enter(conn, "set_max_downtime", NULL, error))
    return false;
  domain = find(conn, uuid, error);
  if (domain) {
    domain->job.max_downtime_ms = (gint64)downtime_ms;
    conn->world->dirty = true;
  }
  return leave(conn, domain != NULL);
}

static bool fake_set_bandwidth(MigConn *conn, const char *uuid, uint64_t bytes_per_s, bool post_copy,
                               GError **error) {
  FakeDomain *domain;

  if (!enter(conn, "set_bandwidth", NULL, error))
    return false;
  domain = find(conn, uuid, error);
  if (domain) {
    *(post_copy ? &domain->job.post_copy_bandwidth : &domain->job.bandwidth) = (gint64)bytes_per_s;
    conn->world->dirty = true;
  }
  return leave(conn, domain != NULL);
}

static bool fake_start_post_copy(MigConn *conn, const char *uuid, GError **error) {
  FakeDomain *domain;

  if (!enter(conn, "start_post_copy", NULL, error))
    return false;
  domain = find_job(conn, uuid, error);
  if (!domain)
    return leave(conn, false);
  if (!domain->job.allow_post_copy)
    return leave(conn,
                 refuse(error, MIG_VIRT_ERROR_UNSUPPORTED,
                        "switching to post-copy requires migration to be started with VIR_MIGRATE_POSTCOPY"));
  if (domain->job.phase != FAKE_PHASE_PRE_COPY)
    return leave(conn, refuse(error, MIG_VIRT_ERROR_NOT_RUNNING,
                              "post-copy can only be started while outgoing migration is in progress"));
  fake_job_post_copy(conn->world, domain);
  return leave(conn, true);
}

static bool set_running(MigConn *conn, const char *call, const char *uuid, MigEndState from, MigEndState to,
                        const char *detail, GError **error) {
  FakeDomain *domain;

  if (!enter(conn, call, NULL, error))
    return false;
  domain = find(conn, uuid, error);
  if (!domain)
    return leave(conn, false);
  /* A guest that a migration left stopped can be resumed like any other. */
  if (domain->state == MIG_END_PAUSED_MIGRATION && to == MIG_END_RUNNING)
    from = MIG_END_PAUSED_MIGRATION;
  if (g_strcmp0(domain->host, conn->host) != 0 || (domain->state != from && domain->state != to))
    return leave(conn, refuse(error, MIG_VIRT_ERROR_NOT_RUNNING, "domain is not running"));
  if (domain->state != to) {
    domain->state = to;
    conn->world->dirty = true;
    fake_event_state(conn->world, conn->host, domain, to, detail);
  }
  return leave(conn, true);
}

static bool fake_suspend(MigConn *conn, const char *uuid, GError **error) {
  return set_running(conn, "suspend", uuid, MIG_END_RUNNING, MIG_END_PAUSED, "suspended: paused", error);
}

static bool fake_resume(MigConn *conn, const char *uuid, GError **error) {
  return set_running(conn, "resume", uuid, MIG_END_PAUSED, MIG_END_RUNNING, "resumed: unpaused", error);
}

static bool fake_undefine(MigConn *conn, const char *uuid, GError **error) {
  FakeDomain *domain;

  if (!enter(conn, "undefine", NULL, error))
    return false;
  domain = find(conn, uuid, error);
  if (!domain)
    return leave(conn, false);
  if (fake_domain_state_at(domain, conn->host) != MIG_END_INACTIVE)
    return leave(conn, refuse(error, MIG_VIRT_ERROR_INVALID, "domain is active"));
  fake_domain_set_defined(domain, conn->host, false);
  conn->world->dirty = true;
  return leave(conn, true);
}

/* Images that are made are kept with the domains' state. */
static bool fake_make_image(MigConn *conn, const MigImage *image, GError **error) {
  if (!enter(conn, "make_image", NULL, error))
    return false;
  if (fake_image_find(conn->world, conn->host, image->path, NULL))
    return leave(conn, refuse(error, MIG_VIRT_ERROR_EXISTS, "it is there already"));
  fake_image_set(conn->world, conn->host, image->path, (gint64)image->capacity_bytes);
  return leave(conn, true);
}

static bool fake_remove_image(MigConn *conn, const MigImage *image, GError **error) {
  gint64 capacity_bytes = 0;

  if (!enter(conn, "remove_image", NULL, error))
    return false;
  if (fake_image_find(conn->world, conn->host, image->path, &capacity_bytes) &&
      (uint64_t)capacity_bytes != image->capacity_bytes)
    return leave(conn, refuse(error, MIG_VIRT_ERROR_INVALID, "it has another size"));
  fake_image_set(conn->world, conn->host, image->path, -1);
  return leave(conn, true);
}

/* ---- the ticker
 * -------------------------------------------------------------------------------------------- */

static void conn_unref_item(gpointer conn) {
  conn_unref(conn);
}

/* Who is to hear of what happened on `host`; or, with NULL, whose connection broke. */
static GPtrArray *listeners(FakeWorld *world, const char *host) {
  GPtrArray *found = g_ptr_array_new_with_free_func(conn_unref_item);

  for (guint i = 0; i < world->conns->len; i++) {
    MigConn *conn = g_ptr_array_index(world->conns, i);

    if (host ? !conn->broken && strcmp(conn->host, host) == 0 : conn->broken && !conn->told)
      g_ptr_array_add(found, conn_ref(conn));
    if (!host && conn->broken)
      conn->told = true;
  }
  return found;
}

static void tell(FakeWorld *world, const char *host, const MigVirtEvent *event) {
  g_autoptr(GPtrArray) conns = listeners(world, host);

  g_mutex_unlock(&world->lock);
  for (guint i = 0; i < conns->len; i++)
    conn_deliver(g_ptr_array_index(conns, i), event);
  g_mutex_lock(&world->lock);
}

static void tick(FakeWorld *world) {
  MigVirtEvent closed = {.kind = MIG_VIRT_EVENT_CLOSED, .detail = "closed: scripted"};
  GQueue later = G_QUEUE_INIT;
  FakeEvent *entry;

  g_mutex_lock(&world->lock);
  catch_up(world);
  while ((entry = g_queue_pop_head(&world->events))) {
    json_t *knob = fake_world_knob(world, entry->host, "events");

    if (host_hung(world, entry->host)) {
      g_queue_push_tail(&later, entry);
      continue;
    }
    if (!flag(knob, "drop", false))
      tell(world, entry->host, &entry->event);
    g_free(entry->host);
    g_free(entry);
  }
  while ((entry = g_queue_pop_tail(&later)))
    g_queue_push_head(&world->events, entry);
  tell(world, NULL, &closed);
  g_cond_broadcast(&world->tick);
  g_mutex_unlock(&world->lock);
}

static gpointer ticker(gpointer data) {
  FakeDriver *self = data;

  while (!g_atomic_int_get(&self->stop)) {
    for (guint i = 0;; i++) {
      FakeWorld *world = NULL;

      g_mutex_lock(&self->lock);
      if (i < self->worlds->len)
        world = fake_world_ref(g_ptr_array_index(self->worlds, i));
      g_mutex_unlock(&self->lock);
      if (!world)
        break;
      tick(world);
      fake_world_unref(world);
    }
    g_usleep(TICK_US);
  }
  return NULL;
}

static void world_unref_item(gpointer world) {
  fake_world_unref(world);
}

static void fake_free(MigDriver *driver) {
  FakeDriver *self = (FakeDriver *)driver;

  g_atomic_int_set(&self->stop, 1);
  g_thread_join(self->ticker);
  g_ptr_array_unref(self->worlds);
  g_mutex_clear(&self->lock);
  g_free(self);
}

MigDriver *fake_driver_new(void) {
  static const MigDriverOps ops = {
      .name = "fake",
      .open = fake_open,
      .close = fake_close,
      .is_alive = fake_is_alive,
      .reachable = fake_reachable,
      .host_facts = fake_host_facts,
      .list_active = fake_list_active,
      .domain_facts = fake_domain_facts,
      .definitions = fake_definitions,
      .domain_status = fake_domain_status,
      .survey_domain = fake_survey_domain_op,
      .survey_target = fake_survey_target_op,
      .probe_dirty_rate = fake_probe_dirty_rate,
      .migrate = fake_migrate,
      .job_stats = fake_job_stats,
      .final_stats = fake_final_stats,
      .abort_job = fake_abort_job,
      .set_max_downtime = fake_set_max_downtime,
      .set_bandwidth = fake_set_bandwidth,
      .start_post_copy = fake_start_post_copy,
      .suspend = fake_suspend,
      .resume = fake_resume,
      .undefine = fake_undefine,
      .make_image = fake_make_image,
      .remove_image = fake_remove_image,
      .free = fake_free,
  };
  FakeDriver *self = g_new0(FakeDriver, 1);

  self->driver.ops = &ops;
  g_mutex_init(&self->lock);
  self->worlds = g_ptr_array_new_with_free_func(world_unref_item);
  self->ticker = g_thread_new("fake-ticker", ticker, self);
  return &self->driver;
}
