/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The configuration: files, lines, keys, and what is said of those that are not understood. */
#include "agent/config/config.h"
#include "agent/config/goals.h"

#include "tests/unit/core/rows.h"

#include <glib/gstdio.h>
#include <sys/stat.h>
#include <unistd.h>

/* A directory with etc, run and lib, gone after the test. */
typedef struct Place {
  char *root;
  char *etc, *run, *lib;
  const char *directories[4];
} Place;

static void place_make(Place *place) {
  g_autoptr(GError) error = NULL;
  place->root = g_dir_make_tmp("test-config-XXXXXX", &error);
  assert_non_null(place->root);
  place->etc = g_build_filename(place->root, "etc", NULL);
  place->run = g_build_filename(place->root, "run", NULL);
  place->lib = g_build_filename(place->root, "lib", NULL);
  place->directories[0] = place->etc;
  place->directories[1] = place->run;
  place->directories[2] = place->lib;
  place->directories[3] = NULL;
}

static void remove_tree(const char *path) {
  g_autoptr(GDir) dir = g_file_test(path, G_FILE_TEST_IS_SYMLINK) ? NULL : g_dir_open(path, 0, NULL);
  for (const char *name; dir && (name = g_dir_read_name(dir));) {
    g_autofree char *child = g_build_filename(path, name, NULL);
    remove_tree(child);
  }
  g_remove(path);
}

static void place_clear(Place *place) {
  remove_tree(place->root);
  g_free(place->root);
  g_free(place->etc);
  g_free(place->run);
  g_free(place->lib);
}

/* Returns the path. */
static char *put(const char *directory, const char *name, const char *text, gssize size) {
  char *path = g_build_filename(directory, name, NULL);
  g_autofree char *parent = g_path_get_dirname(path);
  assert_int_equal(g_mkdir_with_parents(parent, 0700), 0);
  assert_true(g_file_set_contents(path, text, size, NULL));
  return path;
}

static void put_text(const char *directory, const char *name, const char *text) {
  g_free(put(directory, name, text, -1));
}

static Config *load(const Place *place) {
  g_autoptr(GError) error = NULL;
  Config *config = config_load_from(NULL, place->directories, &error);
  if (!config)
    fail_msg("%s", error->message);
  return config;
}

static Config *load_text(const char *text) {
  Place place;
  place_make(&place);
  put_text(place.etc, "handoffd.conf", text);
  Config *config = load(&place);
  /* "/tmp/…/etc/handoffd.conf:3: text" → "handoffd.conf:3: text" */
  for (guint i = 0; i < config->warnings->len; i++) {
    char *warning = g_ptr_array_index(config->warnings, i);
    if (g_str_has_prefix(warning, place.etc))
      memmove(warning, warning + strlen(place.etc) + 1, strlen(warning + strlen(place.etc) + 1) + 1);
  }
  place_clear(&place);
  return config;
}

/* Lines, and the one warning that comes of them */

static const struct Line {
  const char *name;
  const char *text;
  const char *warning; /* its beginning; NULL: none */
} lines[] = {
    {"an empty file", "", NULL},
    {"comments, empty lines and carriage returns", "# a\r\n\r\n; b\r\n[Agent]\r\nMaxOutgoing=3\r\n", NULL},
    {"a byte order mark", "\xef\xbb\xbf[Agent]\nMaxOutgoing=3\n", NULL},
    {"white space about everything", "  [ Agent ]  \n\t MaxOutgoing \t=  3  \n", NULL},
    {"no newline at the end", "[Agent]\nMaxOutgoing=3", NULL},
    {"other capitals", "[agent]\nmaxoutgoing=3\n", NULL},
    {"an unknown key", "[Agent]\n\nMaxOutgoin=3\n",
     "handoffd.conf:3: unknown key MaxOutgoin= in [Agent]; known keys: MaxOutgoing=, "},
    {"a rate with its factor", "[Agent]\nLinkBandwidth=2G\n", NULL},
    {"a rate that is none", "[Agent]\nLinkBandwidth=fast\n",
     "handoffd.conf:2: LinkBandwidth= takes bytes per second, such as 100M or 1G"},
    {"a number that is none", "[Agent]\nMaxOutgoing=many\n",
     "handoffd.conf:2: MaxOutgoing= takes a whole number from 1 to 1000, not \"many\""},
    {"a number out of range", "[Agent]\nMaxOutgoing=0\n",
     "handoffd.conf:2: MaxOutgoing= takes a whole number from 1 to 1000"},
    {"a time without sense", "[Agent]\nConnectTimeout=soon\n",
     "handoffd.conf:2: ConnectTimeout= takes a time from 100ms to 10min, in ms, s, min, h or d"},
    {"a time out of range", "[Agent]\nPollInterval=1ms\n",
     "handoffd.conf:2: PollInterval= takes a time from 50ms to 10s"},
    {"a time that is no whole second", "[Agent]\nKeepFinishedSec=1500ms\n",
     "handoffd.conf:2: KeepFinishedSec= takes whole seconds"},
    {"a word that is not one of three", "[Agent]\nPublicRead=some\n",
     "handoffd.conf:2: PublicRead= takes none, node or all, not \"some\""},
    {"a group that cannot be", "[Agent]\nGroup=a b\n", "handoffd.conf:2: Group= takes a group name"},
    {"a file for the metrics", "[Agent]\nMetricsFile=/run/handoffd/handoffd.prom\nMetricsInterval=5s\n",
     NULL},
    {"a file without a directory", "[Agent]\nMetricsFile=handoffd.prom\n",
     "handoffd.conf:2: MetricsFile= takes the absolute path of a file, not \"handoffd.prom\""},
    {"a directory for a file", "[Agent]\nMetricsFile=/run/handoffd/\n",
     "handoffd.conf:2: MetricsFile= takes the absolute path of a file"},
    {"an unknown section, once", "[Agnet]\nMaxOutgoing=3\nMaxJobs=4\n",
     "handoffd.conf:1: unknown section [Agnet], skipped"},
    {"an allowed network that is none", "[Agent]\nAllowTargets=10.0.0.1/8\n",
     "handoffd.conf:2: AllowTargets= takes names of [Target]s, URIs such as"},
    {"an allowed name that there is not",
     "[Agent]\nAllowTargets=b, c\n[Target b]\nLibvirtURI=qemu:///system\n",
     "[Agent]: AllowTargets= names c, but there is no such [Target]"},
    {"allowed names by a pattern", "[Agent]\nAllowTargets=* node-?\n", NULL},
    {"a target without a name", "[Target]\nLibvirtURI=qemu:///system\n",
     "handoffd.conf:1: unknown section [Target], skipped"},
    {"an agent with a name", "[Agent one]\n", "handoffd.conf:1: unknown section [Agent one], skipped"},
    {"a target named like a URI", "[Target qemu+tcp://x/system]\n",
     "handoffd.conf:1: a target's name cannot be a URI"},
    {"a section without its bracket", "[Agent\nMaxOutgoing=3\n", "handoffd.conf:1: missing closing bracket"},
    {"keys before any section, once", "MaxOutgoing=3\nMaxJobs=4\n",
     "handoffd.conf:1: keys before the first section"},
    {"a line without an equals sign", "[Agent]\nMaxOutgoing 3\n", "handoffd.conf:2: expected Key=Value"},
    {"a line with nothing before it", "[Agent]\n=3\n", "handoffd.conf:2: expected Key=Value"},
    {"a line that is not text", "[Agent]\n\xff\xfe=3\n", "handoffd.conf:2: this line is not valid text"},
    {"a target without a URI", "\n[Target b]\nMigrateURI=tcp://x\n",
     "handoffd.conf:2: [Target b] has no LibvirtURI=; ignored"},
    {"a target with a host for a URI", "[Target b]\nLibvirtURI=qemu:///system\nMigrateURI=10.0.0.2\n",
     "handoffd.conf:3: MigrateURI= takes a URI such as tcp://ADDRESS, not \"10.0.0.2\""},
    {"an unknown key of a target", "[Target b]\nLibvirtURI=qemu:///system\nURI=x\n",
     "handoffd.conf:3: unknown key URI= in a [Target NAME]; known keys: LibvirtURI=, MigrateURI=, "
     "MaxOutgoing=, "
     "LinkBandwidth="},
    {"a limit of a target that is none", "[Target b]\nLibvirtURI=qemu:///system\nMaxOutgoing=some\n",
     "handoffd.conf:3: MaxOutgoing= takes a whole number from 0 to 1000, not \"some\""},
    {"an unknown key of a policy", "[Policy]\nMaxDown=3\n",
     "handoffd.conf:2: unknown key MaxDown= in a [Policy]; known keys: MaxDowntime=, MaxPause=, "
     "AllowPostCopy=, "},
    {"a bad value of a policy", "[Policy gold]\nMaxDowntime=soon\n",
     "handoffd.conf:2: max_downtime_ms takes a whole number from 1 to 2000000 ms"},
    {"a condition that cannot be", "[Policy gold]\nMatch=nme=web*\n",
     "handoffd.conf:2: Match= takes name=PATTERN, title=PATTERN, memory>=SIZE (or <=, >, <; with K, M, G or "
     "T) "
     "or metadata={NAMESPACE}ELEMENT[/CHILD][@ATTRIBUTE][=PATTERN], not \"nme=web*\"; until this is "
     "corrected the policy matches no domain"},
    {"a condition on the node's default", "[Policy]\nMatch=name=web*\n",
     "handoffd.conf:2: Match= belongs in a [Policy NAME]"},
    {"keys that exclude each other on any host", "\n[Policy gold]\nAllowPostCopy=yes\nTunnelled=yes\n",
     "handoffd.conf:2: [Policy gold]: post-copy requests pages over a return path"},
    {"no bandwidth for the deadline", "[Agent]\nMaxBandwidth=7000000\n",
     "[Agent]: MaxBandwidth= transfers a GiB in 153 s, but CompletionTimeoutPerGiB= aborts a migration after "
     "150 s per GiB"},
    {"just enough of it", "[Agent]\nMaxBandwidth=7158278\n", NULL},
    {"a deadline that is given the time",
     "[Agent]\nMaxBandwidth=7000000\n[Policy]\nCompletionTimeoutPerGiB=154\n", NULL},
    {"no deadline at all", "[Agent]\nMaxBandwidth=1\n[Policy]\nCompletionTimeoutPerGiB=0\n", NULL},
    {"a policy without the time",
     "[Agent]\nMaxBandwidth=8000000\n[Policy gold]\nMaxPause=1s\n[Policy rash]\nCompletionTimeoutPerGiB=9\n",
     "handoffd.conf:5: MaxBandwidth= transfers a GiB in 134 s, but CompletionTimeoutPerGiB= aborts a "
     "migration after 9 s per GiB"},
    {"keys that a newer QEMU takes together", "[Policy gold]\nAllowPostCopy=yes\nParallelConnections=2\n",
     NULL},
};

static void line(void **state) {
  const struct Line *row = *state;
  g_autoptr(Config) config = load_text(row->text);
  const char *got = config->warnings->len ? g_ptr_array_index(config->warnings, 0) : NULL;
  if (row->warning && (!got || !g_str_has_prefix(got, row->warning)))
    fail_msg("the warning is %s", got ? got : "missing");
  if (!row->warning && got)
    fail_msg("%s", got);
  assert_int_equal(config->warnings->len, row->warning ? 1 : 0);
  /* Whatever it was, nothing else took harm. */
  assert_int_equal(config->max_jobs, 10000);
  assert_true(config->max_outgoing == 2 || config->max_outgoing == 3);
}

/* Times */

static const struct Duration {
  const char *name;
  const char *text;
  uint64_t unit_ms;
  bool good;
  uint64_t ms;
} durations[] = {
    {"2 in seconds", "2", 1000, true, 2000},
    {"2 in milliseconds", "2", 1, true, 2},
    {"400ms", "400ms", 1000, true, 400},
    {"10s", "10s", 1, true, 10000},
    {"15min", "15min", 1, true, 900000},
    {"1h", "1h", 1, true, 3600000},
    {"7d", "7d", 1, true, 604800000},
    {"0", "0", 1000, true, 0},
    {"1h 30min", "1h 30min", 1, true, 5400000},
    {"1h30min", "1h30min", 1, true, 5400000},
    {"white space before a unit", " 5 s ", 1, true, 5000},
    {"nothing", "", 1, false, 0},
    {"a unit alone", "s", 1, false, 0},
    {"a unit that is none", "5 fortnights", 1, false, 0},
    {"a negative time", "-5s", 1, false, 0},
    {"a decimal fraction", "1.5s", 1, false, 0},
    {"two bare numbers", "5 5", 1, false, 0},
    {"a bare number behind one with a unit", "5s 5", 1, false, 0},
    {"more than 64 bits", "99999999999999999999", 1, false, 0},
    {"more than 64 bits by its unit", "18446744073709551615d", 1, false, 0},
    {"more than 64 bits by its sum", "18446744073709551615ms 1ms", 1, false, 0},
};

static void duration(void **state) {
  const struct Duration *row = *state;
  uint64_t ms = 4711;
  assert_int_equal(config_parse_duration_ms(row->text, row->unit_ms, &ms), row->good);
  assert_int_equal(ms, row->good ? row->ms : 4711);
}

/* Policies, in both spellings */

static const struct Spelling {
  const char *name;
  const char *line;
  MigPolicyKey key;
  uint64_t value;
} spellings[] = {
    {"MaxDowntime with a unit", "MaxDowntime=2s", MIG_POLICY_MAX_DOWNTIME_MS, 2000},
    {"max_downtime_ms", "max_downtime_ms=2000", MIG_POLICY_MAX_DOWNTIME_MS, 2000},
    {"MaxPause", "MaxPause=4s", MIG_POLICY_MAX_PAUSE_MS, 4000},
    {"AllowPostCopy", "AllowPostCopy=yes", MIG_POLICY_ALLOW_POST_COPY, 1},
    {"AllowAutoConverge", "AllowAutoConverge=on", MIG_POLICY_ALLOW_AUTO_CONVERGE, 1},
    {"MaxThrottle", "MaxThrottle=99%", MIG_POLICY_MAX_THROTTLE_PCT, 99},
    {"CompletionTimeoutPerGiB", "CompletionTimeoutPerGiB=5min", MIG_POLICY_COMPLETION_TIMEOUT_S_PER_GIB, 300},
    {"completion_timeout_s_per_gib", "completion_timeout_s_per_gib=5",
     MIG_POLICY_COMPLETION_TIMEOUT_S_PER_GIB, 5},
    {"DiskTimeoutPerGiB", "DiskTimeoutPerGiB=10", MIG_POLICY_DISK_TIMEOUT_S_PER_GIB, 10},
    {"ProgressTimeout", "ProgressTimeout=1h", MIG_POLICY_PROGRESS_TIMEOUT_S, 3600},
    {"Bandwidth", "Bandwidth=32M", MIG_POLICY_BANDWIDTH_BYTES_PER_S, 32 << 20},
    {"PostCopyBandwidth", "PostCopyBandwidth=1K", MIG_POLICY_POST_COPY_BANDWIDTH_BYTES_PER_S, 1024},
    {"ParallelConnections", "ParallelConnections=8", MIG_POLICY_PARALLEL_CONNECTIONS, 8},
    {"Compression", "Compression=xbzrle", MIG_POLICY_COMPRESSION, MIG_COMPRESSION_XBZRLE},
    {"TLS in capitals", "TLS=require", MIG_POLICY_TLS, MIG_TLS_REQUIRE},
    {"CopyDisks", "CopyDisks=incremental", MIG_POLICY_COPY_DISKS, MIG_COPY_DISKS_INCREMENTAL},
    {"PersistTarget", "PersistTarget=no", MIG_POLICY_PERSIST_TARGET, 0},
    {"Priority", "Priority=critical", MIG_POLICY_PRIORITY, MIG_PRIORITY_CRITICAL},
};

static void spelling(void **state) {
  const struct Spelling *row = *state;
  g_autofree char *text = g_strdup_printf("[Policy]\n%s\n[Policy gold]\n%s\n", row->line, row->line);
  g_autoptr(Config) config = load_text(text);
  assert_int_equal(config->warnings->len, 0);
  const ConfigPolicy *gold = config_find_policy(config, "gold");
  assert_non_null(gold);
  assert_int_equal(mig_policy_get(&config->node_policy.policy, row->key), row->value);
  assert_int_equal(mig_policy_get(&gold->policy, row->key), row->value);
  assert_int_equal(gold->policy.set, UINT32_C(1) << row->key);
}

/* Files */

static void no_file_at_all_gives_the_defaults(void **state) {
  Place place;
  place_make(&place);
  g_autoptr(Config) config = load(&place);
  assert_int_equal(config->max_outgoing, 2);
  assert_int_equal(config->max_jobs, 10000);
  assert_int_equal(config->keep_finished, 1000);
  assert_int_equal(config->keep_finished_s, 7 * 86400);
  assert_int_equal(config->public_read, CONFIG_PUBLIC_READ_NODE);
  assert_string_equal(config->group, "handoff");
  assert_int_equal(config->poll_interval_ms, 400);
  assert_int_equal(config->connect_timeout_ms, 10000);
  assert_int_equal(config->prepare_timeout_ms, 60000);
  assert_int_equal(config->pending_timeout_ms, 900000);
  assert_int_equal(config->unschedulable_timeout_ms, 300000);
  assert_int_equal(config->priority_aging_ms, 300000);
  assert_int_equal(config->max_per_target, 0);
  assert_int_equal(config->watch_interval_ms, 250);
  assert_int_equal(config->node_policy.policy.set, 0);
  assert_int_equal(config->targets->len + config->policies->len + config->warnings->len, 0);
  place_clear(&place);
}

static void the_main_file_is_of_the_first_directory_that_has_it(void **state) {
  Place place;
  place_make(&place);
  put_text(place.lib, "handoffd.conf", "[Agent]\nMaxOutgoing=7\nMaxJobs=70\n");
  put_text(place.run, "handoffd.conf", "[Agent]\nMaxOutgoing=6\n");
  g_autoptr(Config) config = load(&place);
  assert_int_equal(config->max_outgoing, 6);
  assert_int_equal(config->max_jobs, 10000);
  place_clear(&place);
}

static void drop_ins_follow_in_the_order_of_their_names(void **state) {
  Place place;
  place_make(&place);
  put_text(place.etc, "handoffd.conf", "[Agent]\nMaxOutgoing=1\nMaxJobs=1\nKeepFinished=1\n");
  put_text(place.etc, "handoffd.conf.d/10-a.conf", "[Agent]\nMaxOutgoing=10\nMaxJobs=10\n");
  put_text(place.lib, "handoffd.conf.d/20-b.conf", "[Agent]\nMaxOutgoing=20\n");
  put_text(place.etc, "handoffd.conf.d/30-c.txt", "[Agent]\nMaxOutgoing=30\n");
  put_text(place.etc, "handoffd.conf.d/.40-d.conf", "[Agent]\nMaxOutgoing=40\n");
  g_autoptr(Config) config = load(&place);
  assert_int_equal(config->max_outgoing, 20);
  assert_int_equal(config->max_jobs, 10);
  assert_int_equal(config->keep_finished, 1);
  place_clear(&place);
}

static void of_drop_ins_of_one_name_etc_wins_and_an_empty_one_masks(void **state) {
  Place place;
  place_make(&place);
  put_text(place.lib, "handoffd.conf.d/a.conf", "[Agent]\nMaxOutgoing=10\nMaxJobs=10\n");
  put_text(place.run, "handoffd.conf.d/a.conf", "[Agent]\nMaxOutgoing=20\n");
  put_text(place.lib, "handoffd.conf.d/b.conf", "[Agent]\nKeepFinished=10\n");
  put_text(place.etc, "handoffd.conf.d/b.conf", "");
  put_text(place.lib, "handoffd.conf.d/c.conf", "[Agent]\nGroup=wheel\n");
  g_autofree char *masked = g_build_filename(place.etc, "handoffd.conf.d/c.conf", NULL);
  assert_int_equal(symlink("/dev/null", masked), 0);
  g_autoptr(Config) config = load(&place);
  assert_int_equal(config->max_outgoing, 20);
  assert_int_equal(config->max_jobs, 10000);
  assert_int_equal(config->keep_finished, 1000);
  assert_string_equal(config->group, "handoff");
  place_clear(&place);
}

static void the_file_of_the_command_line_stands_alone(void **state) {
  Place place;
  place_make(&place);
  put_text(place.etc, "handoffd.conf", "[Agent]\nMaxOutgoing=3\n");
  put_text(place.etc, "handoffd.conf.d/a.conf", "[Agent]\nMaxOutgoing=4\n");
  g_autofree char *path = put(place.root, "mine.conf", "[Agent]\nMaxJobs=5\n", -1);
  g_autoptr(GError) error = NULL;
  g_autoptr(Config) config = config_load(path, &error);
  assert_non_null(config);
  assert_int_equal(config->max_jobs, 5);
  assert_int_equal(config->max_outgoing, 2);
  place_clear(&place);
}

static void a_file_that_cannot_be_read_is_an_error_that_names_it(void **state) {
  Place place;
  place_make(&place);
  g_autofree char *missing = g_build_filename(place.root, "missing.conf", NULL);
  g_autoptr(GError) error = NULL;
  assert_null(config_load(missing, &error));
  assert_non_null(strstr(error->message, missing));
  g_clear_error(&error);

  assert_null(config_load(place.root, &error)); /* a directory */
  assert_non_null(strstr(error->message, "not a regular file"));
  g_clear_error(&error);

  g_autofree char *fifo = g_build_filename(place.root, "fifo", NULL);
  assert_int_equal(mkfifo(fifo, 0600), 0);
  assert_null(config_load(fifo, &error)); /* and does not wait for a writer */
  g_clear_error(&error);

  g_autofree char *big = g_malloc0(2 << 20), *path = put(place.root, "big", big, 2 << 20);
  assert_null(config_load(path, &error));
  assert_non_null(strstr(error->message, "larger than 1 MiB"));
  place_clear(&place);
}

static void a_null_byte_costs_its_line_only(void **state) {
  static const char text[] = "[Agent]\nMax\0Jobs=5\nMaxOutgoing=3\n";
  Place place;
  place_make(&place);
  g_autofree char *path = put(place.etc, "handoffd.conf", text, sizeof(text) - 1);
  g_autofree char *warning = g_strdup_printf("%s:2: this line is not valid text; skipped", path);
  g_autoptr(Config) config = load(&place);
  assert_int_equal(config->max_outgoing, 3);
  assert_int_equal(config->warnings->len, 1);
  assert_string_equal(g_ptr_array_index(config->warnings, 0), warning);
  place_clear(&place);
}

static void a_flood_of_warnings_is_cut(void **state) {
  g_autoptr(GString) text = g_string_new("[Agent]\n");
  for (int i = 0; i < 5000; i++)
    g_string_append(text, "nonsense\n");
  g_autoptr(Config) config = load_text(text->str);
  assert_int_equal(config->warnings->len, 101);
  assert_string_equal(g_ptr_array_index(config->warnings, 100), "and 4900 more");
}

/* Values */

static void the_last_value_counts_and_an_empty_one_is_the_default(void **state) {
  g_autoptr(Config) config =
      load_text("[Agent]\nMaxOutgoing=5\nMaxOutgoing=6\nMaxJobs=5\nMaxJobs=\nGroup=wheel\nGroup=\n"
                "MetricsFile=/a\nMetricsFile=/b\nMetricsFile=\n"
                "[Policy]\nMaxDowntime=50\nMaxDowntime=\nMaxPause=1s\n");
  assert_int_equal(config->warnings->len, 0);
  assert_int_equal(config->max_outgoing, 6);
  assert_int_equal(config->max_jobs, 10000);
  assert_string_equal(config->group, "handoff");
  assert_null(config->metrics_file);
  assert_int_equal(mig_policy_get(&config->node_policy.policy, MIG_POLICY_MAX_DOWNTIME_MS), 300);
  assert_int_equal(config->node_policy.policy.set, UINT32_C(1) << MIG_POLICY_MAX_PAUSE_MS);
}

static void a_bad_value_leaves_the_one_before(void **state) {
  g_autoptr(Config) config =
      load_text("[Agent]\nMaxOutgoing=5\nMaxOutgoing=x\n[Policy]\nMaxDowntime=50\nMaxDowntime=x\n");
  assert_int_equal(config->warnings->len, 2);
  assert_int_equal(config->max_outgoing, 5);
  assert_int_equal(mig_policy_get(&config->node_policy.policy, MIG_POLICY_MAX_DOWNTIME_MS), 50);
}

static void assert_allowed(const Config *config, const char *expected) {
  g_autofree char *all = config->allow_targets ? g_strjoinv(" ", config->allow_targets) : NULL;
  if (!expected)
    assert_null(all);
  else
    assert_string_equal(all, expected);
}

static void what_is_allowed_is_a_list_and_never_opens_by_mistake(void **state) {
  static const struct {
    const char *text, *expected;
  } rows[] = {
      {"", NULL},
      {"AllowTargets=\n", NULL},
      {"AllowTargets=10.0.0.0/8,*,\tqemu+tls://*.example.org/system\n",
       "10.0.0.0/8 * qemu+tls://*.example.org/system"},
      {"AllowTargets=10.0.0.0/8\nAllowTargets=fd00::/8\n", "fd00::/8"},
      {"AllowTargets=10.0.0.0/8\nAllowTargets=\n", NULL},
      {"AllowTargets=10.0.0.0/8 qemu+ext://x/system\n", "10.0.0.0/8"},
      {"AllowTargets=10.0.0.0/99\n", ""},
  };
  for (size_t i = 0; i < LENGTH(rows); i++) {
    g_autofree char *text = g_strconcat("[Agent]\n", rows[i].text, NULL);
    g_autoptr(Config) config = load_text(text);
    assert_allowed(config, rows[i].expected);
  }
}

static void targets_have_names_with_spaces_and_uris_with_everything(void **state) {
  g_autoptr(Config) config =
      load_text("[Target rack 2 node b]\nLibvirtURI=qemu+unix:///system?socket=/a=b#c;d\n"
                "[Target c]\nLibvirtURI=qemu+tcp://c/system\nMigrateURI=tcp://c\n"
                "[Target rack 2 node b]\nMigrateURI=tcp://10.0.0.2\n[Target c]\nMigrateURI=\n");
  assert_int_equal(config->warnings->len, 0);
  assert_int_equal(config->targets->len, 2);
  const ConfigTarget *b = config_find_target(config, "rack 2 node b"), *c = config_find_target(config, "c");
  assert_string_equal(b->libvirt_uri, "qemu+unix:///system?socket=/a=b#c;d");
  assert_string_equal(b->migrate_uri, "tcp://10.0.0.2");
  assert_null(c->migrate_uri);
  assert_null(config_find_target(config, "d"));
  assert_null(config_find_target(config, NULL));
}

static void a_named_policy_is_gathered_from_all_files(void **state) {
  Place place;
  place_make(&place);
  put_text(place.lib, "handoffd.conf", "[Policy gold]\nMaxDowntime=50\nMaxPause=1s\n");
  put_text(place.etc, "handoffd.conf.d/a.conf", "[Policy gold]\nMaxPause=2s\n[Policy silver]\n");
  g_autoptr(Config) config = load(&place);
  const ConfigPolicy *gold = config_find_policy(config, "gold");
  assert_int_equal(config->policies->len, 2);
  assert_int_equal(mig_policy_get(&gold->policy, MIG_POLICY_MAX_DOWNTIME_MS), 50);
  assert_int_equal(mig_policy_get(&gold->policy, MIG_POLICY_MAX_PAUSE_MS), 2000);
  assert_null(config_find_policy(config, ""));
  place_clear(&place);
}

/* Which domains a policy is for */

static const char matching[] = "[Policy]\nMaxPause=1s\n"
                               "[Policy web]\nMatch=name=web*\nMaxDowntime=50\n"
                               "[Policy big]\nMatch=memory>=64G\n"
                               "[Policy big-web]\nMatch=name=web*\nMatch=memory>=64G\n"
                               "[Policy the-web]\nMatch=name=web3\n"
                               "[Policy alpha]\nMatch=title=*a*\n"
                               "[Policy beta]\nMatch=title=*b*\n"
                               "[Policy by-name]\nMaxDowntime=1\n"
                               "[Policy broken]\nMatch=name=db*\nMatch=memory>64X\n"
                               "[Policy emptied]\nMatch=name=db*\nMatch=\n";

static const struct Chosen {
  const char *name;
  MigMatchFacts facts;
  const char *expected; /* NULL: none */
} chosen[] = {
    {"one condition that holds", {.name = "web1"}, "web"},
    {"two conditions are more specific", {.name = "web1", .memory_bytes = UINT64_C(64) << 30}, "big-web"},
    {"its own name is more specific than two",
     {.name = "web3", .memory_bytes = UINT64_C(64) << 30},
     "the-web"},
    {"of equals the first by name, not by place", {.name = "x", .title = "b and a"}, "alpha"},
    {"none that holds", {.name = "app", .memory_bytes = 1}, NULL},
    {"a policy with a broken condition, or without any, chooses nothing", {.name = "db1"}, NULL},
};

static void choice(void **state) {
  const struct Chosen *row = *state;
  g_autoptr(Config) config = load_text(matching);
  const ConfigPolicy *policy = config_match_policy(config, &row->facts);
  assert_int_equal(config->warnings->len, 1);
  if (g_strcmp0(policy ? policy->name : NULL, row->expected) != 0)
    fail_msg("it is %s", policy ? policy->name : "none");
}

static void each_layer_replaces_the_keys_of_the_one_before(void **state) {
  g_autoptr(Config) config =
      load_text("[Policy]\nMaxDowntime=10\nMaxPause=10\nMaxThrottle=10\nProgressTimeout=10\n"
                "[Policy chosen]\nMatch=name=web*\nMaxPause=20\nMaxThrottle=20\nProgressTimeout=20\n"
                "[Policy named]\nMaxThrottle=30\nProgressTimeout=30\n");
  static const struct {
    MigPolicyKey key;
    uint64_t value;
    GoalSource source;
    const char *place; /* its end */
  } expected[] = {
      {MIG_POLICY_MAX_DOWNTIME_MS, 10, GOAL_SOURCE_NODE, "handoffd.conf:2"},
      {MIG_POLICY_MAX_PAUSE_MS, 20, GOAL_SOURCE_MATCHED, "handoffd.conf:8"},
      {MIG_POLICY_MAX_THROTTLE_PCT, 30, GOAL_SOURCE_NAMED, "handoffd.conf:12"},
      {MIG_POLICY_PROGRESS_TIMEOUT_S, 40, GOAL_SOURCE_REQUEST, NULL},
      {MIG_POLICY_DISK_TIMEOUT_S_PER_GIB, 800, GOAL_SOURCE_DEFAULT, NULL},
  };
  char message[100];
  MigPolicy over;
  Goals goals;

  mig_policy_init(&over);
  mig_policy_set(&over, MIG_POLICY_PROGRESS_TIMEOUT_S, 40, message, sizeof message);
  goals_resolve(config, config_find_policy(config, "named"), &over, &(MigMatchFacts){.name = "web1"}, &goals);
  assert_string_equal(goals.matched->name, "chosen");
  assert_string_equal(goals.named->name, "named");
  for (size_t i = 0; i < LENGTH(expected); i++) {
    const char *place = goals_place(&goals, config, expected[i].key);
    assert_int_equal(mig_policy_get(&goals.policy, expected[i].key), expected[i].value);
    assert_int_equal(goals.sources[expected[i].key], expected[i].source);
    assert_int_equal(place != NULL, expected[i].place != NULL);
    assert_true(!place || g_str_has_suffix(place, expected[i].place));
  }
  goals_resolve(config, NULL, NULL, NULL, &goals);
  assert_null(goals.matched);
  assert_int_equal(mig_policy_get(&goals.policy, MIG_POLICY_MAX_PAUSE_MS), 10);
}

static void an_emptied_key_has_no_place(void **state) {
  g_autoptr(Config) config = load_text("[Policy gold]\nMaxDowntime=10\nMaxDowntime=\n");
  const ConfigPolicy *gold = config_find_policy(config, "gold");
  assert_null(gold->places[MIG_POLICY_MAX_DOWNTIME_MS]);
  assert_true(g_str_has_suffix(gold->place, "handoffd.conf:1"));
}

static void sources_have_names(void **state) {
  for (int i = 0; i < GOAL_SOURCE_COUNT; i++)
    assert_int_equal(goal_source_from_name(goal_source_name((GoalSource)i)), i);
  assert_null(goal_source_name(GOAL_SOURCE_COUNT));
  assert_int_equal(goal_source_from_name("nobody"), MIG_ENUM_UNKNOWN);
}

/* The file that is installed */

static void the_installed_file_says_nothing_new(void **state) {
  g_autoptr(GError) error = NULL;
  g_autoptr(Config) config = config_load(g_getenv("HANDOFFD_CONF"), &error);
  assert_non_null(config);
  assert_int_equal(config->warnings->len, 0);
  assert_int_equal(config->node_policy.policy.set, 0);
  assert_int_equal(config->targets->len, 0);
}

static void the_installed_file_has_every_key_at_its_default(void **state) {
  g_autofree char *text = NULL;
  assert_true(g_file_get_contents(g_getenv("HANDOFFD_CONF"), &text, NULL, NULL));
  /* Up to the examples, with each "#Key=Value" switched on. */
  char *examples = strstr(text, "\n#[Policy gold]");
  assert_non_null(examples);
  examples[1] = '\0';
  g_autoptr(GString) live = g_string_new(NULL);
  g_auto(GStrv) all = g_strsplit(text, "\n", -1);
  unsigned keys = 0;
  for (char **p = all; *p; p++) {
    bool key = g_ascii_isupper((*p)[0] == '#' ? (*p)[1] : 0) && strchr(*p, '=');
    keys += key;
    g_string_append_printf(live, "%s\n", key ? *p + 1 : *p);
  }
  g_autoptr(Config) config = load_text(live->str), defaults = config_new();
  if (config->warnings->len)
    fail_msg("%s", (char *)g_ptr_array_index(config->warnings, 0));
  assert_int_equal(keys, 25 + MIG_POLICY_KEY_COUNT);
  assert_int_equal(config->node_policy.policy.set, (UINT32_C(1) << MIG_POLICY_KEY_COUNT) - 1);
  assert_memory_equal(config->node_policy.policy.values, defaults->node_policy.policy.values,
                      sizeof(defaults->node_policy.policy.values));
  assert_string_equal(config->group, defaults->group);
  assert_null(config->allow_targets);
  assert_memory_equal(config, defaults, offsetof(Config, group));
  assert_int_equal(config->poll_interval_ms, defaults->poll_interval_ms);
  assert_int_equal(config->connect_timeout_ms, defaults->connect_timeout_ms);
  assert_int_equal(config->profile_interval_ms, defaults->profile_interval_ms);
  assert_int_equal(config->prepare_timeout_ms, defaults->prepare_timeout_ms);
  assert_int_equal(config->max_incoming, defaults->max_incoming);
  assert_int_equal(config->lease_timeout_ms, defaults->lease_timeout_ms);
  assert_int_equal(config->pending_timeout_ms, defaults->pending_timeout_ms);
  assert_int_equal(config->unschedulable_timeout_ms, defaults->unschedulable_timeout_ms);
  assert_int_equal(config->priority_aging_ms, defaults->priority_aging_ms);
  assert_int_equal(config->watch_interval_ms, defaults->watch_interval_ms);
  assert_int_equal(config->metrics_interval_ms, defaults->metrics_interval_ms);
  assert_null(config->metrics_file);
}

int main(void) {
  Tests tests = {0};
  TESTS_ADD_ROWS(&tests, line, lines);
  TESTS_ADD_ROWS(&tests, duration, durations);
  TESTS_ADD_ROWS(&tests, spelling, spellings);
  TESTS_ADD_ROWS(&tests, choice, chosen);
  static const struct {
    const char *name;
    CMUnitTestFunction function;
  } singles[] = {
      {"no file at all gives the defaults", no_file_at_all_gives_the_defaults},
      {"what is allowed is a list and never opens by mistake",
       what_is_allowed_is_a_list_and_never_opens_by_mistake},
      {"the main file is of the first directory that has it",
       the_main_file_is_of_the_first_directory_that_has_it},
      {"drop-ins follow in the order of their names", drop_ins_follow_in_the_order_of_their_names},
      {"of drop-ins of one name /etc wins, and an empty one masks",
       of_drop_ins_of_one_name_etc_wins_and_an_empty_one_masks},
      {"the file of the command line stands alone", the_file_of_the_command_line_stands_alone},
      {"a file that cannot be read is an error that names it",
       a_file_that_cannot_be_read_is_an_error_that_names_it},
      {"a null byte costs its line only", a_null_byte_costs_its_line_only},
      {"a flood of warnings is cut", a_flood_of_warnings_is_cut},
      {"the last value counts, and an empty one is the default",
       the_last_value_counts_and_an_empty_one_is_the_default},
      {"a bad value leaves the one before", a_bad_value_leaves_the_one_before},
      {"targets have names with spaces, and URIs with everything",
       targets_have_names_with_spaces_and_uris_with_everything},
      {"a named policy is gathered from all files", a_named_policy_is_gathered_from_all_files},
      {"each layer replaces the keys of the one before", each_layer_replaces_the_keys_of_the_one_before},
      {"an emptied key has no place", an_emptied_key_has_no_place},
      {"sources have names", sources_have_names},
      {"the installed file says nothing new", the_installed_file_says_nothing_new},
      {"the installed file has every key at its default", the_installed_file_has_every_key_at_its_default},
  };
  for (size_t i = 0; i < LENGTH(singles); i++)
    tests_add(&tests, singles[i].name, singles[i].function, NULL);
  return tests_run(&tests, "config");
}
