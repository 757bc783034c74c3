/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Histories on the disk: in their order, set aside when damaged, swept with their jobs. */
#include "agent/job/historystore.h"

#include "tests/unit/core/rows.h"

#include <fcntl.h>
#include <gio/gio.h>
#include <glib/gstdio.h>
#include <sys/stat.h>
#include <unistd.h>

#define PATIENCE_MS 10000
#define GAP_MS      3000

typedef struct Place {
  char *directory;
  GMainContext *context;
  HistoryStore *store;
  GString *said;    /* what hooks and callbacks said, in their order */
  size_t n_points;  /* of the history that was read last */
  unsigned n_freed; /* user data of reads */
} Place;

static void on_written(const char *id, const GError *error, gpointer user_data) {
  Place *place = user_data;

  g_string_append_printf(place->said, "%s%s ", id, error ? "!" : "");
}

static void open_store(Place *place) {
  const HistoryStoreHooks hooks = {on_written, place};

  place->store = history_store_open(place->directory, place->context, GAP_MS, &hooks, NULL);
  assert_non_null(place->store);
}

static int setup(void **state) {
  Place *place = g_new0(Place, 1);

  place->directory = g_dir_make_tmp("histories-XXXXXX", NULL);
  place->context = g_main_context_new();
  place->said = g_string_new(NULL);
  open_store(place);
  *state = place;
  return 0;
}

static char *path_of(const Place *place, const char *name) {
  return g_build_filename(place->directory, "history", name, NULL);
}

static int teardown(void **state) {
  Place *place = *state;
  g_autofree char *path = path_of(place, NULL);
  g_autoptr(GDir) directory = g_dir_open(path, 0, NULL);

  history_store_close(place->store);
  g_main_context_unref(place->context);
  for (const char *name; directory && (name = g_dir_read_name(directory));) {
    g_autofree char *file = path_of(place, name);

    g_remove(file);
  }
  g_rmdir(path);
  g_rmdir(place->directory);
  g_free(place->directory);
  g_string_free(place->said, TRUE);
  g_free(place);
  return 0;
}

static void put(const Place *place, const char *name, const char *text) {
  g_autofree char *path = path_of(place, name);

  assert_true(g_file_set_contents(path, text, -1, NULL));
}

static bool exists(const Place *place, const char *name) {
  g_autofree char *path = path_of(place, name);

  return g_file_test(path, G_FILE_TEST_EXISTS);
}

static char *text_of_points(const char *id, unsigned n) {
  g_autoptr(History) history = history_new(GAP_MS);
  const MigSample sample = {.iteration = 1};

  for (unsigned i = 1; i <= n; i++)
    history_add(history, &sample, i * 400, MIG_STAGE_PRE_COPY);
  return history_to_text(history, id);
}

static void on_read(const char *id, History *history, const GError *error, gpointer user_data) {
  Place *place = user_data;

  g_string_append_printf(place->said, "%s%s ", id, error ? "?" : history ? "=" : "-");
  if (history)
    history_points(history, &place->n_points);
  history_free(history);
}

static void count_free(gpointer user_data) {
  ((Place *)user_data)->n_freed++;
}

static gboolean on_patience_ends(gpointer user_data) {
  fail_msg("what was waited for did not come");
  return G_SOURCE_REMOVE;
}

static void await_said(Place *place, const char *text) {
  GSource *bound = g_timeout_source_new(PATIENCE_MS);

  g_source_set_callback(bound, on_patience_ends, NULL, NULL);
  g_source_attach(bound, place->context);
  while (place->said->len < strlen(text))
    g_main_context_iteration(place->context, TRUE);
  g_source_destroy(bound);
  g_source_unref(bound);
  assert_string_equal(place->said->str, text);
}

static void read_one(Place *place, const char *id) {
  assert_true(history_store_read(place->store, id, on_read, place, count_free));
}

static void what_was_written_is_read(void **state) {
  Place *place = *state;
  g_autofree char *path = path_of(place, "a.json");
  struct stat st;

  history_store_write(place->store, "a", text_of_points("a", 5), false);
  read_one(place, "a");
  await_said(place, "a a= ");
  assert_int_equal(place->n_points, 5);
  assert_int_equal(stat(path, &st), 0);
  assert_int_equal(st.st_mode & 07777, 0600);
  assert_false(exists(place, "a.json.tmp"));
}

static void what_is_not_there_is_no_error(void **state) {
  Place *place = *state;

  read_one(place, "a");
  await_said(place, "a- ");
}

static void a_newer_one_overtakes(void **state) {
  Place *place = *state;

  for (unsigned i = 1; i <= 200; i++)
    history_store_write(place->store, "a", text_of_points("a", i), i == 200);
  read_one(place, "a");
  while (!strstr(place->said->str, "="))
    g_main_context_iteration(place->context, TRUE);
  assert_int_equal(place->n_points, 200);
}

static void a_removal_takes_what_waits_along(void **state) {
  Place *place = *state;

  put(place, "a.json.bad", "x");
  history_store_write(place->store, "a", text_of_points("a", 5), false);
  history_store_remove(place->store, "a");
  read_one(place, "a");
  while (!strstr(place->said->str, "a-"))
    g_main_context_iteration(place->context, TRUE);
  assert_false(exists(place, "a.json"));
  assert_false(exists(place, "a.json.bad"));
}

static void a_damaged_one_is_set_aside_and_said_once(void **state) {
  Place *place = *state;

  put(place, "a.json", "{\"format\":1,");
  read_one(place, "a");
  read_one(place, "a");
  await_said(place, "a? a- ");
  assert_true(exists(place, "a.json.bad"));
  assert_false(exists(place, "a.json"));
}

static void a_newer_format_stays_where_it_is(void **state) {
  Place *place = *state;

  put(place, "a.json", "{\"format\":9}");
  read_one(place, "a");
  await_said(place, "a? ");
  assert_true(exists(place, "a.json"));
}

static void what_is_no_file_is_set_aside(void **state) {
  Place *place = *state;
  g_autofree char *path = path_of(place, "a.json");
  g_autofree char *bad = path_of(place, "a.json.bad");

  assert_int_equal(g_mkdir(path, 0700), 0);
  read_one(place, "a");
  await_said(place, "a? ");
  assert_true(g_file_test(bad, G_FILE_TEST_IS_DIR));
  g_rmdir(bad);
}

static void a_write_that_fails_says_so_and_leaves_nothing(void **state) {
  Place *place = *state;
  g_autofree char *path = path_of(place, "a.json");

  assert_int_equal(g_mkdir(path, 0700), 0);
  history_store_write(place->store, "a", text_of_points("a", 5), true);
  history_store_write(place->store, "b", text_of_points("b", 5), true);
  await_said(place, "a! b ");
  assert_false(exists(place, "a.json.tmp"));
  g_rmdir(path);
}

static bool is_b(const char *id, gpointer user_data) {
  return strcmp(id, "b") == 0;
}

static void the_sweep_removes_what_belongs_to_no_job(void **state) {
  Place *place = *state;

  put(place, "a.json", "x");
  put(place, "a.json.bad", "x");
  put(place, "b.json", "x");
  put(place, "b.json.bad", "x");
  put(place, "b.json.tmp", "x");
  history_store_sweep(place->store, is_b, NULL);
  assert_false(exists(place, "a.json"));
  assert_false(exists(place, "a.json.bad"));
  assert_true(exists(place, "b.json"));
  assert_true(exists(place, "b.json.bad"));
  assert_false(exists(place, "b.json.tmp"));
}

static void close_waits_for_what_was_queued(void **state) {
  Place *place = *state;
  g_autoptr(History) history = NULL;

  for (unsigned i = 0; i < 50; i++) {
    g_autofree char *id = g_strdup_printf("j%u", i);

    history_store_write(place->store, id, text_of_points(id, 3), true);
  }
  history_store_close(place->store);
  open_store(place);
  history = history_store_load(place->store, "j49", NULL);
  assert_non_null(history);
}

/* The rest of what was asked when the context goes: nobody is called, nothing is lost. */
static void what_is_not_delivered_is_freed(void **state) {
  Place *place = *state;

  for (unsigned i = 0; i < 10; i++)
    read_one(place, "a");
  history_store_close(place->store);
  g_main_context_unref(place->context);
  assert_int_equal(place->n_freed, 10);
  assert_string_equal(place->said->str, "");
  place->context = g_main_context_new();
  open_store(place);
}

/* The thread sits in the opening of a pipe that nobody reads: nothing of what waits goes on. */
static void too_many_reads_are_refused(void **state) {
  Place *place = *state;
  g_autofree char *path = path_of(place, "slow.json.tmp");
  int fd;

  assert_int_equal(mkfifo(path, 0600), 0);
  history_store_write(place->store, "slow", text_of_points("slow", 1), false);
  for (unsigned i = 0; i < HISTORY_READS_MAX; i++)
    read_one(place, "a");
  assert_false(history_store_read(place->store, "a", on_read, place, count_free));
  fd = open(path, O_RDONLY | O_CLOEXEC);
  assert_true(fd >= 0);
  while (place->n_freed < HISTORY_READS_MAX)
    g_main_context_iteration(place->context, TRUE);
  close(fd);
  read_one(place, "a");
}

static void without_a_store_nothing_is_kept_and_nothing_breaks(void **state) {
  history_store_write(NULL, "a", text_of_points("a", 1), true);
  history_store_remove(NULL, "a");
  history_store_sweep(NULL, is_b, NULL);
  history_store_close(NULL);
  assert_null(history_store_load(NULL, "a", NULL));
}

int main(void) {
  Tests tests = {0};

  tests_add(&tests, "what was written is read", what_was_written_is_read, NULL);
  tests_add(&tests, "what is not there is no error", what_is_not_there_is_no_error, NULL);
  tests_add(&tests, "a newer one overtakes", a_newer_one_overtakes, NULL);
  tests_add(&tests, "a removal takes what waits along", a_removal_takes_what_waits_along, NULL);
  tests_add(&tests, "a damaged one is set aside, and said once", a_damaged_one_is_set_aside_and_said_once,
            NULL);
  tests_add(&tests, "a newer format stays where it is", a_newer_format_stays_where_it_is, NULL);
  tests_add(&tests, "what is no file is set aside", what_is_no_file_is_set_aside, NULL);
  tests_add(&tests, "a write that fails says so, and leaves nothing",
            a_write_that_fails_says_so_and_leaves_nothing, NULL);
  tests_add(&tests, "the sweep removes what belongs to no job", the_sweep_removes_what_belongs_to_no_job,
            NULL);
  tests_add(&tests, "close waits for what was queued", close_waits_for_what_was_queued, NULL);
  tests_add(&tests, "what is not delivered is freed", what_is_not_delivered_is_freed, NULL);
  tests_add(&tests, "too many reads are refused", too_many_reads_are_refused, NULL);
  tests_add(&tests, "without a store nothing is kept, and nothing breaks",
            without_a_store_nothing_is_kept_and_nothing_breaks, NULL);
  for (size_t i = 0; i < tests.count; i++) {
    tests.list[i].setup_func = setup;
    tests.list[i].teardown_func = teardown;
  }
  return tests_run(&tests, "histories");
}
