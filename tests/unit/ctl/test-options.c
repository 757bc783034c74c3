/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The command line. */
#include "agent/base/policyjson.h"
#include "agent/ctl/nearest.h"
#include "agent/ctl/options.h"
#include "tests/unit/core/rows.h"

#include <string.h>

static bool parse(Options *options, const char *line, GError **error) {
  g_autofree char *whole = g_strconcat("handoffctl ", line, NULL);
  g_auto(GStrv) argv = NULL;
  int argc = 0;

  assert_true(g_shell_parse_argv(whole, &argc, &argv, NULL));
  return options_parse(options, argc, argv, error);
}

static const struct Good {
  const char *name; /* the line */
  VerbId verb;
  unsigned n_args;
} good[] = {
    {"migrate web1 kvm2", VERB_MIGRATE, 2},
    {"--json migrate web1 qemu+tcp://kvm2/system", VERB_MIGRATE, 2},
    {"migrate -o tls=require web1 --set allow_post_copy=yes kvm2 --detach", VERB_MIGRATE, 2},
    {"migrate --request-key 'drain 17' -- web1 kvm2", VERB_MIGRATE, 2},
    {"migrate -- -web kvm2", VERB_MIGRATE, 2},
    {"list", VERB_LIST, 0},
    {"list --phase unfinished --phase aborted,failed --domain web1 -a", VERB_LIST, 0},
    {"show web1 -j", VERB_SHOW, 1},
    {"watch", VERB_WATCH, 0},
    {"watch web1 --socket=/tmp/s", VERB_WATCH, 1},
    {"abort web1 --no-wait", VERB_ABORT, 1},
    {"tune web1 max_downtime_ms=1s", VERB_TUNE, 2},
    {"tune web1 max_downtime_ms=500 progress_timeout_s=1min", VERB_TUNE, 3},
    {"node", VERB_NODE, 0},
    {"evaluate", VERB_EVALUATE, 0},
    {"evaluate web1 -j", VERB_EVALUATE, 1},
    {"cordon disk 3 fails", VERB_CORDON, 3},
    {"metrics", VERB_METRICS, 0},
    {"complete web1 --by post-copy", VERB_COMPLETE, 1},
    {"complete --by=pause web1 --no-wait", VERB_COMPLETE, 1},
    {"check web1 kvm2", VERB_CHECK, 2},
    {"check web1 kvm2 --policy fast -o copy_disks=all --even-if-cordoned -j", VERB_CHECK, 2},
    {"prepare web1 kvm1", VERB_PREPARE, 2},
    {"prepare web1 qemu+tcp://kvm1/system --make-disks -o copy_disks=all --timeout 10min --request-key k "
     "--policy fast",
     VERB_PREPARE, 2},
    {"release 5863233d", VERB_RELEASE, 1},
    {"forecast web1 kvm2", VERB_FORECAST, 2},
    {"drain", VERB_DRAIN, 0},
    {"drain kvm2 kvm3 --policy fast -o priority=critical --request-key k --detach", VERB_DRAIN, 2},
    {"drain --abort --detach -j", VERB_DRAIN, 0},
    {"report web1", VERB_REPORT, 1},
    {"report --svg /tmp/web1.svg web1 --json", VERB_REPORT, 1},
    {"forecast web1 kvm2 --policy fast -o max_pause_ms=4s --bandwidth 100M", VERB_FORECAST, 2},
};

static void line_is_taken(void **state) {
  const struct Good *row = *state;
  g_auto(Options) options = {0};
  g_autoptr(GError) error = NULL;

  assert_true(parse(&options, row->name, &error));
  assert_int_equal(options.verb, row->verb);
  assert_int_equal(g_strv_length(options.args), row->n_args);
}

static const struct Bad {
  const char *name; /* the line */
  const char *says;
} bad[] = {
    {"", "No verb given"},
    {"fly", "Unknown verb \"fly\". Verbs are: migrate, list"},
    {"migrat web1 kvm2", "Unknown verb \"migrat\"; did you mean migrate?"},
    {"fly --help", "Unknown verb \"fly\""},
    {"help fly", "Unknown verb \"fly\""},
    {"migrate a b -o max_downtime=3", "max_downtime=3: unknown policy key; did you mean max_downtime_ms?"},
    {"migrate a b -o colour=3", "unknown policy key. handoffctl help migrate"},
    {"evaluate a b", "handoffctl evaluate [DOMAIN]"},
    {"migrate web1", "handoffctl migrate DOMAIN TARGET"},
    {"migrate web1 kvm2 kvm3", "handoffctl migrate DOMAIN TARGET"},
    {"show", "handoffctl show JOB"},
    {"prepare web1", "handoffctl prepare DOMAIN SOURCE"},
    {"prepare web1 kvm1 --timeout never", "such as 90s or 10min, not \"never\""},
    {"prepare web1 kvm1 --timeout 0", "such as 90s or 10min, not \"0\""},
    {"prepare web1 kvm1 --timeout 25h", "up to 24h"},
    {"release", "handoffctl release LEASE"},
    {"node now", "handoffctl node"},
    {"tune web1", "KEY=VALUE"},
    {"tune web1 max_downtime_ms", "Expected KEY=VALUE, not \"max_downtime_ms\""},
    {"tune web1 =3", "Expected KEY=VALUE"},
    {"migrate a b -o maximum=3", "maximum=3: "},
    {"migrate a b -o max_throttle_pct=100", "max_throttle_pct=100: "},
    {"migrate a b -o tls=maybe", "tls=maybe: "},
    {"migrate a b -o", "-o needs a value"},
    {"list --socket", "--socket needs a value"},
    {"list --json=yes", "--json takes no value"},
    {"list --fast", "Unknown or ambiguous option --fast"},
    {"list -x", "Unknown option -x"},
    {"list --detach", "--detach does not apply to list"},
    {"migrate a b --phase pending", "--phase does not apply to migrate"},
    {"list --phase flying", "Unknown phase \"flying\""},
    {"migrate a b --request-key ''", "1 to 128"},
    {"complete web1", "handoffctl complete JOB --by WAY"},
    {"complete --by pause", "handoffctl complete JOB --by"},
    {"complete web1 --by magic", "--by post-copy or --by pause, not \"magic\""},
    {"check web1", "handoffctl check DOMAIN TARGET"},
    {"check web1 kvm2 --detach", "--detach does not apply to check"},
    {"forecast web1", "handoffctl forecast DOMAIN TARGET"},
    {"drain kvm2 --abort", "takes no target"},
    {"drain --detach", "only follows"},
    {"drain -o tls=yes", "need a target"},
    {"drain --abort --request-key k", "need a target"},
    {"drain --no-wait", "--no-wait does not apply to drain"},
    {"abort web1 --abort", "--abort does not apply to abort"},
    {"report", "handoffctl report JOB"},
    {"report web1 web2", "handoffctl report JOB"},
    {"report web1 --svg ''", "--svg needs a file name"},
    {"show web1 --svg x", "--svg does not apply to show"},
    {"forecast a b --bandwidth fast", "such as 100M"},
    {"forecast a b --bandwidth 0", "not \"0\""},
    {"forecast a b --bandwidth -1", "not \"-1\""},
    {"forecast a b --detach", "--detach does not apply to forecast"},
    {"migrate a b --bandwidth 1G", "--bandwidth does not apply to migrate"},
    {"migrate a b --request-key gr\xc3\xbcn", "printable ASCII"},
};

static void line_is_refused(void **state) {
  const struct Bad *row = *state;
  g_auto(Options) options = {0};
  g_autoptr(GError) error = NULL;

  assert_false(parse(&options, row->name, &error));
  if (!strstr(error->message, row->says))
    fail_msg("\"%s\" does not say \"%s\"", error->message, row->says);
}

static void request_key_has_a_longest(void **state) {
  g_autofree char *key = g_strnfill(128, 'k');
  g_autofree char *longest = g_strdup_printf("migrate a b --request-key %s", key);
  g_autofree char *longer = g_strdup_printf("migrate a b --request-key %sk", key);
  g_auto(Options) options = {0}, other = {0};
  g_autoptr(GError) error = NULL;

  assert_true(parse(&options, longest, &error));
  assert_false(parse(&other, longer, &error));
}

static const struct Help {
  const char *name; /* the line */
  VerbId verb;
} helps[] = {
    {"-h", VERB_COUNT},
    {"--help", VERB_COUNT},
    {"help", VERB_COUNT},
    {"help tune", VERB_TUNE},
    {"tune --help", VERB_TUNE},
    {"--help tune", VERB_TUNE},
    {"help --help", VERB_COUNT},
    {"-j migrate a -h", VERB_MIGRATE},
    {"migrate web1 -h", VERB_MIGRATE},
};

static void help_is_of_the_verb(void **state) {
  const struct Help *row = *state;
  g_auto(Options) options = {0};

  assert_true(parse(&options, row->name, NULL));
  assert_true(options.help);
  assert_int_equal(options.help_verb, row->verb);
}

static const struct Near {
  const char *name; /* the word */
  const char *meant;
} nears[] = {
    {"migrat", "migrate"},
    {"mirgate", "migrate"},
    {"migrates", "migrate"},
    {"mig", "migrate"},
    {"con", "content"},
    {"x", NULL},
    {"", NULL},
    {"shwo", NULL},
    {"wacth", "watch"},
    {"migration_of_all", NULL},
    {"complain", NULL},
    {"compleet", "complete"},
    {"cordn", "cordon"},
    {"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa", NULL},
};

static void a_word_is_near_another(void **state) {
  static const char *const words[] = {"migrate", "watch", "complete", "cordon", "uncordon", "content", NULL};
  const struct Near *row = *state;
  const char *found = nearest_word(row->name, words);

  if (g_strcmp0(found, row->meant) != 0)
    fail_msg("%s is near %s", row->name, found ? found : "none");
}

static void goals_are_typed_as_the_interface_has_them(void **state) {
  g_auto(Options) options = {0};

  assert_true(parse(&options,
                    "migrate a b -o max_downtime_ms=2s -o allow_post_copy=on -o tls=require "
                    "-o undefine_source=no -o bandwidth_bytes_per_s=1G",
                    NULL));

  json_t *policy = policy_to_json(&options.policy, options.policy.set);
  json_t *wanted = json_pack("{s:i, s:b, s:s, s:b, s:i}", "max_downtime_ms", 2000, "allow_post_copy", 1,
                             "tls", "require", "undefine_source", 0, "bandwidth_bytes_per_s", 1 << 30);
  assert_true(json_equal(policy, wanted));
  json_decref(policy);
  json_decref(wanted);
}

static void by_is_named_as_the_interface_has_it(void **state) {
  g_auto(Options) options = {0}, other = {0};

  assert_true(parse(&options, "complete web1 --by post-copy", NULL));
  assert_string_equal(options.by, "post_copy");
  assert_true(parse(&other, "complete web1 --by pause", NULL));
  assert_string_equal(other.by, "pause");
}

static const struct Bandwidth {
  const char *name; /* as written */
  uint64_t bytes_per_s;
} bandwidths[] = {
    {"1", 1}, {"50000000", 50000000}, {"100K", 100 << 10}, {"118M", 118 << 20}, {"2G", UINT64_C(2) << 30},
};

static void bandwidth_takes_suffixes(void **state) {
  const struct Bandwidth *row = *state;
  g_autofree char *line = g_strdup_printf("forecast a b --bandwidth %s", row->name);
  g_auto(Options) options = {0};

  assert_true(parse(&options, line, NULL));
  assert_int_equal(options.bandwidth_bytes_per_s, row->bytes_per_s);
}

static void no_goals_are_no_policy(void **state) {
  g_auto(Options) options = {0};

  assert_true(parse(&options, "migrate a b", NULL));
  assert_null(policy_to_json(&options.policy, options.policy.set));
}

static void phases_are_a_set(void **state) {
  g_auto(Options) options = {0};

  assert_true(parse(&options, "list --phase unfinished,pending --phase failed", NULL));
  assert_int_equal(options.phases->len, 5);
}

static void each_verb_and_option_has_a_summary(void **state) {
  for (int i = 0; i < VERB_COUNT; i++) {
    assert_non_null(options_verb((VerbId)i)->name);
    assert_true(strlen(options_verb((VerbId)i)->summary) > 0);
    assert_true(options_verb((VerbId)i)->min_args <= options_verb((VerbId)i)->max_args);
  }
  for (unsigned i = 0; options_option(i); i++) {
    assert_non_null(options_option(i)->name);
    assert_true(strlen(options_option(i)->summary) > 0);
    assert_true(options_option(i)->verbs < 1u << VERB_COUNT);
  }
}

int main(void) {
  Tests tests = {0};

  TESTS_ADD_ROWS(&tests, line_is_taken, good);
  TESTS_ADD_ROWS(&tests, line_is_refused, bad);
  tests_add(&tests, "request key has a longest", request_key_has_a_longest, NULL);
  TESTS_ADD_ROWS(&tests, help_is_of_the_verb, helps);
  TESTS_ADD_ROWS(&tests, a_word_is_near_another, nears);
  tests_add(&tests, "goals are typed as the interface has them", goals_are_typed_as_the_interface_has_them,
            NULL);
  tests_add(&tests, "by is named as the interface has it", by_is_named_as_the_interface_has_it, NULL);
  TESTS_ADD_ROWS(&tests, bandwidth_takes_suffixes, bandwidths);
  tests_add(&tests, "no goals are no policy", no_goals_are_no_policy, NULL);
  tests_add(&tests, "phases are a set", phases_are_a_set, NULL);
  tests_add(&tests, "each verb and option has a summary", each_verb_and_option_has_a_summary, NULL);
  return tests_run(&tests, "ctl-options");
}
