/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The record of a drain: what was asked for is always kept, and what came of it as far as a record may have. */
#include "agent/drain/drain-private.h"

#include "tests/unit/core/rows.h"

static Drains drains;

static Drain *a_drain(DrainState state) {
  Drain *drain = drain_new(&drains);

  drain->by = g_strdup("uid 0 (pid 1)");
  drain->request_key = g_strdup("k");
  drain->digest = g_strdup("d");
  drain->state = state;
  drain_add_target(drain, "b", "qemu+tls://b/system", NULL);
  return drain;
}

/* So many that could not move, each for reasons of so many bytes. */
static json_t *guests(unsigned n, size_t bytes) {
  g_autofree char *text = g_strnfill(bytes, 'x');
  json_t *array = json_array();

  for (unsigned i = 0; i < n; i++)
    json_array_append_new(array,
                          json_pack("{s{ss ss} ss ss s[{ss s[{ss}]}]}", "domain", "name", "web", "uuid",
                                    "e47a3cb2-3cf1-43db-8764-d2f9d88cca43", "state", "cannot_move", "message",
                                    "no room", "refusals", "target", "b", "findings", "seen", text));
  return array;
}

static Drain *read_back(json_t *record) {
  g_autoptr(GError) error = NULL;
  Drain *drain = drain_from_record(&drains, record, &error);

  if (!drain)
    fail_msg("%s", error->message);
  return drain;
}

static void one_that_is_over_keeps_all_that_came_of_it(void **state) {
  Drain *drain = a_drain(DRAIN_FINISHED), *back;
  json_t *record;

  drain->final_guests = guests(3, 100);
  record = drain_to_record(drain);
  back = read_back(record);
  assert_true(json_equal(back->final_guests, drain->final_guests));
  assert_int_equal(back->final_counts[DRAIN_GUEST_CANNOT_MOVE], 3);
  assert_string_equal(back->request_key, "k");
  json_decref(record);
  drain_free(back);
  drain_free(drain);
}

typedef struct Large {
  const char *name;
  unsigned n;
  size_t bytes;
  bool counted; /* guests are kept, if without their reasons */
} Large;

static const Large larges[] = {
    {"too many reasons are left out", 2000, 20000, true},
    {"too many guests are left out", 200000, 10, false},
};

static void too_much_is_cut_down_to_what_can_be_read(void **state) {
  const Large *row = *state;
  Drain *drain = a_drain(DRAIN_FINISHED), *back;
  json_t *record;

  drain->final_guests = guests(row->n, row->bytes);
  record = drain_to_record(drain);
  assert_true(json_dumpb(record, NULL, 0, JSON_COMPACT) <= STORE_RECORD_BYTES_MAX);
  back = read_back(record);
  assert_string_equal(back->request_key, "k");
  assert_string_equal(back->id, drain->id);
  assert_int_equal(back->state, DRAIN_FINISHED);
  assert_int_equal(back->final_counts[DRAIN_GUEST_CANNOT_MOVE], row->counted ? row->n : 0);
  /* Whoever still watches sees all of it. */
  assert_int_equal(json_array_size(drain->final_guests), row->n);
  json_decref(record);
  drain_free(back);
  drain_free(drain);
}

static void the_largest_that_is_under_way_can_be_read(void **state) {
  g_autofree char *uri = g_strnfill(JOB_URI_MAX, '\x01');
  g_autofree char *name = g_strnfill(JOB_NAME_MAX, '\x01');
  Drain *drain = a_drain(DRAIN_CHECKING);
  json_t *record;

  while (drain->targets->len < DRAIN_TARGETS_MAX) {
    uri[0]++; /* no target is there twice */
    drain_add_target(drain, name, uri, uri);
  }
  record = drain_to_record(drain);
  assert_true(json_dumpb(record, NULL, 0, JSON_COMPACT) <= STORE_RECORD_BYTES_MAX / 4);
  json_decref(record);
  drain_free(drain);
}

int main(void) {
  Tests tests = {0};

  tests_add(&tests, "one that is over keeps all that came of it", one_that_is_over_keeps_all_that_came_of_it,
            NULL);
  TESTS_ADD_ROWS(&tests, too_much_is_cut_down_to_what_can_be_read, larges);
  tests_add(&tests, "the largest that is under way can be read", the_largest_that_is_under_way_can_be_read,
            NULL);
  return tests_run(&tests, "drain records");
}
