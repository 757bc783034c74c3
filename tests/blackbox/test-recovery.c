/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* `handoffctl show` says in words why a guest is stuck, and what the agent is trying. */
#include "tests/blackbox/harness.h"

#include <signal.h>

typedef struct Row {
  const char *name;
  bool post_copy;
  void (*happen)(Bb *bb);
  const char *words[6]; /* all at once, in what is shown */
  void (*pass)(Bb *bb); /* it is over */
  const char *phase;    /* and the job ends so */
} Row;

static void cut(Bb *bb, unsigned keepalive_ms) {
  json_object_set_new(bb->world, "keepalive_ms", json_integer(keepalive_ms));
  bb_set_link(bb, "cut", json_true());
}

static void heal(Bb *bb) {
  bb_set_link(bb, "cut", json_false());
  bb_set_host(bb, "a", "reachable", json_true());
  bb_set_host(bb, "b", "reachable", json_true());
  bb_link_fast(bb);
}

static void stream_is_cut(Bb *bb) {
  cut(bb, 200);
}

static void stream_is_cut_and_target_away(Bb *bb) {
  cut(bb, 200);
  bb_set_host(bb, "b", "reachable", json_false());
}

static void packets_vanish(Bb *bb) {
  cut(bb, 60000);
}

static void source_goes_away(Bb *bb) {
  bb_set_host(bb, "a", "reachable", json_false());
}

static void target_goes_away(Bb *bb) {
  bb_set_host(bb, "b", "reachable", json_false());
  bb_set_call(bb, "migrate", json_pack("{si}", "detach_after_ms", 1));
  bb_set_domain(bb, "vm1", "state", json_string("paused_migration"));
}

/* libvirt has given up the migration, QEMU has not. */
static void libvirt_alone_gives_up(Bb *bb) {
  packets_vanish(bb);
  bb_set_domain(bb, "vm1", "states",
                json_pack("{ss ss}", "a", "paused_postcopy_failed", "b", "running_postcopy"));
  bb_stop(bb, SIGKILL);
  bb_start(bb);
}

static void libvirt_sees_it_again(Bb *bb) {
  bb_set_domain(bb, "vm1", "states", NULL);
  heal(bb);
}

/* It was not the migration that stopped it, so the agent must not resume it. */
static void its_owner_had_paused_it(Bb *bb) {
  bb_set_domain(bb, "vm1", "state", json_string("paused_migration"));
  bb_set_domain(bb, "vm1", "states", json_pack("{ss}", "b", "inactive"));
}

static void its_owner_resumes_it(Bb *bb) {
  bb_set_domain(bb, "vm1", "states", NULL);
  bb_set_domain(bb, "vm1", "state", json_string("running"));
}

/* While it was down the guest may have run there: only an operator can know. */
static void target_comes_back_and_an_operator_resumes_it(Bb *bb) {
  heal(bb);
  its_owner_resumes_it(bb);
}

static const Row rows[] = {
    {"interrupted post-copy: what was tried, when, and with what result",
     true,
     stream_is_cut,
     {"phase        recovering, post-copy", "recovering   for ",
      "seen         source: paused_postcopy_failed, migration job active; target: running_postcopy_failed",
      " to resume post-copy, last one ", "the link is cut",
      "next         resumes post-copy as soon as the link is back, retrying until then"},
     heal,
     "succeeded"},
    {"the target does not answer: the agent waits for it, and does nothing before",
     true,
     stream_is_cut_and_target_away,
     {"phase        recovering, post-copy", "target: unknown", "the target does not answer",
      "next         waits for the target's libvirtd to answer", "touches nothing until then"},
     heal,
     "succeeded"},
    {"no data moves in post-copy: where to look, and what not to do",
     true,
     packets_vanish,
     {"phase        recovering, post-copy", "seen         no data has moved for 3 s in post-copy",
      "Check the link; destroy neither copy", "next         watches the stream"},
     heal,
     "succeeded"},
    {"libvirt has given up, QEMU has not: the agent watches",
     true,
     libvirt_alone_gives_up,
     {"seen         source: paused_postcopy_failed", " to resume post-copy, last one ",
      "QEMU reports its stream as intact and continues by itself"},
     libvirt_sees_it_again,
     "succeeded"},
    {"the source does not answer: the agent waits for it",
     false,
     source_goes_away,
     {"phase        recovering", "source: unknown", "the source does not answer",
      "next         waits for the source's libvirtd to answer"},
     heal,
     "succeeded"},
    {"a failed migration, and the target does not answer",
     false,
     target_goes_away,
     {"phase        recovering", "seen         source: paused_migration; target: unknown",
      "next         waits for the target's libvirtd to answer"},
     target_comes_back_and_an_operator_resumes_it,
     "failed"},
    {"an operator is needed",
     false,
     its_owner_had_paused_it,
     {"phase        recovering", "seen         source: paused_migration; target: inactive",
      "next         needs an operator"},
     its_owner_resumes_it,
     "failed"},
};

static char *show(Bb *bb) {
  const char *argv[] = {g_getenv("HANDOFFCTL"), "--socket", bb->socket, "show", "vm1", NULL};
  g_autoptr(GError) error = NULL;
  char *text = NULL;
  int status;

  assert_true(g_spawn_sync(NULL, (char **)(uintptr_t)argv, NULL, G_SPAWN_STDERR_TO_DEV_NULL, NULL, NULL,
                           &text, NULL, &status, &error));
  assert_true(g_spawn_check_wait_status(status, NULL));
  return text;
}

/* The first of the texts that is missing, or NULL. */
static const char *missing(const Row *row, const char *text) {
  for (size_t i = 0; i < G_N_ELEMENTS(row->words) && row->words[i]; i++)
    if (!strstr(text, row->words[i]))
      return row->words[i];
  return NULL;
}

static void await_words(Bb *bb) {
  gint64 until_us = g_get_monotonic_time() + BB_PATIENCE_MS * 1000;

  for (;;) {
    g_autofree char *text = show(bb);
    const char *not_there = missing(bb->row, text);

    if (!not_there)
      return;
    if (g_get_monotonic_time() > until_us)
      fail_msg("never shown: '%s', but:\n%s", not_there, text);
    g_usleep(20000);
  }
}

static bool in_post_copy(json_t *job, gconstpointer data) {
  return strcmp(text_of(job, "stage"), "post_copy") == 0;
}

static void held_up(void **state) {
  Bb *bb = *state;
  const Row *row = bb->row;
  const char *id;

  bb_start(bb);
  bb_link_slow(bb);
  id = text_of(client_start(bb_connect(bb), "vm1", json_pack("{sb}", "allow_post_copy", row->post_copy)),
               "id");
  bb_await(bb, id, bb_has_numbers, NULL);
  if (row->post_copy) {
    client_call(bb_connect(bb), "Complete", json_pack("{ss ss}", "job", id, "by", "post_copy"));
    bb_await(bb, id, in_post_copy, NULL);
  }
  row->happen(bb);
  await_words(bb);
  row->pass(bb);
  assert_events_whole(bb_await_phase(bb, id, row->phase));
}

int main(void) {
  Tests tests = {0};

  if (!g_getenv("HANDOFFCTL")) {
    fprintf(stderr, "HANDOFFCTL is to name the program\n");
    return 1;
  }
  for (size_t i = 0; i < G_N_ELEMENTS(rows); i++)
    tests_add(&tests, rows[i].name, held_up, (void *)(uintptr_t)&rows[i]);
  return bb_run(&tests, "recovery");
}
