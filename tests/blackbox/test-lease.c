/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* A target: leases for domains to come, and what becomes of them. */
#include "tests/blackbox/lease.h"

#include <signal.h>

/* --- what a lease is --- */

static void a_lease_is_an_incoming_job_that_says_where_to_send_the_domain(void **state) {
  Bb *bb = *state;
  json_t *reply, *job;
  Client *client;

  bb_configure(bb, "IncomingURI=qemu+tcp://node-a/system\nIncomingMigrateURI=tcp://10.1.2.3\n");
  client = lease_start(bb);
  reply = client_call(client, "Prepare", prepare_parameters(bb, "vm9"));
  job = json_object_get(reply, "job");
  assert_true(json_is_true(json_object_get(reply, "created")));
  assert_text(job, "direction", "incoming");
  assert_text(job, "phase", "pending");
  assert_text(job, "pending.reason", "LEASED");
  assert_text(job, "domain.name", "vm9");
  assert_text(job, "lease.id", text_of(job, "id"));
  assert_text(job, "lease.libvirt_uri", "qemu+tcp://node-a/system");
  assert_text(job, "lease.migrate_uri", "tcp://10.1.2.3");
  assert_int_equal(number_of(job, "lease.memory_bytes"), 16 * MIB);
  assert_in_range(number_of(job, "lease.expires_usec_realtime"), g_get_real_time() + 200 * G_USEC_PER_SEC,
                  g_get_real_time() + 300 * G_USEC_PER_SEC);
  assert_int_equal(number_of(job, "pending.until_usec_realtime"),
                   number_of(job, "lease.expires_usec_realtime"));
  assert_non_null(strstr(text_of(job, "source"), "//b/"));
  assert_int_equal(number_of(node(client), "incoming"), 1);
  assert_int_equal(number_of(node(client), "pending"), 0);
  assert_int_equal(number_of(node(client), "reserved_bytes"), 16 * MIB);
  assert_non_null(bb_record(bb, text_of(job, "id")));
}

static void an_arrival_is_followed_to_its_end_and_ends_the_lease(void **state) {
  Bb *bb = *state;
  json_t *job;
  Client *client = lease_start(bb);

  job = let_come(bb, client, "vm9");
  assert_text(job, "stage", "pre_copy");
  assert_int_equal(number_of(node(client), "incoming"), 1);
  bb_link_fast(bb);
  job = bb_await_phase(bb, text_of(job, "id"), "succeeded");
  assert_text(job, "result.running_at", "target");
  assert_true(number_of(job, "result.total_time_ms") > 0);
  assert_true(number_of(job, "result.downtime_ms") > 0);
  assert_null(member_of(job, "lease"));
  assert_events_whole(job);
  assert_no_leases(client);
  assert_text(bb_truth(bb, "vm9"), "host", "a");
}

static void an_unannounced_arrival_gets_a_job_too(void **state) {
  Bb *bb = *state;
  json_t *job;
  Client *client;

  lease_start(bb);
  bb_link_slow(bb);
  migrate(bb, "vm9");
  client = bb_connect(bb);
  job = await_job(client);
  assert_text(job, "direction", "incoming");
  job = bb_await_phase(bb, text_of(job, "id"), "migrating");
  assert_null(member_of(job, "lease"));
  bb_link_fast(bb);
  bb_await_phase(bb, text_of(job, "id"), "succeeded");
  assert_no_leases(client);
}

static void post_copy_is_shown_and_reports_no_downtime(void **state) {
  Bb *bb = *state;
  json_t *job;
  Client *client = lease_start(bb);

  job = let_come(bb, client, "vm9");
  bb_set_domain(bb, "vm9", "post_copy", json_true());
  job = bb_await_event(bb, text_of(job, "id"), "stage", "post_copy");
  bb_link_fast(bb);
  job = bb_await_phase(bb, text_of(job, "id"), "succeeded");
  assert_null(member_of(job, "result.downtime_ms"));
}

/* --- the other ends --- */

static void an_abort_at_the_source_ends_the_lease(void **state) {
  Bb *bb = *state;
  json_t *job;
  Client *client = lease_start(bb);

  job = let_come(bb, client, "vm9");
  cancel(bb, "vm9");
  job = bb_await_phase(bb, text_of(job, "id"), "failed");
  assert_text(job, "failure.cause", "CANCELLED_ELSEWHERE");
  assert_text(job, "result.running_at", "unknown");
  assert_no_leases(client);
}

static void a_lease_expires(void **state) {
  Bb *bb = *state;
  json_t *job;
  Client *client = lease_start(bb);

  job = prepare_for(bb, client, "vm9", 1);
  job = bb_await_phase(bb, text_of(job, "id"), "aborted");
  assert_text(job, "failure.cause", "LEASE_EXPIRED");
  assert_no_leases(client);
}

static void an_arrived_lease_does_not_expire(void **state) {
  Bb *bb = *state;
  json_t *job;
  Client *client;

  lease_start(bb);
  bb_link_slow(bb);
  client = bb_connect(bb);
  job = prepare_for(bb, client, "vm9", 5);
  migrate(bb, "vm9");
  bb_await_phase(bb, text_of(job, "id"), "migrating");
  while (g_get_real_time() <= number_of(job, "lease.expires_usec_realtime") + G_USEC_PER_SEC)
    assert_text(client_get(client, text_of(job, "id")), "phase", "migrating");
  bb_link_fast(bb);
  bb_await_phase(bb, text_of(job, "id"), "succeeded");
}

static void a_lease_can_be_released(void **state) {
  static const struct { const char *method, *parameter; } ways[] = {{"Release", "lease"}, {"Abort", "job"}};
  Bb *bb = *state;
  Client *client = lease_start(bb);

  for (size_t i = 0; i < LENGTH(ways); i++) {
    json_t *job = prepare(bb, client, "vm9");
    const char *id = text_of(job, "id");

    client_call(client, ways[i].method, json_pack("{ss}", ways[i].parameter, id));
    job = bb_await_phase(bb, id, "aborted");
    assert_text(job, "failure.cause", "USER_ABORT");
    assert_non_null(strstr(text_of(job, "failure.message"), "uid "));
  }
  assert_no_leases(client);
}

static void releasing_twice_does_no_harm(void **state) {
  Bb *bb = *state;
  json_t *job;
  Client *client = lease_start(bb);

  job = prepare(bb, client, "vm9");
  client_call(client, "Release", json_pack("{ss}", "lease", text_of(job, "id")));
  bb_await_phase(bb, text_of(job, "id"), "aborted");
  assert_text(client_call(client, "Release", json_pack("{ss}", "lease", text_of(job, "id"))), "job.phase",
              "aborted");
  client_refused(client, "Release", json_pack("{ss}", "lease", "ffffffff"), "NoSuchJob");
}

static void once_arriving_only_the_source_can_end_it(void **state) {
  Bb *bb = *state;
  json_t *error;
  Client *client = lease_start(bb);
  const char *id;

  id = text_of(let_come(bb, client, "vm9"), "id");
  error = client_refused(client, "Release", json_pack("{ss}", "lease", id), "NotAbortable");
  assert_non_null(strstr(text_of(error, "message"), "source"));
  client_refused(client, "Abort", json_pack("{ss}", "job", id), "NotAbortable");
  client_refused(client, "Complete", json_pack("{ss ss}", "job", id, "by", "pause"), "NotPossible");
  client_refused(client, "Tune", json_pack("{ss s{si}}", "job", id, "policy", "max_downtime_ms", 5),
                 "InvalidPolicy");
  bb_link_fast(bb);
  bb_await_phase(bb, id, "succeeded");
}

static void a_domain_started_here_meanwhile_ends_the_lease(void **state) {
  Bb *bb = *state;
  json_t *job;

  job = prepare(bb, lease_start(bb), "vm9");
  bb_set_domain(bb, "vm9", "states", json_pack("{ss}", "a", "paused"));
  bb_stop(bb, SIGKILL); /* an agent that starts looks at once */
  bb_start(bb);
  job = bb_await_phase(bb, text_of(job, "id"), "failed");
  assert_text(job, "failure.cause", "DOMAIN_EXISTS_AT_TARGET");
  assert_text(job, "result.running_at", "target");
}

/* Its job here may lag a moment behind. */
static void a_domain_that_just_arrived_can_be_sent_on(void **state) {
  Bb *bb = *state;
  json_t *job;
  Client *client;

  lease_start(bb);
  bb_set_call(bb, "events", json_pack("{sb}", "drop", 1));
  client = bb_connect(bb);
  job = prepare(bb, client, "vm9");
  bb_set_call(bb, "a.domain_status", json_pack("{si}", "delay_ms", 500));
  migrate(bb, "vm9");
  while (strcmp(text_of(bb_truth(bb, "vm9"), "host"), "a") != 0)
    client_call(client, "GetNode", NULL);
  assert_text(client_get(client, text_of(job, "id")), "phase", "pending");
  client_start(client, "vm9", NULL);
  assert_text(client_get(client, text_of(job, "id")), "phase", "succeeded");
}

static void a_domain_that_has_not_arrived_cannot_be_sent_on(void **state) {
  Bb *bb = *state;
  Client *client = lease_start(bb);

  prepare(bb, client, "vm9");
  bb_set_domain(bb, "vm9", "defined", json_pack("[s]", "a"));
  client_refused(client, "Start", bb_start_parameters(bb, "vm9"), "DomainBusy");
}

/* --- restarts --- */

static void a_lease_survives_the_agent(void **state) {
  static const int signals[] = {SIGKILL, SIGTERM};
  Bb *bb = *state;
  Client *client;
  json_t *job;
  const char *id;

  job = prepare(bb, lease_start(bb), "vm9");
  id = text_of(job, "id");
  for (size_t i = 0; i < LENGTH(signals); i++) {
    bb_stop(bb, signals[i]);
    bb_start(bb);
    client = bb_connect(bb);
    assert_text(client_get(client, id), "phase", "pending");
    assert_int_equal(number_of(client_get(client, id), "lease.expires_usec_realtime"),
                     number_of(job, "lease.expires_usec_realtime"));
    assert_int_equal(number_of(node(client), "reserved_bytes"), 16 * MIB);
  }
  migrate(bb, "vm9");
  bb_await_phase(bb, id, "succeeded");
}

static void a_domain_may_arrive_while_the_agent_is_down(void **state) {
  Bb *bb = *state;
  json_t *job;
  const char *id;

  lease_start(bb);
  bb_link_slow(bb);
  job = prepare(bb, bb_connect(bb), "vm9");
  id = text_of(job, "id");
  bb_stop(bb, SIGKILL);
  migrate(bb, "vm9");
  bb_start(bb);
  bb_await_phase(bb, id, "migrating");
  bb_stop(bb, SIGKILL);
  bb_link_fast(bb);
  bb_start(bb);
  job = bb_await_phase(bb, id, "succeeded");
  assert_non_null(find_event(job, "agent_restarted", "checking the domain here"));
  assert_events_whole(job);
}

static void a_lease_expires_while_the_agent_is_down(void **state) {
  Bb *bb = *state;
  json_t *job;

  job = prepare_for(bb, lease_start(bb), "vm9", 1);
  bb_stop(bb, SIGKILL);
  bb_start(bb);
  assert_text(bb_await_phase(bb, text_of(job, "id"), "aborted"), "failure.cause", "LEASE_EXPIRED");
}

static void events_that_are_lost_are_made_up_for(void **state) {
  Bb *bb = *state;
  json_t *job;

  lease_start(bb);
  bb_set_call(bb, "events", json_pack("{sb}", "drop", 1));
  job = prepare_for(bb, bb_connect(bb), "vm9", 5);
  migrate(bb, "vm9");
  /* No event reports its arrival: the agent notices at the latest when the lease expires. */
  bb_await_phase(bb, text_of(job, "id"), "succeeded");
}

static void a_libvirtd_that_is_down_ends_nothing(void **state) {
  Bb *bb = *state;
  Client *client = lease_start(bb);
  const char *id;

  id = text_of(let_come(bb, client, "vm9"), "id");
  bb_set_host(bb, "a", "reachable", json_false());
  bb_await_phase(bb, id, "recovering");
  bb_set_host(bb, "a", "reachable", json_true());
  bb_await_phase(bb, id, "migrating");
  bb_link_fast(bb);
  bb_await_phase(bb, id, "succeeded");
}

/* --- who gets one --- */

static void the_same_key_gives_the_same_lease_after_a_kill(void **state) {
  Bb *bb = *state;
  json_t *parameters = NULL, *reply;
  Client *client;
  const char *id;

  lease_start(bb);
  parameters = with(prepare_parameters(bb, "vm9"), "request_key", json_string("k"));
  id = text_of(client_call(bb_connect(bb), "Prepare", json_incref(parameters)), "job.id");
  bb_stop(bb, SIGKILL);
  bb_start(bb);
  client = bb_connect(bb);
  reply = client_call(client, "Prepare", json_incref(parameters));
  assert_text(reply, "job.id", id);
  assert_true(json_is_false(json_object_get(reply, "created")));
  client_refused(client, "Prepare", with(prepare_parameters(bb, "vm8"), "request_key", json_string("k")),
                 "RequestKeyConflict");
  /* Not even when the node is full or cordoned. */
  client_call(client, "Cordon", NULL);
  assert_text(client_call(client, "Prepare", parameters), "job.id", id);
}

static void leases_count_towards_max_incoming(void **state) {
  Bb *bb = *state;
  json_t *error;
  Client *client;
  const char *id;

  bb_configure(bb, "MaxIncoming=1\n");
  client = lease_start(bb);
  id = text_of(prepare(bb, client, "vm9"), "id");
  error = client_refused(client, "Prepare", prepare_parameters(bb, "vm8"), "Refused");
  assert_true(json_is_true(json_object_get(finding(error, "INCOMING_LIMIT"), "transient")));
  client_call(client, "Release", json_pack("{ss}", "lease", id));
  bb_await_phase(bb, id, "aborted");
  prepare(bb, client, "vm8");
}

static void two_calls_at_once_cannot_share_one_place(void **state) {
  Bb *bb = *state;
  static const char *const guests[] = {"vm8", "vm9"};
  Client *clients[2];
  unsigned granted = 0;

  bb_configure(bb, "MaxIncoming=1\n");
  lease_start(bb);
  bb_set_call(bb, "survey_target", json_pack("{si}", "delay_ms", 200));
  for (size_t i = 0; i < LENGTH(guests); i++) {
    clients[i] = bb_connect(bb);
    client_send(clients[i], "Prepare", prepare_parameters(bb, guests[i]), 0);
  }
  for (size_t i = 0; i < LENGTH(guests); i++) {
    g_autofree char *error = NULL;

    client_receive(clients[i], &error, NULL);
    granted += !error;
    if (error)
      assert_string_equal(error, "Refused");
  }
  assert_int_equal(granted, 1);
}

static void memory_set_aside_for_leases_counts(void **state) {
  Bb *bb = *state;
  json_t *error;
  Client *client;

  lease_start(bb);
  bb_set_host(bb, "a", "free_memory_bytes", json_integer(31 * MIB));
  client = bb_connect(bb);
  prepare(bb, client, "vm9");
  error = client_refused(client, "Prepare", prepare_parameters(bb, "vm8"), "Refused");
  assert_non_null(strstr(text_of(finding(error, "TARGET_MEMORY"), "seen"), "16 MiB are reserved"));
}

static void all_blockers_are_reported_at_once(void **state) {
  Bb *bb = *state;
  json_t *error;
  Client *client;

  bb_configure(bb, "MaxIncoming=1\n");
  lease_start(bb);
  bb_set_host(bb, "a", "free_memory_bytes", json_integer(1));
  bb_set_host(bb, "a", "names", json_pack("{ss}", "vm9", "00000000-0000-4000-8000-000000000000"));
  client = bb_connect(bb);
  error = client_refused(client, "Prepare", prepare_parameters(bb, "vm9"), "Refused");
  finding(error, "TARGET_MEMORY");
  finding(error, "NAME_TAKEN");
  assert_no_leases(client);
  assert_int_equal(json_array_size(member_of(client_call(client, "List", NULL), "jobs")), 0);
}

static void a_cordoned_node_grants_none(void **state) {
  Bb *bb = *state;
  Client *client = lease_start(bb);

  client_call(client, "Cordon", NULL);
  client_refused(client, "Prepare", prepare_parameters(bb, "vm9"), "NodeCordoned");
}

static void invalid_calls_get_named_errors(void **state) {
  Bb *bb = *state;
  json_t *error;
  Client *client = lease_start(bb);

  client_refused(client, "Prepare", prepare_parameters(bb, "nobody"), "NoSuchDomain");
  client_refused(client, "Prepare", json_pack("{ss ss}", "domain", "vm9", "source", "nowhere"),
                 "NoSuchTarget");
  client_refused(client, "Prepare", with(prepare_parameters(bb, "vm9"), "timeout_s", json_integer(0)),
                 "InvalidParameter");
  client_refused(client, "Prepare", with(prepare_parameters(bb, "vm9"), "timeout_s", json_integer(86401)),
                 "InvalidParameter");
  client_refused(client, "Prepare", with(prepare_parameters(bb, "vm9"), "request_key", json_string("")),
                 "InvalidParameter");
  client_refused(client, "Prepare", with(prepare_parameters(bb, "vm9"), "make_disks", json_true()),
                 "InvalidPolicy");
  bb_set_host(bb, "b", "reachable", json_false());
  error = client_refused(client, "Prepare", prepare_parameters(bb, "vm9"), "HypervisorUnavailable");
  assert_non_null(strstr(text_of(error, "uri"), "//b/"));
  bb_set_host(bb, "b", "reachable", json_true());
  prepare(bb, client, "vm9");
  client_refused(client, "Prepare", prepare_parameters(bb, "vm9"), "DomainBusy");
}

static void a_hung_libvirtd_is_an_error_and_delays_nobody(void **state) {
  static const char *const hosts[] = {"a", "b"};
  Bb *bb = *state;
  Client *client;

  bb_configure(bb, "ConnectTimeout=2s\n");
  client = lease_start(bb);
  node(client);
  for (size_t i = 0; i < LENGTH(hosts); i++) {
    json_t *error;

    bb_set_host(bb, hosts[i], "reachable", json_false());
    error = client_refused(client, "Prepare", prepare_parameters(bb, "vm9"), "HypervisorUnavailable");
    assert_non_null(strstr(text_of(error, "uri"), i == 0 ? "host=a" : "//b/"));
    bb_set_host(bb, hosts[i], "reachable", json_true());
    bb_set_call(bb, "b.open", json_pack("{sb}", "hang", 1));
    client_refused(client, "Prepare", prepare_parameters(bb, "vm9"), "HypervisorUnavailable");
    bb_set_call(bb, "b.open", NULL);
  }
  assert_no_leases(client);
}

static void leases_are_counted_for_prometheus(void **state) {
  Bb *bb = *state;
  const char *text;
  Client *client = lease_start(bb);

  prepare(bb, client, "vm9");
  text = text_of(client_call(client, "GetMetrics", NULL), "text");
  assert_non_null(strstr(text, "\nhandoffd_incoming_limit 2\n"));
  assert_non_null(strstr(text, "\nhandoffd_incoming 1\n"));
  assert_non_null(strstr(text, "\nhandoffd_incoming_reserved_bytes 16777216\n"));
  assert_non_null(strstr(text, "\nhandoffd_jobs{direction=\"incoming\",phase=\"pending\"} 1\n"));
}

static void a_domain_that_is_here_needs_no_lease(void **state) {
  Bb *bb = *state;
  g_autofree char *here = NULL;
  Client *client;

  lease_start(bb);
  here = bb_target(bb, "a");
  client = bb_connect(bb);
  finding(client_refused(client, "Prepare", json_pack("{ss ss}", "domain", "vm1", "source", here), "Refused"),
          "SAME_HOST");
}

int main(void) {
  Tests tests = {0};

  TESTS_ADD(&tests, a_lease_is_an_incoming_job_that_says_where_to_send_the_domain);
  TESTS_ADD(&tests, an_arrival_is_followed_to_its_end_and_ends_the_lease);
  TESTS_ADD(&tests, an_unannounced_arrival_gets_a_job_too);
  TESTS_ADD(&tests, post_copy_is_shown_and_reports_no_downtime);
  TESTS_ADD(&tests, an_abort_at_the_source_ends_the_lease);
  TESTS_ADD(&tests, a_lease_expires);
  TESTS_ADD(&tests, an_arrived_lease_does_not_expire);
  TESTS_ADD(&tests, a_lease_can_be_released);
  TESTS_ADD(&tests, releasing_twice_does_no_harm);
  TESTS_ADD(&tests, once_arriving_only_the_source_can_end_it);
  TESTS_ADD(&tests, a_domain_started_here_meanwhile_ends_the_lease);
  TESTS_ADD(&tests, a_domain_that_just_arrived_can_be_sent_on);
  TESTS_ADD(&tests, a_domain_that_has_not_arrived_cannot_be_sent_on);
  TESTS_ADD(&tests, a_lease_survives_the_agent);
  TESTS_ADD(&tests, a_domain_may_arrive_while_the_agent_is_down);
  TESTS_ADD(&tests, a_lease_expires_while_the_agent_is_down);
  TESTS_ADD(&tests, events_that_are_lost_are_made_up_for);
  TESTS_ADD(&tests, a_libvirtd_that_is_down_ends_nothing);
  TESTS_ADD(&tests, the_same_key_gives_the_same_lease_after_a_kill);
  TESTS_ADD(&tests, leases_count_towards_max_incoming);
  TESTS_ADD(&tests, two_calls_at_once_cannot_share_one_place);
  TESTS_ADD(&tests, memory_set_aside_for_leases_counts);
  TESTS_ADD(&tests, all_blockers_are_reported_at_once);
  TESTS_ADD(&tests, a_cordoned_node_grants_none);
  TESTS_ADD(&tests, invalid_calls_get_named_errors);
  TESTS_ADD(&tests, a_hung_libvirtd_is_an_error_and_delays_nobody);
  TESTS_ADD(&tests, leases_are_counted_for_prometheus);
  TESTS_ADD(&tests, a_domain_that_is_here_needs_no_lease);
  return bb_run(&tests, "lease");
}
