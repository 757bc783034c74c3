/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* SIGHUP: the new configuration applies at once and as a whole, or the old one stays and the log says why. */
#include "tests/blackbox/harness.h"

#include <glib/gstdio.h>
#include <signal.h>

#define MIB (INT64_C(1) << 20)

static void await_log(Bb *bb, const char *text) {
  gint64 until = g_get_monotonic_time() + BB_PATIENCE_MS * 1000;

  for (;;) {
    g_autofree char *log = NULL;

    assert_true(g_file_get_contents(bb->log, &log, NULL, NULL));
    if (strstr(log, text))
      return;
    if (g_get_monotonic_time() > until)
      fail_msg("the log does not say: %s", text);
    g_usleep(10000);
  }
}

static void reload(Bb *bb, const char *added, const char *said) {
  bb_configure(bb, added);
  assert_int_equal(kill(bb->pid, SIGHUP), 0);
  await_log(bb, said);
}

static Client *begin(Bb *bb, const char *config) {
  bb_configure(bb, config);
  bb_start(bb);
  bb_link_slow(bb);
  return bb_connect(bb);
}

static void limits_apply_at_once(void **state) {
  Bb *bb = *state;
  Client *client = begin(bb, "MaxOutgoing=1\n");
  json_t *second;

  bb_await_phase(bb, text_of(client_start(client, "vm1", NULL), "id"), "migrating");
  second = client_start(client, "vm2", NULL);
  assert_text(second, "pending.reason", "OUTGOING_LIMIT");
  reload(bb, "MaxOutgoing=2\n", "at most 2 migrations at a time");
  bb_await_phase(bb, text_of(second, "id"), "migrating");
  /* The old connection keeps working. */
  assert_int_equal(number_of(client_call(client, "GetNode", NULL), "max_outgoing"), 2);
}

static void targets_and_policies_apply_at_once(void **state) {
  Bb *bb = *state;
  Client *client = begin(bb, "MaxOutgoing=1\n");
  g_autofree char *uri = bb_target(bb, "b");
  g_autofree char *sections = g_strdup_printf("[Target b]\nLibvirtURI=%s\n[Policy gold]\nMatch=name=vm1\n"
                                              "MaxDowntime=77ms\n",
                                              uri);
  json_t *first = client_start(client, "vm2", NULL), *job;

  client_refused(client, "Start", json_pack("{ss ss}", "domain", "vm1", "target", "b"), "NoSuchTarget");
  reload(bb, sections, "1 targets, 1 policies");
  job = json_object_get(client_call(client, "Start", json_pack("{ss ss}", "domain", "vm1", "target", "b")),
                        "job");
  assert_text(job, "target.libvirt_uri", uri);
  assert_text(job, "policy_matched", "gold");
  assert_int_equal(number_of(job, "policy.max_downtime_ms"), 77);
  /* Accepted jobs keep what they had. */
  reload(bb, "[Policy]\nMaxDowntime=55ms\n[Agent]\nMaxOutgoing=5\n", "at most 5 migrations at a time");
  assert_int_equal(number_of(client_get(client, text_of(first, "id")), "policy.max_downtime_ms"), 300);
}

static const struct Bad {
  const char *name;
  const char *line;
  const char *said;
} bads[] = {
    {"an unknown key", "MaxOutgoin=4\n", ": unknown key MaxOutgoin= in [Agent]"},
    {"an invalid value", "MaxOutgoing=many\n",
     ": MaxOutgoing= takes a whole number from 1 to 1000, not \"many\""},
    {"an unknown section", "[Agnet]\n", ": unknown section [Agnet]"},
    {"goals that exclude each other", "[Policy x]\nAllowPostCopy=yes\nTunnelled=yes\n",
     ": [Policy x]: post-copy requests pages"},
};

static unsigned lines_of(const char *path) {
  g_autofree char *text = NULL;
  unsigned n = 1;

  assert_true(g_file_get_contents(path, &text, NULL, NULL));
  for (const char *at = text; (at = strchr(at, '\n')); at++)
    n++;
  return n;
}

/* Not even its good parts apply. */
static void a_bad_file_keeps_the_old_one(void **state) {
  Bb *bb = *state;
  const struct Bad *row = bb->row;
  Client *client = begin(bb, "MaxOutgoing=3\n");
  g_autofree char *where = g_strdup_printf("%s:%u%s", bb->config, lines_of(bb->config) + 1, row->said);
  g_autofree char *text = g_strconcat("MaxOutgoing=7\n", row->line, NULL);
  json_t *node;

  reload(bb, text, "keeping all of the old configuration");
  await_log(bb, where);
  node = client_call(client, "GetNode", NULL);
  assert_int_equal(number_of(node, "max_outgoing"), 3);
  assert_int_equal(json_array_size(member_of(node, "warnings")), 0);
}

static void an_unreadable_file_keeps_the_old_one(void **state) {
  Bb *bb = *state;
  Client *client = begin(bb, "MaxOutgoing=3\n");

  assert_int_equal(g_unlink(bb->config), 0);
  assert_int_equal(kill(bb->pid, SIGHUP), 0);
  await_log(bb, "keeping the old configuration: ");
  assert_int_equal(number_of(client_call(client, "GetNode", NULL), "max_outgoing"), 3);
  /* Once it is good again, it applies. */
  reload(bb, "[Agent]\nMaxOutgoing=4\n", "at most 4 migrations at a time");
  assert_int_equal(number_of(client_call(client, "GetNode", NULL), "max_outgoing"), 4);
}

static void connect_timeout_waits_for_a_restart(void **state) {
  Bb *bb = *state;
  Client *client = begin(bb, "");

  reload(bb, "ConnectTimeout=3s\n", "the new ConnectTimeout= takes effect when the agent restarts");
  assert_non_null(client_call(client, "GetNode", NULL));
}

static json_int_t limit_of(Bb *bb, const char *domain) {
  json_t *job = json_object_get(bb_truth(bb, domain), "job");

  return json_integer_value(json_object_get(job, "bandwidth")) / MIB;
}

static void await_limit(Bb *bb, const char *domain, json_int_t mib) {
  gint64 until = g_get_monotonic_time() + BB_PATIENCE_MS * 1000;

  while (limit_of(bb, domain) != mib) {
    if (g_get_monotonic_time() > until)
      fail_msg("%s's limit is %d MiB/s, and not %d", domain, (int)limit_of(bb, domain), (int)mib);
    g_usleep(10000);
  }
}

static bool has_no_share(json_t *job, gconstpointer data) {
  return !member_of(job, "bandwidth_share_bytes_per_s");
}

static void running_jobs_share_a_bandwidth_limit_that_comes_and_goes(void **state) {
  Bb *bb = *state;
  Client *client = begin(bb, "MaxOutgoing=2\n");
  json_t *first = client_start(client, "vm1", json_pack("{sI}", "bandwidth_bytes_per_s", 20 * MIB));
  json_t *second = client_start(client, "vm2", NULL);

  bb_await(bb, text_of(first, "id"), bb_has_numbers, NULL);
  bb_await(bb, text_of(second, "id"), bb_has_numbers, NULL);
  assert_int_equal(limit_of(bb, "vm1"), 20);
  assert_int_equal(limit_of(bb, "vm2"), 0);
  reload(bb, "MaxBandwidth=30M\n", "configuration reloaded");
  await_limit(bb, "vm1", 15);
  await_limit(bb, "vm2", 15);
  reload(bb, "MaxBandwidth=64M\n", "configuration reloaded");
  await_limit(bb, "vm1", 20);
  await_limit(bb, "vm2", 44);
  reload(bb, "MaxBandwidth=0\n", "configuration reloaded");
  await_limit(bb, "vm2", 0);
  assert_int_equal(limit_of(bb, "vm1"), 20);
  bb_await(bb, text_of(second, "id"), has_no_share, NULL); /* once libvirt has taken it */
  bb_link_fast(bb);
  bb_await_phase(bb, text_of(first, "id"), "succeeded");
  bb_await_phase(bb, text_of(second, "id"), "succeeded");
}

int main(void) {
  Tests tests = {0};

  TESTS_ADD(&tests, limits_apply_at_once);
  TESTS_ADD(&tests, targets_and_policies_apply_at_once);
  TESTS_ADD_ROWS(&tests, a_bad_file_keeps_the_old_one, bads);
  TESTS_ADD(&tests, an_unreadable_file_keeps_the_old_one);
  TESTS_ADD(&tests, connect_timeout_waits_for_a_restart);
  TESTS_ADD(&tests, running_jobs_share_a_bandwidth_limit_that_comes_and_goes);
  return bb_run(&tests, "reload");
}
