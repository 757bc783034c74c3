/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The fake's world: what the control file says, what the domains do, and the model that moves them. */
#pragma once

#include "libmigrate/virt/driver.h"

#include <jansson.h>
#include <sys/stat.h>

typedef enum FakePhase {
  FAKE_PHASE_NONE,
  FAKE_PHASE_SETUP,
  FAKE_PHASE_DISK,
  FAKE_PHASE_PRE_COPY,
  FAKE_PHASE_SWITCHOVER,
  FAKE_PHASE_POST_COPY,
  FAKE_PHASE_POST_COPY_FAILED
} FakePhase;

/* One migration. Times are CLOCK_MONOTONIC in µs, amounts are bytes. */
typedef struct FakeJob {
  FakePhase phase;
  char *source, *target;
  gint64 start_us;
  gint64 at_us;        /* the model has been run up to here */
  gint64 cut_since_us; /* 0: the link is up */
  double setup_left_s;
  double disk_total, disk_left;
  double memory_processed;
  double pass_bytes, pass_sent;
  double pass_s, dirty_s; /* duration of the pass, and how much of it the guest ran */
  double switch_left_s;
  double downtime_s;
  gint64 iteration, throttle_pct, stuck;
  gint64 max_downtime_ms, bandwidth, post_copy_bandwidth;
  bool allow_post_copy, auto_converge, persist, undefine;
} FakeJob;

typedef struct FakeDomain {
  char *name;
  char uuid[MIG_UUID_STRING_SIZE];

  /* of the control file */
  char *control_host;
  MigEndState control_state;
  bool persistent, passthrough, leftovers, start_failed, booted;
  double memory, dirty_rate, working_set, local_disk;
  gint64 local_disks;

  guint definition_hash; /* of xml and next_xml */

  /* of the state file */
  char *host; /* where it is active, or was last */
  MigEndState state;
  char *applied_host; /* what of the control file was applied last */
  char *applied_to;   /* likewise: of migrate_to */
  MigEndState applied_state;
  GPtrArray *defined; /* names of hosts */
  FakeJob job;
  gint64 serial; /* of the last migration; it is over when job.phase is NONE */
  bool ok;
  gint64 error;
  char *error_text;
  char *profile; /* as write_profile() wrote it */
  char *final_source, *final_target;
  MigFinalStats final;
} FakeDomain;

typedef struct FakeEvent {
  char *host; /* on whose connections */
  MigVirtEvent event;
} FakeEvent;

/* All under `lock`. */
typedef struct FakeWorld {
  gint refs; /* the driver's, and one for each connection */
  char *path;
  char *state_path;
  GMutex lock;
  GCond tick; /* broadcast after each step of the model */
  struct stat seen;
  json_t *control;
  guint64 generation;  /* of the control file */
  GHashTable *domains; /* by name: FakeDomain */
  GHashTable *used;    /* knob name: how often it was applied in this generation */
  GQueue events;       /* of FakeEvent, not yet delivered */
  json_t *images;      /* of the state file: that calls made, HOST: {PATH: bytes} */
  GPtrArray *conns;    /* of MigConn, borrowed */
  gint64 saved_us;
  bool dirty;

  double link_rate, setup_s, switch_s;
  bool link_cut;
  gint64 keepalive_us;
} FakeWorld;

/* world: fake-world.c */
FakeWorld *fake_world_new(const char *path);
FakeWorld *fake_world_ref(FakeWorld *world);
void fake_world_unref(FakeWorld *world);
/* Reads the control file if it changed. False if there never was one. */
bool fake_world_refresh(FakeWorld *world);
void fake_world_save(FakeWorld *world, gint64 now_us, bool now);
json_t *fake_world_host(FakeWorld *world, const char *host);
json_t *fake_world_knob(FakeWorld *world, const char *host, const char *call);
/* NULL if there is none of that name or UUID; with a host, also if it is not known there. */
FakeDomain *fake_world_domain(FakeWorld *world, const char *host, const char *name_or_uuid);
/* Images that calls made; removed by -1. */
bool fake_image_find(FakeWorld *world, const char *host, const char *path, gint64 *ret_bytes);
void fake_image_set(FakeWorld *world, const char *host, const char *path, gint64 bytes);
/* As the control file has it, with the volumes that are images by now. The caller's. */
json_t *fake_world_host_now(FakeWorld *world, const char *host);
/* Runs all jobs up to now. */
void fake_world_advance(FakeWorld *world, gint64 now_us);
json_t *fake_world_said_state(FakeWorld *world, const FakeDomain *domain, const char *host);
MigEndState fake_end_state(const char *name);
MigVirtError fake_error(const char *name);

/* model: fake-model.c */
bool fake_domain_defined(const FakeDomain *domain, const char *host);
void fake_domain_set_defined(FakeDomain *domain, const char *host, bool defined);
MigEndState fake_domain_state_at(const FakeDomain *domain, const char *host);
void fake_event(FakeWorld *world, const char *host, const FakeDomain *domain, MigVirtEvent event);
void fake_event_state(FakeWorld *world, const char *host, const FakeDomain *domain, MigEndState state,
                      const char *detail);
/* Bytes that the guest dirties in so many seconds. */
double fake_dirtied(const FakeDomain *domain, double seconds);

void fake_job_start(FakeWorld *world, FakeDomain *domain, const char *source, const char *target,
                    const MigPolicy *policy, gint64 now_us);
void fake_job_advance(FakeWorld *world, FakeDomain *domain, gint64 now_us);
void fake_job_fail(FakeWorld *world, FakeDomain *domain, MigVirtError error, const char *text);
void fake_job_post_copy(FakeWorld *world, FakeDomain *domain);
void fake_job_sample(FakeWorld *world, const FakeDomain *domain, MigSample *ret_sample);
void fake_job_clear(FakeJob *job);
