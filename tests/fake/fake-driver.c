/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The fake's connections, the thread that runs its worlds, and its vtable. */
#include "tests/fake/fake-driver.h"

#include "tests/fake/fake-private.h"

#include <string.h>

/* Threads. A ticker runs every world's model every 10 ms and delivers events, as libvirtd would without
 * anybody asking. Calls come on threads of the caller's; each takes the world's lock and gives it up while it
 * waits. Lock order: driver, world; a connection's lock (held while an event is delivered) is never taken
 * inside either. */
typedef struct FakeDriver {
  MigDriver driver;
  GMutex lock;
  GPtrArray *worlds;
  GHashTable *noted; /* URIs that somebody asked for */
  GThread *ticker;
  gint stop;
} FakeDriver;

static void note_uri(MigDriver *driver, const char *uri) {
  FakeDriver *self = (FakeDriver *)driver;

  g_mutex_lock(&self->lock);
  fake_note_uri(self->noted, uri);
  g_mutex_unlock(&self->lock);
}

static void conn_deliver(MigConn *conn, MigVirtEvent *event) {
  event->at_ms = (uint64_t)g_get_monotonic_time() / 1000;
  g_rec_mutex_lock(&conn->lock);
  if (conn->events)
    conn->events(event, conn->user_data);
  g_rec_mutex_unlock(&conn->lock);
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

  note_uri(driver, uri);
  if (!fake_parse_uri(uri, &path, &host)) {
    g_set_error(error, MIG_VIRT_ERROR, MIG_VIRT_ERROR_INVALID, "not a URI of the fake: %s", uri);
    return NULL;
  }
  world = world_of((FakeDriver *)driver, path);
  if (!fake_enter_at(world, host, NULL, "open", (gint64)timeout_ms * 1000, MIG_VIRT_ERROR_TIMEOUT, NULL,
                     error)) {
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
  fake_conn_unref(conn);
}

static bool fake_is_alive(MigConn *conn) {
  bool alive;

  g_mutex_lock(&conn->world->lock);
  fake_catch_up(conn->world);
  alive = !conn->broken;
  g_mutex_unlock(&conn->world->lock);
  return alive;
}

static bool fake_reachable(MigDriver *driver, const char *uri, unsigned timeout_ms, GError **error) {
  g_autofree char *path = NULL, *host = NULL;
  FakeWorld *world;
  bool ok;

  note_uri(driver, uri);
  if (!fake_parse_uri(uri, &path, &host))
    return true;
  world = world_of((FakeDriver *)driver, path);
  /* The kernel of a host answers for a libvirtd that hangs. */
  g_mutex_lock(&world->lock);
  ok = fake_catch_up(world) && fake_host_reachable(world, host);
  g_mutex_unlock(&world->lock);
  if (!ok)
    g_set_error(error, MIG_VIRT_ERROR, MIG_VIRT_ERROR_UNREACHABLE, "cannot reach host %s", host);
  fake_world_unref(world);
  return ok;
}

/* --- the ticker --- */

static void conn_unref_item(gpointer conn) {
  fake_conn_unref(conn);
}

/* Who is to hear of what happened on `host`; or, with NULL, whose connection broke. */
static GPtrArray *listeners(FakeWorld *world, const char *host) {
  GPtrArray *found = g_ptr_array_new_with_free_func(conn_unref_item);

  for (guint i = 0; i < world->conns->len; i++) {
    MigConn *conn = g_ptr_array_index(world->conns, i);

    if (host ? !conn->broken && strcmp(conn->host, host) == 0 : conn->broken && !conn->told)
      g_ptr_array_add(found, fake_conn_ref(conn));
    if (!host && conn->broken)
      conn->told = true;
  }
  return found;
}

static void tell(FakeWorld *world, const char *host, MigVirtEvent *event) {
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
  fake_catch_up(world);
  while ((entry = g_queue_pop_head(&world->events))) {
    json_t *knob = fake_world_knob(world, entry->host, "events");

    if (fake_host_hung(world, entry->host)) {
      g_queue_push_tail(&later, entry);
      continue;
    }
    if (!fake_flag(knob, "drop", false))
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
    g_usleep(FAKE_TICK_US);
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
  g_hash_table_unref(self->noted);
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
      .write_profile = fake_write_profile,
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
  self->noted = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, NULL);
  self->ticker = g_thread_new("fake-ticker", ticker, self);
  return &self->driver;
}
