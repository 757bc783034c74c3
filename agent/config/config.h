/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The configuration: handoffd.conf and its drop-ins, as one struct. */
#pragma once

#include "agent/config/config-policy.h"
#include "libmigrate/core/policy.h"

#include <glib.h>
#include <stdbool.h>

/* What callers that are neither root nor in the group may read. */
typedef enum ConfigPublicRead {
  CONFIG_PUBLIC_READ_NONE,
  CONFIG_PUBLIC_READ_NODE,
  CONFIG_PUBLIC_READ_ALL
} ConfigPublicRead;

/* [Target NAME] */
typedef struct ConfigTarget {
  char *name;
  char *libvirt_uri;         /* LibvirtURI= */
  char *migrate_uri;         /* MigrateURI=, or NULL */
  char *place;               /* FILE:LINE of its section */
  unsigned max_outgoing;     /* MaxOutgoing=: concurrent migrations to it; 0: as MaxPerTarget= */
  uint64_t link_bytes_per_s; /* LinkBandwidth=: capacity of the link to it; 0: as in [Agent] */
} ConfigTarget;

typedef struct Config {
  /* [Agent] */
  unsigned max_outgoing;              /* MaxOutgoing= 2: concurrent migrations out of this node */
  unsigned max_per_target;            /* MaxPerTarget= 0: of these to one target; 0: no limit */
  uint64_t link_bytes_per_s;          /* LinkBandwidth= 0: capacity of the link to any target; 0: learned */
  uint64_t max_bandwidth_bytes_per_s; /* MaxBandwidth= 0: all of them together; 0: no limit */
  unsigned max_incoming;              /* MaxIncoming= 2: leases and migrations into this node */
  unsigned lease_timeout_ms;          /* LeaseTimeout= 5min: until the domain has to arrive */
  char *incoming_uri;           /* IncomingURI=: this node's libvirtd, for others; NULL: from its hostname */
  char *incoming_migrate_uri;   /* IncomingMigrateURI=, or NULL */
  unsigned max_jobs;            /* MaxJobs= 10000: unfinished jobs; beyond it: TooManyJobs */
  unsigned keep_finished;       /* KeepFinished= 1000 */
  uint64_t keep_finished_s;     /* KeepFinishedSec= 7d */
  ConfigPublicRead public_read; /* PublicRead= node */
  char *group;                  /* Group= handoff: whose members may change things */
  char **allow_targets;         /* AllowTargets=: patterns; NULL: any acceptable one */
  unsigned poll_interval_ms;    /* PollInterval= 400ms; 50 to 10,000 */
  unsigned connect_timeout_ms;  /* ConnectTimeout= 10s: for a libvirtd to answer */
  unsigned prepare_timeout_ms;  /* PrepareTimeout= 60s */
  unsigned pending_timeout_ms;  /* PendingTimeout= 15min; 0: none */
  unsigned unschedulable_timeout_ms; /* UnschedulableTimeout= 5min: of that, for a condition; 0: no limit */
  unsigned priority_aging_ms; /* PriorityAging= 5min: waiting that is worth one priority class; 0: no aging */
  unsigned
      watch_interval_ms; /* WatchInterval= 250ms: least interval between progress messages to a watcher */
  char *metrics_file;    /* MetricsFile=: absolute; NULL: no file */
  unsigned metrics_interval_ms;  /* MetricsInterval= 15s */
  unsigned evaluate_interval_ms; /* EvaluateInterval= 1min: between evaluations; 0: on events only */
  unsigned profile_interval_ms;  /* ProfileInterval= 15min: between measurements of a guest; 0: none */
  ConfigPolicy node_policy;      /* [Policy]: the node's default */

  GPtrArray *targets;  /* ConfigTarget */
  GPtrArray *policies; /* ConfigPolicy */
  GPtrArray *warnings; /* char *: "FILE:LINE: TEXT" */
} Config;

/* GetNode returns them all in one reply. */
#define CONFIG_WARNINGS_MAX 100

/* All defaults. */
Config *config_new(void);
void config_free(Config *config);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(Config, config_free)

/* Reads the file given by --config alone; or, if NULL, handoffd.conf from the first of /etc, /run and /usr/lib (in their
 * handoffd directories) that has it, and then every handoffd.conf.d/NAME.conf of the three, sorted by name. Of files with
 * the same name, /etc wins over /run over /usr/lib; an empty file or a link to /dev/null there masks the others. No file
 * at all is fine. A line that is not understood becomes a warning with its file and line, and its setting stays as it was;
 * only a file that cannot be read is an error. */
Config *config_load(const char *path, GError **error);

/* The same with other directories, NULL-terminated; the first one wins. For its test. */
Config *config_load_from(const char *path, const char *const *directories, GError **error);

/* The same with files in memory, the drop-ins last; each is NUL-terminated and gets overwritten. For its fuzzer. */
Config *config_from_texts(char **texts, const size_t *sizes, size_t n);

const ConfigTarget *config_find_target(const Config *config, const char *name);
const ConfigPolicy *config_find_policy(const Config *config, const char *name);

/* The most specific (mig_match_rank()) of the policies whose Match= fits this domain; of equals the first by name. NULL: none
 * fits. */
const ConfigPolicy *config_match_policy(const Config *config, const MigMatchFacts *facts);

/* "10", "400ms", "1h 30min" → ms. Units: ms, s, min, h, d; a number without one is in default_unit_ms. Exposed for its test. */
bool config_parse_duration_ms(const char *text, uint64_t default_unit_ms, uint64_t *ret_ms);
