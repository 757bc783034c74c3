/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The monitor under a virtual clock: deadline, flow, progress, percentage, stage, messages. */
#include "libmigrate/core/monitor.h"

#include "tests/unit/core/goals.h"

#define MIB       MIG_MIB_BYTES
#define GIB       MIG_GIB_BYTES
#define NEVER     UINT64_MAX
#define MINUTE_MS UINT64_C(60000)

/* Deadlines */

static const struct Deadline {
  const char *name;
  const char *policy;
  uint64_t start_ms, memory, disk;
  uint64_t expected_ms;
} deadlines[] = {
    {"5 s/GiB of 256 MiB are 1.25 s, not rounded", "completion_timeout_s_per_gib=5", 0, 256 * MIB, 0, 1250},
    {"150 s/GiB of 1.5 GiB", "", 1000, 1536 * MIB, 0, 226000},
    {"a deadline of 0 is none", "completion_timeout_s_per_gib=0", 0, GIB, 0, NEVER},
    {"copied disks add to it", "copy_disks=all", 0, GIB, 10 * GIB, 150000 + 8000000},
    {"disks that are not copied do not", "copy_disks=none", 0, GIB, 10 * GIB, 150000},
    {"no disk deadline is none while disks are copied", "copy_disks=all disk_timeout_s_per_gib=0", 0, GIB,
     GIB, NEVER},
    {"no disk deadline does no harm without disks", "copy_disks=all disk_timeout_s_per_gib=0", 0, GIB, 0,
     150000},
    {"memory whose size is not known has none yet", "", 0, 0, 0, NEVER},
    {"24 TiB do not wrap", "completion_timeout_s_per_gib=86400", 0, 24 * 1024 * GIB, 0,
     UINT64_C(2123366400000)},
    {"what cannot be is at the end of time", "copy_disks=all", UINT64_MAX - 5, UINT64_MAX, UINT64_MAX, NEVER},
};

static void deadline(void **state) {
  const struct Deadline *row = *state;
  MigMonitor monitor;
  MigPolicy policy = policy_of(row->policy);
  mig_monitor_init(&monitor, &policy, row->start_ms, row->memory, row->disk);
  assert_int_equal(mig_monitor_deadline_ms(&monitor), row->expected_ms);
}

/* Whole migrations: a guest that dirties `rate` bytes/s of a working set, a link, faults at given times. */

typedef struct Scene {
  const char *name;
  const char *policy;
  uint64_t memory, disk;
  uint64_t link, rate, working_set;    /* bytes/s, bytes/s, bytes */
  uint64_t disk_link;                  /* bytes/s */
  uint64_t set_shrinks_pct;            /* the working set, by each pass */
  uint64_t stall_at_ms;                /* from then on no bytes move; 0: never */
  uint64_t blind_from_ms, blind_to_ms; /* numbers cannot be read */
  uint64_t post_copy_at_ms;
  uint64_t throttle_every_ms; /* it rises by 10 */
  uint64_t quiet_fault;       /* 1: bytes move, but what remains does not fall any more from stall_at_ms on */
  uint64_t poll_ms;
  uint64_t run_ms;
  MigCause cause;          /* NONE: it is not aborted */
  uint64_t from_ms, to_ms; /* when */
} Scene;

static const Scene scenes[] = {
    {"a guest that can never converge ends when it was waited for as long as the first pass took",
     "completion_timeout_s_per_gib=0", 256 * MIB, 0, 32 * MIB, 200 * MIB, 100 * MIB, .run_ms = 600000,
     .cause = MIG_CAUSE_NOT_CONVERGING, .from_ms = 16000, .to_ms = 18000},
    {"passes shorter than the polling do not hide that it never converges", "completion_timeout_s_per_gib=0",
     256 * MIB, 0, 50 * MIB, 200 * MIB, 5 * MIB, .run_ms = 600000, .cause = MIG_CAUSE_NO_PROGRESS,
     .from_ms = 150000, .to_ms = 320000},
    {"the deadline is kept to the sample", "completion_timeout_s_per_gib=5", 256 * MIB, 0, 32 * MIB,
     200 * MIB, 100 * MIB, .run_ms = 60000, .poll_ms = 400, .cause = MIG_CAUSE_DEADLINE, .from_ms = 1250,
     .to_ms = 1650},
    {"a first pass of half an hour is progress", "completion_timeout_s_per_gib=0", 1024 * GIB, 0, 600 * MIB,
     100 * MIB, GIB, .run_ms = 30 * MINUTE_MS, .cause = MIG_CAUSE_NONE},
    {"passes longer than the progress timeout are judged by their dirty sets",
     "completion_timeout_s_per_gib=0", 1024 * GIB, 0, 1024 * MIB, 5000 * MIB, 400 * GIB,
     .set_shrinks_pct = 10, .run_ms = 60 * MINUTE_MS, .cause = MIG_CAUSE_NONE},
    {"a slow gain adds up", "completion_timeout_s_per_gib=0", 256 * MIB, 0, 32 * MIB, 500 * MIB, 100 * MIB,
     .set_shrinks_pct = 1, .run_ms = 280000, .cause = MIG_CAUSE_NONE},
    {"a link that stalls in the first pass", "completion_timeout_s_per_gib=0", 8 * GIB, 0, 32 * MIB, 10 * MIB,
     100 * MIB, .stall_at_ms = 20000, .run_ms = 600000, .cause = MIG_CAUSE_LINK_STALLED, .from_ms = 170000,
     .to_ms = 171000},
    {"a link that stalls in a later pass", "completion_timeout_s_per_gib=0", 256 * MIB, 0, 32 * MIB, 31 * MIB,
     100 * MIB, .stall_at_ms = 60000, .run_ms = 600000, .cause = MIG_CAUSE_LINK_STALLED, .from_ms = 205000,
     .to_ms = 211000},
    {"a link that never carries a byte", "completion_timeout_s_per_gib=0", GIB, 0, 0, 0, 0, .run_ms = 600000,
     .cause = MIG_CAUSE_LINK_STALLED, .from_ms = 150000, .to_ms = 151000},
    {"a stalled link ends at the deadline if that is first", "", 256 * MIB, 0, 32 * MIB, 10 * MIB, 10 * MIB,
     .stall_at_ms = 2000, .run_ms = 600000, .cause = MIG_CAUSE_DEADLINE, .from_ms = 37500, .to_ms = 38000},
    {"bytes that get nowhere", "completion_timeout_s_per_gib=0", 8 * GIB, 0, 32 * MIB, 10 * MIB, 100 * MIB,
     .stall_at_ms = 20000, .quiet_fault = 1, .run_ms = 600000, .cause = MIG_CAUSE_NO_PROGRESS,
     .from_ms = 169000, .to_ms = 171000},
    {"numbers that cannot be read for ten minutes are no stalled link", "completion_timeout_s_per_gib=0",
     64 * GIB, 0, 32 * MIB, 10 * MIB, 100 * MIB, .blind_from_ms = 10000, .blind_to_ms = 610000,
     .run_ms = 700000, .cause = MIG_CAUSE_NONE},
    {"nor is one that stalled meanwhile, until it was seen for long enough", "completion_timeout_s_per_gib=0",
     64 * GIB, 0, 32 * MIB, 10 * MIB, 100 * MIB, .stall_at_ms = 11000, .blind_from_ms = 10000,
     .blind_to_ms = 610000, .run_ms = 900000, .cause = MIG_CAUSE_LINK_STALLED, .from_ms = 750000,
     .to_ms = 761000},
    {"the deadline does not wait for numbers", "", GIB, 0, 32 * MIB, 200 * MIB, 100 * MIB,
     .blind_from_ms = 10000, .blind_to_ms = 600000, .run_ms = 600000, .cause = MIG_CAUSE_DEADLINE,
     .from_ms = 150000, .to_ms = 150500},
    {"nor for the first of them", "", GIB, 0, 32 * MIB, 200 * MIB, 100 * MIB, .blind_to_ms = 600000,
     .run_ms = 600000, .cause = MIG_CAUSE_DEADLINE, .from_ms = 150000, .to_ms = 150500},
    {"post-copy is never aborted at the deadline", "", GIB, 0, MIB, 200 * MIB, 100 * MIB,
     .post_copy_at_ms = 60000, .run_ms = 300000, .cause = MIG_CAUSE_NONE},
    {"nor when its link stalls", "completion_timeout_s_per_gib=0", GIB, 0, MIB, 200 * MIB, 100 * MIB,
     .post_copy_at_ms = 60000, .stall_at_ms = 70000, .run_ms = 600000, .cause = MIG_CAUSE_NONE},
    {"nor when nothing can be read of it", "", GIB, 0, MIB, 200 * MIB, 100 * MIB, .post_copy_at_ms = 60000,
     .blind_from_ms = 70000, .blind_to_ms = 600000, .run_ms = 600000, .cause = MIG_CAUSE_NONE},
    {"memory waits while disks are copied", "completion_timeout_s_per_gib=0 copy_disks=all", GIB, 100 * GIB,
     100 * MIB, MIB, MIB, .disk_link = 100 * MIB, .run_ms = 15 * MINUTE_MS, .cause = MIG_CAUSE_NONE},
    {"a disk copy that stalls", "completion_timeout_s_per_gib=0 copy_disks=all", GIB, 100 * GIB, 100 * MIB,
     MIB, MIB, .disk_link = 100 * MIB, .stall_at_ms = 60000, .run_ms = 600000,
     .cause = MIG_CAUSE_LINK_STALLED, .from_ms = 210000, .to_ms = 211000},
    {"the disks have their own deadline",
     "completion_timeout_s_per_gib=10 disk_timeout_s_per_gib=10 copy_disks=all", GIB, 10 * GIB, 100 * MIB,
     200 * MIB, 100 * MIB, .disk_link = 50 * MIB, .run_ms = 600000, .cause = MIG_CAUSE_DEADLINE,
     .from_ms = 110000, .to_ms = 110500},
    {"while QEMU slows the guest down further, it is given time",
     "completion_timeout_s_per_gib=0 allow_auto_converge=yes", 256 * MIB, 0, 32 * MIB, 500 * MIB, 100 * MIB,
     .throttle_every_ms = 60000, .run_ms = 410000, .cause = MIG_CAUSE_NONE},
    {"once it cannot be slowed down further, it is not",
     "completion_timeout_s_per_gib=0 allow_auto_converge=yes", 256 * MIB, 0, 32 * MIB, 500 * MIB, 100 * MIB,
     .throttle_every_ms = 30000, .run_ms = 900000, .cause = MIG_CAUSE_NOT_CONVERGING, .from_ms = 210000,
     .to_ms = 225000},
    {"a progress timeout of 0 is none", "completion_timeout_s_per_gib=0 progress_timeout_s=0", 256 * MIB, 0,
     32 * MIB, 31 * MIB, 100 * MIB, .stall_at_ms = 60000, .run_ms = 20 * MINUTE_MS, .cause = MIG_CAUSE_NONE},
    {"a short progress timeout is kept", "completion_timeout_s_per_gib=0 progress_timeout_s=10", 8 * GIB, 0,
     32 * MIB, 10 * MIB, 100 * MIB, .stall_at_ms = 20000, .run_ms = 60000, .cause = MIG_CAUSE_LINK_STALLED,
     .from_ms = 29500, .to_ms = 31000},
};

typedef struct Sim {
  const Scene *scene;
  MigSample sample;
  uint64_t pass_began_ms, working_set, processed_fraction;
} Sim;

/* One millisecond of the guest and its link. */
static void sim_advance(Sim *sim, uint64_t now_ms) {
  const Scene *scene = sim->scene;
  MigSample *s = &sim->sample;
  bool stalled = scene->stall_at_ms && now_ms >= scene->stall_at_ms;
  if (stalled && scene->quiet_fault) {
    s->memory_processed_bytes += 4096;
    return;
  }
  if (stalled)
    return;
  if (s->disk_remaining_bytes > 0) {
    uint64_t step =
        scene->disk_link / 1000 < s->disk_remaining_bytes ? scene->disk_link / 1000 : s->disk_remaining_bytes;
    s->disk_remaining_bytes -= step;
    s->disk_processed_bytes += step;
    sim->pass_began_ms = now_ms;
    return;
  }
  if (s->iteration == 0)
    s->iteration = 1;
  uint64_t step =
      scene->link / 1000 < s->memory_remaining_bytes ? scene->link / 1000 : s->memory_remaining_bytes;
  s->memory_remaining_bytes -= step;
  s->memory_processed_bytes += step;
  if (s->memory_remaining_bytes == 0 && !s->post_copy) {
    uint64_t dirtied = scene->rate / 1000 * (now_ms - sim->pass_began_ms);
    s->memory_remaining_bytes = dirtied < sim->working_set ? dirtied : sim->working_set;
    sim->working_set -= sim->working_set * scene->set_shrinks_pct / 100;
    sim->pass_began_ms = now_ms;
    s->iteration++;
  }
}

static void scene_plays(void **state) {
  const Scene *scene = *state;
  MigPolicy policy = policy_of(scene->policy);
  MigMonitor monitor;
  Sim sim = {.scene = scene,
             .working_set = scene->working_set,
             .sample = {.active = true,
                        .memory_total_bytes = scene->memory,
                        .memory_remaining_bytes = scene->memory,
                        .disk_total_bytes = scene->disk,
                        .disk_remaining_bytes = scene->disk,
                        .dirty_rate_bytes_per_s = scene->rate,
                        .bandwidth_bytes_per_s = scene->link}};
  MigCause cause = MIG_CAUSE_NONE;
  uint64_t aborted_ms = 0, poll_ms = scene->poll_ms ? scene->poll_ms : 400;
  unsigned percent = 0;
  mig_monitor_init(&monitor, &policy, 0, scene->memory, scene->disk);

  for (uint64_t now = 1; now <= scene->run_ms; now++) {
    sim_advance(&sim, now);
    if (now % poll_ms != 0)
      continue;
    MigAction action;
    sim.sample.now_ms = now;
    sim.sample.valid = !(now >= scene->blind_from_ms && now < scene->blind_to_ms);
    sim.sample.post_copy = scene->post_copy_at_ms && now >= scene->post_copy_at_ms;
    if (scene->throttle_every_ms) {
      uint64_t throttle = 10 + 10 * (now / scene->throttle_every_ms);
      sim.sample.throttle_pct = throttle < 99 ? throttle : 99;
    }
    /* The clock between readings decides nothing but deadlines, and hides nothing. */
    mig_monitor_tick(&monitor, now - 1, &action);
    if (action.kind == MIG_ACTION_NONE)
      mig_monitor_step(&monitor, &sim.sample, &action);
    if (action.kind == MIG_ACTION_ABORT) {
      if (cause != MIG_CAUSE_NONE)
        fail_msg("aborted twice: %s", action.message);
      cause = action.cause;
      aborted_ms = now;
      assert_int_equal(action.message[strlen(action.message) - 1], '.');
      assert_true(strlen(action.message) < sizeof(action.message) - 1);
    }
    unsigned next = mig_monitor_percent(&monitor);
    assert_true(next >= percent && next <= 99);
    percent = next;
  }
  assert_string_equal(mig_cause_name(cause), mig_cause_name(scene->cause));
  if (cause != MIG_CAUSE_NONE && (aborted_ms < scene->from_ms || aborted_ms > scene->to_ms))
    fail_msg("aborted at %llu ms", (unsigned long long)aborted_ms);
}

/* Single steps */

static MigSample a_sample(uint64_t now_ms, uint64_t iteration, uint64_t processed, uint64_t remaining) {
  return (MigSample){.now_ms = now_ms,
                     .valid = true,
                     .active = true,
                     .memory_total_bytes = 256 * MIB,
                     .memory_processed_bytes = processed,
                     .memory_remaining_bytes = remaining,
                     .dirty_rate_bytes_per_s = 200 * MIB,
                     .bandwidth_bytes_per_s = 32 * MIB,
                     .iteration = iteration};
}

static MigAction step(MigMonitor *monitor, MigSample sample) {
  MigAction action;
  mig_monitor_step(monitor, &sample, &action);
  return action;
}

static MigMonitor a_monitor(const char *words) {
  MigMonitor monitor;
  MigPolicy policy = policy_of(words);
  mig_monitor_init(&monitor, &policy, 0, 256 * MIB, 0);
  return monitor;
}

static void what_ended_is_not_aborted_at_the_deadline(void **state) {
  MigMonitor monitor = a_monitor("completion_timeout_s_per_gib=5");
  step(&monitor, a_sample(400, 1, MIB, 255 * MIB));
  assert_int_equal(step(&monitor, (MigSample){.now_ms = 5000, .valid = true}).kind, MIG_ACTION_NONE);
  assert_int_equal(mig_monitor_stage(&monitor), MIG_STAGE_PRE_COPY);
}

static void what_has_not_begun_is_aborted_at_the_deadline(void **state) {
  MigMonitor monitor = a_monitor("completion_timeout_s_per_gib=5");
  assert_int_equal(step(&monitor, (MigSample){.now_ms = 1249, .valid = true}).kind, MIG_ACTION_NONE);
  MigAction action = step(&monitor, (MigSample){.now_ms = 1250, .valid = true});
  assert_int_equal(action.cause, MIG_CAUSE_DEADLINE);
  assert_non_null(strstr(action.message, "no statistics could be read"));
  assert_int_equal(mig_monitor_stage(&monitor), MIG_STAGE_NONE);
}

static void a_reattached_migration_keeps_its_deadline(void **state) {
  MigMonitor monitor;
  MigPolicy policy = policy_of("completion_timeout_s_per_gib=100");
  mig_monitor_init(&monitor, &policy, 1000, GIB, 0);
  MigSample sample = a_sample(90000, 57, 3 * GIB, 100 * MIB);
  assert_int_not_equal(step(&monitor, sample).kind, MIG_ACTION_ABORT);
  sample.now_ms = 101000;
  assert_int_equal(step(&monitor, sample).cause, MIG_CAUSE_DEADLINE);
}

static void a_tuned_deadline_holds_from_the_next_step_on(void **state) {
  MigMonitor monitor = a_monitor("completion_timeout_s_per_gib=100");
  MigPolicy longer = policy_of("completion_timeout_s_per_gib=200"),
            shorter = policy_of("completion_timeout_s_per_gib=8");
  step(&monitor, a_sample(1000, 1, MIB, 255 * MIB));
  mig_monitor_set_policy(&monitor, &longer);
  assert_int_not_equal(step(&monitor, a_sample(26000, 1, 2 * MIB, 254 * MIB)).kind, MIG_ACTION_ABORT);
  mig_monitor_set_policy(&monitor, &shorter);
  assert_int_equal(step(&monitor, a_sample(26400, 1, 3 * MIB, 253 * MIB)).cause, MIG_CAUSE_DEADLINE);
}

static void a_tightened_downtime_holds_from_the_next_step_on(void **state) {
  MigMonitor monitor = a_monitor("max_downtime_ms=500");
  MigPolicy tuned = policy_of("max_downtime_ms=50");
  assert_int_equal(step(&monitor, a_sample(500, 1, MIB, 255 * MIB)).kind, MIG_ACTION_NONE);
  mig_monitor_set_policy(&monitor, &tuned);
  MigAction action = step(&monitor, a_sample(900, 1, 3 * MIB, 253 * MIB));
  assert_int_equal(action.kind, MIG_ACTION_SET_DOWNTIME);
  assert_int_equal(action.downtime_ms, 25);
  assert_string_equal(action.message,
                      "Lowering the downtime limit from 455 ms to 25 ms, as the goals require.");
  assert_int_equal(step(&monitor, a_sample(1300, 1, 4 * MIB, 252 * MIB)).kind, MIG_ACTION_NONE);
}

static void more_bandwidth_gets_the_time_to_show(void **state) {
  MigMonitor monitor = a_monitor("completion_timeout_s_per_gib=0");
  MigPolicy tuned = policy_of("completion_timeout_s_per_gib=0 bandwidth_bytes_per_s=64M");
  uint64_t now = 0, processed = 0, pass = 0;
  MigCause cause = MIG_CAUSE_NONE;
  while (++pass <= 2)
    step(&monitor, a_sample(now += 3100, pass, processed += 100 * MIB, 100 * MIB));
  mig_monitor_set_policy(&monitor, &tuned);
  assert_int_equal(step(&monitor, a_sample(now += 3100, pass, processed += 100 * MIB, 100 * MIB)).cause,
                   MIG_CAUSE_NONE);
  while (++pass <= 6 && cause == MIG_CAUSE_NONE)
    cause = step(&monitor, a_sample(now += 3100, pass, processed += 100 * MIB, 100 * MIB)).cause;
  assert_int_equal(cause, MIG_CAUSE_NOT_CONVERGING);
}

static void one_burst_does_not_end_it(void **state) {
  MigMonitor monitor = a_monitor("completion_timeout_s_per_gib=0 progress_timeout_s=10");
  const uint64_t sets[] = {50 * MIB, 90 * MIB, 80 * MIB, 30 * MIB, 20 * MIB};
  uint64_t now = 0, processed = 256 * MIB;
  step(&monitor, a_sample(now += 400, 1, processed, 0));
  for (size_t i = 0; i < LENGTH(sets); i++)
    assert_int_not_equal(step(&monitor, a_sample(now += 9000, i + 2, processed += 50 * MIB, sets[i])).kind,
                         MIG_ACTION_ABORT);
}

static void the_stage_is_what_the_sample_shows(void **state) {
  MigMonitor monitor = a_monitor("");
  assert_int_equal(mig_monitor_stage(&monitor), MIG_STAGE_NONE);
  MigSample sample = a_sample(400, 1, MIB, 255 * MIB);
  step(&monitor, sample);
  assert_int_equal(mig_monitor_stage(&monitor), MIG_STAGE_PRE_COPY);
  sample.throttle_pct = 20;
  step(&monitor, sample);
  assert_int_equal(mig_monitor_stage(&monitor), MIG_STAGE_AUTO_CONVERGE);
  sample.post_copy = true;
  step(&monitor, sample);
  assert_int_equal(mig_monitor_stage(&monitor), MIG_STAGE_POST_COPY);
  sample.post_copy = false; /* there is no way back */
  step(&monitor, sample);
  assert_int_equal(mig_monitor_stage(&monitor), MIG_STAGE_POST_COPY);
}

static void the_percentage_follows_what_remains(void **state) {
  MigMonitor monitor = a_monitor("completion_timeout_s_per_gib=0");
  assert_int_equal(mig_monitor_percent(&monitor), 0);
  step(&monitor, a_sample(400, 1, 128 * MIB, 128 * MIB));
  assert_int_equal(mig_monitor_percent(&monitor), 45);
  step(&monitor, a_sample(800, 1, 256 * MIB, 0));
  assert_int_equal(mig_monitor_percent(&monitor), 90);
  step(&monitor, a_sample(1200, 2, 256 * MIB, 128 * MIB));
  assert_int_equal(mig_monitor_percent(&monitor), 95);
  step(&monitor, a_sample(1600, 3, 384 * MIB, 200 * MIB)); /* a relapse does not show */
  assert_int_equal(mig_monitor_percent(&monitor), 95);
  step(&monitor, a_sample(2000, 4, 584 * MIB, 0));
  assert_int_equal(mig_monitor_percent(&monitor), 99);
}

static void the_percentage_counts_disks_by_their_bytes(void **state) {
  MigMonitor monitor;
  MigPolicy policy = policy_of("copy_disks=all completion_timeout_s_per_gib=0");
  mig_monitor_init(&monitor, &policy, 0, GIB, 9 * GIB);
  MigSample sample = {.now_ms = 1000,
                      .valid = true,
                      .active = true,
                      .disk_total_bytes = 9 * GIB,
                      .disk_processed_bytes = 5 * GIB,
                      .disk_remaining_bytes = 4 * GIB};
  step(&monitor, sample);
  assert_int_equal(mig_monitor_percent(&monitor), 50);
}

/* The host's scheduler does not matter, but the guest's does: it moves the busy task from one vCPU to another. */
static void the_busiest_of_many_vcpus_counts(void **state) {
  static MigVcpus vcpus;
  uint64_t cpu_ms[64];
  for (unsigned i = 0; i < 64; i++)
    cpu_ms[i] = 100000 * i;
  assert_int_equal(mig_vcpus_update(&vcpus, cpu_ms, 64), 0); /* what was before does not count */
  cpu_ms[7] += 400;
  cpu_ms[8] += 3;
  assert_int_equal(mig_vcpus_update(&vcpus, cpu_ms, 64), 400);
  cpu_ms[63] += 390;
  assert_int_equal(mig_vcpus_update(&vcpus, cpu_ms, 64), 790);
  assert_int_equal(mig_vcpus_update(&vcpus, cpu_ms, 32), 790); /* some were taken out: a new start */
  cpu_ms[0] += 5;
  assert_int_equal(mig_vcpus_update(&vcpus, cpu_ms, 32), 795);
  assert_int_equal(mig_vcpus_update(&vcpus, (uint64_t[MIG_VCPUS + 1]){0}, MIG_VCPUS + 1), 795);
}

static void a_message_has_the_numbers_and_a_remedy(void **state) {
  MigMonitor monitor = a_monitor("completion_timeout_s_per_gib=5");
  MigSample sample = a_sample(1200, 3, 300 * MIB, 96 * MIB);
  sample.expected_downtime_ms = 3000;
  step(&monitor, sample);
  sample.now_ms = 1300;
  assert_string_equal(
      step(&monitor, sample).message,
      "Not finished after 1.3 s (deadline: 5 s/GiB): 96 MiB of memory remain in pass 3, the "
      "guest dirties 200 MiB/s, the link carries 32 MiB/s; allow_auto_converge, max_downtime_ms=3000 "
      "or more bandwidth would help.");
  /* A guest that only lacked time is not told to slow down. */
  monitor = a_monitor("completion_timeout_s_per_gib=5");
  sample.now_ms = 1200;
  sample.dirty_rate_bytes_per_s = 5 * MIB;
  step(&monitor, sample);
  sample.now_ms = 1300;
  assert_non_null(
      strstr(step(&monitor, sample).message, "a larger completion_timeout_s_per_gib would help."));
}

static void a_link_is_not_judged_by_a_share_of_it(void **state) {
  static const struct {
    uint64_t share, seen;
  } rows[] = {{0, 32 * MIB}, {32 * MIB, 0}, {34 * MIB, 0}, {64 * MIB, 32 * MIB}};
  for (size_t i = 0; i < LENGTH(rows); i++) {
    MigMonitor monitor = a_monitor("completion_timeout_s_per_gib=0");
    mig_monitor_set_share(&monitor, rows[i].share);
    for (uint64_t now = 400; now <= 4000; now += 400)
      step(&monitor, a_sample(now, 1, now * 32 * MIB / 1000, 256 * MIB - now * 32 * MIB / 1000));
    assert_int_equal(mig_monitor_link_bytes_per_s(&monitor), rows[i].seen);
  }
}

static void the_lower_of_two_limits_counts(void **state) {
  MigMonitor monitor = a_monitor("bandwidth_bytes_per_s=32M");
  assert_int_equal(mig_monitor_limit_bytes_per_s(&monitor), 32 * MIB);
  mig_monitor_set_share(&monitor, 20 * MIB);
  assert_int_equal(mig_monitor_limit_bytes_per_s(&monitor), 20 * MIB);
  mig_monitor_set_share(&monitor, 40 * MIB);
  assert_int_equal(mig_monitor_limit_bytes_per_s(&monitor), 32 * MIB);
  monitor = a_monitor("");
  assert_int_equal(mig_monitor_limit_bytes_per_s(&monitor), 0);
  mig_monitor_set_share(&monitor, 40 * MIB);
  assert_int_equal(mig_monitor_limit_bytes_per_s(&monitor), 40 * MIB);
}

/* As with a limit that is tuned: the passes of before are no judgement of those to come. */
static void a_new_share_gets_the_time_to_show(void **state) {
  MigMonitor monitor = a_monitor("completion_timeout_s_per_gib=0");
  uint64_t now = 0, processed = 0, pass = 0;
  MigCause cause = MIG_CAUSE_NONE;
  mig_monitor_set_share(&monitor, 32 * MIB);
  while (++pass <= 2)
    step(&monitor, a_sample(now += 3100, pass, processed += 100 * MIB, 100 * MIB));
  mig_monitor_set_share(&monitor, 64 * MIB);
  assert_int_equal(step(&monitor, a_sample(now += 3100, pass, processed += 100 * MIB, 100 * MIB)).cause,
                   MIG_CAUSE_NONE);
  while (++pass <= 6 && cause == MIG_CAUSE_NONE)
    cause = step(&monitor, a_sample(now += 3100, pass, processed += 100 * MIB, 100 * MIB)).cause;
  assert_int_equal(cause, MIG_CAUSE_NOT_CONVERGING);
}

static void what_would_help_is_a_larger_share(void **state) {
  MigMonitor monitor = a_monitor("completion_timeout_s_per_gib=5");
  MigSample sample = a_sample(1200, 3, 300 * MIB, 96 * MIB);
  mig_monitor_set_share(&monitor, 32 * MIB);
  step(&monitor, sample);
  sample.now_ms = 1300;
  assert_non_null(strstr(step(&monitor, sample).message, "or a larger share of MaxBandwidth= would help."));
}

static uint64_t random_next(uint64_t *seed) {
  *seed ^= *seed << 13;
  *seed ^= *seed >> 7;
  *seed ^= *seed << 17;
  return *seed;
}

/* Any bits at all: small, huge, zero. */
static uint64_t random_number(uint64_t *seed) {
  uint64_t kind = random_next(seed) % 8;
  return kind == 0 ? 0 : kind == 1 ? UINT64_MAX : random_next(seed) >> (random_next(seed) % 64);
}

static void no_numbers_whatever_make_it_stumble(void **state) {
  uint64_t seed = 88172645463325252;
  for (int run = 0; run < 2000; run++) {
    MigMonitor monitor;
    MigBandwidth bandwidth = {0};
    MigPolicy policy;
    mig_policy_init(&policy);
    for (int key = 0; key < MIG_POLICY_KEY_COUNT; key++)
      mig_policy_set(&policy, (MigPolicyKey)key, random_number(&seed), NULL, 0);
    mig_monitor_init(&monitor, &policy, random_number(&seed), random_number(&seed), random_number(&seed));
    unsigned aborts = 0, percent = 0;
    for (int i = 0; i < 50; i++) {
      MigSample sample;
      uint64_t *words = (uint64_t *)&sample;
      for (size_t w = 0; w < sizeof(sample) / sizeof(*words); w++)
        words[w] = random_number(&seed);
      sample.valid = random_next(&seed) % 4 != 0;
      sample.active = random_next(&seed) % 4 != 0;
      sample.post_copy = random_next(&seed) % 32 == 0;
      assert_true(mig_bandwidth_update(&bandwidth, sample.now_ms, sample.memory_processed_bytes) <=
                  INT64_MAX);
      MigAction action = step(&monitor, sample);
      aborts += action.kind == MIG_ACTION_ABORT;
      assert_true(memchr(action.message, 0, sizeof(action.message)) != NULL);
      assert_true(mig_monitor_percent(&monitor) >= percent && mig_monitor_percent(&monitor) <= 99);
      percent = mig_monitor_percent(&monitor);
      assert_true((unsigned)mig_monitor_stage(&monitor) < MIG_STAGE_COUNT);
    }
    assert_true(aborts <= 1);
  }
}

static void actions_have_names(void **state) {
  for (int i = 0; i < MIG_ACTION_COUNT; i++)
    assert_non_null(mig_action_name((MigActionKind)i));
  assert_null(mig_action_name(MIG_ACTION_COUNT));
}

/* Bandwidth */

static void a_steady_rate_is_read_as_it_is(void **state) {
  MigBandwidth bandwidth = {0};
  assert_int_equal(mig_bandwidth_update(&bandwidth, 1000, 5 * MIB), 0);
  for (uint64_t i = 1; i < 50; i++)
    assert_int_equal(mig_bandwidth_update(&bandwidth, 1000 + i * 250, 5 * MIB + i * 8 * MIB), 32 * MIB);
}

static void a_change_shows_by_two_thirds_after_two_seconds(void **state) {
  MigBandwidth bandwidth = {0};
  uint64_t processed = 0, now = 0, rate = 0;
  for (; now <= 10000; now += 400)
    rate = mig_bandwidth_update(&bandwidth, now, processed += 40 * MIB);
  assert_int_equal(rate, 100 * MIB);
  for (uint64_t end = now + 2000; now < end; now += 400)
    rate = mig_bandwidth_update(&bandwidth, now, processed);
  assert_in_range(rate, 35 * MIB, 38 * MIB); /* 100 MiB/s × e^-1 */
}

static void how_often_it_is_read_does_not_matter(void **state) {
  MigBandwidth often = {0}, seldom = {0};
  uint64_t a = 0, b = 0;
  for (uint64_t now = 0; now <= 8000; now += 100)
    a = mig_bandwidth_update(&often, now, now < 4000 ? now * 1000 : 4000000 + (now - 4000) * 3000);
  for (uint64_t now = 0; now <= 8000; now += 1000)
    b = mig_bandwidth_update(&seldom, now, now < 4000 ? now * 1000 : 4000000 + (now - 4000) * 3000);
  assert_in_range(a, b - b / 100, b + b / 100);
}

static void counters_and_clocks_that_begin_anew_do_no_harm(void **state) {
  MigBandwidth bandwidth = {0};
  mig_bandwidth_update(&bandwidth, 0, 5 * MIB);
  assert_int_equal(mig_bandwidth_update(&bandwidth, 1000, 15 * MIB), 10 * MIB);
  assert_int_equal(mig_bandwidth_update(&bandwidth, 1000, 16 * MIB), 10 * MIB); /* no time has passed */
  assert_int_equal(mig_bandwidth_update(&bandwidth, 2000, 0), 10 * MIB);        /* the counter begins anew */
  assert_int_equal(mig_bandwidth_update(&bandwidth, 3000, 10 * MIB), 10 * MIB);
  assert_int_equal(mig_bandwidth_update(&bandwidth, 500, 12 * MIB), 10 * MIB); /* the clock goes back */
  assert_int_equal(mig_bandwidth_update(&bandwidth, 1500, 22 * MIB), 10 * MIB);
}

int main(void) {
  Tests tests = {0};
  TESTS_ADD_ROWS(&tests, deadline, deadlines);
  TESTS_ADD_ROWS(&tests, scene_plays, scenes);
  static const struct {
    const char *name;
    CMUnitTestFunction function;
  } singles[] = {
      {"what ended is not aborted at the deadline", what_ended_is_not_aborted_at_the_deadline},
      {"what has not begun is aborted at the deadline", what_has_not_begun_is_aborted_at_the_deadline},
      {"a reattached migration keeps its deadline", a_reattached_migration_keeps_its_deadline},
      {"a tuned deadline holds from the next step on", a_tuned_deadline_holds_from_the_next_step_on},
      {"a tightened downtime holds from the next step on", a_tightened_downtime_holds_from_the_next_step_on},
      {"more bandwidth gets the time to show", more_bandwidth_gets_the_time_to_show},
      {"a link is not judged by a share of it", a_link_is_not_judged_by_a_share_of_it},
      {"the lower of two limits counts", the_lower_of_two_limits_counts},
      {"a new share gets the time to show", a_new_share_gets_the_time_to_show},
      {"what would help is a larger share", what_would_help_is_a_larger_share},
      {"one burst does not end it", one_burst_does_not_end_it},
      {"the stage is what the sample shows", the_stage_is_what_the_sample_shows},
      {"the percentage follows what remains", the_percentage_follows_what_remains},
      {"the percentage counts disks by their bytes", the_percentage_counts_disks_by_their_bytes},
      {"the busiest of many vCPUs counts", the_busiest_of_many_vcpus_counts},
      {"a message has the numbers and a remedy", a_message_has_the_numbers_and_a_remedy},
      {"no numbers whatever make it stumble", no_numbers_whatever_make_it_stumble},
      {"actions have names", actions_have_names},
      {"a steady rate is read as it is", a_steady_rate_is_read_as_it_is},
      {"a change shows by two thirds after two seconds", a_change_shows_by_two_thirds_after_two_seconds},
      {"how often it is read does not matter", how_often_it_is_read_does_not_matter},
      {"counters and clocks that begin anew do no harm", counters_and_clocks_that_begin_anew_do_no_harm},
  };
  for (size_t i = 0; i < LENGTH(singles); i++)
    tests_add(&tests, singles[i].name, singles[i].function, NULL);
  return tests_run(&tests, "monitor");
}
