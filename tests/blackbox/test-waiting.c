/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* `handoffctl list` and `show` say of a waiting job: its position, the limit or the condition that holds it, since when, and until
 * when. */
#include "tests/blackbox/harness.h"

#include <signal.h>

#define WORDS_MAX 6

typedef struct Row {
  const char *name;
  const char *config;
  void (*happen)(Bb *bb); /* before the jobs come; may be NULL */
  const char *first_sees; /* a warning of the first one, before the last one comes; or NULL */
  unsigned n;             /* jobs: of vm1, vm2, …; the last one waits */
  const char *shown[WORDS_MAX];
  const char *listed[WORDS_MAX];
  void (*pass)(Bb *bb); /* what it waits for */
} Row;

static void free_links(Bb *bb) {
  bb_link_fast(bb);
}

static void target_goes_away(Bb *bb) {
  bb_set_host(bb, "b", "reachable", json_false());
}

static void target_comes_back(Bb *bb) {
  bb_set_host(bb, "b", "reachable", json_true());
  bb_link_fast(bb);
}

static void libvirtd_goes_away(Bb *bb) {
  bb_stop(bb, SIGKILL);
  bb_set_call(bb, "b.open", NULL);
  bb_set_host(bb, "a", "reachable", json_false());
  bb_start(bb);
}

static void libvirtd_comes_back(Bb *bb) {
  bb_set_host(bb, "a", "reachable", json_true());
  bb_link_fast(bb);
}

static void limits_are_refused(Bb *bb) {
  bb_set_call(bb, "set_bandwidth", json_pack("{ss ss}", "fail", "FAILED", "message", "not today"));
}

static void limits_are_taken(Bb *bb) {
  bb_set_call(bb, "set_bandwidth", NULL);
  bb_link_fast(bb);
}

static const Row rows[] = {
    {"the limit of the node",
     "MaxOutgoing=1\n",
     NULL,
     NULL,
     3,
     {"waiting for  OUTGOING_LIMIT: 1 of at most 1 migrations out of this node are running (MaxOutgoing=)\n",
      "queue        position 2, waiting since 20", ", times out at 20"},
     {"pending", "#2 OUTGOING_LIMIT until "},
     free_links},
    {"the limit of the target",
     "MaxOutgoing=8\nMaxPerTarget=1\n",
     NULL,
     NULL,
     2,
     {"waiting for  TARGET_LIMIT: 1 of at most 1 migrations to qemu+tcp://b/system",
      " are running (MaxPerTarget=)\n", "queue        position 1, waiting since 20", ", times out at 20"},
     {"pending", "#1 TARGET_LIMIT until "},
     free_links},
    {"the bandwidth of the node",
     "MaxOutgoing=8\nMaxBandwidth=64M\n",
     limits_are_refused,
     "count as in use",
     3,
     {"waiting for  BANDWIDTH_LIMIT: the 2 running migrations leave too little of MaxBandwidth=64M",
      "queue        position 1, waiting since 20", ", times out at 20"},
     {"pending", "#1 BANDWIDTH_LIMIT until "},
     limits_are_taken},
    {"a target that does not answer",
     "",
     target_goes_away,
     NULL,
     1,
     {"waiting for  TARGET_UNREACHABLE: ", "next check in ", "held since   20",
      "queue        position 1, waiting since 20", ", times out at 20"},
     {"pending", "#1 TARGET_UNREACHABLE until "},
     target_comes_back},
    {"this node's libvirtd",
     "ConnectTimeout=2s\n",
     libvirtd_goes_away,
     NULL,
     0,
     {"waiting for  SOURCE_UNREACHABLE: this node's libvirtd", "does not answer",
      "queue        position 1, waiting since 20", ", times out at 20"},
     {"pending", "#1 SOURCE_UNREACHABLE until "},
     libvirtd_comes_back},
    {"without a timeout",
     "MaxOutgoing=1\nPendingTimeout=0\n",
     NULL,
     NULL,
     2,
     {"waiting for  OUTGOING_LIMIT: ", "queue        position 1, waiting since 20", ", no timeout\n"},
     {"pending", "#1 OUTGOING_LIMIT  "},
     free_links},
};

/* With one argument, or NULL. */
static char *handoffctl(Bb *bb, const char *verb, const char *argument) {
  const char *argv[] = {g_getenv("HANDOFFCTL"), "--socket", bb->socket, verb, argument, NULL};
  g_autoptr(GError) error = NULL;
  char *text = NULL;
  int status;

  assert_true(g_spawn_sync(NULL, (char **)(uintptr_t)argv, NULL, G_SPAWN_STDERR_TO_DEV_NULL, NULL, NULL,
                           &text, NULL, &status, &error));
  assert_true(g_spawn_check_wait_status(status, NULL));
  return text;
}

/* The domain's line in the list; empty if there is none. */
static char *line_of(const char *text, const char *domain) {
  g_auto(GStrv) lines = g_strsplit(text, "\n", -1);
  g_autofree char *word = g_strdup_printf("  %s  ", domain);

  for (char **line = lines; *line; line++)
    if (strstr(*line, word))
      return g_strdup(*line);
  return g_strdup("");
}

static void await_words(Bb *bb, const char *domain, bool list, const char *const *words) {
  gint64 until_us = g_get_monotonic_time() + BB_PATIENCE_MS * 1000;

  for (;;) {
    g_autofree char *all = list ? handoffctl(bb, "list", NULL) : handoffctl(bb, "show", domain);
    g_autofree char *text = list ? line_of(all, domain) : g_steal_pointer(&all);
    const char *missing = NULL;

    for (int i = 0; i < WORDS_MAX && words[i] && !missing; i++)
      missing = strstr(text, words[i]) ? NULL : words[i];
    if (!missing)
      return;
    if (g_get_monotonic_time() > until_us)
      fail_msg("never shown: '%s', but:\n%s", missing, text);
    g_usleep(20000);
  }
}

static void waits(void **state) {
  g_autofree char *first = NULL;
  Bb *bb = *state;
  const Row *row = bb->row;
  g_autofree char *domain = g_strdup_printf("vm%u", MAX(row->n, 1));
  json_t *job = NULL;

  bb_configure(bb, row->config);
  bb_start(bb);
  bb_link_slow(bb);
  if (row->n == 0) { /* it came while all was well */
    bb_set_call(bb, "b.open", json_pack("{sb}", "hang", 1));
    job = client_start(bb_connect(bb), "vm1", NULL);
  }
  if (row->happen)
    row->happen(bb);
  for (unsigned i = 1; i <= row->n; i++) {
    g_autofree char *name = g_strdup_printf("vm%u", i);

    if (i == row->n && row->first_sees)
      bb_await_event(bb, first, "warning", row->first_sees);
    job = client_start(bb_connect(bb), name, NULL);
    first = first ? first : g_strdup(text_of(job, "id"));
    /* Only the last one waits for the first one's start. */
    if (i == 1 && row->n > 1)
      bb_await(bb, text_of(job, "id"), bb_has_numbers, NULL);
  }
  await_words(bb, domain, false, row->shown);
  await_words(bb, domain, true, row->listed);
  row->pass(bb);
  bb_await_phase(bb, text_of(job, "id"), "succeeded");
}

/* Waiting jobs are listed in queue order, not by arrival. */
static void a_list_has_the_order_of_the_queue(void **state) {
  Bb *bb = *state;
  Client *client;
  const char *third, *second;
  g_autofree char *text = NULL;

  bb_configure(bb, "MaxOutgoing=1\n");
  bb_start(bb);
  bb_link_slow(bb);
  client = bb_connect(bb);
  bb_await_phase(bb, text_of(client_start(client, "vm1", NULL), "id"), "migrating");
  client_start(client, "vm2", NULL);
  client_start(client, "vm3", json_pack("{ss}", "priority", "user"));
  text = handoffctl(bb, "list", NULL);
  second = strstr(text, "  vm2  ");
  third = strstr(text, "  vm3  ");
  assert_non_null(second);
  assert_non_null(third);
  assert_true(third < second);
  assert_true(strstr(text, "  vm1  ") < third);
}

int main(void) {
  Tests tests = {0};

  if (!g_getenv("HANDOFFCTL")) {
    fprintf(stderr, "HANDOFFCTL is to name the program\n");
    return 1;
  }
  for (size_t i = 0; i < G_N_ELEMENTS(rows); i++)
    tests_add(&tests, rows[i].name, waits, (void *)(uintptr_t)&rows[i]);
  TESTS_ADD(&tests, a_list_has_the_order_of_the_queue);
  return bb_run(&tests, "waiting");
}
