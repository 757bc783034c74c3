/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The vocabulary of libmigrate: phases, stages, causes, a sample of a running migration. Plain data. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define MIG_MIB_BYTES (UINT64_C(1) << 20)
#define MIG_GIB_BYTES (UINT64_C(1) << 30)

/* Returned when a name is not that of an enum value. */
#define MIG_ENUM_UNKNOWN (-1)

/* Where a job is in its life cycle. The last three are final. */
typedef enum MigPhase {
  MIG_PHASE_PENDING,
  MIG_PHASE_PREPARING,
  MIG_PHASE_MIGRATING,
  MIG_PHASE_RECOVERING,
  MIG_PHASE_SUCCEEDED,
  MIG_PHASE_FAILED,
  MIG_PHASE_ABORTED,
  MIG_PHASE_COUNT
} MigPhase;

/* What the migration is doing while the phase is migrating or recovering. */
typedef enum MigStage {
  MIG_STAGE_NONE,
  MIG_STAGE_PRE_COPY,
  MIG_STAGE_AUTO_CONVERGE,
  MIG_STAGE_STOP_AND_COPY,
  MIG_STAGE_POST_COPY,
  MIG_STAGE_COUNT
} MigStage;

typedef enum MigDirection {
  MIG_DIRECTION_OUTGOING,
  MIG_DIRECTION_INCOMING,
  MIG_DIRECTION_COUNT
} MigDirection;

/* Why a job ended without success. Names and order are those of the interface file. */
typedef enum MigCause {
  MIG_CAUSE_NONE,
  MIG_CAUSE_USER_ABORT,
  MIG_CAUSE_DEADLINE,
  MIG_CAUSE_NO_PROGRESS,  /* data is moving, but no pass improves on the best one */
  MIG_CAUSE_LINK_STALLED, /* no data is moving */
  MIG_CAUSE_LINK_LOST,
  MIG_CAUSE_NOT_CONVERGING,
  MIG_CAUSE_PENDING_TIMEOUT,
  MIG_CAUSE_PREPARE_TIMEOUT,
  MIG_CAUSE_TARGET_UNREACHABLE,
  MIG_CAUSE_SAME_HOST,
  MIG_CAUSE_DOMAIN_NOT_RUNNING,
  MIG_CAUSE_DOMAIN_BUSY,
  MIG_CAUSE_DOMAIN_EXISTS_AT_TARGET,
  MIG_CAUSE_REFUSED,
  MIG_CAUSE_POLICY_CONFLICT,
  MIG_CAUSE_GUEST_STOPPED,
  MIG_CAUSE_OUTCOME_UNKNOWN,
  MIG_CAUSE_SOURCE_UNREACHABLE,
  MIG_CAUSE_POST_COPY_FAILED,
  MIG_CAUSE_CANCELLED_ELSEWHERE,
  MIG_CAUSE_HOST_SHUTDOWN, /* this host is shutting down */
  MIG_CAUSE_LEASE_EXPIRED, /* of an incoming job: nothing arrived in time */
  MIG_CAUSE_NOT_WATCHED,   /* of an incoming job: its copy is gone, and nobody watched */
  MIG_CAUSE_LIBVIRT_ERROR,
  MIG_CAUSE_INTERNAL,
  MIG_CAUSE_COUNT
} MigCause;

/* Names as on the wire: "post_copy", "USER_ABORT". NULL for a value out of range. */
const char *mig_phase_name(MigPhase phase);
const char *mig_stage_name(MigStage stage);
const char *mig_direction_name(MigDirection direction);
const char *mig_cause_name(MigCause cause);

/* The value of a name, or MIG_ENUM_UNKNOWN. */
int mig_phase_from_name(const char *name);
int mig_stage_from_name(const char *name);
int mig_direction_from_name(const char *name);
int mig_cause_from_name(const char *name);

/* One sentence that an operator can act on, if nothing better is known. Never NULL. */
const char *mig_cause_describe(MigCause cause);

/* True for causes found before any data is sent: a check refused. */
bool mig_cause_is_refusal(MigCause cause);

bool mig_phase_is_final(MigPhase phase);

/* May a job go from one phase to another? A phase never goes to itself. */
bool mig_phase_may_follow(MigPhase from, MigPhase to);

/* One reading of a running migration's statistics, in base units. */
typedef struct MigSample {
  uint64_t now_ms; /* monotonic: when the statistics were read */
  bool valid;      /* false: the statistics could not be read; only now_ms counts */
  bool active;     /* the job is running; false: not set up yet, or ended */
  bool post_copy;  /* the guest runs at the target */

  uint64_t elapsed_ms; /* according to libvirt */
  uint64_t memory_total_bytes;
  uint64_t memory_processed_bytes; /* on the wire: a page of zeroes is 9 bytes there */
  uint64_t memory_zero_bytes;      /* memory that the stream has gone through: pages of zeroes, */
  uint64_t memory_normal_bytes;    /* and others. Both 0: not known, and taken for memory_processed_bytes */
  uint64_t memory_remaining_bytes; /* a sawtooth: compare it at pass boundaries only */
  uint64_t memory_bps_bytes_per_s; /* from libvirt: over the last 100 ms, jumpy */
  uint64_t disk_total_bytes;
  uint64_t disk_processed_bytes;
  uint64_t
      disk_remaining_bytes; /* of a disk that is written to, never 0: its copy is kept up to date to the end */
  uint64_t disk_bps_bytes_per_s;
  uint64_t dirty_rate_bytes_per_s;
  uint64_t page_size_bytes;
  uint64_t iteration;
  uint64_t throttle_pct;
  uint64_t expected_downtime_ms;
  uint64_t post_copy_requests;
  uint64_t guest_cpus;     /* 0: the next is not known */
  uint64_t busiest_cpu_ms; /* CPU time of whichever vCPU was the busiest: mig_vcpus_update() */
  uint64_t
      bandwidth_bytes_per_s; /* on the wire, memory and disks: smoothed by mig_bandwidth_update(); filled in by
                                     the reader */
} MigSample;
