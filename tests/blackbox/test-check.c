/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Check, and the checks at the beginning of each job: everything that blocks a migration, all at once. */
#include "tests/blackbox/harness.h"

#include <pwd.h>
#include <string.h>

#define HEAD                                                                                                 \
  "<domain type='kvm'><name>vm1</name><uuid>00000000-0000-4000-8000-00000000000a</uuid>"                     \
  "<memory unit='MiB'>16</memory><vcpu>1</vcpu><os><type arch='x86_64' machine='pc-q35-7.2'>hvm</type></os>"
#define BRIDGE(name)                                                                                         \
  "<interface type='bridge'><mac address='52:54:00:00:00:01'/><source bridge='" name "'/></interface>"
#define HOSTDEV                                                                                              \
  "<hostdev mode='subsystem' type='pci' managed='yes'><source><address domain='0x0000' bus='0x3b' "          \
  "slot='0x00' function='0x1'/></source></hostdev>"
#define VIRTIOFS                                                                                             \
  "<filesystem type='mount'><driver type='virtiofs'/><source dir='/srv'/><target "                           \
  "dir='srv'/></filesystem>"
#define LOCAL_DISK                                                                                           \
  "<disk type='file' device='disk'><driver name='qemu' type='raw'/><source file='/d/a.img'/>"                \
  "<target dev='vda' bus='virtio'/></disk>"

static void set_devices(Bb *bb, const char *devices) {
  g_autofree char *xml = g_strconcat(HEAD "<devices><emulator>/usr/bin/qemu-system-x86_64</emulator>",
                                     devices, "</devices></domain>", NULL);

  bb_set_domain(bb, "vm1", "xml", json_string(xml));
}

static void set_local_disk(Bb *bb) {
  const json_int_t bytes = 1 << 30;

  set_devices(bb, LOCAL_DISK);
  bb_set_domain(bb, "vm1", "disks", json_pack("{s{sI}}", "vda", "capacity_bytes", bytes));
  bb_set_host(bb, "b", "volumes", json_pack("{sI}", "/d/a.img", bytes));
}

static json_t *parameters_for(Bb *bb, const char *domain, json_t *policy) {
  g_autofree char *target = bb_target(bb, "b");

  return json_pack("{ss ss so*}", "domain", domain, "target", target, "policy", policy);
}

static json_t *check(Client *client, const char *domain) {
  return client_call(client, "Check", parameters_for(client->bb, domain, NULL));
}

static json_t *finding_of(json_t *findings, const char *code) {
  json_t *finding;
  size_t i;

  json_array_foreach (findings, i, finding)
    if (strcmp(text_of(finding, "code"), code) == 0)
      return finding;
  return NULL;
}

/* "A B | C": blockers, and warnings after the bar. */
static void assert_codes(json_t *findings, const char *expected) {
  g_autoptr(GString) codes = g_string_new(NULL);
  bool blocks = true;
  json_t *finding;
  size_t i;

  json_array_foreach (findings, i, finding) {
    bool now = json_is_true(json_object_get(finding, "blocks"));

    assert_true(blocks || !now);
    if (codes->len > 0)
      g_string_append_c(codes, ' ');
    if (blocks && !now)
      g_string_append(codes, "| ");
    blocks = now;
    g_string_append(codes, text_of(finding, "code"));
    assert_true(strlen(text_of(finding, "seen")) > 0);
    assert_true(strlen(text_of(finding, "remedy")) > 0);
  }
  assert_string_equal(codes->str, expected);
}

static void assert_answer(json_t *answer, bool can_move, const char *codes) {
  assert_codes(json_object_get(answer, "findings"), codes);
  assert_int_equal(json_is_true(json_object_get(answer, "can_move")), can_move);
}

/* --- the method --- */

static void a_domain_that_can_migrate_has_no_findings(void **state) {
  Bb *bb = *state;
  Client *client;

  bb_start(bb);
  client = bb_connect(bb);
  assert_answer(check(client, "vm1"), true, "");
  assert_int_equal(json_array_size(json_object_get(client_call(client, "List", NULL), "jobs")), 0);
}

static void six_blockers_are_six_codes_in_one_answer(void **state) {
  Bb *bb = *state;
  json_t *answer, *finding;

  set_devices(bb, HOSTDEV VIRTIOFS LOCAL_DISK BRIDGE("br7"));
  bb_set_domain(bb, "vm1", "snapshots", json_integer(2));
  bb_set_host(bb, "b", "interfaces", json_array());
  bb_set_host(bb, "b", "free_memory_bytes", json_integer(1 << 20));
  bb_start(bb);
  answer = check(bb_connect(bb), "vm1");
  assert_answer(answer, false, "SNAPSHOTS HOSTDEV_PCI VIRTIOFS DISK_LOCAL TARGET_MEMORY INTERFACE_MISSING");
  finding = finding_of(json_object_get(answer, "findings"), "TARGET_MEMORY");
  assert_true(json_is_true(json_object_get(finding, "transient")));
  finding = finding_of(json_object_get(answer, "findings"), "INTERFACE_MISSING");
  assert_false(json_is_true(json_object_get(finding, "transient")));
  assert_non_null(strstr(text_of(finding, "seen"), "br7"));
}

static void a_warning_does_not_block(void **state) {
  Bb *bb = *state;

  bb_set_domain(bb, "vm1", "state", json_string("paused"));
  bb_start(bb);
  assert_answer(check(bb_connect(bb), "vm1"), true, "| DOMAIN_PAUSED");
}

static void goals_count_and_conflicts_between_them_are_findings(void **state) {
  Bb *bb = *state;
  Client *client;

  set_local_disk(bb);
  bb_start(bb);
  client = bb_connect(bb);
  assert_answer(check(client, "vm1"), false, "DISK_LOCAL");
  assert_answer(
      client_call(client, "Check", parameters_for(bb, "vm1", json_pack("{ss}", "copy_disks", "incremental"))),
      true, "");
  assert_answer(
      client_call(client, "Check",
                  parameters_for(bb, "vm1", json_pack("{sb sb}", "allow_post_copy", 1, "tunnelled", 1))),
      false, "DISK_LOCAL POST_COPY_TUNNELLED");
}

static void a_policy_that_matches_the_domain_counts(void **state) {
  Bb *bb = *state;

  bb_configure(bb, "[Policy local]\nMatch=name=vm1\nCopyDisks=incremental\n");
  set_local_disk(bb);
  bb_start(bb);
  assert_answer(check(bb_connect(bb), "vm1"), true, "");
}

static void what_start_would_refuse_is_a_finding(void **state) {
  Bb *bb = *state;
  json_t *parameters, *answer, *job;
  Client *client;

  bb_start(bb);
  bb_link_slow(bb);
  client = bb_connect(bb);
  job = client_start(client, "vm1", NULL);
  bb_await_phase(bb, text_of(job, "id"), "migrating");
  client_call(client, "Cordon", json_pack("{ss}", "reason", "disk 3 fails"));
  answer = check(client, "vm1");
  assert_non_null(strstr(text_of(finding_of(json_object_get(answer, "findings"), "DOMAIN_BUSY"), "seen"),
                         text_of(job, "id")));
  assert_non_null(finding_of(json_object_get(answer, "findings"), "NODE_CORDONED"));

  answer = check(client, "vm2");
  assert_answer(answer, false, "NODE_CORDONED");
  assert_text(json_array_get(json_object_get(answer, "findings"), 0), "seen",
              "The source node is cordoned and takes no new work: disk 3 fails.");
  parameters = parameters_for(bb, "vm2", NULL);
  json_object_set_new(parameters, "even_if_cordoned", json_true());
  assert_answer(client_call(client, "Check", parameters), true, "");
}

static void an_unknown_domain_or_target_is_an_error(void **state) {
  Bb *bb = *state;
  Client *client;

  bb_start(bb);
  client = bb_connect(bb);
  client_refused(client, "Check", parameters_for(bb, "vm9", NULL), "NoSuchDomain");
  client_refused(client, "Check", json_pack("{ss ss}", "domain", "vm1", "target", "nowhere"), "NoSuchTarget");
}

/* --- ends that do not answer --- */

static void an_unreachable_target_is_a_finding_next_to_the_domains_own(void **state) {
  Bb *bb = *state;
  json_t *answer;

  set_devices(bb, HOSTDEV);
  bb_set_host(bb, "b", "reachable", json_false());
  bb_start(bb);
  answer = check(bb_connect(bb), "vm1");
  assert_answer(answer, false, "TARGET_UNREACHABLE HOSTDEV_PCI");
  assert_true(json_is_true(
      json_object_get(finding_of(json_object_get(answer, "findings"), "TARGET_UNREACHABLE"), "transient")));
}

static void a_hung_target_is_a_finding_in_time_and_delays_nobody(void **state) {
  Bb *bb = *state;
  Client *client, *other;
  json_t *answer;

  bb_configure(bb, "ConnectTimeout=1s\nPrepareTimeout=2s\n");
  set_devices(bb, HOSTDEV);
  bb_set_call(bb, "survey_target", json_pack("{sb}", "hang", 1));
  bb_start(bb);
  client = bb_connect(bb);
  client_send(client, "Check", parameters_for(bb, "vm1", NULL), 0);
  other = bb_connect(bb);
  client_call(other, "GetNode", NULL);
  assert_text(client_call(other, "GetPolicy", json_pack("{ss}", "domain", "vm2")), "domain.name", "vm2");
  answer = client_receive(client, NULL, NULL);
  assert_answer(answer, false, "TARGET_UNREACHABLE HOSTDEV_PCI");
  assert_non_null(
      strstr(text_of(json_array_get(json_object_get(answer, "findings"), 0), "seen"), "within 2 s"));
}

static void more_hung_targets_than_threads_delay_no_start(void **state) {
  Bb *bb = *state;
  Client *clients[40];
  json_t *job;

  bb_configure(bb, "PrepareTimeout=2s\n");
  bb_set_call(bb, "survey_target", json_pack("{sb}", "hang", 1));
  bb_start(bb);
  for (size_t i = 0; i < LENGTH(clients); i++) {
    clients[i] = bb_connect(bb);
    client_send(clients[i], "Check", parameters_for(bb, "vm1", NULL), 0);
  }
  job = client_start(bb_connect(bb), "vm2", NULL);
  assert_text(job, "domain.name", "vm2");
  for (size_t i = 0; i < LENGTH(clients); i++) {
    g_autofree char *error = NULL;
    json_t *answer = client_receive(clients[i], &error, NULL);

    /* Checks that never got a thread cannot say more. */
    if (error)
      assert_string_equal(error, "HypervisorUnavailable");
    else
      assert_answer(answer, false, "TARGET_UNREACHABLE");
  }
}

static void without_this_nodes_libvirtd_a_check_is_an_error(void **state) {
  Bb *bb = *state;

  bb_configure(bb, "ConnectTimeout=1s\nPrepareTimeout=2s\n");
  bb_set_call(bb, "survey_domain", json_pack("{sb}", "hang", 1));
  bb_start(bb);
  client_refused(bb_connect(bb), "Check", parameters_for(bb, "vm1", NULL), "HypervisorUnavailable");
}

static void an_unknown_domain_does_not_wait_for_the_target(void **state) {
  Bb *bb = *state;
  gint64 before_us;

  bb_configure(bb, "ConnectTimeout=15s\n");
  bb_set_call(bb, "b.open", json_pack("{sb}", "hang", 1));
  bb_start(bb);
  before_us = g_get_monotonic_time();
  client_refused(bb_connect(bb), "Check", parameters_for(bb, "vm9", NULL), "NoSuchDomain");
  assert_true(g_get_monotonic_time() - before_us < 10 * G_USEC_PER_SEC);
  bb_set_call(bb, "b.open", NULL);
}

/* --- who may ask --- */

static void readers_can_name_only_configured_targets(void **state) {
  Bb *bb = *state;
  const struct passwd *nobody = getpwnam("nobody");
  g_autofree char *target = bb_target(bb, "b");
  g_autofree char *section = g_strdup_printf("PublicRead=all\n[Target node-b]\nLibvirtURI=%s\n", target);
  Client *somebody;

  assert_non_null(nobody);
  bb_configure(bb, section);
  bb_start(bb);
  somebody = bb_connect_as(bb, nobody->pw_uid, nobody->pw_gid, nobody->pw_gid);
  client_refused(somebody, "Check", parameters_for(bb, "vm1", NULL), "PermissionDenied");
  assert_answer(client_call(somebody, "Check", json_pack("{ss ss}", "domain", "vm1", "target", "node-b")),
                true, "");
}

/* --- the checks of a job --- */

static void a_job_fails_at_once_with_all_blockers(void **state) {
  Bb *bb = *state;
  json_t *job;

  set_devices(bb, HOSTDEV BRIDGE("br7"));
  bb_set_host(bb, "b", "interfaces", json_array());
  bb_set_host(bb, "b", "free_memory_bytes", json_integer(1 << 20));
  bb_start(bb);
  job = client_start(bb_connect(bb), "vm1", NULL);
  assert_text(job, "phase", "pending");
  job = bb_await_phase(bb, text_of(job, "id"), "failed");
  assert_text(job, "failure.cause", "REFUSED");
  assert_text(job, "failure.phase", "preparing");
  assert_codes(json_object_get(job, "findings"), "HOSTDEV_PCI TARGET_MEMORY INTERFACE_MISSING");
  assert_non_null(strstr(text_of(job, "failure.message"), "HOSTDEV_PCI: "));
  assert_non_null(strstr(text_of(job, "failure.message"), "INTERFACE_MISSING: "));
  assert_non_null(find_event(job, "blocker", "TARGET_MEMORY: "));
  assert_null(find_event(job, "phase", "starting the migration"));
}

static bool is_held_for_memory(json_t *job, gconstpointer data) {
  json_t *reason = member_of(job, "pending.reason");

  return reason && strcmp(json_string_value(reason), "TARGET_MEMORY") == 0;
}

static void a_transient_blocker_holds_the_job_until_it_is_gone(void **state) {
  Bb *bb = *state;
  json_t *job;

  bb_set_host(bb, "b", "free_memory_bytes", json_integer(1 << 20));
  bb_start(bb);
  job = client_start(bb_connect(bb), "vm1", NULL);
  job = bb_await(bb, text_of(job, "id"), is_held_for_memory, NULL);
  assert_text(job, "phase", "pending");
  assert_codes(json_object_get(job, "findings"), "TARGET_MEMORY");
  assert_non_null(strstr(text_of(job, "pending.message"), "only 1.0 MiB free"));
  bb_set_host(bb, "b", "free_memory_bytes", json_integer((json_int_t)1 << 30));
  job = bb_await_phase(bb, text_of(job, "id"), "succeeded");
  assert_codes(json_object_get(job, "findings"), "");
}

static void warnings_stay_with_the_job(void **state) {
  Bb *bb = *state;
  json_t *job;

  bb_set_domain(bb, "vm1", "state", json_string("paused"));
  bb_start(bb);
  job = client_start(bb_connect(bb), "vm1", NULL);
  job = bb_await_phase(bb, text_of(job, "id"), "succeeded");
  assert_codes(json_object_get(job, "findings"), "| DOMAIN_PAUSED");
  assert_non_null(find_event(job, "warning", "DOMAIN_PAUSED: "));
}

/* Texts are cut to size, possibly in the middle of a character. */
static void a_very_long_name_is_reported(void **state) {
  Bb *bb = *state;
  g_autoptr(GString) devices = g_string_new("<interface type='network'><source network='");
  json_t *job;

  for (int i = 0; i < 400; i++)
    g_string_append(devices, i == 0 ? "x" : "\xc3\xb6");
  g_string_append(devices, "'/></interface>");
  set_devices(bb, devices->str);
  bb_set_host(bb, "b", "networks", json_array());
  bb_start(bb);
  assert_answer(check(bb_connect(bb), "vm1"), false, "NETWORK_MISSING");
  job = client_start(bb_connect(bb), "vm1", NULL);
  job = bb_await_phase(bb, text_of(job, "id"), "failed");
  assert_codes(json_object_get(job, "findings"), "NETWORK_MISSING");
  assert_non_null(find_event(job, "blocker", "NETWORK_MISSING: "));
}

int main(void) {
  Tests tests = {0};

  TESTS_ADD(&tests, a_domain_that_can_migrate_has_no_findings);
  TESTS_ADD(&tests, six_blockers_are_six_codes_in_one_answer);
  TESTS_ADD(&tests, a_warning_does_not_block);
  TESTS_ADD(&tests, goals_count_and_conflicts_between_them_are_findings);
  TESTS_ADD(&tests, a_policy_that_matches_the_domain_counts);
  TESTS_ADD(&tests, what_start_would_refuse_is_a_finding);
  TESTS_ADD(&tests, an_unknown_domain_or_target_is_an_error);
  TESTS_ADD(&tests, an_unreachable_target_is_a_finding_next_to_the_domains_own);
  TESTS_ADD(&tests, a_hung_target_is_a_finding_in_time_and_delays_nobody);
  TESTS_ADD(&tests, more_hung_targets_than_threads_delay_no_start);
  TESTS_ADD(&tests, without_this_nodes_libvirtd_a_check_is_an_error);
  TESTS_ADD(&tests, an_unknown_domain_does_not_wait_for_the_target);
  if (geteuid() == 0)
    TESTS_ADD(&tests, readers_can_name_only_configured_targets);
  TESTS_ADD(&tests, a_job_fails_at_once_with_all_blockers);
  TESTS_ADD(&tests, a_transient_blocker_holds_the_job_until_it_is_gone);
  TESTS_ADD(&tests, warnings_stay_with_the_job);
  TESTS_ADD(&tests, a_very_long_name_is_reported);
  return bb_run(&tests, "check");
}
