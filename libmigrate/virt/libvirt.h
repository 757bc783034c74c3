/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Private to libmigrate/virt: the connection, and what the files of the libvirt driver share. */
#pragma once

#include "libmigrate/virt/driver.h"

#include <libvirt/libvirt.h>
#include <libvirt/virterror.h>

G_DEFINE_AUTOPTR_CLEANUP_FUNC(virDomain, virDomainFree)
G_DEFINE_AUTOPTR_CLEANUP_FUNC(virNetwork, virNetworkFree)
G_DEFINE_AUTOPTR_CLEANUP_FUNC(virStoragePool, virStoragePoolFree)
G_DEFINE_AUTOPTR_CLEANUP_FUNC(virStorageVol, virStorageVolFree)

/* A server counts as lost after 5 x 5 s of silence, as libvirtd itself has it between two hosts. */
#define MIG_KEEPALIVE_INTERVAL_S 5
#define MIG_KEEPALIVE_COUNT      5

/* --- error.c --- */

typedef struct MigVirtErrorRow {
  int domain;       /* virErrorDomain, or MIG_ANY */
  int code;         /* virErrorNumber, or MIG_ANY */
  const char *text; /* what libvirt's text must contain, or NULL */
  MigVirtError error;
} MigVirtErrorRow;

#define MIG_ANY (-1)

/* Rows are tried in order; the first match wins. */
const MigVirtErrorRow *mig_virt_error_rows(size_t *ret_n);
MigVirtError mig_virt_error_classify(int domain, int code, const char *text);

/* Translates this thread's last libvirt error; `format` says what could not be done. Returns false, for tail calls. No
 * argument may call libvirt: nearly all of its functions reset the last error first. */
bool mig_virt_error_take(GError **error, const char *format, ...) G_GNUC_PRINTF(2, 3);

/* --- state.c --- */

typedef struct MigStateRow {
  int state;  /* virDomainState */
  int reason; /* of that state, or MIG_ANY */
  MigEndState end;
} MigStateRow;

const MigStateRow *mig_state_rows(size_t *ret_n);
MigEndState mig_state_from_libvirt(int state, int reason);

typedef struct MigLifecycleRow {
  int event;  /* virDomainEventType */
  int detail; /* of that event, or MIG_ANY */
  MigEndState end;
  const char *name; /* "suspended: post-copy" */
} MigLifecycleRow;

const MigLifecycleRow *mig_lifecycle_rows(size_t *ret_n);
/* NULL for events that change no state, such as a new definition. */
const MigLifecycleRow *mig_lifecycle_find(int event, int detail);

/* --- facts.c --- */

typedef struct MigLease MigLease;

/* Parts of the operations with the same names, over a leased connection. */
bool mig_read_host(const MigLease *lease, MigHostFacts *ret_facts, GError **error);
virDomainPtr mig_read_domain(const MigLease *lease, const char *name_or_uuid, MigDomainFacts *ret_facts,
                             GError **error);
/* Finds a domain by name or UUID. */
virDomainPtr mig_find_domain(const MigLease *lease, const char *name_or_uuid, GError **error);
/* Parses the domain's XML and classifies the storage of each disk. */
bool mig_read_domain_xml(virDomainPtr domain, const char *name, MigDomainFacts *ret_facts, GError **error);
void mig_read_disk_size(virDomainPtr domain, MigDomainFacts *facts, MigDisk *disk);

/* --- volumes.c: what the pools of a libvirtd contain; `store` owns the names --- */

void mig_look_for_path(virConnectPtr vir, const char *path, MigStore *store, MigTargetDisk *ret_disk);
void mig_look_for_disk(virConnectPtr vir, const MigDisk *disk, MigStore *store, MigTargetDisk *ret_disk);

/* --- flags.c --- */

/* The means by which a policy key takes effect. Every key has at least one. */
typedef enum MigMeans {
  MIG_MEANS_FLAG = 1 << 0,    /* VIR_MIGRATE_* */
  MIG_MEANS_PARAM = 1 << 1,   /* a typed parameter of the start */
  MIG_MEANS_CALL = 1 << 2,    /* a separate call before the start or during the migration */
  MIG_MEANS_MONITOR = 1 << 3, /* a goal of the monitor; not passed to libvirt at the start */
  MIG_MEANS_QUEUE = 1 << 4    /* only orders pending jobs */
} MigMeans;

typedef struct MigMapping {
  MigPolicyKey key;
  unsigned means;
  const char *note; /* how, and why so */
} MigMapping;

const MigMapping *mig_mapping(MigPolicyKey key);

#define MIG_NONZERO UINT64_MAX /* in a row's `value`: any value but 0 */

typedef struct MigFlagRow {
  MigPolicyKey key;
  uint64_t value;
  unsigned flags;
  bool persistent_only; /* only for a domain that is defined at the source */
  bool disks_only;      /* only if there are disks to copy */
} MigFlagRow;

const MigFlagRow *mig_flag_rows(size_t *ret_n);
unsigned mig_flags_always(void);

/* What flags and parameters depend on, as read from the domain just before the start. */
typedef struct MigStart {
  bool persistent;
  char **local_disks; /* disks (by target name) to copy if the policy says so; borrowed */
} MigStart;

unsigned mig_flags(const MigMigrateRequest *request, const MigStart *start);

/* --- params.c --- */

typedef struct MigTypedParams {
  virTypedParameterPtr params;
  int n;
  int allocated;
} MigTypedParams;

void mig_typed_params_clear(MigTypedParams *params);
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC(MigTypedParams, mig_typed_params_clear)

typedef enum MigParamUnit {
  MIG_PARAM_INT,       /* as it is, VIR_TYPED_PARAM_INT */
  MIG_PARAM_MIB_PER_S, /* bytes/s to MiB/s, rounded up, VIR_TYPED_PARAM_ULLONG; 0: explicitly no limit */
  MIG_PARAM_NAME       /* the name of an enum's value, VIR_TYPED_PARAM_STRING */
} MigParamUnit;

typedef struct MigParamRow {
  MigPolicyKey key;
  const char *param;
  MigParamUnit unit;
  bool when_zero;       /* sent even if 0 */
  unsigned needs_flags; /* sent only with all of these flags */
  uint64_t cap;         /* not more than this; 0: no cap */
  uint64_t floor;       /* not less than this */
} MigParamRow;

const MigParamRow *mig_param_rows(size_t *ret_n);

/* Converts bytes/s to libvirt's MiB/s, rounded up. 0 (no limit) becomes libvirt's largest value: a literal 0 would mean "as
 * the last virDomainMigrateSetMaxSpeed() left it". */
unsigned long long mig_param_mib_per_s(uint64_t bytes_per_s);

/* Builds the parameters of virDomainMigrateToURI3() that go with `flags`. */
bool mig_params(const MigMigrateRequest *request, const MigStart *start, unsigned flags,
                MigTypedParams *ret_params, GError **error);

/* --- stats.c --- */

/* Missing fields become 0. These leave now_ms, valid, post_copy and the smoothed bandwidth alone. */
void mig_stats_sample(virTypedParameterPtr params, int n, MigSample *ret_sample);
void mig_stats_final(virTypedParameterPtr params, int n, MigFinalStats *ret_stats);
/* A virDomainJobOperation; MIG_ANY if libvirt does not name it. */
int mig_stats_operation(virTypedParameterPtr params, int n);
/* 0: unknown. */
uint64_t mig_stats_elapsed_ms(virTypedParameterPtr params, int n);
bool mig_stats_success(virTypedParameterPtr params, int n);

/* Is a job of this virDomainJobType and operation a migration in progress? */
bool mig_stats_job_is_migration(int type, int operation);

/* --- events.c, lease.c, connect.c --- */

/* Where events go. It is separate from the connection because libvirt's event registrations keep it alive. */
typedef struct MigEventSink MigEventSink;

MigEventSink *mig_event_sink_new(MigVirtEventFunc func, gpointer user_data);
MigEventSink *mig_event_sink_ref(MigEventSink *sink);
void mig_event_sink_unref(MigEventSink *sink);
void mig_event_sink_set(MigEventSink *sink, MigVirtEventFunc func, gpointer user_data);
/* Registers all callbacks. Skips events that the hypervisor driver does not support. */
bool mig_events_register(virConnectPtr vir, MigEventSink *sink, GError **error);

typedef struct MigOpener MigOpener;

/* libvirt lets threads share a connection, but not well. While one thread waits in a long call, another thread's request may
 * stay unsent until the next packet or keepalive wakes the first (measured with libvirt 9.0: up to 5 s for a
 * virDomainGetJobStats() during a virDomainMigrateToURI3(); up to 9.7 the same code also used dead stack memory,
 * CVE-2024-4418). So a MigConn is a set of libvirt connections, and each call leases one for itself. */
struct MigConn {
  gint refs; /* the owner's, and one per call in progress, so that close() does not wait for calls */
  MigOpener *opener;
  char *uri;
  virConnectPtr vir; /* the first one, which receives the events */
  MigEventSink *sink;
  GMutex lock;
  GPtrArray *idle; /* of virConnectPtr, owned except `vir`; guarded by the lock */
};

MigConn *mig_conn_new(MigOpener *opener, const char *uri, virConnectPtr vir, MigEventSink *sink);
MigConn *mig_conn_ref(MigConn *conn);
/* The last unref hands the connections to a thread that closes them, since virConnectClose() talks to the server. */
void mig_conn_unref(MigConn *conn);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(MigConn, mig_conn_unref)

struct MigLease {
  MigConn *conn;
  virConnectPtr vir;
};

/* SHORT: a call that returns soon. LONG: one that blocks; it does not get the connection that receives the events. */
typedef enum MigLeaseKind { MIG_LEASE_SHORT, MIG_LEASE_LONG } MigLeaseKind;

bool mig_lease_take(MigConn *conn, MigLeaseKind kind, MigLease *ret_lease, GError **error);
void mig_lease_clear(MigLease *lease);
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC(MigLease, mig_lease_clear)

/* The domain with this UUID; NO_DOMAIN if the host does not know it. */
virDomainPtr mig_lease_domain(const MigLease *lease, const char *uuid, GError **error);
/* Takes a SHORT lease and looks up the domain. */
virDomainPtr mig_lease_take_domain(MigConn *conn, const char *uuid, MigLease *ret_lease, GError **error);

/* connect.c: opens on a separate thread and waits at most timeout_ms. */
MigOpener *mig_opener_new(void);
MigOpener *mig_opener_ref(MigOpener *opener);
void mig_opener_unref(
    MigOpener *opener); /* attempts that hang are left behind and clean up after themselves */
/* Also subscribes to events if ret_sink is given. */
virConnectPtr mig_opener_connect(MigOpener *opener, const char *uri, unsigned timeout_ms,
                                 MigVirtEventFunc events, gpointer user_data, MigEventSink **ret_sink,
                                 GError **error);
/* See MigDriverOps.prefer. */
void mig_opener_prefer(MigOpener *opener, const char *own_uri, const char *const *uris);
/* Takes `vir` and closes it on a thread: now, or once a thread can be started. */
void mig_close_aside(MigOpener *opener, virConnectPtr vir);
/* Closes connections for which no thread could be started before. To be called now and then. */
void mig_opener_close_rest(MigOpener *opener);

/* Reads the domain's current status. NO_DOMAIN: it has disappeared in the meantime. */
bool mig_read_status(virDomainPtr domain, const char *uuid, MigDomainStatus *ret_status, GError **error);

/* Reads the status and asks the guard. Call it right before the call that acts. `guard` may be NULL. */
bool mig_guard_pass(virDomainPtr domain, const char *uuid, const MigGuard *guard, GError **error);

/* The operations, as in the vtable. */
bool mig_libvirt_host_facts(MigConn *conn, MigHostFacts *ret_facts, GError **error);
GPtrArray *mig_libvirt_list_active(MigConn *conn, GError **error);
bool mig_libvirt_domain_facts(MigConn *conn, const char *name_or_uuid, MigDomainFacts *ret_facts,
                              GError **error);
bool mig_libvirt_survey_domain(MigConn *conn, const char *name_or_uuid, MigDomainFacts *ret_facts,
                               GError **error);
bool mig_libvirt_survey_target(MigConn *conn, const MigDomainFacts *domain, const MigHostFacts *source,
                               MigTargetFacts *ret_facts, GError **error);
bool mig_libvirt_definitions(MigConn *conn, const char *name_or_uuid, MigDefinitions *ret_definitions,
                             GError **error);
bool mig_libvirt_domain_status(MigConn *conn, const char *uuid, MigDomainStatus *ret_status, GError **error);
bool mig_libvirt_job_stats(MigConn *conn, const char *uuid, MigVcpus *vcpus, MigSample *ret_sample,
                           GError **error);
bool mig_libvirt_final_stats(MigConn *conn, const char *uuid, MigFinalStats *ret_stats, GError **error);
bool mig_libvirt_probe_dirty_rate(MigConn *conn, const char *uuid, unsigned seconds, MigProbe *probe,
                                  GError **error);
bool mig_libvirt_write_profile(MigConn *conn, const char *uuid, const MigProfile *profile, GError **error);
bool mig_libvirt_migrate(MigConn *conn, const MigMigrateRequest *request, GError **error);
bool mig_libvirt_abort_job(MigConn *conn, const char *uuid, const MigGuard *guard, GError **error);
bool mig_libvirt_set_max_downtime(MigConn *conn, const char *uuid, uint64_t downtime_ms,
                                  const MigGuard *guard, GError **error);
bool mig_libvirt_set_bandwidth(MigConn *conn, const char *uuid, uint64_t bytes_per_s, bool post_copy,
                               const MigGuard *guard, GError **error);
bool mig_libvirt_start_post_copy(MigConn *conn, const char *uuid, const MigGuard *guard, GError **error);
bool mig_libvirt_suspend(MigConn *conn, const char *uuid, const MigGuard *guard, GError **error);
bool mig_libvirt_resume(MigConn *conn, const char *uuid, const MigGuard *guard, GError **error);
bool mig_libvirt_reachable(MigDriver *driver, const char *uri, unsigned timeout_ms, GError **error);
bool mig_libvirt_undefine(MigConn *conn, const char *uuid, const MigGuard *guard, GError **error);
bool mig_libvirt_make_image(MigConn *conn, const MigImage *image, MigImageStamp *ret_stamp, GError **error);
bool mig_libvirt_remove_image(MigConn *conn, const MigImage *image, const MigImageGuard *guard,
                              GError **error);
