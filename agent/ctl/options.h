/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The command line: tables of options and verbs. */
#pragma once

#include "libmigrate/core/policy.h"

#include <glib.h>
#include <stdbool.h>

#define OPTIONS_DEFAULT_SOCKET "/run/handoffd/io.handoffd.Agent"

typedef enum VerbId {
  VERB_MIGRATE,
  VERB_LIST,
  VERB_SHOW,
  VERB_WATCH,
  VERB_ABORT,
  VERB_COMPLETE,
  VERB_SETTLE,
  VERB_TUNE,
  VERB_CHECK,
  VERB_FORECAST,
  VERB_REPORT,
  VERB_POLICY,
  VERB_EVALUATE,
  VERB_PREPARE,
  VERB_RELEASE,
  VERB_DRAIN,
  VERB_CORDON,
  VERB_UNCORDON,
  VERB_METRICS,
  VERB_NODE,
  VERB_COUNT
} VerbId;

typedef struct VerbInfo {
  const char *name;
  const char *arguments; /* for --help */
  unsigned min_args, max_args;
  const char *summary;
} VerbInfo;

typedef struct OptionInfo {
  const char *name;
  char short_name;      /* 0: none */
  const char *argument; /* NULL: takes none */
  unsigned verbs;       /* a bit for each verb that takes it; 0: all verbs, and allowed before the verb */
  const char *summary;
} OptionInfo;

const VerbInfo *options_verb(VerbId verb);

/* The given row; NULL after the last. */
const OptionInfo *options_option(unsigned row);

typedef struct Options {
  bool help, version, json;
  VerbId help_verb; /* the verb to print help for; VERB_COUNT: all */
  char *socket_path;
  VerbId verb;
  char **args; /* the verb's, NULL-terminated */

  char *policy_name, *migrate_uri, *request_key;
  MigPolicy policy; /* set by -o, or by tune's arguments */
  bool detach;
  bool even_if_cordoned;
  bool abort;

  GPtrArray *phases; /* const char *, from --phase; empty: all */
  char *domain;
  bool all;
  bool ran, never_ran; /* for Settle */
  bool no_wait;
  const char *by;                 /* for Complete, as in the interface; NULL: not given */
  uint64_t bandwidth_bytes_per_s; /* 0: not given */
  bool make_disks;
  uint64_t timeout_s; /* for a lease; 0: not given */
  char *svg;          /* file given by --svg; NULL: not given */
} Options;

#define OPTIONS_ERROR (options_error_quark())
GQuark options_error_quark(void);

/* Parses a whole command line. No verb is needed with --help ("help" in place of the verb means the same) or --version. On
 * error, the message says what would be correct; clear *options in any case. */
bool options_parse(Options *options, int argc, char **argv, GError **error);

void options_clear(Options *options);
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC(Options, options_clear)
