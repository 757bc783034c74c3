/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Who may call what: every method of the interface, for every kind of caller. */
#include "agent/request/access.h"

#include "proto/idl.h"
#include "proto/interface.h"
#include "tests/unit/core/rows.h"

#define GROUP 4242

typedef struct Row {
  const char *name;
  VarlinkPeer peer;
  gid_t group;
  /* May it read the node, read jobs, change things? For PublicRead= none, node and all. */
  bool node[3], jobs[3], change;
} Row;

static const gid_t other_groups[] = {1, 2, 3};
static const gid_t our_groups[] = {1, GROUP, 3};

#define EVER                                                                                                 \
  { true, true, true }
#define NEVER                                                                                                \
  { false, false, false }

static const Row rows[] = {
    {"root", {.uid = 0, .gid = 0}, GROUP, EVER, EVER, true},
    {"root, where there is no such group", {.uid = 0, .gid = 0}, (gid_t)-1, EVER, EVER, true},
    {"somebody", {.uid = 77, .gid = 77}, GROUP, {false, true, true}, {false, false, true}, false},
    {"somebody in other groups",
     {.uid = 77, .gid = 77, .groups = other_groups, .n_groups = 3},
     GROUP,
     {false, true, true},
     {false, false, true},
     false},
    {"a member of the group",
     {.uid = 77, .gid = 77, .groups = our_groups, .n_groups = 3},
     GROUP,
     EVER,
     EVER,
     true},
    {"one whose first group it is", {.uid = 77, .gid = GROUP}, GROUP, EVER, EVER, true},
    {"a group of -1 where there is no such group",
     {.uid = 77, .gid = (gid_t)-1},
     (gid_t)-1,
     {false, true, true},
     {false, false, true},
     false},
};

static void test_row(void **state) {
  const Row *row = *state;
  g_autoptr(VarlinkInterface) interface = varlink_interface_parse(io_handoffd_Agent_varlink, NULL);

  assert_non_null(interface);
  for (size_t i = 0; i < varlink_interface_get_n_members(interface); i++) {
    const VarlinkMember *member = varlink_interface_get_member(interface, i);
    g_autofree char *method = g_strconcat("io.handoffd.Agent.", member->name, NULL);

    if (member->kind != VARLINK_MEMBER_METHOD)
      continue;
    for (int read = 0; read < 3; read++) {
      bool expected = row->change;

      switch (access_classify(method)) {
      case ACCESS_NODE:
        expected = row->node[read];
        break;
      case ACCESS_READ:
        expected = row->jobs[read];
        break;
      case ACCESS_CHANGE:
        break;
      }
      if (access_allowed(&row->peer, method, (ConfigPublicRead)read, row->group) != expected)
        fail_msg("%s, PublicRead %d", method, read);
    }
  }
  assert_true(access_allowed(&row->peer, "org.varlink.service.GetInfo", CONFIG_PUBLIC_READ_NONE, row->group));
}

/* What is new is closed until somebody thought about it. */
static void each_method_has_its_class(void **state) {
  static const struct {
    const char *method;
    AccessClass access;
  } classes[] = {
      {"Start", ACCESS_CHANGE},    {"Get", ACCESS_READ},        {"List", ACCESS_READ},
      {"Watch", ACCESS_READ},      {"Abort", ACCESS_CHANGE},    {"Complete", ACCESS_CHANGE},
      {"Settle", ACCESS_CHANGE},   {"Tune", ACCESS_CHANGE},     {"Check", ACCESS_READ},
      {"Forecast", ACCESS_READ},   {"GetPolicy", ACCESS_READ},  {"Prepare", ACCESS_CHANGE},
      {"Release", ACCESS_CHANGE},  {"Drain", ACCESS_CHANGE},    {"AbortDrain", ACCESS_CHANGE},
      {"WatchDrain", ACCESS_READ}, {"Cordon", ACCESS_CHANGE},   {"Uncordon", ACCESS_CHANGE},
      {"GetNode", ACCESS_NODE},    {"GetMetrics", ACCESS_NODE}, {"GetHistory", ACCESS_READ},
      {"Evaluate", ACCESS_READ},
  };
  g_autoptr(VarlinkInterface) interface = varlink_interface_parse(io_handoffd_Agent_varlink, NULL);
  size_t found = 0;

  for (size_t i = 0; i < LENGTH(classes); i++) {
    g_autofree char *method = g_strconcat("io.handoffd.Agent.", classes[i].method, NULL);

    if (!varlink_interface_find(interface, VARLINK_MEMBER_METHOD, classes[i].method))
      fail_msg("the interface has no %s", classes[i].method);
    assert_int_equal(access_classify(method), classes[i].access);
  }
  for (size_t i = 0; i < varlink_interface_get_n_members(interface); i++)
    found += varlink_interface_get_member(interface, i)->kind == VARLINK_MEMBER_METHOD;
  assert_int_equal(found, LENGTH(classes));
  assert_int_equal(access_classify("io.handoffd.Agent.Later"), ACCESS_CHANGE);
  assert_int_equal(access_classify("Get"), ACCESS_CHANGE);
}

static void a_name_that_only_begins_like_the_service_is_not_open(void **state) {
  const VarlinkPeer somebody = {.uid = 77, .gid = 77};

  assert_false(access_allowed(&somebody, "org.varlink.services.Get", CONFIG_PUBLIC_READ_ALL, GROUP));
  assert_false(access_allowed(&somebody, "org.varlink.service", CONFIG_PUBLIC_READ_ALL, GROUP));
}

int main(void) {
  Tests tests = {0};

  TESTS_ADD_ROWS(&tests, test_row, rows);
  tests_add(&tests, "each method has its class", each_method_has_its_class, NULL);
  tests_add(&tests, "a name that only begins like the service is not open",
            a_name_that_only_begins_like_the_service_is_not_open, NULL);
  return tests_run(&tests, "access");
}
