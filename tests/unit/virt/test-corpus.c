/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* A corpus of domains as tools define them, each checked against two targets, with the findings it is to have.
 *
 * corpus/FAMILY/NAME.xml is what libvirt says of a running domain. NAME.json, if there is one, has what the XML does not:
 * "domain", "source", "target" (scripts, see tests/fake/fake-driver.h, over those of hosts/) and "policy".
 * NAME.expected is what comes of it; REGEN=1 writes it anew, to be read before it is committed. Runs in hosts/, so that
 * hosts' scripts find their files. */
#include "tests/unit/core/rows.h"
#include "tests/unit/virt/check-harness.h"

#include <glib.h>

#define DOMAINS_MIN 60

typedef struct Family {
  const char *name;
  const char *source;
  const char *targets[2];
} Family;

static const Family families[] = {
    {"virt-install", "node-a.json", {"node-b.json", "old.json"}},
    {"proxmox-like", "node-a.json", {"node-b.json", "old.json"}},
    {"nova", "node-a.json", {"node-b.json", "old.json"}},
    {"kubevirt", "pod-a.json", {"pod-b.json", "pod-c.json"}},
};

/* How many reports have each check among their findings, of how many. */
typedef struct Tally {
  unsigned reports;
  unsigned tripped[MIG_CHECK_COUNT];
} Tally;

static Tally tally;

typedef struct Member {
  char *name; /* FAMILY/NAME, first for TESTS_ADD_ROWS' sake */
  const Family *family;
} Member;

static json_t *load(const char *path) {
  json_error_t error;
  json_t *object = json_load_file(path, 0, &error);

  if (!object)
    fail_msg("%s: %s", path, error.text);
  return object;
}

static void put_over(json_t *object, json_t *over) {
  if (json_is_object(over))
    json_object_update(object, over);
}

static void describe(GString *text, const char *target, const MigCheckReport *report) {
  g_string_append_printf(text, "to %s: %s\n", target, report->blockers > 0 ? "cannot move" : "can move");
  for (size_t i = 0; i < report->count; i++) {
    const MigFinding *finding = &report->findings[i];

    g_string_append_printf(text, "  %s %s%s: %s\n", finding->blocks ? "blocker" : "warning", finding->code,
                           finding->transient ? ", waiting may help" : "", finding->seen);
  }
}

static void count(const MigCheckReport *report) {
  tally.reports++;
  for (int check = 0; check < MIG_CHECK_COUNT; check++)
    tally.tripped[check] += check_find(report, mig_check_info((MigCheck)check)->code) != NULL;
}

static void has_its_findings(void **state) {
  const Member *member = *state;
  g_autofree char *base = g_strdup_printf("../corpus/%s", member->name);
  g_autofree char *xml_path = g_strconcat(base, ".xml", NULL),
                  *script_path = g_strconcat(base, ".json", NULL);
  g_autofree char *expected_path = g_strconcat(base, ".expected", NULL);
  g_autofree char *xml = NULL, *expected = NULL;
  g_autofree MigCheckReport *report = g_new0(MigCheckReport, 1);
  g_autoptr(GString) text = g_string_new(NULL);
  json_t *script = g_file_test(script_path, G_FILE_TEST_EXISTS) ? load(script_path) : json_object();

  assert_true(g_file_get_contents(xml_path, &xml, NULL, NULL));
  for (size_t i = 0; i < G_N_ELEMENTS(member->family->targets); i++) {
    json_t *domain = json_object(), *source = load(member->family->source);
    json_t *target = load(member->family->targets[i]);
    g_autofree char *name = g_strdelimit(g_strdup(member->family->targets[i]), ".", '\0');

    put_over(domain, json_object_get(script, "domain"));
    put_over(source, json_object_get(script, "source"));
    put_over(target, json_object_get(script, "target"));
    json_object_set_new(domain, "xml", json_string(xml));
    check_run(domain, source, target, json_string_value(json_object_get(script, "policy")), report);
    describe(text, name, report);
    count(report);
    json_decref(domain);
    json_decref(source);
    json_decref(target);
  }
  json_decref(script);

  if (g_getenv("REGEN"))
    assert_true(g_file_set_contents(expected_path, text->str, -1, NULL));
  assert_true(g_file_get_contents(expected_path, &expected, NULL, NULL));
  if (strcmp(expected, text->str) != 0)
    print_error("# %s\n# wanted:\n%s# got:\n%s", member->name, expected, text->str);
  assert_string_equal(text->str, expected);
}

static int compare_names(gconstpointer a, gconstpointer b) {
  return strcmp(*(char *const *)a, *(char *const *)b);
}

static void add_family(Tests *tests, GPtrArray *members, const Family *family) {
  g_autofree char *path = g_strdup_printf("../corpus/%s", family->name);
  g_autoptr(GDir) directory = g_dir_open(path, 0, NULL);
  g_autoptr(GPtrArray) names = g_ptr_array_new_with_free_func(g_free);
  const char *name;

  while (directory && (name = g_dir_read_name(directory)))
    if (g_str_has_suffix(name, ".xml"))
      g_ptr_array_add(names, g_strndup(name, strlen(name) - strlen(".xml")));
  g_ptr_array_sort(names, compare_names);
  for (guint i = 0; i < names->len; i++) {
    Member *member = g_new0(Member, 1);

    member->name = g_strdup_printf("%s/%s", family->name, (char *)names->pdata[i]);
    member->family = family;
    g_ptr_array_add(members, member);
    tests_add(tests, member->name, has_its_findings, member);
  }
}

static void member_free(gpointer data) {
  Member *member = data;

  g_free(member->name);
  g_free(member);
}

static void is_large_enough(void **state) {
  assert_true(((GPtrArray *)*state)->len >= DOMAINS_MIN);
}

/* The last test: after all members. Those that just do not trip a check are in test-check.c. */
static void every_check_is_tripped_by_some_and_not_by_all(void **state) {
  for (int check = 0; check < MIG_CHECK_COUNT; check++)
    if (tally.tripped[check] == 0 || tally.tripped[check] == tally.reports)
      fail_msg("%u of %u reports have %s", tally.tripped[check], tally.reports,
               mig_check_info((MigCheck)check)->code);
}

int main(void) {
  GPtrArray *members = g_ptr_array_new_with_free_func(member_free);
  Tests tests = {0};
  int failed;

  for (size_t i = 0; i < G_N_ELEMENTS(families); i++)
    add_family(&tests, members, &families[i]);
  tests_add(&tests, "the corpus is large enough", is_large_enough, members);
  tests_add(&tests, "every check is tripped by some and not by all",
            every_check_is_tripped_by_some_and_not_by_all, NULL);
  failed = tests_run(&tests, "corpus");
  g_ptr_array_unref(members);
  return failed;
}
