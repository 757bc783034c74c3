/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* What each call of the fake begins and ends with: the world's lock, and the knobs. */
#include "tests/fake/fake-private.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

MigConn *fake_conn_ref(MigConn *conn) {
  g_atomic_int_inc(&conn->refs);
  return conn;
}

void fake_conn_unref(MigConn *conn) {
  if (!g_atomic_int_dec_and_test(&conn->refs))
    return;
  fake_world_unref(conn->world);
  g_rec_mutex_clear(&conn->lock);
  g_free(conn->host);
  g_free(conn);
}

bool fake_flag(json_t *object, const char *key, bool fallback) {
  json_t *value = json_object_get(object, key);

  return value ? json_is_true(value) : fallback;
}

gint64 fake_integer(json_t *object, const char *key) {
  return (gint64)json_number_value(json_object_get(object, key));
}

bool fake_host_reachable(FakeWorld *world, const char *host) {
  json_t *object = fake_world_host(world, host);

  return object && fake_flag(object, "reachable", true);
}

bool fake_host_hung(FakeWorld *world, const char *host) {
  return fake_flag(fake_world_host(world, host), "hung", false);
}

bool fake_catch_up(FakeWorld *world) {
  gint64 now = g_get_monotonic_time();
  bool known;

  fake_world_advance(world, now);
  known = fake_world_refresh(world);
  fake_world_advance(world, now);
  for (guint i = 0; i < world->conns->len; i++) {
    MigConn *conn = g_ptr_array_index(world->conns, i);

    if (!fake_host_reachable(world, conn->host))
      conn->broken = true;
  }
  fake_world_save(world, now, false);
  return known;
}

void fake_wait_tick(FakeWorld *world) {
  g_cond_wait_until(&world->tick, &world->lock, g_get_monotonic_time() + FAKE_TICK_US);
  fake_catch_up(world);
}

void fake_set_scripted(GError **error, MigVirtError code, const char *call, json_t *knob) {
  const char *message = json_string_value(json_object_get(knob, "message"));

  g_set_error(error, MIG_VIRT_ERROR, (int)code, "%s", message ? message : call);
}

bool fake_enter_at(FakeWorld *world, const char *host, MigConn *conn, const char *call, gint64 limit_us,
                   MigVirtError limit_error, json_t **ret_knob, GError **error) {
  gint64 started = g_get_monotonic_time(), delay_us;
  g_autoptr(GError) failure = NULL;
  json_t *knob;
  guint64 generation;

  g_mutex_lock(&world->lock);
  if (!fake_catch_up(world)) {
    g_set_error(error, MIG_VIRT_ERROR, MIG_VIRT_ERROR_UNREACHABLE, "no control file %s", world->path);
    g_mutex_unlock(&world->lock);
    return false;
  }

  generation = world->generation;
  knob = json_incref(fake_world_knob(world, host, call));
  delay_us = fake_integer(knob, "delay_ms") * 1000;
  for (;;) {
    gint64 waited = g_get_monotonic_time() - started;

    if (!fake_host_reachable(world, host) || (conn && conn->broken)) {
      g_set_error(&failure, MIG_VIRT_ERROR, MIG_VIRT_ERROR_UNREACHABLE, "%s: host %s cannot be reached", call,
                  host);
      break;
    }
    if (generation != world->generation) {
      json_decref(knob);
      generation = world->generation;
      knob = json_incref(fake_world_knob(world, host, call));
    }
    if (fake_host_hung(world, host) || fake_flag(knob, "hang", false)) {
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
    fake_wait_tick(world);
  }

  if (!failure && json_object_get(knob, "fail"))
    fake_set_scripted(&failure, fake_error(json_string_value(json_object_get(knob, "fail"))), call, knob);
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

bool fake_enter(MigConn *conn, const char *call, json_t **ret_knob, GError **error) {
  bool ok;

  fake_conn_ref(conn);
  ok = fake_enter_at(conn->world, conn->host, conn, call, 0, MIG_VIRT_ERROR_UNREACHABLE, ret_knob, error);
  if (!ok)
    fake_conn_unref(conn);
  return ok;
}

bool fake_leave(MigConn *conn, bool result) {
  fake_world_save(conn->world, g_get_monotonic_time(), true);
  g_mutex_unlock(&conn->world->lock);
  fake_conn_unref(conn);
  return result;
}

bool fake_refuse(GError **error, MigVirtError code, const char *text) {
  g_set_error_literal(error, MIG_VIRT_ERROR, (int)code, text);
  return false;
}

FakeDomain *fake_find(MigConn *conn, const char *name_or_uuid, GError **error) {
  FakeDomain *domain = fake_world_domain(conn->world, conn->host, name_or_uuid);

  if (!domain)
    g_set_error(error, MIG_VIRT_ERROR, MIG_VIRT_ERROR_NO_DOMAIN, "no domain %s on host %s", name_or_uuid,
                conn->host);
  return domain;
}

FakeDomain *fake_find_job(MigConn *conn, const char *uuid, GError **error) {
  FakeDomain *domain = fake_find(conn, uuid, error);

  if (domain && (domain->job.phase == FAKE_PHASE_NONE || strcmp(domain->job.source, conn->host) != 0)) {
    fake_refuse(error, MIG_VIRT_ERROR_NOT_RUNNING, "no job is active on the domain");
    return NULL;
  }
  return domain;
}

static bool parse_own_uri(GUri *uri, char **ret_path, char **ret_host) {
  const char *query = g_uri_get_query(uri);

  if (!query || !g_str_has_prefix(query, "host="))
    return false;
  *ret_path = g_strdup(g_uri_get_path(uri));
  *ret_host = g_strdup(query + strlen("host="));
  return true;
}

/* By hand, since the host counts whatever stands behind it. */
static char *host_of(const char *uri) {
  const char *host = strstr(uri, "://");
  size_t length = host ? strcspn(host + 3, ":/?#") : 0;

  return length > 0 ? g_strndup(host + 3, length) : NULL;
}

bool fake_parse_uri(const char *uri, char **ret_path, char **ret_host) {
  g_autoptr(GUri) parsed = g_uri_parse(uri ? uri : "", G_URI_FLAGS_NONE, NULL);
  const char *control = g_getenv(FAKE_CONTROL_VARIABLE);
  char *host = NULL;

  if (parsed && strcmp(g_uri_get_scheme(parsed), "fake") == 0)
    return parse_own_uri(parsed, ret_path, ret_host);
  if (control && uri && g_str_has_prefix(uri, "qemu+"))
    host = host_of(uri);
  if (!host)
    return false;
  *ret_path = g_strdup(control);
  *ret_host = host;
  return true;
}

/* At most this much for each; a test looks for URIs by their beginning. */
#define NOTED_BYTES_MAX 4096

void fake_note_uri(GHashTable *noted, const char *uri) {
  const char *control = g_getenv(FAKE_CONTROL_VARIABLE);
  g_autofree char *path = NULL, *escaped = NULL, *line = NULL;
  int fd;

  if (!control || g_hash_table_contains(noted, uri))
    return;
  g_hash_table_add(noted, g_strdup(uri));
  path = g_strconcat(control, ".opened", NULL);
  escaped = g_strescape(uri, NULL);
  line = g_strdup_printf("%.*s\n", NOTED_BYTES_MAX, escaped);
  fd = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
  if (fd < 0 || write(fd, line, strlen(line)) < 0)
    g_warning("fake: %s cannot be written: %s", path, g_strerror(errno));
  if (fd >= 0)
    close(fd);
}
