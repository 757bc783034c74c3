/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* What the daemon does to a domain besides migrating it: only with all of the evidence. */
#include "tests/blackbox/harness.h"

#include <signal.h>

/* Migrates vm1, for as long as the test lets it. Returns the job's id. */
static const char *set_out(Bb *bb, json_t *policy) {
  const char *id;

  bb_start(bb);
  bb_link_slow(bb);
  id = text_of(client_start(bb_connect(bb), "vm1", policy), "id");
  bb_await(bb, id, bb_has_numbers, NULL);
  return id;
}

/* The migration fails, and libvirt leaves the guest stopped. */
static void leave_stopped(Bb *bb) {
  bb_set_domain(bb, "vm1", "state", json_string("paused_migration"));
}

static void assert_guest(Bb *bb, const char *host, const char *state) {
  assert_text(bb_truth(bb, "vm1"), "host", host);
  assert_text(bb_truth(bb, "vm1"), "state", state);
}

static bool is_defined(Bb *bb, const char *host) {
  json_t *defined = json_object_get(bb_truth(bb, "vm1"), "defined"), *name;
  size_t i;

  json_array_foreach (defined, i, name)
    if (g_strcmp0(json_string_value(name), host) == 0)
      return true;
  return false;
}

static bool plan_has(json_t *job, gconstpointer text) {
  const char *plan = json_string_value(json_object_get(job, "next_action"));

  return plan && strstr(plan, text);
}

static void assert_ended_at_source(json_t *job) {
  assert_text(job, "result.running_at", "source");
  assert_events_whole(job);
}

static void a_guest_left_stopped_is_resumed(void **state) {
  Bb *bb = *state;
  const char *id = set_out(bb, NULL);
  json_t *job, *event;

  leave_stopped(bb);
  job = bb_await_phase(bb, id, "failed");
  assert_ended_at_source(job);
  assert_text(job, "failure.cause", "GUEST_STOPPED");
  assert_guest(bb, "a", "running");
  /* Reported with its evidence, and after a second look. */
  event = find_event(job, "action", "resumes the guest at the source");
  assert_non_null(event);
  assert_non_null(strstr(text_of(event, "message"), "source: paused_migration; target: absent"));
  assert_true(number_of(event, "time_usec_realtime") -
                  number_of(find_event(job, "action", "the migration call failed"), "time_usec_realtime") >=
              900000);
}

static void a_guest_paused_before_the_migration_stays_paused(void **state) {
  Bb *bb = *state;
  const char *id;
  json_t *job;

  bb_start(bb);
  bb_set_domain(bb, "vm1", "state", json_string("paused"));
  bb_link_slow(bb);
  id = text_of(client_start(bb_connect(bb), "vm1", NULL), "id");
  bb_await(bb, id, bb_has_numbers, NULL);
  leave_stopped(bb);
  job = bb_await(bb, id, plan_has, "needs an operator");
  assert_text(job, "phase", "recovering");
  /* Its owner resumes it. */
  assert_guest(bb, "a", "paused_migration");
  bb_set_domain(bb, "vm1", "state", json_string("running"));
  job = bb_await_phase(bb, id, "failed");
  assert_ended_at_source(job);
  assert_null(find_event(job, "action", "resumes the guest"));
}

static void no_resume_over_a_gap_at_the_target(void **state) {
  Bb *bb = *state;
  const char *id = set_out(bb, NULL);
  json_t *job;

  bb_set_host(bb, "b", "reachable", json_false());
  leave_stopped(bb);
  job = bb_await(bb, id, plan_has, "waits for the target's libvirtd to answer");
  assert_text(job, "phase", "recovering");
  /* Two more answers from the source, and none from the target. */
  bb_await_event(bb, id, "phase", "target: unknown");
  assert_guest(bb, "a", "paused_migration");
  /* It is back, and has nothing. While nobody watched, the guest may have run there and moved on. */
  bb_set_host(bb, "b", "reachable", json_true());
  job = bb_await(bb, id, plan_has, "needs an operator");
  assert_text(job, "phase", "recovering");
  assert_guest(bb, "a", "paused_migration");
  bb_set_domain(bb, "vm1", "state", json_string("running"));
  job = bb_await_phase(bb, id, "failed");
  assert_ended_at_source(job);
  assert_null(find_event(job, "action", "resumes the guest"));
}

/* The agent was down: what is absent now may have been there. */
static void no_resume_after_a_restart(void **state) {
  Bb *bb = *state;
  const char *id = set_out(bb, NULL);

  bb_stop(bb, SIGKILL);
  leave_stopped(bb);
  bb_start(bb);
  bb_await(bb, id, plan_has, "needs an operator");
  assert_guest(bb, "a", "paused_migration");
  bb_set_domain(bb, "vm1", "state", json_string("running"));
  assert_ended_at_source(bb_await_phase(bb, id, "failed"));
}

/* After a restart: an agent that is quick enough to see the migration still running knows that the guest never ran at the target.
 * Otherwise the job asks, and gets an answer. */
static bool asks_or_has_ended(json_t *job, gconstpointer unused) {
  return plan_has(job, "needs an operator") || strcmp(text_of(job, "phase"), "failed") == 0;
}

static json_t *await_end_after_a_restart(Bb *bb, const char *id) {
  json_t *job = bb_await(bb, id, asks_or_has_ended, NULL);

  if (strcmp(text_of(job, "phase"), "failed") != 0)
    client_call(bb_connect(bb), "Settle", json_pack("{ss sb}", "job", id, "ran_at_target", 0));
  return bb_await_phase(bb, id, "failed");
}

static bool asks_an_operator(json_t *job, gconstpointer unused) {
  return plan_has(job, "needs an operator");
}

/* A caller who knows says so; the agent does the rest, and only what all other evidence allows. */
static void a_callers_word_counts(void **state) {
  Bb *bb = *state;
  const char *id = set_out(bb, NULL);
  Client *client;
  json_t *job;

  client = bb_connect(bb);
  client_refused(client, "Settle", json_pack("{ss sb}", "job", id, "ran_at_target", 0), "NotPossible");
  bb_set_host(bb, "b", "reachable", json_false());
  leave_stopped(bb);
  bb_await(bb, id, plan_has, "waits for the target's libvirtd to answer");
  client_refused(client, "Settle", json_pack("{ss sb}", "job", id, "ran_at_target", 0), "NotPossible");
  bb_set_host(bb, "b", "reachable", json_true());
  job = bb_await(bb, id, asks_an_operator, NULL);
  /* The commands, ready for a shell. */
  assert_non_null(strstr(text_of(job, "next_action"), " resume vm1`"));
  assert_non_null(strstr(text_of(job, "next_action"), " destroy vm1`"));
  client_call(client, "Settle", json_pack("{ss sb}", "job", id, "ran_at_target", 0));
  client_call(client, "Settle", json_pack("{ss sb}", "job", id, "ran_at_target", 0)); /* does no harm */
  job = bb_await_phase(bb, id, "failed");
  assert_ended_at_source(job);
  assert_non_null(find_event(job, "decision", "never ran at the target"));
  assert_guest(bb, "a", "running");
}

static void a_guest_said_to_have_run_there_is_not_touched(void **state) {
  Bb *bb = *state;
  const char *id = set_out(bb, NULL);
  json_t *job;

  bb_stop(bb, SIGKILL);
  leave_stopped(bb);
  bb_start(bb);
  bb_await(bb, id, asks_an_operator, NULL);
  client_call(bb_connect(bb), "Settle", json_pack("{ss sb}", "job", id, "ran_at_target", 1));
  job = bb_await_phase(bb, id, "succeeded");
  assert_text(job, "result.running_at", "unknown");
  assert_non_null(find_event(job, "warning", "never resume it"));
  assert_guest(bb, "a", "paused_migration");
}

/* The agent gave up the call after three seconds; when libvirtd continues, the world has changed. */
static void an_abandoned_call_does_nothing(void **state) {
  Bb *bb = *state;
  const char *id;
  json_t *job;

  json_object_set_new(bb->world, "keepalive_ms", json_integer(60000));
  id = set_out(bb, NULL);
  bb_set_call(bb, "resume", json_pack("{sb}", "hang", 1));
  leave_stopped(bb);
  bb_await_event(bb, id, "warning", "did not answer within 3 s");
  /* The owner resumes it with virsh, and pauses it for reasons of his own. */
  bb_set_domain(bb, "vm1", "state", json_string("running"));
  job = bb_await_phase(bb, id, "failed");
  assert_ended_at_source(job);
  bb_set_domain(bb, "vm1", "state", json_string("paused"));
  while (g_strcmp0(text_of(bb_truth(bb, "vm1"), "state"), "paused") != 0)
    g_usleep(10000);
  bb_set_call(bb, "resume", NULL);
  /* Once another call has been answered, this one is through as well. */
  for (int i = 0; i < 50; i++) {
    assert_guest(bb, "a", "paused");
    g_usleep(20000);
  }
}

static void no_resume_if_it_may_have_run_at_the_target(void **state) {
  Bb *bb = *state;
  /* libvirt defines nothing there, so absence proves nothing. */
  const char *id = set_out(bb, json_pack("{sb}", "persist_target", 0));
  json_t *job;

  leave_stopped(bb);
  job = bb_await(bb, id, plan_has, "needs an operator");
  assert_non_null(find_event(job, "phase", "unknown whether it ran at the target in between"));
  assert_guest(bb, "a", "paused_migration");
  /* The operator knows that it never ran there. */
  bb_set_domain(bb, "vm1", "state", json_string("running"));
  assert_ended_at_source(bb_await_phase(bb, id, "failed"));
}

static void no_resume_if_it_is_shut_off_at_the_target(void **state) {
  Bb *bb = *state;
  const char *id = set_out(bb, NULL);

  bb_set_domain(bb, "vm1", "leftovers", json_true());
  leave_stopped(bb);
  bb_await(bb, id, plan_has, "needs an operator");
  assert_guest(bb, "a", "paused_migration");
  /* The reason says that it never began to run: then that is known. */
  bb_set_domain(bb, "vm1", "start_failed", json_true());
  assert_ended_at_source(bb_await_phase(bb, id, "failed"));
  assert_guest(bb, "a", "running");
  assert_false(is_defined(bb, "b"));
}

static void a_pause_by_the_agent_ends_if_the_migration_fails(void **state) {
  Bb *bb = *state;
  const char *id = set_out(bb, NULL);
  json_t *job;

  bb_set_link(bb, "cut", json_true());
  client_call(bb_connect(bb), "Complete", json_pack("{ss ss}", "job", id, "by", "pause"));
  bb_await_event(bb, id, "action", "pause: accepted");
  assert_guest(bb, "a", "paused");
  client_call(bb_connect(bb), "Abort", json_pack("{ss}", "job", id));
  job = bb_await_phase(bb, id, "aborted");
  assert_ended_at_source(job);
  assert_guest(bb, "a", "running");
}

static void a_pause_by_the_agent_is_known_after_a_kill(void **state) {
  Bb *bb = *state;
  const char *id = set_out(bb, NULL);
  json_t *job;

  json_object_set_new(bb->world, "keepalive_ms", json_integer(600));
  bb_set_link(bb, "cut", json_true());
  client_call(bb_connect(bb), "Complete", json_pack("{ss ss}", "job", id, "by", "pause"));
  bb_await_event(bb, id, "action", "pause: accepted");
  /* Otherwise the next process must assume that it may still come. */
  while (!json_is_true(member_of(bb_record(bb, id), "agent.before.pause_answered")))
    g_usleep(10000);
  bb_stop(bb, SIGKILL);
  bb_start(bb);
  job = await_end_after_a_restart(bb, id);
  assert_ended_at_source(job);
  assert_guest(bb, "a", "running");
}

/* --- a pause on record --- */

#define RECORD_PATIENCE_MS 10000

/* Waits until the record says so, for "paused_by_agent" and the like. */
static void await_fact(Bb *bb, const char *id, const char *fact, bool expected) {
  gint64 until = g_get_monotonic_time() + RECORD_PATIENCE_MS * 1000;
  g_autofree char *path = g_strconcat("agent.before.", fact, NULL);

  while (json_is_true(member_of(bb_record(bb, id), path)) != expected) {
    if (g_get_monotonic_time() > until)
      fail_msg("the record still says %s: %s", fact, expected ? "false" : "true");
    g_usleep(20000);
  }
}

static void ask_pause(Bb *bb, const char *id) {
  client_call(bb_connect(bb), "Complete", json_pack("{ss ss}", "job", id, "by", "pause"));
}

/* Its owner pauses it while the agent is down, and the job is aborted: only the owner may resume it. */
static void assert_owners_pause_stays(Bb *bb, const char *id) {
  bb_stop(bb, SIGKILL);
  bb_set_domain(bb, "vm1", "state", json_string("paused"));
  bb_start(bb);
  bb_await_phase(bb, id, "migrating");
  client_call(bb_connect(bb), "Abort", json_pack("{ss}", "job", id));
  assert_ended_at_source(bb_await_phase(bb, id, "aborted"));
  assert_guest(bb, "a", "paused");
}

static void a_pause_that_never_reached_libvirt_is_taken_off_the_record(void **state) {
  Bb *bb = *state;
  const char *id = set_out(bb, NULL);

  bb_set_call(bb, "a.domain_status", json_pack("{ss}", "fail", "UNREACHABLE"));
  ask_pause(bb, id);
  bb_await_event(bb, id, "warning", "pause: refused");
  bb_set_call(bb, "a.domain_status", NULL);
  await_fact(bb, id, "paused_by_agent", false);
  assert_owners_pause_stays(bb, id);
}

/* The migration fails between the record of the pause and the pause itself, and the target is down. */
static void a_pause_that_came_too_late_is_taken_off_the_record(void **state) {
  Bb *bb = *state;
  const char *id = set_out(bb, NULL);

  bb_hold_disk(bb);
  client_send(bb_connect(bb), "Complete", json_pack("{ss ss}", "job", id, "by", "pause"), 0);
  bb_await_event(bb, id, "decision", "pause: requested");
  bb_set_host(bb, "b", "reachable", json_false());
  leave_stopped(bb);
  bb_await_phase(bb, id, "recovering");
  bb_let_disk_go(bb);
  bb_await_event(bb, id, "warning", "not paused: only a migrating job");
  await_fact(bb, id, "paused_by_agent", false);
  bb_stop(bb, SIGKILL);
  bb_set_domain(bb, "vm1", "state", json_string("paused"));
  bb_set_host(bb, "b", "reachable", json_true());
  bb_start(bb);
  /* Nobody here can know whether it ran at the target meanwhile. */
  bb_await(bb, id, asks_an_operator, NULL);
  client_call(bb_connect(bb), "Settle", json_pack("{ss sb}", "job", id, "ran_at_target", 0));
  assert_ended_at_source(bb_await_phase(bb, id, "failed"));
  assert_guest(bb, "a", "paused");
}

static void a_guest_resumed_by_its_owner_no_longer_counts_as_paused_by_the_agent(void **state) {
  Bb *bb = *state;
  const char *id = set_out(bb, NULL);

  bb_set_domain(bb, "vm1", "dirty_bytes_per_s", json_integer(1 << 20));
  ask_pause(bb, id);
  await_fact(bb, id, "pause_answered", true);
  /* The script takes effect when it changes: so it first states what is true already. */
  bb_set_domain(bb, "vm1", "state", json_string("paused"));
  while (strcmp(text_of(bb_truth(bb, "vm1"), "applied_state"), "paused") != 0)
    g_usleep(10000);
  bb_stop(bb, SIGKILL);
  bb_set_domain(bb, "vm1", "state", json_string("running"));
  bb_start(bb);
  await_fact(bb, id, "paused_by_agent", false);
  assert_owners_pause_stays(bb, id);
}

static void a_second_pause_does_not_undo_the_first(void **state) {
  Bb *bb = *state;
  const char *id = set_out(bb, NULL);

  bb_set_link(bb, "cut", json_true());
  ask_pause(bb, id);
  await_fact(bb, id, "pause_answered", true);
  ask_pause(bb, id);
  bb_await_event(bb, id, "warning", "pause: refused");
  await_fact(bb, id, "pause_answered", true);
  json_object_set_new(bb->world, "keepalive_ms", json_integer(600));
  bb_publish(bb);
  bb_stop(bb, SIGKILL);
  bb_start(bb);
  assert_ended_at_source(await_end_after_a_restart(bb, id));
  assert_guest(bb, "a", "running");
}

static void a_guest_paused_by_its_owner_meanwhile_stays_paused(void **state) {
  Bb *bb = *state;
  const char *id = set_out(bb, NULL);
  json_t *job;

  bb_set_domain(bb, "vm1", "state", json_string("paused"));
  client_call(bb_connect(bb), "Abort", json_pack("{ss}", "job", id));
  job = bb_await_phase(bb, id, "aborted");
  assert_ended_at_source(job);
  assert_guest(bb, "a", "paused");
}

/* Otherwise nobody could tell afterwards whose pause it was. */
static const struct Way {
  const char *name;
  const char *by, *event;
} ways[] = {
    {"complete by pause", "pause", "pause: refused: the guest is not running"},
    {"complete by post-copy", "post_copy", "start_post_copy: refused: the guest is not running"},
};

static void complete_does_not_claim_a_guest_paused_by_its_owner(void **state) {
  Bb *bb = *state;
  const struct Way *way = bb->row;
  const char *id = set_out(bb, json_pack("{sb}", "allow_post_copy", 1));
  json_t *job;

  bb_set_domain(bb, "vm1", "state", json_string("paused"));
  client_call(bb_connect(bb), "Complete", json_pack("{ss ss}", "job", id, "by", way->by));
  bb_await_event(bb, id, "warning", way->event);
  client_call(bb_connect(bb), "Abort", json_pack("{ss}", "job", id));
  job = bb_await_phase(bb, id, "aborted");
  assert_ended_at_source(job);
  assert_guest(bb, "a", "paused");
}

static void a_definition_left_at_the_target_is_removed(void **state) {
  Bb *bb = *state;
  const char *id = set_out(bb, NULL);
  json_t *job;

  bb_set_domain(bb, "vm1", "leftovers", json_true());
  client_call(bb_connect(bb), "Abort", json_pack("{ss}", "job", id));
  job = bb_await_phase(bb, id, "aborted");
  assert_ended_at_source(job);
  assert_non_null(
      find_event(job, "action", "removes the definition that the failed migration left at the target"));
  assert_true(is_defined(bb, "a"));
  assert_false(is_defined(bb, "b"));
}

static void a_definition_that_the_target_had_before_stays(void **state) {
  Bb *bb = *state;
  const char *id;
  json_t *job;

  bb_start(bb);
  bb_set_domain(bb, "vm1", "defined", json_pack("[s]", "b"));
  bb_link_slow(bb);
  id = text_of(client_start(bb_connect(bb), "vm1", NULL), "id");
  bb_await(bb, id, bb_has_numbers, NULL);
  client_call(bb_connect(bb), "Abort", json_pack("{ss}", "job", id));
  job = bb_await_phase(bb, id, "aborted");
  assert_ended_at_source(job);
  assert_true(is_defined(bb, "b"));
}

static void a_definition_left_at_the_source_is_removed(void **state) {
  Bb *bb = *state;
  const char *id = set_out(bb, NULL);
  json_t *job;

  bb_set_domain(bb, "vm1", "leftovers", json_true());
  bb_link_fast(bb);
  job = bb_await_phase(bb, id, "succeeded");
  assert_non_null(find_event(job, "action", "removes the definition that the migration left at the source"));
  assert_false(is_defined(bb, "a"));
  assert_true(is_defined(bb, "b"));
}

static void a_definition_that_was_to_stay_at_the_source_stays(void **state) {
  Bb *bb = *state;
  const char *id = set_out(bb, json_pack("{sb}", "undefine_source", 0));

  bb_link_fast(bb);
  bb_await_phase(bb, id, "succeeded");
  assert_true(is_defined(bb, "a"));
}

static void a_definition_that_cannot_be_removed_is_reported(void **state) {
  Bb *bb = *state;
  const char *id = set_out(bb, NULL);
  json_t *job;

  bb_set_call(bb, "undefine", json_pack("{ss}", "fail", "DENIED"));
  bb_set_domain(bb, "vm1", "leftovers", json_true());
  bb_link_fast(bb);
  job = bb_await_phase(bb, id, "succeeded");
  assert_non_null(
      find_event(job, "warning",
                 "could not remove the definition that the migration left at the source: undefine it there"));
  assert_true(is_defined(bb, "a"));
}

int main(void) {
  Tests tests = {0};

  TESTS_ADD(&tests, a_guest_left_stopped_is_resumed);
  TESTS_ADD(&tests, a_guest_paused_before_the_migration_stays_paused);
  TESTS_ADD(&tests, no_resume_over_a_gap_at_the_target);
  TESTS_ADD(&tests, no_resume_after_a_restart);
  TESTS_ADD(&tests, a_callers_word_counts);
  TESTS_ADD(&tests, a_guest_said_to_have_run_there_is_not_touched);
  TESTS_ADD(&tests, an_abandoned_call_does_nothing);
  TESTS_ADD(&tests, no_resume_if_it_may_have_run_at_the_target);
  TESTS_ADD(&tests, no_resume_if_it_is_shut_off_at_the_target);
  TESTS_ADD(&tests, a_pause_by_the_agent_ends_if_the_migration_fails);
  TESTS_ADD(&tests, a_pause_by_the_agent_is_known_after_a_kill);
  TESTS_ADD(&tests, a_pause_that_never_reached_libvirt_is_taken_off_the_record);
  TESTS_ADD(&tests, a_pause_that_came_too_late_is_taken_off_the_record);
  TESTS_ADD(&tests, a_guest_resumed_by_its_owner_no_longer_counts_as_paused_by_the_agent);
  TESTS_ADD(&tests, a_second_pause_does_not_undo_the_first);
  TESTS_ADD(&tests, a_guest_paused_by_its_owner_meanwhile_stays_paused);
  TESTS_ADD_ROWS(&tests, complete_does_not_claim_a_guest_paused_by_its_owner, ways);
  TESTS_ADD(&tests, a_definition_left_at_the_target_is_removed);
  TESTS_ADD(&tests, a_definition_that_the_target_had_before_stays);
  TESTS_ADD(&tests, a_definition_left_at_the_source_is_removed);
  TESTS_ADD(&tests, a_definition_that_was_to_stay_at_the_source_stays);
  TESTS_ADD(&tests, a_definition_that_cannot_be_removed_is_reported);
  return bb_run(&tests, "settle");
}
