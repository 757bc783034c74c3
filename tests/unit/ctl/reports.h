/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Replies to GetHistory: of real moves, as files below tests/unit/ctl/reports, and made up at random. */
#pragma once

#include "agent/ctl/report.h"
#include "tests/unit/core/rows.h"

static inline json_t *reply_load(const char *name) {
  g_autofree char *path = g_strdup_printf("%s/%s.json", g_getenv("REPORTS"), name);
  json_error_t error;
  json_t *reply = json_load_file(path, 0, &error);

  if (!reply)
    fail_msg("%s:%d: %s", path, error.line, error.text);
  return reply;
}

/* Readings of any size and spacing, with gaps, passes and stages, and events at any time: more than an agent would do. */
static inline json_t *reply_random(GRand *rand) {
  static const char *const stages[] = {"pre_copy", "auto_converge", "stop_and_copy", "post_copy"};
  static const char *const kinds[] = {"decision", "tuned", "warning", "stage", "action"};
  json_int_t started = 1700000000000000, size = (json_int_t)1 << g_rand_int_range(rand, 0, 44), at_ms = 0;
  json_t *samples = json_array(), *events = json_array();
  int n_samples = g_rand_int_range(rand, 0, 257), n_events = g_rand_int_range(rand, 0, 60);
  int pace_ms = 1 << g_rand_int_range(rand, 0, 20), iteration = 1, stage = 0;
  json_t *job;

  for (int i = 0; i < n_samples; i++) {
    json_int_t span_ms = g_rand_int_range(rand, 0, pace_ms + 1), most = 1 + size / (1 + iteration);
    json_int_t remaining = (json_int_t)(g_rand_double(rand) * (double)most);

    at_ms += span_ms + (g_rand_int_range(rand, 0, 20) == 0 ? g_rand_int_range(rand, 0, 10 * pace_ms) : 0);
    iteration += g_rand_int_range(rand, 0, 10) == 0;
    stage = g_rand_int_range(rand, 0, 40) == 0 ? g_rand_int_range(rand, 0, 4) : stage;
    json_array_append_new(
        samples,
        json_pack("{sI sI ss si sI sI sI sI sI si}", "elapsed_ms", at_ms, "span_ms", span_ms, "stage",
                  stages[stage], "iteration", iteration, "memory_remaining_bytes", remaining,
                  "memory_remaining_max_bytes", most, "disk_remaining_bytes", size > 1000 ? remaining / 3 : 0,
                  "bandwidth_bytes_per_s", most / 7, "dirty_rate_bytes_per_s", remaining / 9, "throttle_pct",
                  stage == 1 ? g_rand_int_range(rand, 0, 100) : 0));
  }
  for (int i = 0; i < n_events; i++) {
    g_autofree char *message = g_strnfill((gsize)g_rand_int_range(rand, 0, 300), i % 7 == 0 ? 'w' : ' ');

    for (char *p = message; *p; p++)
      *p = *p == ' ' && g_rand_int_range(rand, 0, 6) > 0 ? 'a' : *p;
    json_array_append_new(
        events, json_pack("{sI ss ss ss ss}", "time_usec_realtime",
                          started + (json_int_t)(g_rand_double_range(rand, -0.1, 1.1) * (double)at_ms * 1000),
                          "kind", kinds[g_rand_int_range(rand, 0, 5)], "phase", "migrating", "stage",
                          stages[g_rand_int_range(rand, 0, 4)], "message", message));
  }
  job = json_pack("{ss s{ss} s{ss} ss ss sI so}", "id", "0123456789abcdef0123456789abcdef", "domain", "name",
                  "web1", "target", "libvirt_uri", "qemu+tls://kvm2/system", "phase",
                  g_rand_boolean(rand) ? "migrating" : "succeeded", "stage", "pre_copy",
                  "started_usec_realtime", started, "events", events);
  if (g_rand_boolean(rand))
    json_object_set_new(job, "finished_usec_realtime", json_integer(started + at_ms * 1000));
  return json_pack("{so so}", "job", job, "samples", samples);
}
