/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Private to the fake: its connections, what its calls have in common, and the calls. */
#pragma once

#include "tests/fake/fake-world.h"

#define FAKE_TICK_US (10 * 1000)

struct MigConn {
  gint refs;
  FakeWorld *world;
  char *host;
  GRecMutex lock; /* of the two below */
  MigVirtEventFunc events;
  gpointer user_data;
  bool broken, told; /* under the world's lock */
};

/* --- fake-call.c --- */

MigConn *fake_conn_ref(MigConn *conn);
void fake_conn_unref(MigConn *conn);

/* fake:///PATH?host=NAME, or qemu+…://NAME… of the world that the environment names. */
#define FAKE_CONTROL_VARIABLE "FAKE_CONTROL"
bool fake_parse_uri(const char *uri, char **ret_path, char **ret_host);

/* Writes the URI to PATH.opened of that world, once, escaped as in C, one a line. */
void fake_note_uri(GHashTable *noted, const char *uri);

/* Of an object of the control file. */
bool fake_flag(json_t *object, const char *key, bool fallback);
gint64 fake_integer(json_t *object, const char *key);

/* All of these with the world's lock held. */
bool fake_host_reachable(FakeWorld *world, const char *host);
bool fake_host_hung(FakeWorld *world, const char *host);

/* Brings the world up to now. False: there is none. */
bool fake_catch_up(FakeWorld *world);
void fake_wait_tick(FakeWorld *world);

/* The error that a knob asks for. */
void fake_set_scripted(GError **error, MigVirtError code, const char *call, json_t *knob);

/* Takes the lock and lets the knobs of `call` do their work. True: the lock is held, and *ret_knob, if wanted, is the caller's to
 * release. `limit_us` bounds a hang. */
bool fake_enter_at(FakeWorld *world, const char *host, MigConn *conn, const char *call, gint64 limit_us,
                   MigVirtError limit_error, json_t **ret_knob, GError **error);
bool fake_enter(MigConn *conn, const char *call, json_t **ret_knob, GError **error);

/* Gives the lock up, and returns `result`. */
bool fake_leave(MigConn *conn, bool result);

/* Returns false. */
bool fake_refuse(GError **error, MigVirtError code, const char *text);

FakeDomain *fake_find(MigConn *conn, const char *name_or_uuid, GError **error);

/* The domain with its outgoing job here, or an error. */
FakeDomain *fake_find_job(MigConn *conn, const char *uuid, GError **error);

/* --- the calls: fake-facts.c --- */

bool fake_host_facts(MigConn *conn, MigHostFacts *ret_facts, GError **error);
GPtrArray *fake_list_active(MigConn *conn, GError **error);
bool fake_domain_facts(MigConn *conn, const char *name_or_uuid, MigDomainFacts *ret_facts, GError **error);
bool fake_definitions(MigConn *conn, const char *name_or_uuid, MigDefinitions *ret_definitions,
                      GError **error);
bool fake_domain_status(MigConn *conn, const char *uuid, MigDomainStatus *ret_status, GError **error);
/* Within a call that has been entered: looks, and asks the guard. */
bool fake_guard_pass(MigConn *conn, const char *uuid, const MigGuard *guard, GError **error);
bool fake_survey_domain_op(MigConn *conn, const char *name_or_uuid, MigDomainFacts *ret_facts,
                           GError **error);
bool fake_survey_target_op(MigConn *conn, const MigDomainFacts *domain, const MigHostFacts *source,
                           MigTargetFacts *ret_facts, GError **error);

/* --- fake-migrate.c --- */

bool fake_probe_dirty_rate(MigConn *conn, const char *uuid, unsigned seconds, MigProbe *probe,
                           GError **error);
bool fake_write_profile(MigConn *conn, const char *uuid, const MigProfile *profile, GError **error);
bool fake_migrate(MigConn *conn, const MigMigrateRequest *request, GError **error);
bool fake_job_stats(MigConn *conn, const char *uuid, MigVcpus *vcpus, MigSample *ret_sample, GError **error);
bool fake_final_stats(MigConn *conn, const char *uuid, MigFinalStats *ret_stats, GError **error);
bool fake_abort_job(MigConn *conn, const char *uuid, const MigGuard *guard, GError **error);
bool fake_set_max_downtime(MigConn *conn, const char *uuid, uint64_t downtime_ms, const MigGuard *guard,
                           GError **error);
bool fake_set_bandwidth(MigConn *conn, const char *uuid, uint64_t bytes_per_s, bool post_copy,
                        const MigGuard *guard, GError **error);
bool fake_start_post_copy(MigConn *conn, const char *uuid, const MigGuard *guard, GError **error);
bool fake_suspend(MigConn *conn, const char *uuid, const MigGuard *guard, GError **error);
bool fake_resume(MigConn *conn, const char *uuid, const MigGuard *guard, GError **error);
bool fake_undefine(MigConn *conn, const char *uuid, const MigGuard *guard, GError **error);
bool fake_make_image(MigConn *conn, const MigImage *image, MigImageStamp *ret_stamp, GError **error);
bool fake_remove_image(MigConn *conn, const MigImage *image, const MigImageGuard *guard, GError **error);
