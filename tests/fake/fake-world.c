/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The fake's files: the control file that a test writes, the state file that outlives the process. */
#include "tests/fake/fake-world.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define SAVE_EVERY_US (50 * 1000)

static void domain_free(gpointer data) {
  FakeDomain *domain = data;

  g_free(domain->name);
  g_free(domain->control_host);
  g_free(domain->host);
  g_free(domain->applied_host);
  g_free(domain->applied_to);
  g_ptr_array_unref(domain->defined);
  fake_job_clear(&domain->job);
  g_free(domain->error_text);
  g_free(domain->profile);
  g_free(domain->final_source);
  g_free(domain->final_target);
  g_free(domain);
}

MigEndState fake_end_state(const char *name) {
  for (int i = 0; name && i < MIG_END_STATE_COUNT; i++)
    if (g_ascii_strcasecmp(mig_end_state_name((MigEndState)i), name) == 0)
      return (MigEndState)i;
  return MIG_END_UNKNOWN;
}

MigVirtError fake_error(const char *name) {
  for (int i = 0; name && i < MIG_VIRT_ERROR_COUNT; i++)
    if (strcmp(mig_virt_error_name((MigVirtError)i), name) == 0)
      return (MigVirtError)i;
  return MIG_VIRT_ERROR_FAILED;
}

static double number(json_t *object, const char *key, double fallback) {
  json_t *value = json_object_get(object, key);

  return json_is_number(value) ? json_number_value(value) : fallback;
}

static gint64 integer(json_t *object, const char *key, gint64 fallback) {
  json_t *value = json_object_get(object, key);

  return json_is_number(value)
             ? (json_is_integer(value) ? json_integer_value(value) : (gint64)json_number_value(value))
             : fallback;
}

static bool boolean(json_t *object, const char *key, bool fallback) {
  json_t *value = json_object_get(object, key);

  return json_is_boolean(value) ? json_is_true(value) : fallback;
}

static const char *string(json_t *object, const char *key, const char *fallback) {
  const char *value = json_string_value(json_object_get(object, key));

  return value ? value : fallback;
}

/* ---- the state file: one table for both ways
 * --------------------------------------------------------------- */

typedef enum FieldType { FIELD_INT64, FIELD_DOUBLE, FIELD_BOOL, FIELD_STRING } FieldType;

typedef struct Field {
  const char *name;
  FieldType type;
  size_t offset;
} Field;

#define JOB(field, type)                                                                                     \
  { #field, type, offsetof(FakeJob, field) }
#define DOMAIN(field, type)                                                                                  \
  { #field, type, offsetof(FakeDomain, field) }
#define FINAL(field)                                                                                         \
  { #field, FIELD_INT64, offsetof(MigFinalStats, field) }

static const Field job_fields[] = {
    JOB(source, FIELD_STRING),
    JOB(target, FIELD_STRING),
    JOB(start_us, FIELD_INT64),
    JOB(at_us, FIELD_INT64),
    JOB(cut_since_us, FIELD_INT64),
    JOB(setup_left_s, FIELD_DOUBLE),
    JOB(disk_total, FIELD_DOUBLE),
    JOB(disk_left, FIELD_DOUBLE),
    JOB(memory_processed, FIELD_DOUBLE),
    JOB(pass_bytes, FIELD_DOUBLE),
    JOB(pass_sent, FIELD_DOUBLE),
    JOB(pass_s, FIELD_DOUBLE),
    JOB(dirty_s, FIELD_DOUBLE),
    JOB(switch_left_s, FIELD_DOUBLE),
    JOB(downtime_s, FIELD_DOUBLE),
    JOB(iteration, FIELD_INT64),
    JOB(throttle_pct, FIELD_INT64),
    JOB(stuck, FIELD_INT64),
    JOB(max_downtime_ms, FIELD_INT64),
    JOB(bandwidth, FIELD_INT64),
    JOB(post_copy_bandwidth, FIELD_INT64),
    JOB(allow_post_copy, FIELD_BOOL),
    JOB(auto_converge, FIELD_BOOL),
    JOB(persist, FIELD_BOOL),
    JOB(undefine, FIELD_BOOL),
};

static const Field domain_fields[] = {
    DOMAIN(host, FIELD_STRING),
    DOMAIN(applied_host, FIELD_STRING),
    DOMAIN(applied_to, FIELD_STRING),
    DOMAIN(serial, FIELD_INT64),
    DOMAIN(ok, FIELD_BOOL),
    DOMAIN(error, FIELD_INT64),
    DOMAIN(error_text, FIELD_STRING),
    DOMAIN(profile, FIELD_STRING),
    DOMAIN(final_source, FIELD_STRING),
    DOMAIN(final_target, FIELD_STRING),
};

static const Field final_fields[] = {
    {"have_downtime", FIELD_BOOL, offsetof(MigFinalStats, have_downtime)},
    FINAL(downtime_ms),
    FINAL(downtime_net_ms),
    FINAL(total_time_ms),
    FINAL(transferred_bytes),
    FINAL(last.memory_total_bytes),
    FINAL(last.memory_processed_bytes),
    FINAL(last.iteration),
    FINAL(last.throttle_pct),
};

static void save_fields(json_t *into, const Field *fields, size_t n, const void *from) {
  for (size_t i = 0; i < n; i++) {
    const void *at = (const char *)from + fields[i].offset;
    json_t *value = NULL;

    switch (fields[i].type) {
    case FIELD_INT64:
      value = json_integer(*(const gint64 *)at);
      break;
    case FIELD_DOUBLE:
      value = json_real(*(const double *)at);
      break;
    case FIELD_BOOL:
      value = json_boolean(*(const bool *)at);
      break;
    case FIELD_STRING:
      value = *(char *const *)at ? json_string(*(char *const *)at) : json_null();
      break;
    }
    json_object_set_new(into, fields[i].name, value);
  }
}

static void load_fields(json_t *from, const Field *fields, size_t n, void *into) {
  for (size_t i = 0; i < n; i++) {
    void *at = (char *)into + fields[i].offset;

    switch (fields[i].type) {
    case FIELD_INT64:
      *(gint64 *)at = integer(from, fields[i].name, 0);
      break;
    case FIELD_DOUBLE:
      *(double *)at = number(from, fields[i].name, 0);
      break;
    case FIELD_BOOL:
      *(bool *)at = boolean(from, fields[i].name, false);
      break;
    case FIELD_STRING:
      g_free(*(char **)at);
      *(char **)at = g_strdup(string(from, fields[i].name, NULL));
      break;
    }
  }
}

static json_t *domain_to_json(const FakeDomain *domain) {
  json_t *object = json_object(), *defined = json_array();

  save_fields(object, domain_fields, G_N_ELEMENTS(domain_fields), domain);
  json_object_set_new(object, "state", json_string(mig_end_state_name(domain->state)));
  json_object_set_new(object, "applied_state", json_string(mig_end_state_name(domain->applied_state)));
  for (guint i = 0; i < domain->defined->len; i++)
    json_array_append_new(defined, json_string(g_ptr_array_index(domain->defined, i)));
  json_object_set_new(object, "defined", defined);
  if (domain->job.phase != FAKE_PHASE_NONE) {
    json_t *job = json_object();

    save_fields(job, job_fields, G_N_ELEMENTS(job_fields), &domain->job);
    json_object_set_new(job, "phase", json_integer(domain->job.phase));
    json_object_set_new(object, "job", job);
  }
  if (domain->final_source) {
    json_t *final = json_object();

    save_fields(final, final_fields, G_N_ELEMENTS(final_fields), &domain->final);
    json_object_set_new(object, "final", final);
  }
  return object;
}

static void domain_from_json(FakeDomain *domain, json_t *object) {
  json_t *job = json_object_get(object, "job"), *final = json_object_get(object, "final"), *host;
  size_t i;

  load_fields(object, domain_fields, G_N_ELEMENTS(domain_fields), domain);
  domain->state = fake_end_state(string(object, "state", "running"));
  domain->applied_state = fake_end_state(string(object, "applied_state", NULL));
  json_array_foreach (json_object_get(object, "defined"), i, host)
    fake_domain_set_defined(domain, json_string_value(host), true);
  if (job) {
    load_fields(job, job_fields, G_N_ELEMENTS(job_fields), &domain->job);
    domain->job.phase = (FakePhase)integer(job, "phase", 0);
  }
  if (final)
    load_fields(final, final_fields, G_N_ELEMENTS(final_fields), &domain->final);
  domain->final.last.valid = true;
}

void fake_world_save(FakeWorld *world, gint64 now_us, bool now) {
  json_t *root, *domains;
  GHashTableIter iter;
  gpointer value;
  g_autofree char *temporary = NULL;

  if (!world->dirty || (!now && now_us - world->saved_us < SAVE_EVERY_US))
    return;

  domains = json_object();
  g_hash_table_iter_init(&iter, world->domains);
  while (g_hash_table_iter_next(&iter, NULL, &value))
    json_object_set_new(domains, ((FakeDomain *)value)->name, domain_to_json(value));
  root = json_pack("{s:o s:O}", "domains", domains, "images", world->images);
  temporary = g_strdup_printf("%s.new", world->state_path);
  if (json_dump_file(root, temporary, JSON_COMPACT | JSON_REAL_PRECISION(17)) == 0 &&
      rename(temporary, world->state_path) == 0)
    world->dirty = false;
  json_decref(root);
  world->saved_us = now_us;
}

/* ---- the control file
 * -------------------------------------------------------------------------------------- */

/* Always the same for the same name. */
static void uuid_of_name(const char *name, char *ret_uuid) {
  g_autofree char *hash = g_compute_checksum_for_string(G_CHECKSUM_SHA1, name, -1);

  g_snprintf(ret_uuid, MIG_UUID_STRING_SIZE, "%.8s-%.4s-4%.3s-8%.3s-%.12s", hash, hash + 8, hash + 12,
             hash + 15, hash + 18);
}

/* A migration that is not the agent's doing. */
static void apply_migration(FakeWorld *world, FakeDomain *domain, json_t *object) {
  const char *to = string(object, "migrate_to", NULL);

  if (g_strcmp0(to, domain->applied_to) != 0) {
    if (domain->job.phase != FAKE_PHASE_NONE)
      fake_job_fail(world, domain, MIG_VIRT_ERROR_ABORTED, "job 'migration out' canceled by client");
    g_free(domain->applied_to);
    domain->applied_to = g_strdup(to);
    if (to && domain->host && strcmp(to, domain->host) != 0) {
      MigPolicy policy;

      mig_policy_init(&policy);
      fake_job_start(world, domain, domain->host, to, &policy, g_get_monotonic_time());
    }
  }
  if (boolean(object, "post_copy", false) && domain->job.phase == FAKE_PHASE_PRE_COPY)
    fake_job_post_copy(world, domain);
}

/* As libvirtd does for some of what changes a definition. */
static void apply_definition(FakeWorld *world, FakeDomain *domain, json_t *object, bool is_new) {
  MigVirtEvent event = {.kind = MIG_VIRT_EVENT_DEFINITION, .detail = "defined"};
  guint hash = g_str_hash(string(object, "xml", "")) * 31 + g_str_hash(string(object, "next_xml", ""));

  if (!is_new && hash != domain->definition_hash && domain->host)
    fake_event(world, domain->host, domain, event);
  domain->definition_hash = hash;
}

static void apply_domain(FakeWorld *world, const char *name, json_t *object, json_t *saved) {
  FakeDomain *domain = g_hash_table_lookup(world->domains, name);
  json_t *host;
  size_t i;

  bool is_new = !domain;

  if (is_new) {
    domain = g_new0(FakeDomain, 1);
    domain->name = g_strdup(name);
    domain->defined = g_ptr_array_new_with_free_func(g_free);
    g_hash_table_insert(world->domains, domain->name, domain);
    if (saved)
      domain_from_json(domain, saved);
  }

  if (json_object_get(object, "uuid"))
    g_strlcpy(domain->uuid, string(object, "uuid", ""), sizeof domain->uuid);
  else
    uuid_of_name(name, domain->uuid);
  domain->persistent = boolean(object, "persistent", true);
  domain->passthrough = boolean(object, "passthrough", false);
  domain->leftovers = boolean(object, "leftovers", false);
  domain->start_failed = boolean(object, "start_failed", false);
  domain->booted = boolean(object, "booted", false);
  domain->memory = number(object, "memory_bytes", 256.0 * MIG_MIB_BYTES);
  domain->dirty_rate = number(object, "dirty_bytes_per_s", 20.0 * MIG_MIB_BYTES);
  domain->working_set = number(object, "working_set_bytes", domain->memory / 4);
  domain->local_disk = number(object, "local_disk_bytes", 0);
  domain->local_disks = integer(object, "local_disks", domain->local_disk > 0 ? 1 : 0);
  json_array_foreach (json_object_get(object, "defined"), i, host)
    fake_domain_set_defined(domain, json_string_value(host), true);

  /* Only what the test changed: where a domain is now is the model's affair. */
  {
    const char *at = string(object, "host", NULL);
    MigEndState state = fake_end_state(string(object, "state", "running"));

    if (at && g_strcmp0(at, domain->applied_host) != 0) {
      if (domain->job.phase != FAKE_PHASE_NONE)
        fake_job_fail(world, domain, MIG_VIRT_ERROR_FAILED, "the test moved the domain");
      if (domain->persistent && domain->host)
        fake_domain_set_defined(domain, domain->host, false);
      if (domain->persistent)
        fake_domain_set_defined(domain, at, true);
      g_free(domain->host);
      domain->host = g_strdup(at);
      g_free(domain->applied_host);
      domain->applied_host = g_strdup(at);
    }
    if (state != domain->applied_state) {
      bool first = domain->applied_state == MIG_END_UNKNOWN;

      domain->state = domain->applied_state = state;
      if (domain->host && !first)
        fake_event_state(world, domain->host, domain, state,
                         state == MIG_END_RUNNING  ? "resumed: unpaused"
                         : state == MIG_END_PAUSED ? "suspended: paused"
                                                   : "stopped: crashed");
    }
  }
  apply_migration(world, domain, object);
  apply_definition(world, domain, object, is_new);
  world->dirty = true;
}

static void apply_control(FakeWorld *world) {
  json_t *link = json_object_get(world->control, "link"), *object, *state = NULL;
  const char *name;

  world->link_rate = number(link, "bytes_per_s", 100.0 * MIG_MIB_BYTES);
  world->link_cut = boolean(link, "cut", false);
  world->setup_s = number(link, "setup_ms", 0) / 1000;
  world->switch_s = number(link, "switch_ms", 20) / 1000;
  world->keepalive_us = integer(world->control, "keepalive_ms", 30000) * 1000;

  if (g_hash_table_size(world->domains) == 0)
    state = json_load_file(world->state_path, 0, NULL);
  if (json_object_get(state, "images"))
    json_object_update(world->images, json_object_get(state, "images"));
  json_object_foreach (json_object_get(world->control, "domains"), name, object)
    apply_domain(world, name, object, json_object_get(json_object_get(state, "domains"), name));
  json_decref(state);
}

bool fake_world_refresh(FakeWorld *world) {
  struct stat now;
  json_t *control;

  if (stat(world->path, &now) < 0 ||
      (now.st_ino == world->seen.st_ino && now.st_size == world->seen.st_size &&
       now.st_mtim.tv_sec == world->seen.st_mtim.tv_sec &&
       now.st_mtim.tv_nsec == world->seen.st_mtim.tv_nsec))
    return world->control != NULL;

  control = json_load_file(world->path, 0, NULL);
  if (!control)
    return world->control != NULL;
  world->seen = now;
  json_decref(world->control);
  world->control = control;
  world->generation++;
  g_hash_table_remove_all(world->used);
  apply_control(world);
  return true;
}

json_t *fake_world_host(FakeWorld *world, const char *host) {
  return json_object_get(json_object_get(world->control, "hosts"), host);
}

json_t *fake_world_host_now(FakeWorld *world, const char *host) {
  json_t *images = json_object_get(world->images, host);
  json_t *now = json_copy(fake_world_host(world, host));
  json_t *volumes = json_object_get(now, "volumes");

  if (json_object_size(images) == 0)
    return now;
  volumes = volumes ? json_copy(volumes) : json_object();
  json_object_update(volumes, images);
  json_object_set_new(now, "volumes", volumes);
  return now;
}

bool fake_image_find(FakeWorld *world, const char *host, const char *path, gint64 *ret_bytes) {
  json_t *now = fake_world_host_now(world, host);
  json_t *size = json_object_get(json_object_get(now, "volumes"), path);
  bool found = size != NULL;

  if (found && ret_bytes)
    *ret_bytes = (gint64)json_number_value(size);
  json_decref(now);
  return found;
}

void fake_image_set(FakeWorld *world, const char *host, const char *path, gint64 bytes) {
  json_t *images = json_object_get(world->images, host);

  if (!images) {
    images = json_object();
    json_object_set_new(world->images, host, images);
  }
  if (bytes < 0)
    json_object_del(images, path);
  else
    json_object_set_new(images, path, json_integer(bytes));
  world->dirty = true;
  fake_world_save(world, g_get_monotonic_time(), true);
}

json_t *fake_world_knob(FakeWorld *world, const char *host, const char *call) {
  json_t *calls = json_object_get(world->control, "calls");
  g_autofree char *specific = g_strdup_printf("%s.%s", host, call);
  const char *name = json_object_get(calls, specific) ? specific : call;
  json_t *knob = json_object_get(calls, name);
  json_t *times = json_object_get(knob, "times");
  guint used;

  if (!times)
    return knob;
  used = GPOINTER_TO_UINT(g_hash_table_lookup(world->used, name));
  if (used >= json_integer_value(times))
    return NULL;
  g_hash_table_insert(world->used, g_strdup(name), GUINT_TO_POINTER(used + 1));
  return knob;
}

FakeDomain *fake_world_domain(FakeWorld *world, const char *host, const char *name_or_uuid) {
  FakeDomain *domain = g_hash_table_lookup(world->domains, name_or_uuid);
  GHashTableIter iter;
  gpointer value;

  g_hash_table_iter_init(&iter, world->domains);
  while (g_hash_table_iter_next(&iter, NULL, &value))
    if (g_ascii_strcasecmp(((FakeDomain *)value)->uuid, name_or_uuid) == 0)
      domain = value;

  return domain && (!host || fake_domain_state_at(domain, host) != MIG_END_ABSENT) ? domain : NULL;
}

void fake_world_advance(FakeWorld *world, gint64 now_us) {
  GHashTableIter iter;
  gpointer value;

  g_hash_table_iter_init(&iter, world->domains);
  while (g_hash_table_iter_next(&iter, NULL, &value))
    fake_job_advance(world, value, now_us);
}

json_t *fake_world_said_state(FakeWorld *world, const FakeDomain *domain, const char *host) {
  json_t *object = json_object_get(json_object_get(world->control, "domains"), domain->name);

  return json_object_get(json_object_get(object, "states"), host);
}

FakeWorld *fake_world_new(const char *path) {
  FakeWorld *world = g_new0(FakeWorld, 1);

  world->refs = 1;
  world->path = g_strdup(path);
  world->state_path = g_strdup_printf("%s.state", path);
  g_mutex_init(&world->lock);
  g_cond_init(&world->tick);
  world->domains = g_hash_table_new_full(g_str_hash, g_str_equal, NULL, domain_free);
  world->used = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, NULL);
  g_queue_init(&world->events);
  world->images = json_object();
  world->conns = g_ptr_array_new();
  return world;
}

static void event_free(gpointer data) {
  g_free(((FakeEvent *)data)->host);
  g_free(data);
}

FakeWorld *fake_world_ref(FakeWorld *world) {
  g_atomic_int_inc(&world->refs);
  return world;
}

void fake_world_unref(FakeWorld *world) {
  if (!world || !g_atomic_int_dec_and_test(&world->refs))
    return;
  g_queue_clear_full(&world->events, event_free);
  g_ptr_array_unref(world->conns);
  g_hash_table_unref(world->used);
  g_hash_table_unref(world->domains);
  json_decref(world->control);
  json_decref(world->images);
  g_cond_clear(&world->tick);
  g_mutex_clear(&world->lock);
  g_free(world->state_path);
  g_free(world->path);
  g_free(world);
}
