/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The peers' strategies against sequences of samples made by hand: each does what its source says. */
#include "tests/bench/peers/peers.h"

#include "tests/unit/core/rows.h"

#include <inttypes.h>

#define MIB MIG_MIB_BYTES

enum { STEPS = 16 };

/* One look: what the sample says, and what is wanted. All zero ends the row. */
typedef struct Look {
  uint64_t at_ms;
  uint64_t remaining_mib;
  uint64_t iteration;
  MigActionKind kind;
  uint64_t downtime_ms;
  MigCause cause;
  bool post_copy, unreadable;
} Look;

typedef struct Row {
  const char *name;
  const char *peer;
  const char *goals;
  uint64_t memory_mib; /* 0: 256 */
  bool passthrough;
  StrategyStart start;
  Look looks[STEPS];
} Row;

#define DOWNTIME  MIG_ACTION_SET_DOWNTIME
#define ABORT     MIG_ACTION_ABORT
#define PAUSE     MIG_ACTION_PAUSE
#define POST_COPY MIG_ACTION_START_POST_COPY

static const Row rows[] = {
    /* KubeVirt, legacy */
    {"kubevirt: 256 MiB count as one GB: the deadline is 150 s and is passed at 151", "kubevirt", "",
     .looks = {{400, 200, 1},
               {75000, 50, 9},
               {150400, 40, 20},
               {151000, 39, 20, ABORT, .cause = MIG_CAUSE_DEADLINE}}},
    {"kubevirt: any dip of the sawtooth is progress", "kubevirt", "completion_timeout_s_per_gib=0",
     .looks = {{400, 50, 2}, {140000, 90, 3}, {140400, 89, 3}, {290000, 95, 4}, {290400, 94, 4}}},
    {"kubevirt: 150 s without a dip end it", "kubevirt", "completion_timeout_s_per_gib=0",
     .looks = {{400, 50, 2},
               {100000, 60, 3},
               {150400, 60, 3},
               {151400, 60, 3, ABORT, .cause = MIG_CAUSE_NO_PROGRESS}}},
    {"kubevirt: past the deadline post-copy, once, if it may", "kubevirt", "allow_post_copy=yes",
     .start = {.post_copy = true},
     .looks = {{400, 200, 1}, {151000, 40, 20, POST_COPY}, {151400, 40, 20}, {600000, 39, 20}}},
    {"kubevirt: past the deadline a pause, which doubles it", "kubevirt", "max_pause_ms=4s",
     .looks = {{400, 200, 1},
               {151000, 40, 20, PAUSE},
               {160000, 30, 20},
               {300400, 20, 20},
               {301000, 10, 20, ABORT, .cause = MIG_CAUSE_DEADLINE}}},
    {"kubevirt: with passthrough a long downtime instead", "kubevirt", "allow_post_copy=yes",
     .passthrough = true, .start = {.post_copy = true},
     .looks = {{400, 200, 1}, {151000, 40, 20, DOWNTIME, 300000}, {151400, 40, 20}}},
    {"kubevirt: auto-converge as permitted", "kubevirt", "allow_auto_converge=yes",
     .start = {.auto_converge = true}, .looks = {{400, 200, 1}}},

    /* KubeVirt, stall detector */
    {"kubevirt-stall: no stall before 40 s are seen", "kubevirt-stall", "", .start = {.downtime_ms = 300},
     .looks = {{1000, 100, 2}, {20000, 100, 3}, {39000, 100, 4}}},
    {"kubevirt-stall: stalled at the best, and 900 ms will do: the limit is set to what is needed",
     "kubevirt-stall", "", .start = {.downtime_ms = 300},
     .looks = {{1000, 32, 2}, {1400, 30, 2}, {20000, 33, 3}, {42000, 32, 4, DOWNTIME, 640}, {43000, 32, 5}}},
    {"kubevirt-stall: 4 % less is no stall", "kubevirt-stall", "", .start = {.downtime_ms = 300},
     .looks = {{1000, 100, 2}, {1400, 90, 2}, {42000, 95, 3}, {83000, 91, 4}}},
    {"kubevirt-stall: it waits for an iteration near the best", "kubevirt-stall", "allow_post_copy=yes",
     .start = {.post_copy = true, .downtime_ms = 300},
     .looks = {{1000, 50, 2},
               {1400, 40, 2},
               {42000, 80, 3},
               {50000, 60, 4},
               {60000, 52, 5, POST_COPY},
               {61000, 51, 6}}},
    {"kubevirt-stall: after 40 s the next best will do", "kubevirt-stall", "allow_post_copy=yes",
     .start = {.post_copy = true, .downtime_ms = 300},
     .looks = {{1000, 50, 2}, {1400, 40, 2}, {42000, 80, 3}, {60000, 60, 4}, {82000, 62, 5, POST_COPY}}},
    {"kubevirt-stall: hopeless is 1.5 times the largest downtime", "kubevirt-stall", "",
     .start = {.downtime_ms = 300},
     .looks = {{1000, 100, 2}, {1400, 90, 2}, {42000, 100, 3, ABORT, .cause = MIG_CAUSE_NOT_CONVERGING}}},
    {"kubevirt-stall: between the two it tries the largest", "kubevirt-stall", "",
     .start = {.downtime_ms = 300}, .looks = {{1000, 50, 2}, {1400, 40, 2}, {42000, 50, 3, DOWNTIME, 900}}},
    {"kubevirt-stall: disruption is a downtime without end", "kubevirt-stall", "max_pause_ms=4s",
     .start = {.downtime_ms = 300},
     .looks = {{1000, 100, 2}, {1400, 90, 2}, {42000, 100, 3, DOWNTIME, 2000000}}},
    {"kubevirt-stall: the deadline aborts, whatever is permitted", "kubevirt-stall", "allow_post_copy=yes",
     .start = {.post_copy = true, .downtime_ms = 300},
     .looks = {{1000, 200, 1}, {151000, 100, 1, ABORT, .cause = MIG_CAUSE_DEADLINE}}},

    /* Nova */
    {"nova: 50 ms once a second has passed, and 45 more each 150 s of a guest of up to 2 GiB", "nova-abort",
     "",
     .looks = {{500, 250, 1},
               {1000, 230, 1, DOWNTIME, 50},
               {1500, 220, 1},
               {150500, 90, 9},
               {151000, 90, 9, DOWNTIME, 95},
               {301000, 90, 19, DOWNTIME, 140},
               {1501000, 90, 99, DOWNTIME, 500}}},
    {"nova: the steps of 4 GiB are twice as long", "nova-abort", "", .memory_mib = 4096,
     .looks = {{1000, 4000, 1, DOWNTIME, 50}, {151000, 90, 9}, {301000, 90, 19, DOWNTIME, 95}}},
    {"nova: aborted after 800 s/GiB, of 2 GiB at least", "nova-abort", "",
     .looks = {{1000, 230, 1, DOWNTIME, 50},
               {1600500, 90, 9, DOWNTIME, 500},
               {1601000, 90, 9, ABORT, .cause = MIG_CAUSE_DEADLINE},
               {1601500, 90, 9}}},
    {"nova: forced by a pause", "nova-force", "max_pause_ms=4s",
     .looks = {{1000, 230, 1, DOWNTIME, 50}, {1601000, 90, 9, PAUSE}, {1601500, 90, 9}}},
    {"nova: forced by post-copy, asked for until it runs; auto-converge is dropped", "nova-force",
     "allow_post_copy=yes allow_auto_converge=yes", .start = {.post_copy = true},
     .looks = {{1000, 230, 1, DOWNTIME, 50},
               {1601000, 90, 9, POST_COPY},
               {1601500, 90, 9, POST_COPY},
               {1602000, 80, 9, .post_copy = true}}},
    {"nova: a downtime and a timeout that the policy names", "nova-abort",
     "max_downtime_ms=1000 completion_timeout_s_per_gib=100",
     .looks = {{1000, 230, 1, DOWNTIME, 100}, {201000, 90, 9, ABORT, .cause = MIG_CAUSE_DEADLINE}}},

    /* oVirt */
    {"ovirt: Minimal downtime counts what it notices, and is always one beyond the limit", "ovirt-minimal",
     "", .start = {.downtime_ms = 100},
     .looks = {{10000, 10, 3},
               {20000, 20, 4},
               {30000, 30, 5, DOWNTIME, 150},
               {40000, 40, 6, DOWNTIME, 200},
               {50000, 50, 7, DOWNTIME, 300},
               {60000, 60, 8, DOWNTIME, 400},
               {70000, 70, 9},
               {80000, 80, 10, DOWNTIME, 500},
               {90000, 90, 11, ABORT, .cause = MIG_CAUSE_NOT_CONVERGING}}},
    {"ovirt: a look that finds less is no iteration", "ovirt-minimal", "allow_auto_converge=yes",
     .start = {.auto_converge = true, .downtime_ms = 100},
     .looks =
         {{10000, 90, 3}, {20000, 80, 4}, {30000, 70, 5}, {40000, 90, 6}, {50000, 95, 7, DOWNTIME, 150}}},
    {"ovirt: Post-copy after two downtimes, and an abort should it not come", "ovirt-post-copy",
     "allow_post_copy=yes", .start = {.post_copy = true, .downtime_ms = 100},
     .looks = {{10000, 10, 3},
               {20000, 20, 4},
               {30000, 30, 5, DOWNTIME, 150},
               {40000, 40, 6, DOWNTIME, 200},
               {50000, 50, 7, POST_COPY},
               {60000, 60, 8, ABORT, .cause = MIG_CAUSE_NOT_CONVERGING}}},
    {"ovirt: nothing is done in post-copy", "ovirt-post-copy", "allow_post_copy=yes",
     .start = {.post_copy = true, .downtime_ms = 100},
     .looks = {{10000, 10, 3},
               {20000, 20, 4},
               {30000, 30, 5, DOWNTIME, 150},
               {40000, 40, 6, DOWNTIME, 200},
               {50000, 50, 7, POST_COPY},
               {60000, 60, 8, .post_copy = true}}},
    {"ovirt: Suspend ends in 5 s, then in an abort", "ovirt-suspend", "max_pause_ms=5s",
     .start = {.downtime_ms = 100},
     .looks = {{10000, 10, 3},
               {20000, 20, 4},
               {30000, 30, 5, DOWNTIME, 150},
               {40000, 40, 6, DOWNTIME, 200},
               {50000, 50, 7, DOWNTIME, 300},
               {60000, 60, 8, DOWNTIME, 400},
               {70000, 70, 9},
               {80000, 80, 10, DOWNTIME, 500},
               {90000, 90, 11, DOWNTIME, 5000},
               {100000, 100, 12, ABORT, .cause = MIG_CAUSE_NOT_CONVERGING}}},

    /* Proxmox */
    {"proxmox: looks each second, and the sixth rise doubles the downtime", "proxmox",
     "allow_auto_converge=yes", .start = {.auto_converge = true, .downtime_ms = 100},
     .looks = {{900, 250, 1},
               {1000, 200, 1},
               {1500, 255, 1},
               {2000, 201, 2},
               {3000, 202, 3},
               {4000, 203, 4},
               {5000, 204, 5},
               {6000, 205, 6},
               {7000, 206, 7, DOWNTIME, 200},
               {8000, 207, 8}}},
    {"proxmox: looks faster once little remains", "proxmox", "allow_auto_converge=yes",
     .start = {.auto_converge = true, .downtime_ms = 100},
     .looks = {{1000, 100, 1},
               {2000, 20, 1},
               {3000, 21, 2},
               {3100, 22, 3},
               {3200, 23, 4},
               {3300, 24, 5},
               {3400, 25, 6},
               {3500, 26, 7, DOWNTIME, 200}}},
    {"proxmox: the sixth failure in a row to read the numbers ends it", "proxmox", "allow_auto_converge=yes",
     .start = {.auto_converge = true, .downtime_ms = 100},
     .looks = {{1000, 100, 1},
               {3000, .unreadable = true},
               {5000, .unreadable = true},
               {7000, .unreadable = true},
               {9000, .unreadable = true},
               {11000, .unreadable = true},
               {13000, .unreadable = true, .kind = ABORT, .cause = MIG_CAUSE_SOURCE_UNREACHABLE}}},

    /* virsh */
    {"virsh: plain does nothing, ever", "virsh-plain",
     "allow_post_copy=yes allow_auto_converge=yes max_pause_ms=4s",
     .looks = {{1000, 100, 1}, {100000, 100, 9}, {10000000, 100, 99}}},
    {"virsh: --auto-converge leaves it to QEMU", "virsh-auto-converge", "allow_auto_converge=yes",
     .start = {.auto_converge = true}, .looks = {{1000, 100, 1}, {10000000, 100, 99}}},
    {"virsh: --timeout 10 --timeout-suspend, once", "virsh-timeout-suspend", "max_pause_ms=4s",
     .looks = {{9900, 100, 3}, {10000, 100, 3, PAUSE}, {10100, 90, 3}, {20000, 20, 3}}},
    {"virsh: --timeout 10 --timeout-postcopy, once", "virsh-timeout-postcopy", "allow_post_copy=yes",
     .start = {.post_copy = true}, .looks = {{9900, 100, 3}, {10000, 100, 3, POST_COPY}, {10100, 90, 3}}},
    {"virsh: --postcopy-after-precopy at the second iteration", "virsh-postcopy-after-precopy",
     "allow_post_copy=yes", .start = {.post_copy = true},
     .looks = {{5000, 1, 1}, {5400, 100, 2, POST_COPY}, {5450, 99, 2}, {6000, 99, 3}}},
};

static MigPolicy policy_of(const char *goals) {
  MigPolicy policy;
  char message[256];
  mig_policy_init(&policy);
  if (!peer_policy_add(&policy, goals, message, sizeof(message)))
    fail_msg("%s", message);
  return policy;
}

static void does_as_its_source_says(void **state) {
  const Row *row = *state;
  const Peer *peer = peer_find(row->peer);
  assert_non_null(peer);
  const Strategy *strategy = peer->strategy;
  MigPolicy policy = policy_of(row->goals);
  StrategyGuest guest = {.memory_bytes = (row->memory_mib ? row->memory_mib : 256) * MIB,
                         .probe_dirty_bytes_per_s = UINT64_MAX,
                         .passthrough = row->passthrough};
  StrategyStart start;
  void *memory = calloc(1, strategy->state_size);
  assert_non_null(memory);
  strategy->start(memory, &policy, &guest, 1000000, &start);
  assert_int_equal(start.post_copy, row->start.post_copy);
  assert_int_equal(start.auto_converge, row->start.auto_converge);
  assert_int_equal(start.downtime_ms, row->start.downtime_ms);

  for (const Look *look = row->looks; look->at_ms > 0 && look < row->looks + STEPS; look++) {
    MigSample sample = {.now_ms = 1000000 + look->at_ms,
                        .valid = !look->unreadable,
                        .active = !look->unreadable,
                        .post_copy = look->post_copy,
                        .elapsed_ms = look->at_ms,
                        .memory_total_bytes = guest.memory_bytes,
                        .memory_processed_bytes = look->at_ms * 50000,
                        .memory_remaining_bytes = look->remaining_mib * MIB,
                        .memory_bps_bytes_per_s = 50 * MIB,
                        .iteration = look->iteration};
    MigAction action;
    memset(&action, 0xff, sizeof(action));
    strategy->step(memory, &sample, &action);
    if (action.kind != look->kind || action.downtime_ms != look->downtime_ms || action.cause != look->cause)
      fail_msg("at %" PRIu64 " ms: %s, %" PRIu64 " ms, %s instead of %s, %" PRIu64 " ms, %s", look->at_ms,
               mig_action_name(action.kind), action.downtime_ms, mig_cause_name(action.cause),
               mig_action_name(look->kind), look->downtime_ms, mig_cause_name(look->cause));
    assert_int_equal(action.kind != MIG_ACTION_NONE, action.message[0] != '\0');
  }
  free(memory);
}

/* The table */

static void is_sorted_complete_and_at_home_somewhere(void **state) {
  size_t n;
  const Peer *peers = peers_list(&n);
  assert_int_equal(n, 13);
  for (size_t i = 0; i < n; i++) {
    const Strategy *strategy = peers[i].strategy;
    assert_true(i == 0 || strcmp(peers[i - 1].strategy->name, strategy->name) < 0);
    assert_non_null(strategy->source);
    assert_non_null(strategy->start);
    assert_non_null(strategy->step);
    assert_true(strategy->poll_ms > 0 && strategy->state_size > 0);
    assert_true(peers[i].classes != 0 && peers[i].classes < PEER_IN(PEER_CLASS_COUNT));
    assert_ptr_equal(peer_find(strategy->name), &peers[i]);
  }
  assert_null(peer_find("nobody"));
}

/* Whoever takes part in a race keeps to what the policy permits. */
static void asks_only_for_what_its_class_permits(void **state) {
  size_t n;
  const Peer *peers = peers_list(&n);
  for (unsigned kind = 0; kind < PEER_CLASS_COUNT; kind++) {
    const PeerClassInfo *info = peer_class_info(kind);
    MigPolicy policy = policy_of(info->goals);
    assert_int_equal(peer_class_find(info->name), kind);
    for (size_t i = 0; i < n; i++) {
      StrategyGuest guest = {.memory_bytes = 256 * MIB, .probe_dirty_bytes_per_s = UINT64_MAX};
      StrategyStart start;
      if (!(peers[i].classes & PEER_IN(kind)))
        continue;
      void *memory = calloc(1, peers[i].strategy->state_size);
      assert_non_null(memory);
      peers[i].strategy->start(memory, &policy, &guest, 0, &start);
      assert_true(!start.post_copy || mig_policy_get(&policy, MIG_POLICY_ALLOW_POST_COPY));
      assert_true(!start.auto_converge || mig_policy_get(&policy, MIG_POLICY_ALLOW_AUTO_CONVERGE));
      free(memory);
    }
  }
  assert_int_equal(peer_class_find("nothing"), PEER_CLASS_COUNT);
}

static void goals_that_do_not_parse_are_named(void **state) {
  MigPolicy policy;
  char message[256] = "";
  mig_policy_init(&policy);
  assert_false(peer_policy_add(&policy, "max_pause_ms=4s allow_post_copy", message, sizeof(message)));
  assert_non_null(strstr(message, "allow_post_copy"));
  assert_false(peer_policy_add(&policy, "allow_post_copy=perhaps", message, sizeof(message)));
  assert_non_null(strstr(message, "perhaps"));
}

int main(void) {
  Tests tests = {0};
  TESTS_ADD_ROWS(&tests, does_as_its_source_says, rows);
  tests_add(&tests, "the table is sorted, and each peer is at home somewhere",
            is_sorted_complete_and_at_home_somewhere, NULL);
  tests_add(&tests, "a peer asks only for what its class permits", asks_only_for_what_its_class_permits,
            NULL);
  tests_add(&tests, "goals that do not parse are named", goals_that_do_not_parse_are_named, NULL);
  return tests_run(&tests, "peers");
}
