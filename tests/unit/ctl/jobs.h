/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* A job as the agent would send it, to be changed by a test. */
#pragma once

#include "agent/ctl/jobview.h"

/* Migrating in pre-copy, 42 %, deadline at 100 s past the epoch. `changes` (NULL: none) replaces whole members; taken. */
static inline json_t *job_new(json_t *changes) {
  json_t *progress =
      json_pack("{s:i, s:i, s:I, s:I, s:I, s:i, s:i, s:i, s:I, s:I, s:i, s:i, s:i, s:i, s:i}", "percent", 42,
                "elapsed_ms", 9000, "memory_total_bytes", (json_int_t)1 << 30, "memory_processed_bytes",
                (json_int_t)500 << 20, "memory_remaining_bytes", (json_int_t)512 << 20, "disk_total_bytes", 0,
                "disk_processed_bytes", 0, "disk_remaining_bytes", 0, "bandwidth_bytes_per_s",
                (json_int_t)118 << 20, "dirty_rate_bytes_per_s", (json_int_t)20 << 20, "iteration", 3,
                "throttle_pct", 0, "expected_downtime_ms", 45, "post_copy_requests", 0, "age_ms", 100);
  json_t *job =
      json_pack("{s:s, s:s, s:{s:s, s:s}, s:{s:s, s:s}, s:s, s:s, s:b, s:I, s:o, s:[]}", "id",
                "0123456789abcdef0123456789abcdef", "direction", "outgoing", "domain", "name", "web1", "uuid",
                "u-1", "target", "name", "kvm2", "libvirt_uri", "qemu+tcp://kvm2/system", "phase",
                "migrating", "stage", "pre_copy", "abort_requested", 0, "deadline_usec_realtime",
                (json_int_t)100000000, "progress", progress, "events");

  if (changes)
    json_object_update(job, changes);
  json_decref(changes);
  return job;
}
