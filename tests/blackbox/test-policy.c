/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Which goals a job gets, and where each comes from. */
#include "tests/blackbox/harness.h"

#include <signal.h>

static const char policies[] =
    "[Policy]\nMaxPause=1s\n"
    "[Policy gold]\nMatch=metadata={urn:x}tier=gold\nMaxDowntime=50ms\nPriority=user\n"
    "[Policy front]\nMatch=name=vm1\nMatch=title=Shop*\nMaxDowntime=60ms\n"
    "[Policy gentle]\nBandwidth=3M\n"
    "[Policy broken]\nMatch=name=vm4\nTunnelled=yes\n";

static void arrange(Bb *bb) {
  bb_configure(bb, policies);
  bb_set_domain(bb, "vm1", "title", json_string("Shop front"));
  bb_set_domain(bb, "vm1", "metadata", json_pack("{ss}", "{urn:x}tier", "gold"));
  bb_set_domain(bb, "vm2", "metadata", json_pack("{ss}", "{urn:x}tier", "gold"));
  bb_start(bb);
}

static json_t *find_in(json_t *array, const char *key, const char *value) {
  json_t *object;
  size_t i;

  json_array_foreach (array, i, object)
    if (strcmp(text_of(object, key), value) == 0)
      return object;
  return NULL;
}

static void the_most_specific_policy_is_chosen_and_recorded(void **state) {
  Bb *bb = *state;
  json_t *job, *sources, *record;
  Client *client;

  arrange(bb);
  bb_link_slow(bb);
  client = bb_connect(bb);
  job = client_start(client, "vm1", json_pack("{si}", "max_throttle_pct", 33));
  assert_text(job, "policy_matched", "front");
  assert_null(json_object_get(job, "policy_name"));
  assert_int_equal(number_of(job, "policy.max_downtime_ms"), 60);
  assert_int_equal(number_of(job, "policy.max_pause_ms"), 1000);
  assert_int_equal(number_of(job, "policy.max_throttle_pct"), 33);
  assert_text(job, "policy.priority", "default");
  sources = json_object_get(job, "policy_sources");
  assert_text(find_in(sources, "key", "max_downtime_ms"), "source", "matched");
  assert_text(find_in(sources, "key", "max_pause_ms"), "source", "node");
  assert_text(find_in(sources, "key", "max_throttle_pct"), "source", "request");
  assert_null(find_in(sources, "key", "progress_timeout_s"));
  record = bb_record(bb, text_of(job, "id"));
  assert_text(record, "job.policy_matched", "front");

  client_call(client, "Tune", json_pack("{ss s{si}}", "job", "vm1", "policy", "max_downtime_ms", 70));
  bb_stop(bb, SIGKILL);
  bb_start(bb);
  job = client_get(bb_connect(bb), "vm1");
  assert_text(job, "policy_matched", "front");
  assert_text(find_in(json_object_get(job, "policy_sources"), "key", "max_downtime_ms"), "source", "tuned");
}

static void a_named_policy_overrides_the_matched_one(void **state) {
  Bb *bb = *state;
  json_t *job, *parameters;

  arrange(bb);
  bb_link_slow(bb);
  parameters = bb_start_parameters(bb, "vm2");
  json_object_set_new(parameters, "policy_name", json_string("gentle"));
  job = json_object_get(client_call(bb_connect(bb), "Start", parameters), "job");
  assert_text(job, "policy_name", "gentle");
  assert_text(job, "policy_matched", "gold");
  assert_int_equal(number_of(job, "policy.bandwidth_bytes_per_s"), 3 << 20);
  assert_int_equal(number_of(job, "policy.max_downtime_ms"), 50);
  assert_text(job, "policy.priority", "user");
}

static void a_domain_without_a_match_has_the_nodes_goals(void **state) {
  Bb *bb = *state;
  json_t *job;

  arrange(bb);
  bb_link_slow(bb);
  job = client_start(bb_connect(bb), "vm3", NULL);
  assert_null(json_object_get(job, "policy_matched"));
  assert_int_equal(number_of(job, "policy.max_downtime_ms"), 300);
  assert_int_equal(number_of(job, "policy.max_pause_ms"), 1000);
}

static void goals_that_conflict_with_a_matched_policy_are_refused(void **state) {
  Bb *bb = *state;
  json_t *parameters, *error;
  Client *client;

  arrange(bb);
  client = bb_connect(bb);
  parameters = bb_start_parameters(bb, "vm4");
  json_object_set_new(parameters, "policy", json_pack("{sb}", "allow_post_copy", 1));
  error = client_refused(client, "Start", parameters, "PolicyConflict");
  assert_text(error, "code", "POST_COPY_TUNNELLED");
  assert_int_equal(json_array_size(json_object_get(client_call(client, "List", NULL), "jobs")), 0);
}

static void the_goals_are_explained(void **state) {
  Bb *bb = *state;
  json_t *answer, *goals, *goal, *policy;
  Client *client;

  arrange(bb);
  client = bb_connect(bb);
  answer = client_call(
      client, "GetPolicy",
      json_pack("{ss ss s{si}}", "domain", "vm1", "policy_name", "gentle", "policy", "max_throttle_pct", 33));
  assert_text(answer, "domain.name", "vm1");
  goals = json_object_get(answer, "goals");
  goal = find_in(goals, "key", "max_downtime_ms");
  assert_text(goal, "value", "60");
  assert_text(goal, "source", "matched");
  assert_text(goal, "policy_name", "front");
  assert_non_null(strstr(text_of(goal, "place"), "handoffd.conf:"));
  goal = find_in(goals, "key", "bandwidth_bytes_per_s");
  assert_text(goal, "source", "named");
  assert_text(goal, "policy_name", "gentle");
  assert_text(find_in(goals, "key", "max_pause_ms"), "source", "node");
  assert_text(find_in(goals, "key", "max_throttle_pct"), "source", "request");
  goal = find_in(goals, "key", "tls");
  assert_text(goal, "source", "builtin");
  assert_text(goal, "value", "no");
  assert_null(json_object_get(goal, "place"));

  policy = find_in(json_object_get(answer, "policies"), "name", "front");
  assert_true(json_is_true(json_object_get(policy, "chosen")));
  policy = find_in(json_object_get(answer, "policies"), "name", "gold");
  assert_true(json_is_true(json_object_get(policy, "matches")));
  assert_true(json_is_false(json_object_get(policy, "chosen")));
  policy = find_in(json_object_get(answer, "policies"), "name", "broken");
  assert_text(json_array_get(json_object_get(policy, "conditions"), 0), "text", "name=vm4");
  assert_true(
      json_is_false(json_object_get(json_array_get(json_object_get(policy, "conditions"), 0), "holds")));
  policy = find_in(json_object_get(answer, "policies"), "name", "gentle");
  assert_int_equal(json_array_size(json_object_get(policy, "conditions")), 0);
}

static void the_goals_are_explained_without_a_domain(void **state) {
  Bb *bb = *state;
  json_t *answer;
  Client *client;

  arrange(bb);
  bb_set_host(bb, "a", "hung", json_true());
  client = bb_connect(bb);
  answer = client_call(client, "GetPolicy", NULL);
  assert_null(json_object_get(answer, "domain"));
  assert_text(find_in(json_object_get(answer, "goals"), "key", "max_downtime_ms"), "source", "builtin");
  assert_int_equal(json_array_size(json_object_get(answer, "policies")), 4);
  client_refused(client, "GetPolicy", json_pack("{ss}", "policy_name", "nobody"), "NoSuchPolicy");
}

static void an_unknown_domain_has_no_goals(void **state) {
  Bb *bb = *state;

  arrange(bb);
  client_refused(bb_connect(bb), "GetPolicy", json_pack("{ss}", "domain", "nobody"), "NoSuchDomain");
}

int main(void) {
  Tests tests = {0};

  TESTS_ADD(&tests, the_most_specific_policy_is_chosen_and_recorded);
  TESTS_ADD(&tests, a_named_policy_overrides_the_matched_one);
  TESTS_ADD(&tests, a_domain_without_a_match_has_the_nodes_goals);
  TESTS_ADD(&tests, goals_that_conflict_with_a_matched_policy_are_refused);
  TESTS_ADD(&tests, the_goals_are_explained);
  TESTS_ADD(&tests, the_goals_are_explained_without_a_domain);
  TESTS_ADD(&tests, an_unknown_domain_has_no_goals);
  return bb_run(&tests, "policy");
}
