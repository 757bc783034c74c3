/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* What the next start of domains would change: Evaluate, and the count in GetNode. */
#include "tests/blackbox/harness.h"

#include <signal.h>

#define XML(vcpus, bridge, title)                                                                            \
  "<domain type='kvm'><name>vm1</name><title>" title "</title><memory unit='MiB'>16</memory>"                \
  "<os><type arch='x86_64'>hvm</type></os><vcpu current='" vcpus                                             \
  "'>4</vcpu><devices><interface type='bridge'>"                                                             \
  "<mac address='52:54:00:00:00:01'/><source bridge='" bridge                                                \
  "'/></interface><graphics type='vnc' port='" vcpus "'/></devices></domain>"

static void set_definitions(Bb *bb, const char *domain, const char *xml, const char *next_xml) {
  bb_set_domain(bb, domain, "xml", json_string(xml));
  bb_set_domain(bb, domain, "next_xml", json_string(next_xml));
}

/* The member of an array whose member `path` is `text`. */
static json_t *pick(json_t *array, const char *path, const char *text) {
  json_t *item;
  size_t i;

  json_array_foreach (array, i, item)
    if (g_strcmp0(text_of(item, path), text) == 0)
      return item;
  fail_msg("no %s \"%s\"", path, text);
  return NULL;
}

static json_t *evaluate(Client *client, const char *domain) {
  json_t *reply = client_call(client, "Evaluate", json_pack("{ss}", "domain", domain));
  json_t *domains = json_object_get(reply, "domains");

  assert_int_equal(json_array_size(domains), 1);
  return json_array_get(domains, 0);
}

static json_t *count_of(Client *client) {
  return json_object_get(client_call(client, "GetNode", NULL), "pending_changes");
}

/* Waits until so many domains have changes with that remedy. */
static json_t *await_count(Client *client, const char *remedy, json_int_t n) {
  gint64 until = g_get_monotonic_time() + BB_PATIENCE_MS * 1000;
  json_t *count;

  for (;;) {
    count = count_of(client);
    if (count && number_of(count, remedy) == n)
      return count;
    if (g_get_monotonic_time() > until)
      fail_msg("%s is %d", remedy, count ? (int)number_of(count, remedy) : -1);
    g_usleep(20 * 1000);
  }
}

static void changes_are_reported_with_their_remedy(void **state) {
  Bb *bb = *state;
  json_t *answer, *change;
  Client *client;

  set_definitions(bb, "vm1", XML("2", "br0", "a"), XML("3", "br1", "a"));
  bb_start(bb);
  client = bb_connect(bb);
  answer = evaluate(client, "vm1");
  assert_text(answer, "domain.name", "vm1");
  assert_true(json_is_true(member_of(answer, "running")));
  assert_true(json_is_true(member_of(answer, "persistent")));
  assert_int_equal(number_of(answer, "changes_total"), 3);
  change = pick(json_object_get(answer, "changes"), "code", "INTERFACE_MOVED");
  assert_text(change, "item", "interface 52:54:00:00:00:01");
  assert_text(change, "remedy", "hotplug");
  assert_true(json_is_true(member_of(change, "by_migration")));
  assert_text(change, "live", "source bridge='br0'");
  assert_text(change, "next", "source bridge='br1'");
  assert_non_null(strstr(text_of(change, "message"), "virsh update-device --live"));
  change = pick(json_object_get(answer, "changes"), "code", "VCPUS");
  assert_text(change, "item", "");
  assert_false(json_is_true(member_of(change, "by_migration")));
  change = pick(json_object_get(answer, "changes"), "code", "GRAPHICS");
  assert_text(change, "remedy", "migration");
  assert_true(json_is_true(member_of(change, "by_migration")));
}

static void without_a_domain_all_running_ones_are_reported(void **state) {
  Bb *bb = *state;
  json_t *domains;
  Client *client;

  set_definitions(bb, "vm1", XML("2", "br0", "a"), XML("2", "br0", "b"));
  bb_set_domain(bb, "vm3", "state", json_string("inactive"));
  bb_start(bb);
  client = bb_connect(bb);
  domains = json_object_get(client_call(client, "Evaluate", NULL), "domains");
  assert_int_equal(json_array_size(domains), 3);
  assert_int_equal(number_of(pick(domains, "domain.name", "vm1"), "changes_total"), 1);
  assert_int_equal(number_of(pick(domains, "domain.name", "vm2"), "changes_total"), 0);
}

static void a_domain_that_is_off_or_transient_has_no_changes(void **state) {
  Bb *bb = *state;
  Client *client;

  set_definitions(bb, "vm1", XML("2", "br0", "a"), XML("2", "br0", "b"));
  set_definitions(bb, "vm2", XML("2", "br0", "a"), XML("2", "br0", "b"));
  bb_set_domain(bb, "vm1", "state", json_string("inactive"));
  bb_set_domain(bb, "vm2", "persistent", json_false());
  bb_start(bb);
  client = bb_connect(bb);
  assert_true(json_is_false(member_of(evaluate(client, "vm1"), "running")));
  assert_int_equal(number_of(evaluate(client, "vm1"), "changes_total"), 0);
  assert_true(json_is_false(member_of(evaluate(client, "vm2"), "persistent")));
  assert_int_equal(number_of(evaluate(client, "vm2"), "changes_total"), 0);
}

static void a_failed_query_is_a_named_error(void **state) {
  Bb *bb = *state;
  Client *client;

  bb_configure(bb, "ConnectTimeout=1s\n");
  bb_start(bb);
  client = bb_connect(bb);
  assert_text(client_refused(client, "Evaluate", json_pack("{ss}", "domain", "nobody"), "NoSuchDomain"),
              "domain", "nobody");
  bb_set_call(bb, "definitions", json_pack("{sb}", "hang", 1));
  client_refused(client, "Evaluate", json_pack("{ss}", "domain", "vm1"), "HypervisorUnavailable");
}

static void an_unreadable_domain_does_not_hide_the_others(void **state) {
  Bb *bb = *state;
  json_t *domains;
  Client *client;

  set_definitions(bb, "vm1", XML("2", "br0", "a"), XML("2", "br0", "b"));
  set_definitions(bb, "vm2", "<domain>", "<domain>");
  bb_start(bb);
  client = bb_connect(bb);
  domains = json_object_get(client_call(client, "Evaluate", NULL), "domains");
  assert_int_equal(json_array_size(domains), 4);
  assert_non_null(strstr(text_of(pick(domains, "domain.name", "vm2"), "error"), "cannot parse"));
  assert_int_equal(number_of(pick(domains, "domain.name", "vm1"), "changes_total"), 1);
  assert_int_equal(number_of(count_of(client), "unread"), 1);
}

static void a_node_counts_them_and_follows_events(void **state) {
  Bb *bb = *state;
  json_t *count;
  Client *client;

  set_definitions(bb, "vm1", XML("2", "br0", "a"), XML("3", "br1", "a"));
  bb_configure(bb, "EvaluateInterval=0\n");
  bb_start(bb);
  client = bb_connect(bb);
  count = await_count(client, "hotplug", 1);
  assert_int_equal(number_of(count, "domains"), 4);
  assert_int_equal(number_of(count, "migration"), 1);
  assert_int_equal(number_of(count, "restart"), 0);
  assert_true(number_of(count, "seen_usec_realtime") > 0);

  set_definitions(bb, "vm2", XML("2", "br0", "a"), XML("2", "br0", "b"));
  bb_publish(bb);
  count = await_count(client, "hotplug", 2);
  assert_int_equal(number_of(count, "domains"), 4);
  set_definitions(bb, "vm2", XML("2", "br0", "b"), XML("2", "br0", "b"));
  bb_publish(bb);
  await_count(client, "hotplug", 1);
}

static void changes_without_an_event_are_counted_eventually(void **state) {
  Bb *bb = *state;
  Client *client;

  set_definitions(bb, "vm1", XML("2", "br0", "a"), XML("3", "br0", "a"));
  bb_set_call(bb, "events", json_pack("{sb}", "drop", 1));
  bb_configure(bb, "EvaluateInterval=300ms\n");
  bb_start(bb);
  client = bb_connect(bb);
  await_count(client, "hotplug", 1);
  set_definitions(bb, "vm1", XML("2", "br0", "a"), XML("2", "br0", "a"));
  bb_publish(bb);
  await_count(client, "hotplug", 0);
}

static void an_evaluated_domain_is_counted_too(void **state) {
  Bb *bb = *state;
  Client *client;

  set_definitions(bb, "vm1", XML("2", "br0", "a"), XML("3", "br0", "a"));
  bb_set_call(bb, "events", json_pack("{sb}", "drop", 1));
  bb_configure(bb, "EvaluateInterval=0\n");
  bb_start(bb);
  client = bb_connect(bb);
  await_count(client, "hotplug", 1);
  set_definitions(bb, "vm1", XML("2", "br0", "a"), XML("2", "br0", "a"));
  bb_publish(bb);
  evaluate(client, "vm1");
  assert_int_equal(number_of(count_of(client), "hotplug"), 0);
}

static void domains_that_stop_or_leave_no_longer_count(void **state) {
  Bb *bb = *state;
  json_t *job;
  Client *client;

  set_definitions(bb, "vm1", XML("2", "br0", "a"), XML("3", "br0", "a"));
  bb_configure(bb, "EvaluateInterval=0\n");
  bb_start(bb);
  client = bb_connect(bb);
  await_count(client, "hotplug", 1);
  job = client_start(client, "vm1", NULL);
  bb_await_phase(bb, text_of(job, "id"), "succeeded");
  await_count(client, "hotplug", 0);
  await_count(client, "domains", 3);
  bb_set_domain(bb, "vm2", "state", json_string("inactive"));
  bb_publish(bb);
  await_count(client, "domains", 2);
}

static void a_node_answers_while_libvirtd_hangs(void **state) {
  Bb *bb = *state;
  Client *client;

  set_definitions(bb, "vm1", XML("2", "br0", "a"), XML("3", "br0", "a"));
  bb_configure(bb, "EvaluateInterval=100ms\nConnectTimeout=10min\n");
  bb_start(bb);
  client = bb_connect(bb);
  await_count(client, "hotplug", 1);
  bb_set_call(bb, "definitions", json_pack("{sb}", "hang", 1));
  bb_set_call(bb, "list_active", json_pack("{sb}", "hang", 1));
  bb_publish(bb);
  for (int i = 0; i < 20; i++) {
    assert_int_equal(number_of(count_of(client), "hotplug"), 1);
    g_usleep(20 * 1000);
  }
}

int main(void) {
  Tests tests = {0};

  TESTS_ADD(&tests, changes_are_reported_with_their_remedy);
  TESTS_ADD(&tests, without_a_domain_all_running_ones_are_reported);
  TESTS_ADD(&tests, a_domain_that_is_off_or_transient_has_no_changes);
  TESTS_ADD(&tests, a_failed_query_is_a_named_error);
  TESTS_ADD(&tests, an_unreadable_domain_does_not_hide_the_others);
  TESTS_ADD(&tests, a_node_counts_them_and_follows_events);
  TESTS_ADD(&tests, changes_without_an_event_are_counted_eventually);
  TESTS_ADD(&tests, an_evaluated_domain_is_counted_too);
  TESTS_ADD(&tests, domains_that_stop_or_leave_no_longer_count);
  TESTS_ADD(&tests, a_node_answers_while_libvirtd_hangs);
  return bb_run(&tests, "evaluate");
}
