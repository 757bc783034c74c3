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
  unsigned max_outgoing;     /* MaxOutgoing=: migrations to it at a time; 0: MaxPerTarget= holds */
  uint64_t link_bytes_per_s; /* LinkBandwidth=: what the link to it carries; 0: that of [Agent] */
} ConfigTarget;

typedef struct Config {
  /* [Agent] */
  unsigned max_outgoing;              /* MaxOutgoing= 2: migrations out of this node at a time */
  unsigned max_per_target;            /* MaxPerTarget= 0: of these to one target; 0: no limit */
  uint64_t link_bytes_per_s;          /* LinkBandwidth= 0: what the link to any target carries; 0: learned */
  uint64_t max_bandwidth_bytes_per_s; /* MaxBandwidth= 0: of all these together; 0: no limit */
  unsigned max_incoming;              /* MaxIncoming= 2: leases and migrations into this node */
  unsigned lease_timeout_ms;          /* LeaseTimeout= 5min: for what is to come to come */
  char *incoming_uri;         /* IncomingURI=: of this node's libvirtd, for others; NULL: made of its name */
  char *incoming_migrate_uri; /* IncomingMigrateURI=, or NULL */
  unsigned max_jobs;          /* MaxJobs= 10000: unfinished ones; past it TooManyJobs */
  unsigned keep_finished;     /* KeepFinished= 1000 */
  uint64_t keep_finished_s;   /* KeepFinishedSec= 7d */
  ConfigPublicRead public_read;      /* PublicRead= node */
  char *group;                       /* Group= handoff: whose members may change things */
  char **allow_targets;              /* AllowTargets=: patterns; NULL: callers may name any good one */
  unsigned poll_interval_ms;         /* PollInterval= 400ms; 50 to 10,000 */
  unsigned connect_timeout_ms;       /* ConnectTimeout= 10s: for a libvirtd to answer */
  unsigned prepare_timeout_ms;       /* PrepareTimeout= 60s */
  unsigned pending_timeout_ms;       /* PendingTimeout= 15min; 0: none */
  unsigned unschedulable_timeout_ms; /* UnschedulableTimeout= 5min: of that, for a condition; 0: none */
  unsigned priority_aging_ms;        /* PriorityAging= 5min: what a class of priority is worth; 0: no aging */
  unsigned watch_interval_ms; /* WatchInterval= 250ms: at most so often a watcher is told of mere progress */
  char *metrics_file;         /* MetricsFile=: absolute, or NULL: none is written */
  unsigned metrics_interval_ms; /* MetricsInterval= 15s */
  unsigned
      evaluate_interval_ms; /* EvaluateInterval= 1min: next starts are looked at so often; 0: on events only */
  ConfigPolicy node_policy; /* [Policy]: the node's default */

  GPtrArray *targets;  /* ConfigTarget */
  GPtrArray *policies; /* ConfigPolicy */
  GPtrArray *warnings; /* char *: "FILE:LINE: TEXT" */
} Config;

/* They all go into one answer of GetNode. */
#define CONFIG_WARNINGS_MAX 100

/* All defaults. */
Config *config_new(void);
void config_free(Config *config);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(Config, config_free)

/* Reads the file given by --config alone, or, with NULL, handoffd.conf from the first of /etc, /run and
 * /usr/lib (in their handoffd directories) that has it, and then each handoffd.conf.d/NAME.conf of the three
 * in the order of the names (of files of one name, /etc wins over /run over /usr/lib; an empty one or a link
 * to /dev/null there masks those of the others). No file at all is fine. What is not understood becomes a
 * warning with its file and line, and that line's value stays as it was; only a file that cannot be read is
 * an error. */
Config *config_load(const char *path, GError **error);

/* The same with other directories, NULL-terminated, the first wins. For its test. */
Config *config_load_from(const char *path, const char *const *directories, GError **error);

/* The same of files that are in memory, the drop-ins last; each is overwritten, and has a NUL behind it. For its fuzzer. */
Config *config_from_texts(char **texts, const size_t *sizes, size_t n);

const ConfigTarget *config_find_target(const Config *config, const char *name);
const ConfigPolicy *config_find_policy(const Config *config, const char *name);

/* Of the policies that are for this domain by their Match=, the most specific (mig_match_rank()); of equals the first by name.
 * NULL: none is. */
const ConfigPolicy *config_match_policy(const Config *config, const MigMatchFacts *facts);

/* "10", "400ms", "1h 30min" → ms; units ms, s, min, h, d; a number without one is in default_unit_ms. Exposed
 * for its test. */
bool config_parse_duration_ms(const char *text, uint64_t default_unit_ms, uint64_t *ret_ms);
