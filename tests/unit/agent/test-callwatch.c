/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Which calls are out, and late. The time is the test's own; the driver beneath waits until it is told to go on. */
#include "agent/libvirtd/callwatch.h"

#include "tests/unit/core/rows.h"

#include <string.h>

#define UUID "11111111-2222-3333-4444-555555555555"

/* A driver all of whose calls wait at a gate. */
typedef struct Gate {
  MigDriver base;
  GMutex mutex;
  GCond cond;
  unsigned waiting;
  bool open;
  bool freed;
  const void *row; /* of a table: what the test was added with */
} Gate;

static Gate *gate;

static bool pass(void) {
  g_mutex_lock(&gate->mutex);
  gate->waiting++;
  g_cond_broadcast(&gate->cond);
  while (!gate->open)
    g_cond_wait(&gate->cond, &gate->mutex);
  g_mutex_unlock(&gate->mutex);
  return true;
}

static void await_waiting(unsigned n) {
  g_mutex_lock(&gate->mutex);
  while (gate->waiting < n)
    g_cond_wait(&gate->cond, &gate->mutex);
  g_mutex_unlock(&gate->mutex);
}

static void open_gate(void) {
  g_mutex_lock(&gate->mutex);
  gate->open = true;
  g_cond_broadcast(&gate->cond);
  g_mutex_unlock(&gate->mutex);
}

static MigConn *gate_open(MigDriver *driver, const char *uri, unsigned timeout_ms, MigVirtEventFunc events,
                          gpointer user_data, GError **error) {
  assert_ptr_equal(driver, gate);
  if (strcmp(uri, "gate:///slow") == 0)
    pass();
  return strcmp(uri, "gate:///away") == 0 ? NULL : (MigConn *)(void *)gate;
}
static void gate_close(MigConn *conn) {
  assert_ptr_equal(conn, gate);
}
static bool gate_job_stats(MigConn *conn, const char *uuid, MigVcpus *vcpus, MigSample *ret_sample,
                           GError **error) {
  assert_ptr_equal(conn, gate);
  ret_sample->iteration = 7;
  return pass();
}
static bool gate_migrate(MigConn *conn, const MigMigrateRequest *request, GError **error) {
  return pass();
}
static bool gate_probe(MigConn *conn, const char *uuid, unsigned seconds, MigProbe *probe, GError **error) {
  return pass();
}
static void gate_free(MigDriver *driver) {
  gate->freed = true;
}

static const MigDriverOps gate_ops = {
    .name = "gate",
    .open = gate_open,
    .close = gate_close,
    .job_stats = gate_job_stats,
    .migrate = gate_migrate,
    .probe_dirty_rate = gate_probe,
    .free = gate_free,
};

static int setup(void **state) {
  gate = g_new0(Gate, 1);
  gate->base.ops = &gate_ops;
  gate->row = *state;
  g_mutex_init(&gate->mutex);
  g_cond_init(&gate->cond);
  *state = call_watch_new(&gate->base);
  return 0;
}

static int teardown(void **state) {
  mig_driver_free(*state);
  assert_true(gate->freed);
  g_mutex_clear(&gate->mutex);
  g_cond_clear(&gate->cond);
  g_free(gate);
  return 0;
}

static uint64_t now(void) {
  return (uint64_t)g_get_monotonic_time() / 1000;
}

static guint count_late(MigDriver *driver, uint64_t after_ms) {
  g_autoptr(GPtrArray) late = call_watch_list_late(driver, now() + after_ms);

  return late->len;
}

/* --- what each may take --- */

static gpointer read_numbers(gpointer data) {
  MigDriver *driver = data;
  MigConn *conn = driver->ops->open(driver, "gate:///system", 1000, NULL, NULL, NULL);
  MigSample sample = {0};

  assert_true(driver->ops->job_stats(conn, UUID, NULL, &sample, NULL));
  assert_int_equal(sample.iteration, 7);
  driver->ops->close(conn);
  return NULL;
}
static gpointer migrate(gpointer data) {
  MigDriver *driver = data;
  MigConn *conn = driver->ops->open(driver, "gate:///system", 1000, NULL, NULL, NULL);
  MigMigrateRequest request = {.uuid = UUID};

  assert_true(driver->ops->migrate(conn, &request, NULL));
  driver->ops->close(conn);
  return NULL;
}
static gpointer probe(gpointer data) {
  MigDriver *driver = data;
  MigConn *conn = driver->ops->open(driver, "gate:///system", 1000, NULL, NULL, NULL);
  MigProbe measured = {0};

  assert_true(driver->ops->probe_dirty_rate(conn, UUID, 20, &measured, NULL));
  driver->ops->close(conn);
  return NULL;
}
static gpointer connect_slowly(gpointer data) {
  MigDriver *driver = data;
  MigConn *conn = driver->ops->open(driver, "gate:///slow", 60000, NULL, NULL, NULL);

  driver->ops->close(conn);
  return NULL;
}

static const struct Row {
  const char *name;
  GThreadFunc func;
  uint64_t good_ms, late_ms; /* not late yet; late. 0: never */
  const char *what, *about;
} rows[] = {
    {"numbers are answered at once", read_numbers, 4000, 6000, "reading the migration's statistics", UUID},
    {"a migration may take for ever", migrate, UINT64_C(1000000000), 0, NULL, NULL},
    {"a probe takes as long as it was asked to", probe, 24000, 26000, "measuring the dirty rate", UUID},
    {"a connection may take its timeout", connect_slowly, 64000, 66000, "opening the connection", NULL},
};

static void call_is_late(void **state) {
  const struct Row *row = gate->row;
  MigDriver *driver = *state;
  GThread *thread = g_thread_new("call", row->func, driver);

  await_waiting(1);
  assert_int_equal(count_late(driver, row->good_ms), 0);
  if (row->late_ms > 0) {
    g_autoptr(GPtrArray) late = call_watch_list_late(driver, now() + row->late_ms);
    const CallWatchLate *call;

    assert_int_equal(late->len, 1);
    call = late->pdata[0];
    assert_string_equal(call->what, row->what);
    assert_true(g_strcmp0(call->about, row->about) == 0);
    assert_true(g_str_has_prefix(call->uri, "gate:///"));
    assert_true(call->since_ms <= now());
  }
  open_gate();
  g_thread_join(thread);
  assert_int_equal(count_late(driver, row->late_ms), 0);
}

static void many_are_told_oldest_first(void **state) {
  MigDriver *driver = *state;
  GThread *threads[5];

  for (unsigned i = 0; i < G_N_ELEMENTS(threads); i++) {
    threads[i] = g_thread_new("call", read_numbers, driver);
    await_waiting(i + 1);
  }
  {
    g_autoptr(GPtrArray) late = call_watch_list_late(driver, now() + 10000);

    assert_int_equal(late->len, G_N_ELEMENTS(threads));
    for (guint i = 1; i < late->len; i++)
      assert_true(((CallWatchLate *)late->pdata[i - 1])->since_ms <=
                  ((CallWatchLate *)late->pdata[i])->since_ms);
  }
  open_gate();
  for (unsigned i = 0; i < G_N_ELEMENTS(threads); i++)
    g_thread_join(threads[i]);
  assert_int_equal(count_late(driver, 10000), 0);
}

static void what_cannot_be_connected_to_is_nothing(void **state) {
  MigDriver *driver = *state;

  assert_null(driver->ops->open(driver, "gate:///away", 1000, NULL, NULL, NULL));
  assert_int_equal(count_late(driver, 100000), 0);
}

int main(void) {
  Tests tests = {0};

  TESTS_ADD_ROWS(&tests, call_is_late, rows);
  tests_add(&tests, "many are told, oldest first", many_are_told_oldest_first, NULL);
  tests_add(&tests, "what cannot be connected to is nothing", what_cannot_be_connected_to_is_nothing, NULL);
  for (size_t i = 0; i < tests.count; i++) {
    tests.list[i].setup_func = setup;
    tests.list[i].teardown_func = teardown;
  }
  return tests_run(&tests, "callwatch");
}
