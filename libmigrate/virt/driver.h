/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The one seam to the hypervisor: what the agent asks of libvirt, as a vtable. Tests put a fake here and
 * nowhere else. */
#pragma once

#include "libmigrate/core/changes.h"
#include "libmigrate/core/facts.h"
#include "libmigrate/core/policy.h"
#include "libmigrate/core/types.h"
#include "libmigrate/virt/tags.h"

#include <glib.h>

/* Why a call of the driver failed. libvirt's own code and text stay in the message ("libvirt error 38: …")
 * and can be had apart by mig_virt_error_get_libvirt(). */
#define MIG_VIRT_ERROR (mig_virt_error_quark())
GQuark mig_virt_error_quark(void);

typedef enum MigVirtError {
  MIG_VIRT_ERROR_UNREACHABLE, /* no connection, or it broke during the call */
  MIG_VIRT_ERROR_PEER_LOST, /* a migration's: the source's libvirtd has no connection to the target's, or lost it */
  MIG_VIRT_ERROR_TIMEOUT,     /* no answer within the bound */
  MIG_VIRT_ERROR_NO_DOMAIN,   /* not defined there */
  MIG_VIRT_ERROR_NOT_RUNNING, /* the operation needs an active domain or job */
  MIG_VIRT_ERROR_DENIED,      /* authentication, polkit, access drivers */
  MIG_VIRT_ERROR_SAME_HOST,
  MIG_VIRT_ERROR_EXISTS,        /* a domain of that name or UUID is active at the target */
  MIG_VIRT_ERROR_BUSY,          /* another job holds the domain */
  MIG_VIRT_ERROR_ABORTED,       /* the migration was cancelled */
  MIG_VIRT_ERROR_STILL_RUNNING, /* post-copy resume: QEMU's migration still runs; watch it */
  MIG_VIRT_ERROR_UNSUPPORTED,   /* libvirt, QEMU or the domain's configuration cannot */
  MIG_VIRT_ERROR_NO_TLS, /* an end lacks the certificates that QEMU's TLS takes; told before anything has moved */
  MIG_VIRT_ERROR_STALE,   /* not asked for: what the action was to rest on is so no more; see MigGuard */
  MIG_VIRT_ERROR_INVALID, /* a bad argument, such as a malformed URI */
  MIG_VIRT_ERROR_FAILED,  /* anything else: see libvirt's text */
  MIG_VIRT_ERROR_COUNT
} MigVirtError;

const char *mig_virt_error_name(MigVirtError error);

/* The answer, be it NULL for success, came from the hypervisor, and not from a connection that broke: what was asked is not
 * still on its way to it. */
bool mig_virt_error_is_answer(const GError *error);

/* What libvirt said, if the error came from it. ret_message is borrowed from the error's message. */
bool mig_virt_error_get_libvirt(const GError *error, int *ret_code, const char **ret_message);

typedef struct MigDriver MigDriver;
typedef struct MigConn MigConn; /* one connection to one libvirtd; may be used from several threads at once */

/* Each of these clears what its store owns. */
void mig_host_facts_clear(MigHostFacts *facts);
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC(MigHostFacts, mig_host_facts_clear)

void mig_domain_facts_clear(MigDomainFacts *facts);
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC(MigDomainFacts, mig_domain_facts_clear)

void mig_target_facts_clear(MigTargetFacts *facts);
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC(MigTargetFacts, mig_target_facts_clear)

/* A domain that is active at a host, by its names. */
typedef struct MigActiveDomain {
  char uuid[MIG_UUID_STRING_SIZE];
  char *name;
} MigActiveDomain;

/* Frees one element of list_active(), whose array does so by itself. */
void mig_active_domain_free(gpointer domain);

/* What a running domain was started with and set to since, and what its next start would have. */
typedef struct MigDefinitions {
  char *name;
  char uuid[MIG_UUID_STRING_SIZE];
  bool running;    /* false: its next start brings in all that there is; both definitions are the same */
  bool persistent; /* false: there is no next start; both definitions are the same */
  MigDefinition live, next;
} MigDefinitions;

/* Clears the name and what both stores own. */
void mig_definitions_clear(MigDefinitions *definitions);
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC(MigDefinitions, mig_definitions_clear)

/* How the domain stands at one end, for a verdict. */
typedef struct MigDomainStatus {
  MigEndState state;
  bool persistent;
  bool job_active; /* a migration job, outgoing or incoming */
  bool job_outgoing;
  uint64_t job_elapsed_ms; /* since the job began, as libvirtd's clock says; 0: it does not tell */
  int id; /* libvirt's number of this QEMU, another one after each start and each move; 0: there is none */
  bool ended;        /* inactive because the guest was shut down, or crashed */
  bool start_failed; /* inactive because its last start, or the last migration into it, failed */
  bool migrated;     /* running, and so since it was migrated here; nobody paused it since */
  bool booted;       /* the same since it was started here, or restored: by no migration */
} MigDomainStatus;

/* What a call that changes something asks right before it does, on its own thread, of a look of that moment: may it still be done?
 * False, with an error, prevents it. So an action that was held up, by a libvirtd that hung, dies with the look that it rested on,
 * and with whoever waited for it. */
typedef bool (*MigGuardFunc)(const MigDomainStatus *status, gpointer user_data, GError **error);

typedef struct MigGuard {
  MigGuardFunc may;
  gpointer user_data;
} MigGuard;

/* A disk image of a host, in one of its storage pools. */
typedef struct MigImage {
  const char *path;   /* as the domain has it, or POOL/VOLUME */
  const char *pool;   /* NULL: the one at the path's directory */
  const char *volume; /* with `pool` */
  const char *format; /* "qcow2", "raw" */
  uint64_t capacity_bytes;
} MigImage;

/* How an image was just after it was made: whatever is written to it shows. */
typedef struct MigImageStamp {
  bool known; /* false: it was made, and how it was then could not be read */
  uint64_t allocation_bytes;
  uint64_t physical_bytes;
  char mtime[40]; /* as libvirt has it: "1700000000.123456789" */
} MigImageStamp;

/* What has to hold at the moment at which an image is removed. */
typedef struct MigImageGuard {
  MigImageStamp stamp;     /* it is as it was made */
  const char *domain_uuid; /* there is no such domain at the host, not even a definition */
  int64_t until_us;        /* of g_get_monotonic_time(): it is not later */
  const gint *called_off;  /* set by another thread, which knows better by now */
} MigImageGuard;

/* The final count of a migration. */
typedef struct MigFinalStats {
  bool have_downtime;
  uint64_t downtime_ms; /* libvirt's own, network part included */
  uint64_t downtime_net_ms;
  uint64_t total_time_ms;
  uint64_t transferred_bytes;
  MigSample last; /* memory totals, iterations and so on at the end */
} MigFinalStats;

/* What a migration is to be. */
typedef struct MigMigrateRequest {
  char uuid[MIG_UUID_STRING_SIZE];
  const char *target_uri;  /* libvirt URI of the target, as the source's libvirtd reaches it (peer to peer) */
  const char *migrate_uri; /* or NULL */
  MigPolicy policy; /* the goals, but for allow_auto_converge and max_downtime_ms: what to ask of the start */
  MigPolicyFacts facts;
  bool resume_post_copy;
  const MigGuard *guard;           /* or NULL */
  unsigned throttle_initial_pct;   /* of auto-converge; 0: QEMU's 20 %, or max_throttle_pct if that is less */
  unsigned throttle_increment_pct; /* 0: QEMU's 10 % */
} MigMigrateRequest;

typedef enum MigVirtEventKind {
  MIG_VIRT_EVENT_ITERATION, /* a new pass over memory began: `iteration` */
  MIG_VIRT_EVENT_JOB_DONE, /* a migration completed: `final`. libvirt 9 sends none if it failed or was cancelled */
  MIG_VIRT_EVENT_STATE,      /* the domain's state changed: `state` */
  MIG_VIRT_EVENT_DEFINITION, /* what it has, or what its next start would have, may have changed */
  MIG_VIRT_EVENT_CLOSED      /* the connection broke; no uuid */
} MigVirtEventKind;

typedef struct MigVirtEvent {
  MigVirtEventKind kind;
  char uuid[MIG_UUID_STRING_SIZE];
  char name[256]; /* of the domain, cut to size */
  bool arriving;  /* STATE: it is a copy that waits for a migration into this host */
  bool ended;     /* STATE: what was here was shut down, was destroyed or crashed */
  bool started;   /* STATE: somebody started it, and no migration did */
  uint64_t iteration;
  bool success;
  MigFinalStats final;
  MigEndState state;
  char detail[64]; /* libvirt's name of the event: "suspended: post-copy" */
} MigVirtEvent;

/* Called on a thread of the driver's own. The event is borrowed: copy what is needed, post it elsewhere,
 * return. */
typedef void (*MigVirtEventFunc)(const MigVirtEvent *event, gpointer user_data);

/* Every function may block and is bounded: by the connection's keepalive (about 30 s) where nothing shorter
 * is said. All but migrate() answer in milliseconds from a libvirtd in good health. `conn` is borrowed. */
typedef struct MigDriverOps {
  const char *name;

  /* May be NULL. Which URI is this node's own, and which the configuration names (NULL-terminated): connections to other hosts
   * that hang, however many, shall not keep these from being opened. Replaces what was said before. */
  void (*prefer)(MigDriver *driver, const char *own_uri, const char *const *uris);

  /* Connects, for at most timeout_ms. `events` may be NULL. Owned by the caller: close(). */
  MigConn *(*open)(MigDriver *driver, const char *uri, unsigned timeout_ms, MigVirtEventFunc events,
                   gpointer user_data, GError **error);
  /* No event is delivered once it has returned. Never waits for a server that does not answer. */
  void (*close)(MigConn *conn);
  bool (*is_alive)(MigConn *conn);

  /* Is there a way over the network to where the URI's libvirtd listens? True also where only a connection can tell.
   * Quick, where a connection of before the cut is slow to notice; for when nothing else answers. */
  bool (*reachable)(MigDriver *driver, const char *uri, unsigned timeout_ms, GError **error);

  bool (*host_facts)(MigConn *conn, MigHostFacts *ret_facts, GError **error);

  /* All that are active there, paused ones included: of MigActiveDomain, owned by the caller. */
  GPtrArray *(*list_active)(MigConn *conn, GError **error);

  /* By name or UUID (a name that looks like a UUID is looked up as one first). */
  bool (*domain_facts)(MigConn *conn, const char *name_or_uuid, MigDomainFacts *ret_facts, GError **error);

  /* The same with all that a check wants to know, which costs some more calls: jobs, snapshots, the disks' sizes. */
  bool (*survey_domain)(MigConn *conn, const char *name_or_uuid, MigDomainFacts *ret_facts, GError **error);

  /* What a target has of what the domain needs. `source` is the host that it is on. The first time on a node it makes the
   * target probe the emulator, which costs seconds, and would else be paid in the migration. What the target's libvirt
   * cannot tell is no error, but unseen. */
  bool (*survey_target)(MigConn *target, const MigDomainFacts *domain, const MigHostFacts *source,
                        MigTargetFacts *ret_facts, GError **error);

  /* What it runs with and what its next start would have. */
  bool (*definitions)(MigConn *conn, const char *name_or_uuid, MigDefinitions *ret_definitions,
                      GError **error);

  /* Not defined there is an answer (MIG_END_ABSENT), not an error. */
  bool (*domain_status)(MigConn *conn, const char *uuid, MigDomainStatus *ret_status, GError **error);

  /* What the guest dirties in so many seconds (1 to 60), per second, and what share of its CPUs it uses meanwhile (0: not
   * known). Sits there for that time. Not while a migration runs. */
  bool (*probe_dirty_rate)(MigConn *conn, const char *uuid, unsigned seconds, uint64_t *ret_bytes_per_s,
                           double *ret_cpu_share, GError **error);

  /* Sits in the migration until it ends. False does not mean that the domain did not move: ask both ends. */
  bool (*migrate)(MigConn *conn, const MigMigrateRequest *request, GError **error);

  /* Numbers of the running job. No job is an answer: ret_sample->valid true, active false; so is a domain
   * that is gone. now_ms and the smoothed bandwidth are the caller's to fill in. */
  bool (*job_stats)(MigConn *conn, const char *uuid, MigSample *ret_sample, GError **error);

  /* Final numbers of the last migration, kept by libvirt at the source or the target. NOT_RUNNING: there are none, as
   * after post-copy. They may be of an earlier migration, in the other direction even: only for when JOB_DONE, which
   * has the same numbers, was missed, and at the target. */
  bool (*final_stats)(MigConn *conn, const char *uuid, MigFinalStats *ret_stats, GError **error);

  /* These act only if `guard` lets them. */
  bool (*abort_job)(MigConn *conn, const char *uuid, const MigGuard *guard, GError **error);
  bool (*set_max_downtime)(MigConn *conn, const char *uuid, uint64_t downtime_ms, const MigGuard *guard,
                           GError **error);
  bool (*set_bandwidth)(MigConn *conn, const char *uuid, uint64_t bytes_per_s, bool post_copy,
                        const MigGuard *guard, GError **error);
  bool (*start_post_copy)(MigConn *conn, const char *uuid, const MigGuard *guard, GError **error);
  bool (*suspend)(MigConn *conn, const char *uuid, const MigGuard *guard, GError **error);
  bool (*resume)(MigConn *conn, const char *uuid, const MigGuard *guard, GError **error);

  /* Removes the definition of an inactive domain and nothing else: its NVRAM and TPM state stay, for they may be on shared
   * storage and in use elsewhere. Refused for an active domain, and for one with snapshots or a saved state. */
  bool (*undefine)(MigConn *conn, const char *uuid, const MigGuard *guard, GError **error);

  /* Makes an empty, sparse image. EXISTS: there is something of that name, which was left alone. */
  bool (*make_image)(MigConn *conn, const MigImage *image, MigImageStamp *ret_stamp, GError **error);

  /* Removes it. That it is gone already is no error. INVALID: it was left alone, since anybody has written to it since it was
   * made, or may have; BUSY or TIMEOUT: for the rest of the guard. Nothing but the domain's absence tells that no guest has
   * it open. */
  bool (*remove_image)(MigConn *conn, const MigImage *image, const MigImageGuard *guard, GError **error);

  void (*free)(MigDriver *driver);
} MigDriverOps;

/* Drivers embed this as their first member. */
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

/* The real one. One for each process: it starts libvirt's event loop on a thread of its own, which runs
 * GLib's default main context, so nothing else may run that context. */
MigDriver *mig_driver_libvirt_new(GError **error);

/* NULL is allowed. Close its connections first: one that is still open goes on without events. Not from an event function, for
 * it waits for the event thread. */
void mig_driver_free(MigDriver *driver);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(MigDriver, mig_driver_free)
