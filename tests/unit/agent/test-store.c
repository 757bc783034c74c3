/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Records on the disk: whole or not at all, in their order, by one agent at a time. */
#include "agent/job/store.h"

#include "tests/unit/core/rows.h"

#include <fcntl.h>
#include <gio/gio.h>
#include <glib/gstdio.h>
#include <sys/stat.h>
#include <unistd.h>

#define PATIENCE_MS 10000

typedef struct Place {
  char *directory;
  GMainContext *context;
  Store *store;
  GString *done; /* what callbacks said, in their order */
} Place;

static int setup(void **state) {
  Place *place = g_new0(Place, 1);

  place->directory = g_dir_make_tmp("store-XXXXXX", NULL);
  assert_non_null(place->directory);
  place->context = g_main_context_new();
  place->store = store_open(place->directory, place->context, NULL);
  assert_non_null(place->store);
  place->done = g_string_new(NULL);
  *state = place;
  return 0;
}

static void remove_tree(const char *path) {
  g_autoptr(GDir) directory = g_file_test(path, G_FILE_TEST_IS_SYMLINK) ? NULL : g_dir_open(path, 0, NULL);

  for (const char *name; directory && (name = g_dir_read_name(directory));) {
    g_autofree char *child = g_build_filename(path, name, NULL);

    remove_tree(child);
  }
  g_remove(path);
}

static int teardown(void **state) {
  Place *place = *state;

  store_close(place->store);
  g_main_context_unref(place->context);
  remove_tree(place->directory);
  g_free(place->directory);
  g_string_free(place->done, TRUE);
  g_free(place);
  return 0;
}

static char *path_of(const Place *place, const char *name) {
  return g_build_filename(place->directory, "jobs", name, NULL);
}

static void put(const Place *place, const char *name, const char *text) {
  g_autofree char *path = path_of(place, name);

  assert_true(g_file_set_contents(path, text, -1, NULL));
}

static bool exists(const Place *place, const char *name) {
  g_autofree char *path = path_of(place, name);

  return g_file_test(path, G_FILE_TEST_EXISTS | G_FILE_TEST_IS_SYMLINK);
}

static void on_done(const char *id, const GError *error, gpointer user_data) {
  Place *place = user_data;

  g_string_append_printf(place->done, "%s%s ", id, error ? "!" : "");
}

static gboolean on_patience_ends(gpointer user_data) {
  fail_msg("what was waited for did not come");
  return G_SOURCE_REMOVE;
}

static void await_done(Place *place, const char *text) {
  GSource *bound = g_timeout_source_new(PATIENCE_MS);

  g_source_set_callback(bound, on_patience_ends, NULL, NULL);
  g_source_attach(bound, place->context);
  while (place->done->len < strlen(text))
    g_main_context_iteration(place->context, TRUE);
  g_source_destroy(bound);
  g_source_unref(bound);
  assert_string_equal(place->done->str, text);
}

static void write_n(Place *place, const char *id, int n) {
  store_write(place->store, id, json_pack("{si}", "n", n), on_done, place);
}

static int read_n(const Place *place, const char *name) {
  g_autofree char *path = path_of(place, name);
  json_t *record = json_load_file(path, 0, NULL);
  int n = (int)json_integer_value(json_object_get(record, "n"));

  assert_non_null(record);
  json_decref(record);
  return n;
}

static void a_record_is_there_whole_when_that_is_said(void **state) {
  Place *place = *state;
  g_autofree char *path = path_of(place, "a.json");
  struct stat st;

  write_n(place, "a", 7);
  await_done(place, "a ");
  assert_int_equal(read_n(place, "a.json"), 7);
  assert_false(exists(place, "a.json.tmp"));
  assert_int_equal(stat(path, &st), 0);
  assert_int_equal(st.st_mode & 07777, 0600);
}

static void outcomes_come_in_the_order_of_the_calls(void **state) {
  Place *place = *state;
  g_autoptr(GString) expected = g_string_new(NULL);

  for (int i = 0; i < 50; i++) {
    g_autofree char *id = g_strdup_printf("j%d", i);

    write_n(place, id, i);
    g_string_append_printf(expected, "%s ", id);
  }
  await_done(place, expected->str);
}

static void a_newer_record_overtakes_and_answers_for_the_older(void **state) {
  Place *place = *state;
  g_autoptr(GString) expected = g_string_new(NULL);

  for (int i = 1; i <= 200; i++) {
    write_n(place, "a", i);
    g_string_append(expected, "a ");
  }
  await_done(place, expected->str);
  assert_int_equal(read_n(place, "a.json"), 200);
}

static void a_removal_after_a_write_removes(void **state) {
  Place *place = *state;

  write_n(place, "a", 1);
  store_remove(place->store, "a");
  write_n(place, "b", 1);
  await_done(place, "a b ");
  assert_false(exists(place, "a.json"));
  assert_true(exists(place, "b.json"));
}

static void a_write_after_a_removal_writes(void **state) {
  Place *place = *state;

  write_n(place, "a", 1);
  store_remove(place->store, "a");
  write_n(place, "a", 2);
  await_done(place, "a a ");
  assert_int_equal(read_n(place, "a.json"), 2);
}

static void a_write_that_fails_leaves_the_record_before(void **state) {
  Place *place = *state;
  g_autofree char *in_the_way = path_of(place, "a.json.tmp");

  write_n(place, "a", 1);
  await_done(place, "a ");
  assert_int_equal(g_mkdir(in_the_way, 0700), 0);
  write_n(place, "a", 2);
  write_n(place, "b", 2);
  await_done(place, "a a! b ");
  assert_int_equal(read_n(place, "a.json"), 1);
  assert_int_equal(g_rmdir(in_the_way), 0);
  write_n(place, "a", 3);
  await_done(place, "a a! b a ");
  assert_int_equal(read_n(place, "a.json"), 3);
}

static void what_was_queued_is_written_before_the_close_returns(void **state) {
  Place *place = *state;

  for (int i = 0; i < 20; i++) {
    g_autofree char *id = g_strdup_printf("j%d", i);

    write_n(place, id, i);
  }
  store_close(place->store);
  place->store = NULL;
  assert_int_equal(read_n(place, "j19.json"), 19);
  assert_int_equal(read_n(place, "j0.json"), 0);
  /* Its outcomes may wait in the loop still. */
  while (g_main_context_iteration(place->context, FALSE))
    ;
}

static void one_agent_at_a_time(void **state) {
  Place *place = *state;
  g_autoptr(GError) error = NULL;
  Store *other = store_open(place->directory, place->context, &error);

  assert_null(other);
  assert_true(g_error_matches(error, G_IO_ERROR, G_IO_ERROR_BUSY));
  store_close(place->store);
  place->store = store_open(place->directory, place->context, NULL);
  assert_non_null(place->store);
}

static void a_directory_that_cannot_be_is_an_error(void **state) {
  g_autoptr(GError) error = NULL;
  g_autoptr(GMainContext) context = g_main_context_new();

  assert_null(store_open("/proc/nowhere/state", context, &error));
  assert_non_null(error);
}

/* --- load --- */

static int compare_texts(gconstpointer a, gconstpointer b) {
  return strcmp(*(const char *const *)a, *(const char *const *)b);
}

static void on_load(const char *id, json_t *record, const GError *error, gpointer user_data) {
  GPtrArray *seen = user_data;

  assert_int_equal(record == NULL, error != NULL);
  g_ptr_array_add(seen, g_strdup_printf("%s%s", id, error ? "!" : ""));
}

/* What was loaded, sorted: the directory has no order. */
static char *load(Place *place) {
  g_autoptr(GPtrArray) seen = g_ptr_array_new_with_free_func(g_free);

  assert_true(store_load(place->store, on_load, seen, NULL));
  g_ptr_array_sort(seen, compare_texts);
  g_ptr_array_add(seen, NULL);
  return g_strjoinv(" ", (char **)seen->pdata);
}

static void records_are_read_back(void **state) {
  Place *place = *state;
  g_autofree char *loaded = NULL;

  write_n(place, "b", 1);
  write_n(place, "a", 2);
  await_done(place, "b a ");
  loaded = load(place);
  assert_string_equal(loaded, "a b");
}

static void an_empty_directory_is_fine(void **state) {
  g_autofree char *loaded = load(*state);

  assert_string_equal(loaded, "");
}

static void what_is_no_record_is_set_aside(void **state) {
  Place *place = *state;
  g_autofree char *huge = path_of(place, "huge.json");
  g_autofree char *loaded = NULL, *again = NULL, *directory = path_of(place, "dir.json");
  g_autofree char *bad_empty = path_of(place, "empty.json.bad");
  static const char *const bad[] = {"torn", "empty", "twice", "trailing", "nul", "huge", "dir"};

  put(place, "good.json", "{\"n\":1}");
  put(place, "torn.json", "{\"n\":1,\"job\":{\"id\":");
  put(place, "empty.json", "");
  put(place, "twice.json", "{\"n\":1,\"n\":2}");
  put(place, "trailing.json", "{\"n\":1}garbage");
  put(place, "nul.json", "{\"n\":\"\\u0000\"}");
  put(place, "huge.json", "{}");
  assert_int_equal(truncate(huge, STORE_READ_BYTES_MAX + 1), 0);
  assert_int_equal(g_mkdir(directory, 0700), 0);
  put(place, "written.json.tmp", "{}");
  put(place, "README", "not ours");
  loaded = load(place);
  assert_string_equal(loaded, "dir! empty! good huge! nul! torn! trailing! twice!");
  for (size_t i = 0; i < LENGTH(bad); i++) {
    g_autofree char *name = g_strconcat(bad[i], ".json", NULL);
    g_autofree char *aside = g_strconcat(bad[i], ".json.bad", NULL);

    if (exists(place, name) || !exists(place, aside))
      fail_msg("%s was not set aside", bad[i]);
  }
  assert_false(exists(place, "written.json.tmp"));
  assert_true(exists(place, "README"));

  /* It is told at each start, until it is moved away or there is a record again. */
  put(place, "torn.json", "{\"n\":1}");
  g_remove(bad_empty);
  store_close(place->store);
  place->store = store_open(place->directory, place->context, NULL);
  again = load(place);
  assert_string_equal(again, "dir! good huge! nul! torn trailing! twice!");
}

static void what_could_not_be_read_is_not_written(void **state) {
  Place *place = *state;
  g_autofree char *fits = g_strnfill(STORE_RECORD_BYTES_MAX - 10, 'x'), *loaded = NULL;
  g_autofree char *too_large = g_strnfill(STORE_RECORD_BYTES_MAX, 'x');

  write_n(place, "a", 1);
  store_write(place->store, "b", json_pack("{ss}", "n", fits), on_done, place);
  await_done(place, "a b ");
  store_write(place->store, "a", json_pack("{ss}", "n", too_large), on_done, place);
  await_done(place, "a b a! ");
  assert_int_equal(read_n(place, "a.json"), 1);
  loaded = load(place);
  assert_string_equal(loaded, "a b");
}

static void a_file_is_found_under_either_name(void **state) {
  Place *place = *state;
  g_autofree char *bad = path_of(place, "a.json.bad"), *good = path_of(place, "a.json");
  g_autofree char *none = store_find_file(place->store, "a"), *first = NULL, *second = NULL, *text = NULL;
  size_t size;

  assert_null(none);
  put(place, "a.json.bad", "torn");
  first = store_find_file(place->store, "a");
  assert_string_equal(first, bad);
  text = store_read_text(place->store, "a", &size);
  assert_string_equal(text, "torn");
  assert_int_equal(size, 4);
  put(place, "a.json", "{}");
  second = store_find_file(place->store, "a");
  assert_string_equal(second, good);
}

static void a_link_is_no_record(void **state) {
  Place *place = *state;
  g_autofree char *path = path_of(place, "link.json");
  g_autofree char *loaded = NULL;

  assert_int_equal(symlink("/etc/passwd", path), 0);
  loaded = load(place);
  assert_string_equal(loaded, "link!");
}

static void a_pipe_is_not_waited_for(void **state) {
  Place *place = *state;
  g_autofree char *path = path_of(place, "pipe.json");
  g_autofree char *loaded = NULL;

  assert_int_equal(mkfifo(path, 0600), 0);
  loaded = load(place);
  assert_string_equal(loaded, "pipe!");
}

#define ADD(function) tests_add(&tests, #function, function, NULL)

int main(void) {
  Tests tests = {0};

  ADD(a_record_is_there_whole_when_that_is_said);
  ADD(outcomes_come_in_the_order_of_the_calls);
  ADD(a_newer_record_overtakes_and_answers_for_the_older);
  ADD(a_removal_after_a_write_removes);
  ADD(a_write_after_a_removal_writes);
  ADD(a_write_that_fails_leaves_the_record_before);
  ADD(what_was_queued_is_written_before_the_close_returns);
  ADD(one_agent_at_a_time);
  ADD(a_directory_that_cannot_be_is_an_error);
  ADD(records_are_read_back);
  ADD(an_empty_directory_is_fine);
  ADD(what_is_no_record_is_set_aside);
  ADD(what_could_not_be_read_is_not_written);
  ADD(a_file_is_found_under_either_name);
  ADD(a_link_is_no_record);
  ADD(a_pipe_is_not_waited_for);
  for (size_t i = 0; i < tests.count; i++) {
    tests.list[i].setup_func = setup;
    tests.list[i].teardown_func = teardown;
  }
  return tests_run(&tests, "store");
}
