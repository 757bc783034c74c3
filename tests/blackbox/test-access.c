/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Who may do what, by the credentials of the socket. */
#include "tests/blackbox/harness.h"

#include <grp.h>
#include <pwd.h>
#include <unistd.h>

#define DENIED "PermissionDenied"

static uid_t nobody_uid;
static gid_t nobody_gid, daemon_gid;

typedef struct Row {
  const char *name;
  const char *public_read;
  bool node, jobs; /* what somebody may read */
} Row;

static const Row rows[] = {
    {"nothing is public", "PublicRead=none\n", false, false},
    {"the node is public", "PublicRead=node\n", true, false},
    {"the node is public by default", "", true, false},
    {"everything is public to read", "PublicRead=all\n", true, true},
};

static void expect(Client *client, const char *method, json_t *parameters, bool allowed,
                   const char *otherwise) {
  if (allowed && !otherwise)
    client_call(client, method, parameters);
  else
    client_refused(client, method, parameters, allowed ? otherwise : DENIED);
}

static void anybody_may_read_what_is_public_and_change_nothing(void **state) {
  Bb *bb = *state;
  const Row *row = bb->row;
  Client *somebody;
  json_t *job;

  bb_configure(bb, row->public_read);
  bb_start(bb);
  bb_link_slow(bb);
  job = client_start(bb_connect(bb), "vm1", NULL);
  somebody = bb_connect_as(bb, nobody_uid, nobody_gid, nobody_gid);
  client_call(somebody, "org.varlink.service.GetInfo", NULL);
  expect(somebody, "GetNode", NULL, row->node, NULL);
  expect(somebody, "List", NULL, row->jobs, NULL);
  expect(somebody, "Get", json_pack("{ss}", "job", "vm1"), row->jobs, NULL);
  expect(somebody, "Get", json_pack("{ss}", "job", "vm9"), row->jobs, "NoSuchJob");
  expect(somebody, "Start", bb_start_parameters(bb, "vm2"), false, NULL);
  expect(somebody, "Abort", json_pack("{ss}", "job", "vm1"), false, NULL);
  expect(somebody, "Tune", json_pack("{ss s{}}", "job", "vm1", "policy"), false, NULL);
  /* Nor does it learn whether the call would have been valid. */
  expect(somebody, "Start", json_pack("{ss}", "nonsense", "vm2"), false, NULL);
  if (!row->jobs) {
    g_autofree char *error = NULL;

    client_send(somebody, "Watch", NULL, VARLINK_CALL_MORE);
    client_receive(somebody, &error, NULL);
    assert_non_null(error);
    assert_string_equal(error, DENIED);
  }
  bb_await_phase(bb, text_of(job, "id"), "migrating");
}

static void a_member_of_the_group_may_do_everything(void **state) {
  Bb *bb = *state;
  Client *member;
  json_t *job;

  bb_configure(bb, "Group=daemon\nPublicRead=none\n");
  bb_start(bb);
  member = bb_connect_as(bb, nobody_uid, nobody_gid, daemon_gid);
  client_call(member, "GetNode", NULL);
  job = client_start(member, "vm1", NULL);
  job = bb_await_phase(bb, text_of(job, "id"), "succeeded");
  client_call(member, "List", NULL);
}

static void the_group_counts_as_primary_group_too(void **state) {
  Bb *bb = *state;

  bb_configure(bb, "Group=daemon\n");
  bb_start(bb);
  client_start(bb_connect_as(bb, nobody_uid, daemon_gid, nobody_gid), "vm1", NULL);
}

static void another_group_does_not_count(void **state) {
  Bb *bb = *state;

  bb_configure(bb, "Group=daemon\n");
  bb_start(bb);
  client_refused(bb_connect_as(bb, nobody_uid, nobody_gid, nobody_gid), "Start",
                 bb_start_parameters(bb, "vm1"), DENIED);
}

static void without_such_a_group_only_root_may(void **state) {
  Bb *bb = *state;

  bb_configure(bb, "Group=no-such-group-here\n");
  bb_start(bb);
  client_refused(bb_connect_as(bb, nobody_uid, nobody_gid, daemon_gid), "Start",
                 bb_start_parameters(bb, "vm1"), DENIED);
  client_start(bb_connect(bb), "vm1", NULL);
}

int main(void) {
  Tests tests = {0};
  struct passwd *nobody = getpwnam("nobody");
  struct group *group = getgrnam("daemon");

  if (geteuid() != 0 || !nobody || !group) {
    printf("1..0 # SKIP needs root, the user nobody and the group daemon\n");
    return geteuid() == 0 ? 1 : 77;
  }
  nobody_uid = nobody->pw_uid;
  nobody_gid = nobody->pw_gid;
  daemon_gid = group->gr_gid;
  TESTS_ADD_ROWS(&tests, anybody_may_read_what_is_public_and_change_nothing, rows);
  TESTS_ADD(&tests, a_member_of_the_group_may_do_everything);
  TESTS_ADD(&tests, the_group_counts_as_primary_group_too);
  TESTS_ADD(&tests, another_group_does_not_count);
  TESTS_ADD(&tests, without_such_a_group_only_root_may);
  return bb_run(&tests, "access");
}
