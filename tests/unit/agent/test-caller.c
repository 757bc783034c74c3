/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Who asked: as the kernel says it, and as a record keeps it. */
#include "agent/job/caller.h"
#include "tests/unit/core/rows.h"

#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

static void a_process_is_seen_by_its_name(void **state) {
  const VarlinkPeer peer = {.uid = 12, .gid = 34, .pid = getpid()};
  g_autoptr(Caller) caller = NULL;
  g_autofree char *text = NULL;

  assert_int_equal(prctl(PR_SET_NAME, "a\nb\033[2J"), 0);
  caller = caller_new(&peer);
  assert_int_equal(caller->uid, 12);
  assert_int_equal(caller->gid, 34);
  assert_int_equal(caller->pid, getpid());
  assert_string_equal(caller->comm, "a b [2J");
  text = caller_describe(caller);
  assert_true(g_str_has_prefix(text, "uid 12 (pid "));
  assert_true(g_str_has_suffix(text, ", a b [2J)"));
}

static void a_process_that_has_ended_is_a_pid(void **state) {
  pid_t pid = fork();
  VarlinkPeer peer = {.pid = pid};
  g_autoptr(Caller) caller = NULL, outside = NULL;
  g_autofree char *text = NULL, *expected = g_strdup_printf("uid 0 (pid %d)", (int)pid);

  if (pid == 0)
    _exit(0);
  assert_int_equal(waitpid(pid, NULL, 0), pid);
  caller = caller_new(&peer);
  assert_null(caller->unit);
  assert_null(caller->comm);
  text = caller_describe(caller);
  assert_string_equal(text, expected);
  /* Of another namespace: not ourselves. */
  peer.pid = 0;
  outside = caller_new(&peer);
  assert_null(outside->unit);
  assert_null(outside->comm);
}

static const struct Record {
  const char *name;
  const char *json;
  bool good;
} records[] = {
    {"all of it", "{\"uid\":4294967295,\"gid\":0,\"pid\":2147483647,\"unit\":\"x.service\",\"comm\":\"y\"}",
     true},
    {"no names", "{\"uid\":0,\"gid\":0,\"pid\":1}", true},
    {"nothing", "{}", false},
    {"no object", "[]", false},
    {"a user below 0", "{\"uid\":-1,\"gid\":0,\"pid\":1}", false},
    {"a user beyond all", "{\"uid\":4294967296,\"gid\":0,\"pid\":1}", false},
    {"a pid that is text", "{\"uid\":0,\"gid\":0,\"pid\":\"1\"}", false},
};

static void is_read_back(void **state) {
  const struct Record *row = *state;
  json_t *json = json_loads(row->json, 0, NULL), *again;
  g_autoptr(Caller) caller = caller_from_json(json), copy = caller_copy(caller);

  assert_int_equal(caller != NULL, row->good);
  assert_int_equal(copy != NULL, row->good);
  if (copy) {
    again = caller_to_json(copy);
    assert_true(json_equal(json, again));
    json_decref(again);
  }
  json_decref(json);
}

int main(void) {
  Tests tests = {0};

  tests_add(&tests, "a process is seen by its name", a_process_is_seen_by_its_name, NULL);
  tests_add(&tests, "a process that has ended is a pid", a_process_that_has_ended_is_a_pid, NULL);
  TESTS_ADD_ROWS(&tests, is_read_back, records);
  return tests_run(&tests, "caller");
}
