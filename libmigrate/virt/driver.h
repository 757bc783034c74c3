/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The only seam to the hypervisor: everything that the agent asks of libvirt, as a vtable. Tests plug their fake in here
 * and nowhere else. */
#pragma once

#include "libmigrate/core/changes.h"
#include "libmigrate/core/facts.h"
#include "libmigrate/core/monitor.h"
#include "libmigrate/core/policy.h"
#include "libmigrate/core/types.h"
#include "libmigrate/virt/tags.h"

#include <glib.h>

/* Why a driver call failed. The message keeps libvirt's own code and text ("libvirt error 38: …");
 * mig_virt_error_get_libvirt() returns them separately. */
#define MIG_VIRT_ERROR (mig_virt_error_quark())
GQuark mig_virt_error_quark(void);

typedef enum MigVirtError {
  MIG_VIRT_ERROR_UNREACHABLE, /* no connection, or it broke during the call */
  MIG_VIRT_ERROR_PEER_LOST, /* migrate(): the source's libvirtd could not connect to the target's, or lost it */
  MIG_VIRT_ERROR_TIMEOUT,   /* no answer in time */
  MIG_VIRT_ERROR_NO_DOMAIN,   /* the host has no such domain, not even a definition */
  MIG_VIRT_ERROR_NOT_RUNNING, /* the operation needs an active domain or job */
  MIG_VIRT_ERROR_DENIED,      /* authentication, polkit, access drivers */
  MIG_VIRT_ERROR_SAME_HOST,
  MIG_VIRT_ERROR_EXISTS,        /* a domain of that name or UUID is active at the target */
  MIG_VIRT_ERROR_BUSY,          /* another job holds the domain */
  MIG_VIRT_ERROR_ABORTED,       /* the migration was cancelled */
  MIG_VIRT_ERROR_STILL_RUNNING, /* post-copy resume: QEMU's migration is still running; watch it */
  MIG_VIRT_ERROR_UNSUPPORTED,   /* libvirt, QEMU or the domain's configuration does not support it */
  MIG_VIRT_ERROR_NO_TLS,  /* an end has no certificates for QEMU's TLS; nothing has been transferred yet */
  MIG_VIRT_ERROR_STALE,   /* not attempted: the state that justified the action has changed; see MigGuard */
  MIG_VIRT_ERROR_INVALID, /* a bad argument, such as a malformed URI */
  MIG_VIRT_ERROR_FAILED,  /* anything else: see libvirt's text */
  MIG_VIRT_ERROR_COUNT
} MigVirtError;

const char *mig_virt_error_name(MigVirtError error);

/* True if the hypervisor itself answered (NULL: with success). False if the connection broke or timed out: then the request
 * may still be on its way. */
bool mig_virt_error_is_answer(const GError *error);

/* libvirt's own code and text, if the error came from libvirt. ret_message is borrowed from the error. */
bool mig_virt_error_get_libvirt(const GError *error, int *ret_code, const char **ret_message);

/* The element of a domain's metadata that has its profile: <profile xmlns="…">TEXT</profile>. */
#define MIG_PROFILE_NAMESPACE "https://handoffd.io/xmlns/profile/1"

typedef struct MigDriver MigDriver;
typedef struct MigConn MigConn; /* one connection to one libvirtd; may be used from several threads at once */

/* Each frees all that the facts own. */
void mig_host_facts_clear(MigHostFacts *facts);
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC(MigHostFacts, mig_host_facts_clear)

void mig_domain_facts_clear(MigDomainFacts *facts);
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC(MigDomainFacts, mig_domain_facts_clear)

void mig_target_facts_clear(MigTargetFacts *facts);
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC(MigTargetFacts, mig_target_facts_clear)

/* An active domain of a host. */
typedef struct MigActiveDomain {
  char uuid[MIG_UUID_STRING_SIZE];
  char *name;
} MigActiveDomain;

/* Frees one element of list_active(), whose array does so by itself. */
void mig_active_domain_free(gpointer domain);

/* A domain's live definition (as started and changed since), and the one that its next start will use. */
typedef struct MigDefinitions {
  char *name;
  char uuid[MIG_UUID_STRING_SIZE];
  bool running;    /* false: its next start applies every change; both definitions are the same */
  bool persistent; /* false: it has no next start; both definitions are the same */
  MigDefinition live, next;
} MigDefinitions;

/* Clears the name and what both stores own. */
void mig_definitions_clear(MigDefinitions *definitions);
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC(MigDefinitions, mig_definitions_clear)

/* The state of the domain at one end, for the verdict. */
typedef struct MigDomainStatus {
  MigEndState state;
  bool persistent;
  bool job_active; /* a migration job, outgoing or incoming */
  bool job_outgoing;
  uint64_t job_elapsed_ms; /* since the job began, by libvirtd's clock; 0: unknown */
  int id;            /* libvirt's ID of this QEMU process, new after each start and each migration; 0: none */
  bool ended;        /* inactive because the guest shut down or crashed */
  bool start_failed; /* inactive because its last start, or the last migration into this host, failed */
  bool migrated;     /* running since it was migrated here, and not paused since */
  bool booted;       /* running since it was started or restored here, and not paused since */
} MigDomainStatus;

/* Calls that change something ask this right before they act, on their own thread, with the domain's status at that moment:
 * may the action still be done? False, with an error, prevents it. So an action that a hung libvirtd held up is dropped once
 * its evidence is out of date, or once nobody waits for it any more. */
typedef bool (*MigGuardFunc)(const MigDomainStatus *status, gpointer user_data, GError **error);

typedef struct MigGuard {
  MigGuardFunc may;
  gpointer user_data;
} MigGuard;

/* A disk image on a host, in one of its storage pools. */
typedef struct MigImage {
  const char *path;   /* as in the domain's definition, or POOL/VOLUME */
  const char *pool;   /* NULL: the pool whose target is the path's directory */
  const char *volume; /* with `pool` */
  const char *format; /* "qcow2", "raw" */
  uint64_t capacity_bytes;
} MigImage;

/* The state of an image just after it was created. Any write to the image changes it. */
typedef struct MigImageStamp {
  bool known; /* false: the image was created, but its state could not be read */
  uint64_t allocation_bytes;
  uint64_t physical_bytes;
  char mtime[40]; /* as libvirt prints it: "1700000000.123456789" */
} MigImageStamp;

/* What must hold at the moment an image is removed. */
typedef struct MigImageGuard {
  MigImageStamp stamp;     /* the image is still in this state */
  const char *domain_uuid; /* the host has no such domain, not even a definition */
  int64_t until_us;        /* deadline, on g_get_monotonic_time() */
  const gint *called_off;  /* not set; another thread sets it to prevent the removal */
} MigImageGuard;

/* Final statistics of a migration. */
typedef struct MigFinalStats {
  bool have_downtime;
  uint64_t downtime_ms; /* libvirt's downtime, including the network's part */
  uint64_t downtime_net_ms;
  uint64_t total_time_ms;
  uint64_t transferred_bytes;
  MigSample last; /* memory totals, iterations and so on, at the end */
} MigFinalStats;

/* How to migrate. */
typedef struct MigMigrateRequest {
  char uuid[MIG_UUID_STRING_SIZE];
  const char *target_uri;  /* libvirt URI of the target, as seen from the source's libvirtd (peer to peer) */
  const char *migrate_uri; /* or NULL */
  /* The goals; allow_auto_converge and max_downtime_ms instead say what to start with. Borrowed, never NULL, unchanged until
   * the call returns. */
  const MigPolicy *policy;
  MigPolicyFacts facts;
  bool resume_post_copy;
  const MigGuard *guard;         /* or NULL */
  unsigned throttle_initial_pct; /* for auto-converge; 0: QEMU's 20 %, or max_throttle_pct if that is lower */
  unsigned throttle_increment_pct; /* 0: QEMU's 10 % */
} MigMigrateRequest;

typedef enum MigVirtEventKind {
  MIG_VIRT_EVENT_ITERATION, /* a new pass over memory began: `iteration` */
  MIG_VIRT_EVENT_JOB_DONE, /* a migration completed: `final`. libvirt 9 sends none after a failure or a cancellation */
  MIG_VIRT_EVENT_STATE,      /* the domain's state changed: `state` */
  MIG_VIRT_EVENT_DEFINITION, /* its live definition, or that of its next start, may have changed */
  MIG_VIRT_EVENT_CLOSED      /* the connection broke; no uuid */
} MigVirtEventKind;

typedef struct MigVirtEvent {
  MigVirtEventKind kind;
  char uuid[MIG_UUID_STRING_SIZE];
  char name[256]; /* of the domain, truncated */
  bool arriving;  /* STATE: a new copy that waits for a migration into this host */
  bool ended;     /* STATE: the domain was shut down or destroyed, or it crashed */
  bool started;   /* STATE: somebody started it; it did not come by migration */
  uint64_t iteration;
  bool success;
  MigFinalStats final;
  MigEndState state;
  char detail[64]; /* libvirt's name of the event: "suspended: post-copy" */
  uint64_t at_ms;  /* monotonic: when it reached this process */
} MigVirtEvent;

/* Called on one of the driver's own threads. The event is borrowed: copy what you need, post it to your thread, return. */
typedef void (*MigVirtEventFunc)(const MigVirtEvent *event, gpointer user_data);

/* Every function may block, for at most the connection's keepalive timeout (about 30 s) unless a shorter bound is given. With
 * a healthy libvirtd all but migrate() and probe_dirty_rate() return within milliseconds. `conn` is borrowed. */
typedef struct MigDriverOps {
  const char *name;

  /* May be NULL. Names this node's own URI and those of the configuration (NULL-terminated): however many connections to other
   * hosts hang, these can still be opened. Replaces earlier calls. */
  void (*prefer)(MigDriver *driver, const char *own_uri, const char *const *uris);

  /* Connects; waits at most timeout_ms. `events` may be NULL. The caller owns the connection: close(). */
  MigConn *(*open)(MigDriver *driver, const char *uri, unsigned timeout_ms, MigVirtEventFunc events,
                   gpointer user_data, GError **error);
  /* Delivers no event after it has returned. Never waits for a server that does not answer. */
  void (*close)(MigConn *conn);
  bool (*is_alive)(MigConn *conn);

  /* Can the network reach the URI's libvirtd? Also true where only a connection could tell. After a link failure this answers
   * fast, while existing connections are slow to notice that the link is back. Use it only when nothing else answers. */
  bool (*reachable)(MigDriver *driver, const char *uri, unsigned timeout_ms, GError **error);

  bool (*host_facts)(MigConn *conn, MigHostFacts *ret_facts, GError **error);

  /* All active domains, paused ones included: an array of MigActiveDomain, owned by the caller. */
  GPtrArray *(*list_active)(MigConn *conn, GError **error);

  /* Finds the domain by name or UUID. A name that looks like a UUID is looked up as a UUID first. */
  bool (*domain_facts)(MigConn *conn, const char *name_or_uuid, MigDomainFacts *ret_facts, GError **error);

  /* The same, plus what the checks need, at the cost of a few more calls: jobs, snapshots, sizes of the disks. */
  bool (*survey_domain)(MigConn *conn, const char *name_or_uuid, MigDomainFacts *ret_facts, GError **error);

  /* What the target has of what the domain needs. `source` is the host on which the domain runs. The first survey makes the
   * target's libvirtd probe its emulator, which takes seconds that the migration would otherwise spend. What the target's
   * libvirt cannot tell is reported as unseen, not as an error. */
  bool (*survey_target)(MigConn *target, const MigDomainFacts *domain, const MigHostFacts *source,
                        MigTargetFacts *ret_facts, GError **error);

  /* The live definition, and that of the next start. */
  bool (*definitions)(MigConn *conn, const char *name_or_uuid, MigDefinitions *ret_definitions,
                      GError **error);

  /* An unknown domain is an answer (MIG_END_ABSENT), not an error. */
  bool (*domain_status)(MigConn *conn, const char *uuid, MigDomainStatus *ret_status, GError **error);

  /* Measures for `seconds` (1 to 60) what the guest dirties, how busy its busiest vCPU is and how much of its memory is in use, and
   * adds that to `probe`. Blocks for that time. Not possible during a migration. */
  bool (*probe_dirty_rate)(MigConn *conn, const char *uuid, unsigned seconds, MigProbe *probe,
                           GError **error);

  /* Notes the profile in the metadata of the running domain (MIG_PROFILE_NAMESPACE), which a migration takes along; domain_facts()
   * reads it. BUSY: a migration or another job is running; nothing was written. */
  bool (*write_profile)(MigConn *conn, const char *uuid, const MigProfile *profile, GError **error);

  /* Blocks until the migration ends. Even if it returns false, the domain may have migrated: ask both ends. */
  bool (*migrate)(MigConn *conn, const MigMigrateRequest *request, GError **error);

  /* Statistics of the running job. No job, or no domain, is an answer and not an error: ret_sample->valid is true, active
   * false. `vcpus` belongs to the caller, who passes the same for each reading of a migration, or NULL: then the CPU time is left
   * out. The caller fills in now_ms and the smoothed bandwidth. */
  bool (*job_stats)(MigConn *conn, const char *uuid, MigVcpus *vcpus, MigSample *ret_sample, GError **error);

  /* Final statistics of the last migration, as libvirt keeps them at the source or the target. NOT_RUNNING: there are none, as
   * after post-copy. They may belong to an earlier migration, even one in the other direction. So use this only at the target,
   * and only if JOB_DONE, which has the same numbers, was missed. */
  bool (*final_stats)(MigConn *conn, const char *uuid, MigFinalStats *ret_stats, GError **error);

  /* These act only if `guard` allows it. */
  bool (*abort_job)(MigConn *conn, const char *uuid, const MigGuard *guard, GError **error);
  bool (*set_max_downtime)(MigConn *conn, const char *uuid, uint64_t downtime_ms, const MigGuard *guard,
                           GError **error);
  bool (*set_bandwidth)(MigConn *conn, const char *uuid, uint64_t bytes_per_s, bool post_copy,
                        const MigGuard *guard, GError **error);
  bool (*start_post_copy)(MigConn *conn, const char *uuid, const MigGuard *guard, GError **error);
  bool (*suspend)(MigConn *conn, const char *uuid, const MigGuard *guard, GError **error);
  bool (*resume)(MigConn *conn, const char *uuid, const MigGuard *guard, GError **error);

  /* Removes the definition of an inactive domain and nothing else: NVRAM and TPM state stay, as they may be on shared storage
   * and in use elsewhere. Fails for an active domain, and for one with snapshots or a saved state. */
  bool (*undefine)(MigConn *conn, const char *uuid, const MigGuard *guard, GError **error);

  /* Creates an empty, sparse image. EXISTS: something with that name already exists, and was left alone. */
  bool (*make_image)(MigConn *conn, const MigImage *image, MigImageStamp *ret_stamp, GError **error);

  /* Removes an image; succeeds if it is already gone. INVALID: left alone, because somebody has written to it since it was
   * created, or may have. BUSY or TIMEOUT: left alone, because another condition of the guard did not hold. Only the domain's
   * absence shows that no guest has the image open. */
  bool (*remove_image)(MigConn *conn, const MigImage *image, const MigImageGuard *guard, GError **error);

  void (*free)(MigDriver *driver);
} MigDriverOps;

/* A driver embeds this as its first member. */
struct MigDriver {
  const MigDriverOps *ops;
};

/* What the libvirt driver does to its process, beside starting threads: it registers libvirt's default event loop, so no other may
 * be registered, and replaces libvirt's default error handler, which prints to stderr, by one that is silent. libvirt's own
 * functions may be used beside it. Some errors are told apart by libvirt's English text: where LC_MESSAGES is another language,
 * more of them are MIG_VIRT_ERROR_FAILED.
 *
 * mig_driver_libvirt_new() returns a driver that the caller owns: mig_driver_free(). NULL: MIG_VIRT_ERROR_FAILED, libvirt's client
 * library does not start; G_THREAD_ERROR, there is no room for another thread. */

/* The real driver. Only one per process: it runs libvirt's event loop on a thread of its own, which runs GLib's default main
 * context, so nothing else may run that context. */
MigDriver *mig_driver_libvirt_new(GError **error);

/* NULL is allowed. Close its connections first: one that is still open goes on without events. Not from an event function, for
 * it waits for the event thread. */
void mig_driver_free(MigDriver *driver);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(MigDriver, mig_driver_free)
