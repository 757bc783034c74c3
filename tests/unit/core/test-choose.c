/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The choice of a way, seen through the monitor's steps: when it asks for what, and when for nothing.
 *
 * Most films are of a guest of 256 MiB on 50 MiB/s: the first pass takes 5.12 s. A hopeless one dirties 100 MiB in it, and in
 * each pass after it, which then takes 2 s: passes begin at 5.12, 7.12, 9.12 s, and the floor is 2 s. */
#include "tests/unit/core/film.h"

#include <math.h>

#define EXPECTED 6
#define HOPELESS .passes = {256, 100}, .link = 50
/* In a second it writes all of its set: seen before the start, that is known in the first pass. */
#define PROBED .probe = 100

/* One action: in which pass, between which times, with which limit; 0: any. */
typedef struct Expected {
  MigActionKind kind;
  MigCause cause;
  uint64_t pass;
  uint64_t from_ms, to_ms;
  uint64_t least_ms, most_ms; /* its downtime limit */
  const char *words;          /* in its message */
} Expected;

#define GIVEN_UP(in_pass) .kind = MIG_ACTION_ABORT, .cause = MIG_CAUSE_NOT_CONVERGING, .pass = (in_pass)
/* It may end whenever it fits the goal, and is waited for once more as long as the first pass took: five seconds. */
#define WAITED_FOR(in_pass)                                                                                  \
  { LIMITED(in_pass, 255, 255), .words = "waiting for a pass that fits" }
#define PAUSED(in_pass)    .kind = MIG_ACTION_PAUSE, .pass = (in_pass)
#define POST_COPY(in_pass) .kind = MIG_ACTION_START_POST_COPY, .pass = (in_pass)
#define LIMITED(in_pass, at_least, at_most)                                                                  \
  .kind = MIG_ACTION_SET_DOWNTIME, .pass = (in_pass), .least_ms = (at_least), .most_ms = (at_most)

typedef struct Row {
  const char *name;
  Film film;
  Expected expected[EXPECTED];
} Row;

static const Row rows[] = {
    /* None is open */
    {"a hopeless guest is given up once it was waited for", {HOPELESS}, {WAITED_FOR(3), {GIVEN_UP(5)}}},
    {"with what would do",
     {HOPELESS},
     {WAITED_FOR(3),
      {GIVEN_UP(5),
       .words = "meanwhile. Would finish with max_pause_ms=2282, allow_post_copy or allow_auto_converge."}}},
    {"and of that only what is not permitted",
     {HOPELESS, .goals = "allow_post_copy=yes", .not_started_for = true},
     {WAITED_FOR(3),
      {GIVEN_UP(5), .words = "Not possible: post_copy (not enabled at the start). Would finish with "
                             "max_pause_ms=2282 or allow_auto_converge."}}},
    {"and why each way is barred",
     {HOPELESS, .goals = "allow_post_copy=yes max_pause_ms=1s", .not_started_for = true},
     {WAITED_FOR(3),
      {GIVEN_UP(5), .words = "Will not converge: 100 MiB per pass at 50 MiB/s, guest dirties 100 MiB "
                             "meanwhile. Not possible: pause (pause too long), "
                             "post_copy (not enabled at the start). Would finish with max_pause_ms="}}},
    {"not earlier because a probe foretold it", {HOPELESS, PROBED}, {WAITED_FOR(3), {GIVEN_UP(5)}}},
    {"one that is taken up in the middle is watched for two passes as well",
     {HOPELESS, .first_iteration = 57},
     {{GIVEN_UP(59)}}},
    {"near its goal it gets three passes that gain nothing", /* a floor of 0.4 s, of 0.255 */
     {.passes = {256, 20}, .link = 50, .poll_ms = 100},
     {WAITED_FOR(5), {GIVEN_UP(0), .from_ms = 10000, .to_ms = 10500}}},
    {"what gains a little each time is not given up",
     {.passes = {256, 100},
      .shrinks = 0.01,
      .link = 50,
      .run_ms = 60000,
      .goals = "completion_timeout_s_per_gib=0"},
     {{0}}},
    {"nor what gained before, until it does no more",
     {.passes = {256, 100, 97, 94, 91, 88, 88}, .link = 50},
     {{GIVEN_UP(7)}}},
    {"nor a guest that was seen to change, for a minute", /* 10 MiB after 100: the curve begins anew */
     {.passes = {256, 100, 10, 100}, .link = 50, .run_ms = 100000, .goals = "completion_timeout_s_per_gib=0"},
     {WAITED_FOR(4), {GIVEN_UP(0), .from_ms = 67400, .to_ms = 69600}}}, /* and again, 0.2 s later */

    /* Bursts: the CPUs show them */
    {"a guest that works in bursts is not given up",
     {HOPELESS, .calm_ms = 5000, .busy_ms = 5000, .run_ms = 120000,
      .goals = "completion_timeout_s_per_gib=0"},
     {WAITED_FOR(3)}},
    {"one that is always busy is", {HOPELESS, .busy_ms = 5000}, {WAITED_FOR(3), {GIVEN_UP(5)}}},
    {"one that was calm is, after a minute of work",
     {HOPELESS, .calm_ms = 3000, .busy_on = true, .run_ms = 100000,
      .goals = "completion_timeout_s_per_gib=0"},
     {WAITED_FOR(3), {GIVEN_UP(0), .from_ms = 62000, .to_ms = 67000}}},
    {"one that works in bursts is not paused before the wait is as dear as the pause", /* 20 × 2.05 s after 5.2 s */
     {HOPELESS, PROBED, .calm_ms = 5000, .busy_ms = 5000, .run_ms = 60000,
      .goals = "max_pause_ms=4s completion_timeout_s_per_gib=0"},
     {{PAUSED(0), .from_ms = 46000, .to_ms = 49500}}},
    {"nor when the deadline comes near", /* 15 s; it would be over after 9.2 s, and after 11.2 s in the next pass */
     {HOPELESS, PROBED, .calm_ms = 5000, .busy_ms = 5000, .run_ms = 14000,
      .goals = "max_pause_ms=4s completion_timeout_s_per_gib=60"},
     {{PAUSED(2)}}},

    /* Pauses */
    {"a hopeless one is paused as the second pass begins, for what it takes and a little more",
     {HOPELESS, PROBED, .goals = "max_pause_ms=4s"},
     {{PAUSED(2), .least_ms = 2083, .most_ms = 2087}}}, /* 2 s × 1.04 + 5 ms */
    {"and for no more than is permitted",
     {HOPELESS, PROBED, .goals = "max_pause_ms=2100"},
     {{PAUSED(2), .least_ms = 2055, .most_ms = 2055}}},
    {"not at all where it would be too long",
     {HOPELESS, PROBED, .goals = "max_pause_ms=2s"},
     {WAITED_FOR(3), {GIVEN_UP(5), .words = "pause (pause too long)"}}},
    {"one that may be near the link is not paused on a forecast alone", /* from one long pass it seems to be */
     {HOPELESS, .goals = "max_pause_ms=4s"},
     {{PAUSED(3), .least_ms = 2083, .most_ms = 2087}}},
    {"one near the link is not paused while passes gain",
     {.passes = {256, 100, 97, 94, 91, 88, 88}, .link = 50, .goals = "max_pause_ms=4s"},
     {{PAUSED(7)}}},
    {"nor longer than that is worth",
     {.passes = {256, 100},
      .shrinks = 0.006,
      .link = 50,
      .run_ms = 60000,
      .goals = "max_pause_ms=4s completion_timeout_s_per_gib=0"},
     {{PAUSED(0), .from_ms = 40000, .to_ms = 48000}}},
    {"a pause that grows is permitted to, in the next pass",
     {.passes = {256, 100, 140}, .link = 50, .probe = 100, .goals = "max_pause_ms=4s"},
     {{PAUSED(2), .least_ms = 2083, .most_ms = 2087}, {PAUSED(3), .least_ms = 2700, .most_ms = 2955}}},

    /* Post-copy */
    {"post-copy as soon as it is known", /* from one long pass the guest seems to be tame */
     {HOPELESS, .goals = "allow_post_copy=yes"},
     {{POST_COPY(3)}}},
    {"not in the first pass, whatever a probe foretold",
     {HOPELESS, PROBED, .goals = "allow_post_copy=yes"},
     {{POST_COPY(3)}}},
    {"unless it would be late after that", /* it ends at 6 s */
     {HOPELESS, PROBED, .goals = "allow_post_copy=yes completion_timeout_s_per_gib=28"},
     {{POST_COPY(1), .from_ms = 1200, .to_ms = 1600}}},
    {"not where it was not asked for at the start",
     {HOPELESS, .goals = "allow_post_copy=yes", .not_started_for = true},
     {WAITED_FOR(3), {GIVEN_UP(5)}}},
    {"not on a link that slows down, until that is its pace", /* the mean follows within 2.5 s */
     {HOPELESS, .goals = "allow_post_copy=yes completion_timeout_s_per_gib=0", .slow = {5000, 60000},
      .slow_link = 20},
     {{POST_COPY(3)}}},
    {"not on one that stalls",
     {HOPELESS, .goals = "allow_post_copy=yes completion_timeout_s_per_gib=0 progress_timeout_s=10",
      .poll_ms = 1000, .slow = {5130, 60000}},
     {{.kind = MIG_ACTION_ABORT, .cause = MIG_CAUSE_LINK_STALLED, .from_ms = 15000, .to_ms = 17000}}},
    {"nor on one that stalled before the guest was known",
     {HOPELESS, PROBED, .goals = "allow_post_copy=yes completion_timeout_s_per_gib=0 progress_timeout_s=10",
      .slow = {1000, 60000}},
     {{.kind = MIG_ACTION_ABORT, .cause = MIG_CAUSE_LINK_STALLED}}},
    {"after a gap in the readings only with the second of them",
     {HOPELESS, .goals = "allow_post_copy=yes", .blind = {4900, 8100}},
     {{POST_COPY(0), .from_ms = 8800, .to_ms = 9700}}},
    {"a refused one is not asked for again",
     {HOPELESS, .goals = "allow_post_copy=yes", .refused = 1U << MIG_ACTION_START_POST_COPY},
     {{POST_COPY(3)}, WAITED_FOR(4), {GIVEN_UP(5), .words = "post_copy (tried without success)"}}},
    {"instead the next way is taken",
     {HOPELESS, PROBED, .goals = "allow_post_copy=yes max_pause_ms=4s",
      .refused = 1U << MIG_ACTION_START_POST_COPY},
     {{POST_COPY(3)}, {PAUSED(4)}}},
    {"and the next",
     {HOPELESS, PROBED, .goals = "allow_post_copy=yes max_pause_ms=4s",
      .refused = 1U << MIG_ACTION_START_POST_COPY | 1U << MIG_ACTION_PAUSE},
     {{POST_COPY(3)},
      {PAUSED(4)},
      {LIMITED(4, 255, 255)}, /* whatever came of the refused one, the goal holds */
      {GIVEN_UP(5), .words = "pause (tried without success), post_copy (tried without success)"}}},
    {"one that does not come within ten seconds counts as refused",
     {HOPELESS, PROBED, .goals = "allow_post_copy=yes max_pause_ms=4s completion_timeout_s_per_gib=0",
      .deaf = true},
     {{POST_COPY(3)}, {PAUSED(0), .from_ms = 17200, .to_ms = 21000}}},

    /* The downtime limit */
    {"the limit is raised to where the switch is to happen", /* 10 MiB each time: 0.2 s */
     {.passes = {256, 10}, .link = 50, .poll_ms = 100, .run_ms = 6500},
     {{LIMITED(3, 199, 201)}}},
    {"it is not lowered for a guest that needs less",
     {.passes = {256, 10, 10, 4}, .link = 50, .poll_ms = 50, .run_ms = 5900},
     {{LIMITED(3, 199, 201)}}},
    {"it is doubled when the end that was foreseen is overdue, up to the goal",
     {.passes = {256, 5}, .link = 50, .poll_ms = 50, .run_ms = 12000},
     {{LIMITED(3, 99, 101)}, {LIMITED(12, 198, 202)}, {LIMITED(21, 255, 255)}}},
    {"what is off by a quarter is left",
     {.passes = {256, 10}, .link = 50, .poll_ms = 100, .first_limit_ms = 165, .run_ms = 6500},
     {{0}}},
    {"a tame guest ends below the first limit",
     {.passes = {256, 4, 0.1}, .link = 50, .poll_ms = 20, .run_ms = 5200},
     {{0}}},
    {"near the link it stays: passes below the goal are nearly free", /* ¼ s after 49 s, 20 ms after 54.6 */
     {.passes = {256, 100},
      .shrinks = 0.04,
      .link = 50,
      .poll_ms = 100,
      .run_ms = 54000,
      .goals = "completion_timeout_s_per_gib=0"},
     {{0}}},
    {"a refused limit is asked for again",
     {.passes = {256, 5},
      .link = 50,
      .poll_ms = 50,
      .run_ms = 11500,
      .goals = "max_downtime_ms=150",
      .refused = 1U << MIG_ACTION_SET_DOWNTIME},
     {{LIMITED(3, 99, 101)}, {LIMITED(0, 100, 105), .from_ms = 10200, .to_ms = 10600}}},

    /* Tuned */
    {"a goal that is tightened holds at once",
     {HOPELESS, .first_limit_ms = 255, .tuned_at_ms = 3000, .tuned = "max_downtime_ms=100", .run_ms = 5000},
     {{LIMITED(1, 55, 55), .from_ms = 3000, .to_ms = 3400}}},
    {"so does that of a pause which is under way",
     {HOPELESS, PROBED, .goals = "max_pause_ms=4s", .tuned_at_ms = 6000, .tuned = "max_pause_ms=1s"},
     {{PAUSED(2)}, {LIMITED(2, 955, 955), .from_ms = 6000, .to_ms = 6400}, {GIVEN_UP(5)}}},
    {"and one that is no longer permitted",
     {HOPELESS, PROBED, .goals = "max_pause_ms=4s", .tuned_at_ms = 6000, .tuned = "max_pause_ms=0"},
     {{PAUSED(2)}, {LIMITED(2, 255, 255), .from_ms = 6000, .to_ms = 6400}, {GIVEN_UP(5)}}},
    {"a downtime that is tightened leaves a pause alone",
     {HOPELESS, PROBED, .goals = "max_pause_ms=4s", .tuned_at_ms = 6000,
      .tuned = "max_pause_ms=4s max_downtime_ms=100", .run_ms = 20000},
     {{PAUSED(2)}}},
    {"a goal that is loosened opens a way",
     {HOPELESS, PROBED, .tuned_at_ms = 6000, .tuned = "max_downtime_ms=2500", .run_ms = 10000},
     {{LIMITED(3, 1999, 2001)}}},

    /* When nothing is looked at */
    {"nothing is decided while disks are copied",
     {HOPELESS, .disks = {0, 20000}, .goals = "copy_disks=all", .run_ms = 40000},
     {{LIMITED(3, 255, 255), .from_ms = 27000}, {GIVEN_UP(5)}}},
    {"but while their copy is kept up to date, and is never quite idle", /* 2.5 MiB: 50 ms of the goal */
     {.passes = {256, 2},
      .link = 50,
      .poll_ms = 50,
      .disks = {0, 20000},
      .owed = 2.5,
      .goals = "copy_disks=all max_downtime_ms=140",
      .run_ms = 32000},
     {{LIMITED(4, 39, 41), .from_ms = 25000}}},
    {"for which the pause may be too long", /* 12.5 MiB: 250 ms */
     {.passes = {256, 4},
      .link = 50,
      .poll_ms = 50,
      .disks = {0, 20000},
      .owed = 12.5,
      .goals = "copy_disks=all",
      .run_ms = 60000},
     {{GIVEN_UP(0), .from_ms = 29000, .words = "pre_copy (pause too long)"}}},
    {"nor within the first second of flow", /* passes of 0.2 s from the start */
     {.passes = {10},
      .link = 50,
      .poll_ms = 100,
      .silent_ms = 1000,
      .run_ms = 3000,
      .goals = "completion_timeout_s_per_gib=0"},
     {{LIMITED(0, 199, 201), .from_ms = 2100, .to_ms = 2300}}},

    /* Pages of zeroes */
    {"that next to nothing is on the wire while zeroes go by does not make the link slow", /* 5.1 s at 50 MiB/s */
     {.passes = {5120, 8},
      .zeroes = 4864,
      .link = 50,
      .poll_ms = 100,
      .probe = 8,
      .goals = "allow_post_copy=yes max_pause_ms=30s",
      .run_ms = 10400},
     {{LIMITED(3, 159, 161), .from_ms = 9800}}},
    {"nor does it hide a slow one once there are others",
     {.passes = {5120, 100}, .zeroes = 4864, .link = 50, .probe = 100, .goals = "allow_post_copy=yes"},
     {{POST_COPY(3), .from_ms = 11600, .words = "at 50 MiB/s"}}},

    /* Auto-converge */
    {"what may be throttled is not given up until QEMU should have begun",
     {HOPELESS, .goals = "allow_auto_converge=yes max_throttle_pct=50"},
     {WAITED_FOR(3), {GIVEN_UP(6)}}},
    {"nor what may be throttled further",
     {HOPELESS, .goals = "allow_auto_converge=yes", .throttled_from_ms = 8000, .throttle_pct = 50},
     {{LIMITED(5, 255, 255)}}},
    {"once it is slowed down as far as is permitted, it is, before QEMU goes further",
     {HOPELESS, .goals = "allow_auto_converge=yes", .throttled_from_ms = 7200, .throttle_pct = 80},
     {{GIVEN_UP(4), .to_ms = 9600,
       .words = "meanwhile, although throttled by 80 %; QEMU would throttle by 90 % next, too "
                "much for max_throttle_pct."}}},
    {"also where the pass that this was with began a little earlier",
     {HOPELESS, .goals = "allow_auto_converge=yes", .throttled_from_ms = 8000, .throttle_pct = 80},
     {{GIVEN_UP(4), .words = "or a higher max_throttle_pct."}}},
    {"what then dirties less than half of what it sends is let go on", /* 39, 15, 6 MiB */
     {.passes = {256, 100, 100, 39, 15, 6, 2},
      .link = 50,
      .goals = "allow_auto_converge=yes",
      .throttled_from_ms = 7200,
      .throttle_pct = 80,
      .run_ms = 10300},
     {{LIMITED(4, 255, 255)}}},
    {"what QEMU can take no further is given up as any other",
     {HOPELESS, .goals = "allow_auto_converge=yes max_throttle_pct=99 max_downtime_ms=1s",
      .throttled_from_ms = 7200, .throttle_pct = 99},
     {{GIVEN_UP(6)}}},
    {"instead it is paused at once, for all that is dirty", /* 96 MiB, and what was dirtied since: 2 s and a tenth */
     {HOPELESS, .goals = "allow_auto_converge=yes max_pause_ms=4s", .throttled_from_ms = 7200,
      .throttle_pct = 80, .run_ms = 9700},
     {{PAUSED(4), .least_ms = 2200, .most_ms = 3955, .to_ms = 9600}}},
    {"or put into post-copy",
     {HOPELESS, .goals = "allow_auto_converge=yes allow_post_copy=yes", .throttled_from_ms = 6000,
      .throttle_pct = 80, .run_ms = 10000},
     {{POST_COPY(3)}}},

    /* Above what is permitted */
    {"a guest that is slowed down further than that is let go at once",
     {HOPELESS, .goals = "allow_auto_converge=yes", .throttled_from_ms = 6000, .throttle_pct = 90},
     {{GIVEN_UP(2), .from_ms = 6000, .to_ms = 6400,
       .words = "throttled by 90 %, and max_throttle_pct permits 80 %"}}},
    {"or when each stop is longer than a downtime may be", /* 10 ms × 90/10 */
     {HOPELESS, .goals = "allow_auto_converge=yes max_throttle_pct=99 max_downtime_ms=60",
      .throttled_from_ms = 6000, .throttle_pct = 90},
     {{GIVEN_UP(2), .from_ms = 6000, .to_ms = 6400,
       .words = "throttled by 90 %, and max_downtime_ms permits 85 %"}}},
    {"by post-copy where that is open",
     {HOPELESS, .goals = "allow_auto_converge=yes allow_post_copy=yes", .throttled_from_ms = 6000,
      .throttle_pct = 90},
     {{POST_COPY(2), .from_ms = 6000, .to_ms = 6400, .words = "; post-copy ends that."}}},
    {"unless that does not come",
     {HOPELESS, .goals = "allow_auto_converge=yes allow_post_copy=yes", .throttled_from_ms = 6000,
      .throttle_pct = 90, .deaf = true},
     {{POST_COPY(2), .to_ms = 6400}, {GIVEN_UP(0), .from_ms = 7000, .to_ms = 7600}}},
    {"or is refused",
     {HOPELESS, .goals = "allow_auto_converge=yes allow_post_copy=yes", .throttled_from_ms = 6000,
      .throttle_pct = 90, .refused = 1U << MIG_ACTION_START_POST_COPY},
     {{POST_COPY(2), .to_ms = 6400}, {GIVEN_UP(2), .to_ms = 6800}}},
    {"but not while QEMU may be stopping it", /* 10 MiB fit the limit at 9.2 s; at 9.6 s passes go on */
     {.passes = {256, 100, 100, 10},
      .link = 50,
      .goals = "allow_auto_converge=yes",
      .first_limit_ms = 255,
      .throttled_from_ms = 9160,
      .throttle_pct = 90},
     {{GIVEN_UP(0), .from_ms = 9600, .to_ms = 9600}}},
    {"a cap that is lowered holds at once",
     {HOPELESS, .goals = "allow_auto_converge=yes", .throttled_from_ms = 6000, .throttle_pct = 50,
      .tuned_at_ms = 6500, .tuned = "allow_auto_converge=yes max_throttle_pct=40"},
     {{GIVEN_UP(2), .from_ms = 6800, .to_ms = 6800, .words = "and max_throttle_pct permits 40 %"}}},
    {"and so does one of none",
     {HOPELESS, .goals = "allow_auto_converge=yes", .throttled_from_ms = 6000, .throttle_pct = 50,
      .tuned_at_ms = 6500, .tuned = "allow_auto_converge=no"},
     {{GIVEN_UP(2), .from_ms = 6800, .to_ms = 6800, .words = "although allow_auto_converge=no"}}},
    {"before QEMU has begun as well", /* the second pass that dirties half would have it begin: the third is the first */
     {HOPELESS, .goals = "allow_auto_converge=yes max_throttle_pct=50", .tuned_at_ms = 3000,
      .tuned = "allow_auto_converge=no"},
     {{GIVEN_UP(3), .words = "QEMU would throttle by 20 % next, which is no longer permitted"}}},
    {"slowed down, and with an end in sight, the limit is the goal", /* passes of 0.8 s: what comes next fits */
     {.passes = {256, 100, 100, 100, 40, 16, 6.4, 2.6},
      .link = 50,
      .goals = "allow_auto_converge=yes",
      .throttled_from_ms = 9200,
      .throttle_pct = 80,
      .run_ms = 12200},
     {{LIMITED(0, 255, 255), .from_ms = 11200}}},
};

static void row_plays(void **state) {
  const Row *row = *state;
  FilmResult result;
  unsigned n = 0;
  film_play(&row->film, &result);
  while (n < EXPECTED && row->expected[n].kind != MIG_ACTION_NONE)
    n++;
  for (unsigned i = 0; i < result.n; i++) {
    const FilmTaken *taken = &result.taken[i];
    const Expected *expected = &row->expected[i];
    const MigAction *action = &taken->action;
    if (i >= n || action->kind != expected->kind || action->cause != expected->cause ||
        (expected->pass > 0 && taken->pass != expected->pass) || taken->at_ms < expected->from_ms ||
        (expected->to_ms > 0 && taken->at_ms > expected->to_ms) || action->downtime_ms < expected->least_ms ||
        (expected->most_ms > 0 && action->downtime_ms > expected->most_ms) ||
        (expected->words && !strstr(action->message, expected->words)))
      fail_msg("action %u at %llu ms, pass %llu, is %s %s %llu ms: %s", i, (unsigned long long)taken->at_ms,
               (unsigned long long)taken->pass, mig_action_name(action->kind), mig_cause_name(action->cause),
               (unsigned long long)action->downtime_ms, action->message);
    assert_int_equal(action->message[strlen(action->message) - 1], '.');
  }
  if (result.n != n)
    fail_msg("%u actions instead of %u", result.n, n);
  assert_int_equal(result.allocations, 0);
}

int main(void) {
  Tests tests = {0};
  TESTS_ADD_ROWS(&tests, row_plays, rows);
  return tests_run(&tests, "choose");
}
