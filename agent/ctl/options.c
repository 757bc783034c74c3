/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The command line: tables of options and verbs. */
#include "agent/ctl/options.h"

#include "agent/ctl/nearest.h"

#include <assert.h>
#include <getopt.h>
#include <string.h>

#define BIT(verb) (1u << (verb))

static const VerbInfo verbs[] = {
    [VERB_MIGRATE] = {"migrate", "DOMAIN TARGET", 2, 2, "migrate a running domain, and follow the migration"},
    [VERB_LIST] = {"list", "", 0, 0, "list jobs, unfinished ones first"},
    [VERB_SHOW] = {"show", "JOB", 1, 1, "show everything the agent knows about a job"},
    [VERB_WATCH] = {"watch", "[JOB]", 0, 1, "follow a job until it finishes, or all jobs forever"},
    [VERB_ABORT] = {"abort", "JOB", 1, 1, "abort a migration; the domain stays on the source"},
    [VERB_COMPLETE] = {"complete", "JOB --by WAY", 1, 1,
                       "complete a running migration now, in the given way"},
    [VERB_SETTLE] = {"settle", "JOB --ran|--never-ran", 1, 1,
                     "answer a job that asks whether the guest ran on the target"},
    [VERB_TUNE] = {"tune", "JOB KEY=VALUE...", 2, G_MAXUINT, "change goals of an unfinished job"},
    [VERB_CHECK] = {"check", "DOMAIN TARGET", 2, 2,
                    "check whether a domain can be migrated, and list what prevents it"},
    [VERB_FORECAST] = {"forecast", "DOMAIN TARGET", 2, 2,
                       "predict how a migration would go, without starting it"},
    [VERB_REPORT] = {"report", "JOB", 1, 1, "chart the course of a migration"},
    [VERB_POLICY] = {"policy", "[DOMAIN]", 0, 1,
                     "show the goals of a migration, and where each of them comes from"},
    [VERB_EVALUATE] = {"evaluate", "[DOMAIN]", 0, 1,
                       "show what the next start of a domain would change, and how to apply it earlier"},
    [VERB_PREPARE] = {"prepare", "DOMAIN SOURCE", 2, 2, "reserve room on this node for an incoming domain"},
    [VERB_RELEASE] = {"release", "LEASE", 1, 1, "release a lease obtained by prepare"},
    [VERB_DRAIN] = {"drain", "[TARGET...]", 0, G_MAXUINT,
                    "migrate all running domains off this node, or follow the drain in progress"},
    [VERB_CORDON] = {"cordon", "[REASON...]", 0, G_MAXUINT,
                     "accept no new work on this node; accepted jobs continue"},
    [VERB_UNCORDON] = {"uncordon", "", 0, 0, "accept new work on this node again"},
    [VERB_METRICS] = {"metrics", "", 0, 0, "print metrics in Prometheus text format"},
    [VERB_NODE] = {"node", "", 0, 0, "show this node's state, targets, policies and warnings"},
};
static_assert(G_N_ELEMENTS(verbs) == VERB_COUNT, "a row for each verb");

typedef enum OptionId {
  OPTION_SOCKET,
  OPTION_JSON,
  OPTION_HELP,
  OPTION_VERSION,
  OPTION_POLICY,
  OPTION_SET,
  OPTION_MIGRATE_URI,
  OPTION_DETACH,
  OPTION_ABORT,
  OPTION_EVEN_IF_CORDONED,
  OPTION_REQUEST_KEY,
  OPTION_PHASE,
  OPTION_DOMAIN,
  OPTION_ALL,
  OPTION_NO_WAIT,
  OPTION_BY,
  OPTION_RAN,
  OPTION_NEVER_RAN,
  OPTION_BANDWIDTH,
  OPTION_MAKE_DISKS,
  OPTION_TIMEOUT,
  OPTION_SVG,
  OPTION_COUNT
} OptionId;

static const OptionInfo option_rows[] = {
    [OPTION_SOCKET] = {"socket", 0, "PATH", 0, "the agent's socket (default: " OPTIONS_DEFAULT_SOCKET ")"},
    [OPTION_JSON] = {"json", 'j', NULL, 0, "print the agent's replies as JSON, one object per line"},
    [OPTION_HELP] = {"help", 'h', NULL, 0, "print this help"},
    [OPTION_VERSION] = {"version", 0, NULL, 0, "print the version"},
    [OPTION_POLICY] = {"policy", 0, "NAME",
                       BIT(VERB_MIGRATE) | BIT(VERB_CHECK) | BIT(VERB_FORECAST) | BIT(VERB_POLICY) |
                           BIT(VERB_PREPARE) | BIT(VERB_DRAIN),
                       "take goals from [Policy NAME] in handoffd.conf"},
    [OPTION_SET] = {"set", 'o', "KEY=VALUE",
                    BIT(VERB_MIGRATE) | BIT(VERB_CHECK) | BIT(VERB_FORECAST) | BIT(VERB_POLICY) |
                        BIT(VERB_PREPARE) | BIT(VERB_DRAIN),
                    "set a policy key, see below; may be repeated"},
    [OPTION_MIGRATE_URI] = {"migrate-uri", 0, "URI", BIT(VERB_MIGRATE),
                            "destination of the migration stream: tcp://ADDRESS[:PORT]"},
    [OPTION_DETACH] = {"detach", 0, NULL, BIT(VERB_MIGRATE) | BIT(VERB_DRAIN),
                       "return as soon as the request is on stable storage"},
    [OPTION_ABORT] = {"abort", 0, NULL, BIT(VERB_DRAIN),
                      "abort the drain: start no more migrations; those in progress continue"},
    [OPTION_EVEN_IF_CORDONED] = {"even-if-cordoned", 0, NULL, BIT(VERB_MIGRATE) | BIT(VERB_CHECK),
                                 "migrate even if this node is cordoned"},
    [OPTION_REQUEST_KEY] = {"request-key", 0, "KEY", BIT(VERB_MIGRATE) | BIT(VERB_PREPARE) | BIT(VERB_DRAIN),
                            "make the request safe to repeat: same key, same job (default: random)"},
    [OPTION_PHASE] =
        {"phase", 0, "PHASE", BIT(VERB_LIST),
         "only jobs in this phase, or unfinished, or finished; may be repeated or comma-separated"},
    [OPTION_DOMAIN] = {"domain", 0, "DOMAIN", BIT(VERB_LIST), "only jobs of this domain"},
    [OPTION_ALL] = {"all", 'a', NULL, BIT(VERB_LIST), "all finished jobs on record, not only the newest"},
    [OPTION_NO_WAIT] = {"no-wait", 0, NULL, BIT(VERB_ABORT) | BIT(VERB_COMPLETE) | BIT(VERB_SETTLE),
                        "do not wait for the outcome"},
    [OPTION_BY] = {"by", 0, "WAY", BIT(VERB_COMPLETE),
                   "post-copy: resume the guest on the target, its memory follows; pause: stop it until the "
                   "rest is sent"},
    [OPTION_RAN] = {"ran", 0, NULL, BIT(VERB_SETTLE),
                    "the guest ran on the target: the copy on this node is out of date"},
    [OPTION_NEVER_RAN] = {"never-ran", 0, NULL, BIT(VERB_SETTLE),
                          "the guest never ran there: the agent resumes the copy on this node"},
    [OPTION_BANDWIDTH] = {"bandwidth", 0, "BYTES/S", BIT(VERB_FORECAST),
                          "link bandwidth, such as 100M (default: learned from earlier migrations)"},
    [OPTION_MAKE_DISKS] = {"make-disks", 0, NULL, BIT(VERB_PREPARE),
                           "create empty images for the disks missing on this node; with -o copy_disks=all"},
    [OPTION_TIMEOUT] = {"timeout", 0, "TIME", BIT(VERB_PREPARE),
                        "how long to wait for the domain, such as 10min (default: LeaseTimeout=)"},
    [OPTION_SVG] = {"svg", 0, "FILE", BIT(VERB_REPORT), "also write the chart to this file, as SVG"},
};
static_assert(G_N_ELEMENTS(option_rows) == OPTION_COUNT, "a row for each option");

G_DEFINE_QUARK(handoffctl - options - error, options_error)

const VerbInfo *options_verb(VerbId verb) {
  return &verbs[verb];
}

const OptionInfo *options_option(unsigned row) {
  return row < OPTION_COUNT ? &option_rows[row] : NULL;
}

G_GNUC_PRINTF(2, 3)
static bool usage(GError **error, const char *format, ...) {
  va_list args;

  va_start(args, format);
  g_propagate_error(error, g_error_new_valist(OPTIONS_ERROR, 0, format, args));
  va_end(args);
  return false;
}

static bool unknown_goal(const char *text, const char *name, GError **error) {
  const char *names[MIG_POLICY_KEY_COUNT + 1] = {NULL};
  const char *meant;

  for (int i = 0; i < MIG_POLICY_KEY_COUNT; i++)
    names[i] = mig_policy_key_info((MigPolicyKey)i)->name;
  meant = nearest_word(name, names);
  if (meant)
    return usage(error, "%s: unknown policy key; did you mean %s?", text, meant);
  return usage(error, "%s: unknown policy key. handoffctl help migrate lists all keys.", text);
}

static bool set_goal(Options *options, const char *text, GError **error) {
  const char *equals = strchr(text, '=');
  g_autofree char *name = equals ? g_strndup(text, (gsize)(equals - text)) : NULL;
  char message[256];

  if (!equals || equals == text)
    return usage(error, "Expected KEY=VALUE, not \"%s\".", text);
  if (!mig_policy_key_by_name(name))
    return unknown_goal(text, name, error);
  if (mig_policy_set_text(&options->policy, name, equals + 1, message, sizeof(message)) != MIG_POLICY_OK)
    return usage(error, "%s: %s", text, message);
  return true;
}

static bool add_phases(Options *options, const char *text, GError **error) {
  g_auto(GStrv) names = g_strsplit(text, ",", -1);

  for (unsigned i = 0; names[i]; i++) {
    bool unfinished = strcmp(names[i], "unfinished") == 0, finished = strcmp(names[i], "finished") == 0;
    int one = mig_phase_from_name(names[i]);

    if (!unfinished && !finished && one == MIG_ENUM_UNKNOWN)
      return usage(
          error,
          "Unknown phase \"%s\". Use pending, preparing, migrating, recovering, succeeded, failed, aborted, "
          "unfinished or finished.",
          names[i]);
    for (int phase = 0; phase < MIG_PHASE_COUNT; phase++) {
      bool wanted = phase == one || (mig_phase_is_final((MigPhase)phase) ? finished : unfinished);
      gpointer name = (gpointer)mig_phase_name((MigPhase)phase);

      if (wanted && !g_ptr_array_find(options->phases, name, NULL))
        g_ptr_array_add(options->phases, name);
    }
  }
  return true;
}

/* The names of Complete, but with the usual hyphen. */
static bool set_by(Options *options, const char *text, GError **error) {
  if (strcmp(text, "post-copy") == 0 || strcmp(text, "post_copy") == 0)
    options->by = "post_copy";
  else if (strcmp(text, "pause") == 0)
    options->by = "pause";
  else
    return usage(error, "Use --by post-copy or --by pause, not \"%s\".", text);
  return true;
}

/* Same notation as that policy key, except that 0 (no limit there) is invalid here. */
static bool read_amount(const char *text, MigPolicyKey key, uint64_t *ret_amount) {
  MigPolicy scratch;

  mig_policy_init(&scratch);
  if (mig_policy_set_text(&scratch, mig_policy_key_info(key)->name, text, NULL, 0) != MIG_POLICY_OK ||
      mig_policy_get(&scratch, key) == 0)
    return false;
  *ret_amount = mig_policy_get(&scratch, key);
  return true;
}

static bool set_bandwidth(Options *options, const char *text, GError **error) {
  return read_amount(text, MIG_POLICY_BANDWIDTH_BYTES_PER_S, &options->bandwidth_bytes_per_s) ||
         usage(error,
               "Give the bandwidth in bytes per second, such as 100M (K, M, G and T are powers of 1024), "
               "not \"%s\".",
               text);
}

static bool set_timeout(Options *options, const char *text, GError **error) {
  return read_amount(text, MIG_POLICY_PROGRESS_TIMEOUT_S, &options->timeout_s) ||
         usage(error, "Give a timeout of up to 24h, such as 90s or 10min, not \"%s\".", text);
}

static bool check_request_key(Options *options, const char *key, GError **error) {
  size_t length = strlen(key);

  for (const char *p = key; *p; p++) {
    if (!g_ascii_isprint(*p))
      return usage(error, "A request key must consist of printable ASCII characters.");
  }
  if (length < 1 || length > 128)
    return usage(error, "A request key must have 1 to 128 characters, not %zu.", length);
  return true;
}

static bool check_svg(Options *options, const char *path, GError **error) {
  return *path ? true : usage(error, "--svg needs a file name.");
}

#define FLAG(member) offsetof(Options, member), true, NULL
#define TEXT(member) offsetof(Options, member), false, NULL

/* What an option sets: a flag or a text; `set` checks the text, or does something else with it. */
static const struct {
  size_t offset;
  bool is_flag;
  bool (*set)(Options *options, const char *value, GError **error);
} effects[] = {
    [OPTION_SOCKET] = {TEXT(socket_path)},
    [OPTION_JSON] = {FLAG(json)},
    [OPTION_HELP] = {FLAG(help)},
    [OPTION_VERSION] = {FLAG(version)},
    [OPTION_POLICY] = {TEXT(policy_name)},
    [OPTION_SET] = {.set = set_goal},
    [OPTION_MIGRATE_URI] = {TEXT(migrate_uri)},
    [OPTION_DETACH] = {FLAG(detach)},
    [OPTION_ABORT] = {FLAG(abort)},
    [OPTION_EVEN_IF_CORDONED] = {FLAG(even_if_cordoned)},
    [OPTION_REQUEST_KEY] = {offsetof(Options, request_key), false, check_request_key},
    [OPTION_PHASE] = {.set = add_phases},
    [OPTION_DOMAIN] = {TEXT(domain)},
    [OPTION_ALL] = {FLAG(all)},
    [OPTION_NO_WAIT] = {FLAG(no_wait)},
    [OPTION_BY] = {.set = set_by},
    [OPTION_RAN] = {FLAG(ran)},
    [OPTION_NEVER_RAN] = {FLAG(never_ran)},
    [OPTION_BANDWIDTH] = {.set = set_bandwidth},
    [OPTION_MAKE_DISKS] = {FLAG(make_disks)},
    [OPTION_TIMEOUT] = {.set = set_timeout},
    [OPTION_SVG] = {offsetof(Options, svg), false, check_svg},
};
static_assert(G_N_ELEMENTS(effects) == OPTION_COUNT, "an effect for each option");
/* The first member is a flag: a text has another offset than 0. */
static_assert(offsetof(Options, help) == 0, "0 is no text");

static bool apply_option(Options *options, OptionId option, const char *value, GError **error) {
  size_t offset = effects[option].offset;

  if (effects[option].is_flag) {
    G_STRUCT_MEMBER(bool, options, offset) = true;
  } else if (offset > 0) {
    g_free(G_STRUCT_MEMBER(char *, options, offset));
    G_STRUCT_MEMBER(char *, options, offset) = g_strdup(value);
  }
  return !effects[option].set || effects[option].set(options, value, error);
}

/* The tables in getopt's form. Values of long options are 256 + row, so that they do not clash with short ones. */
static void fill_getopt(struct option *ret_long, GString *ret_short) {
  g_string_assign(ret_short, ":");
  for (unsigned i = 0; i < OPTION_COUNT; i++) {
    const OptionInfo *row = &option_rows[i];

    ret_long[i] =
        (struct option){row->name, row->argument ? required_argument : no_argument, NULL, 256 + (int)i};
    if (row->short_name)
      g_string_append_printf(ret_short, "%c%s", row->short_name, row->argument ? ":" : "");
  }
  ret_long[OPTION_COUNT] = (struct option){NULL, 0, NULL, 0};
}

static int option_of(int c) {
  if (c >= 256)
    return c - 256;
  for (int i = 0; i < OPTION_COUNT; i++) {
    if (option_rows[i].short_name && option_rows[i].short_name == c)
      return i;
  }
  return -1;
}

/* getopt names the option only by its letter, and long ones not at all. */
static bool bad_option(int c, const char *word, GError **error) {
  if (c == ':')
    return usage(error, "Option %s needs a value.", word);
  if (optopt >= 256)
    return usage(error, "Option --%s takes no value.", option_rows[optopt - 256].name);
  if (optopt > 0)
    return usage(error, "Unknown option -%c.", optopt);
  return usage(error, "Unknown or ambiguous option %s.", word);
}

static bool find_verb(const char *name, VerbId *ret_verb, GError **error) {
  const char *names[VERB_COUNT + 1] = {NULL};
  const char *meant;
  GString *known;

  for (int i = 0; i < VERB_COUNT; i++) {
    names[i] = verbs[i].name;
    if (strcmp(verbs[i].name, name) == 0) {
      *ret_verb = (VerbId)i;
      return true;
    }
  }
  meant = nearest_word(name, names);
  if (meant)
    return usage(error, "Unknown verb \"%s\"; did you mean %s? handoffctl --help lists all verbs.", name,
                 meant);
  known = g_string_new(NULL);
  for (int i = 0; i < VERB_COUNT; i++)
    g_string_append_printf(known, "%s%s", i > 0 ? ", " : "", verbs[i].name);
  usage(error, "Unknown verb \"%s\". Verbs are: %s.", name, known->str);
  g_string_free(known, TRUE);
  return false;
}

/* Goals and a request key only make sense with a target. */
static bool check_drain(const Options *options, unsigned given, GError **error) {
  const unsigned for_a_new_one = BIT(OPTION_POLICY) | BIT(OPTION_SET) | BIT(OPTION_REQUEST_KEY);
  bool has_targets = options->args[0] != NULL;

  if (options->verb != VERB_DRAIN)
    return true;
  if (options->abort && has_targets)
    return usage(error, "drain --abort aborts the drain in progress and takes no target.");
  if (!has_targets && !options->abort && options->detach)
    return usage(error, "--detach needs a target: without one, drain only follows the drain in progress.");
  if (!has_targets && (given & for_a_new_one))
    return usage(error, "Goals and a request key need a target: handoffctl drain TARGET...");
  return true;
}

static bool check_arguments(const Options *options, unsigned given, GError **error) {
  const VerbInfo *verb = &verbs[options->verb];
  unsigned n_args = g_strv_length(options->args);

  if (n_args < verb->min_args || n_args > verb->max_args ||
      (options->verb == VERB_COMPLETE && !options->by) ||
      (options->verb == VERB_SETTLE && options->ran == options->never_ran))
    return usage(error, "Usage: handoffctl %s %s", verb->name, verb->arguments);
  for (unsigned i = 0; i < OPTION_COUNT; i++) {
    if ((given & BIT(i)) && option_rows[i].verbs && !(option_rows[i].verbs & BIT(options->verb)))
      return usage(error, "Option --%s does not apply to %s.", option_rows[i].name, verb->name);
  }
  return check_drain(options, given, error);
}

bool options_parse(Options *options, int argc, char **argv, GError **error) {
  struct option long_options[OPTION_COUNT + 1];
  g_autoptr(GString) short_options = g_string_new(NULL);
  unsigned given = 0;
  int c;

  *options = (Options){
      .socket_path = g_strdup(OPTIONS_DEFAULT_SOCKET), .phases = g_ptr_array_new(), .help_verb = VERB_COUNT};
  mig_policy_init(&options->policy);
  fill_getopt(long_options, short_options);
  opterr = 0;
  optind = 0; /* glibc: reset */

  while ((c = getopt_long(argc, argv, short_options->str, long_options, NULL)) != -1) {
    int option = option_of(c);

    if (option < 0)
      return bad_option(c, argv[optind - 1], error);
    given |= BIT(option);
    if (!apply_option(options, (OptionId)option, optarg, error))
      return false;
  }
  if (options->version)
    return true;
  if (optind < argc && strcmp(argv[optind], "help") == 0) {
    options->help = true;
    optind++;
  }
  if (options->help)
    return optind >= argc || find_verb(argv[optind], &options->help_verb, error);
  if (optind >= argc)
    return usage(error, "No verb given. handoffctl --help lists all verbs.");
  if (!find_verb(argv[optind], &options->verb, error))
    return false;
  options->args = g_strdupv(argv + optind + 1);
  if (!check_arguments(options, given, error))
    return false;
  for (unsigned i = 1; options->verb == VERB_TUNE && options->args[i]; i++) {
    if (!set_goal(options, options->args[i], error))
      return false;
  }
  return true;
}

void options_clear(Options *options) {
  g_clear_pointer(&options->socket_path, g_free);
  g_clear_pointer(&options->args, g_strfreev);
  g_clear_pointer(&options->policy_name, g_free);
  g_clear_pointer(&options->migrate_uri, g_free);
  g_clear_pointer(&options->request_key, g_free);
  g_clear_pointer(&options->phases, g_ptr_array_unref);
  g_clear_pointer(&options->domain, g_free);
  g_clear_pointer(&options->svg, g_free);
}
