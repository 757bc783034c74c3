/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* proto/idl: the parser names the line of each mistake, the check names the parameter. */
#include "test.h"

#include "proto/interface.h"
#include "tests/unit/proto/interface-check.h"

#include <stdbool.h>
#include <string.h>

static unsigned count_lines(const char *text, const char *beginning) {
  g_auto(GStrv) lines = g_strsplit(text, "\n", -1);
  unsigned n = 0;

  for (size_t i = 0; lines[i]; i++)
    n += g_str_has_prefix(lines[i], beginning);
  return n;
}

static void agent_interface(void **state) {
  g_autoptr(GError) error = NULL;
  g_autoptr(VarlinkInterface) interface = varlink_interface_parse(io_handoffd_Agent_varlink, &error);
  unsigned counts[3] = {0};

  if (!interface)
    fail_msg("%s", error->message);
  assert_string_equal(varlink_interface_get_name(interface), "io.handoffd.Agent");
  for (size_t i = 0; i < varlink_interface_get_n_members(interface); i++)
    counts[varlink_interface_get_member(interface, i)->kind]++;
  assert_int_equal(counts[VARLINK_MEMBER_TYPE], count_lines(io_handoffd_Agent_varlink, "type "));
  assert_int_equal(counts[VARLINK_MEMBER_METHOD], count_lines(io_handoffd_Agent_varlink, "method "));
  assert_int_equal(counts[VARLINK_MEMBER_ERROR], count_lines(io_handoffd_Agent_varlink, "error "));

  const VarlinkMember *phase = varlink_interface_find(interface, VARLINK_MEMBER_TYPE, "Phase");

  assert_non_null(phase);
  assert_int_equal(phase->type->n_fields, 7);
  assert_string_equal(phase->type->fields[0].name, "pending");
  assert_string_equal(phase->type->fields[6].name, "aborted");
  assert_null(varlink_interface_find(interface, VARLINK_MEMBER_TYPE, "Start"));
  assert_null(varlink_interface_find(interface, VARLINK_MEMBER_TYPE, "Nothing"));
}

static const struct {
  const char *text;
  unsigned line; /* 0: good */
} texts[] = {
    {"interface a.b", 0},
    {"interface a.b\nmethod M()->()", 0},
    {"# c\ninterface a-b.c0.D-9 # c\n\ntype T (a: ?[]?[string](x, y), b: ())\n", 0},
    {"interface a.b\ntype T(a:T2)\ntype T2(x,y)\nerror E(t:?T)\r\n", 0},
    {"interface a.b\nmethod M(a_b: int, aB9_c: [string]()) -> (o: object)", 0},

    {"", 1},
    {"\n\nmethod", 3},
    {"interface", 1},
    {"interface a", 1},
    {"interface a.", 1},
    {"interface .a", 1},
    {"interface a..b", 1},
    {"interface a.-b", 1},
    {"interface a-.b", 1},
    {"interface a.b-", 1},
    {"interface 1.b", 1},
    {"interface a.b method M()->()", 1},
    {"interface a.b\nfoo", 2},
    {"interface a.b\ntype", 2},
    {"interface a.b\ntype t(a)", 2},
    {"interface a.b\ntype T", 2},
    {"interface a.b\ntype T int", 2},
    {"interface a.b\ntype T(a:int", 2},
    {"interface a.b\ntype T(a:int\n\nb:int)", 4},
    {"interface a.b\ntype T(a:)", 2},
    {"interface a.b\ntype T(a:int,)", 2},
    {"interface a.b\ntype T(a,)", 2},
    {"interface a.b\ntype T(a:int, b)", 2},
    {"interface a.b\ntype T(a, b:int)", 2},
    {"interface a.b\ntype T(a:int, a:int)", 2},
    {"interface a.b\ntype T(a,\na)", 3},
    {"interface a.b\ntype T(a-b)", 2},
    {"interface a.b\ntype T(a__b)", 2},
    {"interface a.b\ntype T(a_)", 2},
    {"interface a.b\ntype T(_a)", 2},
    {"interface a.b\ntype T(9a)", 2},
    {"interface a.b\ntype T(a: ??int)", 2},
    {"interface a.b\ntype T(a: [int]int)", 2},
    {"interface a.b\ntype T(a: []", 2},
    {"interface a.b\ntype T(a: integer)", 2},
    {"interface a.b\ntype T(a: int)\ntype U(\n  a: Unknown\n)", 4},
    {"interface a.b\nmethod M()->()\ntype T(a: M)", 3},
    {"interface a.b\ntype T(a)\nmethod T()->()", 3},
    {"interface a.b\ntype T(a) type U(a)", 2},
    {"interface a.b\nmethod M", 2},
    {"interface a.b\nmethod M()", 2},
    {"interface a.b\nmethod M()-()", 2},
    {"interface a.b\nmethod M()->", 2},
    {"interface a.b\nmethod M(a)->()", 2},
    {"interface a.b\nmethod M()->(a, b)", 2},
    {"interface a.b\nerror E", 2},
    {"interface a.b\nerror E (a)", 2},
    {"interface a.b\ntype T(a: "
     "[][][][][][][][][][][][][][][][][][][][][][][][][][][][][][][][][][][][][][][][]int)",
     2},
};

static void syntax(void **state) {
  for (size_t i = 0; i < G_N_ELEMENTS(texts); i++) {
    g_autoptr(GError) error = NULL;
    g_autoptr(VarlinkInterface) interface = varlink_interface_parse(texts[i].text, &error);
    g_autofree char *prefix = g_strdup_printf("line %u: ", texts[i].line);

    if (texts[i].line == 0 && !interface)
      fail_msg("%s\n%s", texts[i].text, error->message);
    if (texts[i].line == 0)
      continue;
    if (interface)
      fail_msg("taken: %s", texts[i].text);
    assert_true(g_error_matches(error, VARLINK_IDL_ERROR, VARLINK_IDL_ERROR_SYNTAX));
    if (!g_str_has_prefix(error->message, prefix))
      fail_msg("%s\n%s", texts[i].text, error->message);
  }
}

static const char checked[] =
    "interface a.b\n"
    "type Enum (one, two)\n"
    "type Tree (value: int, left: ?Tree)\n"
    "type Policy (max_ms: ?int, ratio: ?float, kind: ?Enum, deep: ?(list: []?Enum))\n"
    "method Call(name: string, policy: ?Policy, phases: ?[]Enum, tree: ?Tree,\n"
    "  map: ?[string]int, set: ?[string](), any: ?object, yes: ?bool) -> (out: int)\n"
    "error Broken (why: Enum)\n";

static const struct {
  VarlinkCheck check;
  const char *name;
  const char *parameters;
  const char *bad;    /* NULL: fits */
  const char *normal; /* NULL: stays as it is */
} checks[] = {
    {VARLINK_CHECK_CALL, "Call", "{'name':'n'}", NULL, NULL},
    {VARLINK_CHECK_CALL, "Call", "{}", "name", NULL},
    {VARLINK_CHECK_CALL, "Call", "{'name':null}", "name", NULL},
    {VARLINK_CHECK_CALL, "Call", "{'name':1}", "name", NULL},
    {VARLINK_CHECK_CALL, "Call", "{'name':'n','nmae':1}", "nmae", NULL},
    {VARLINK_CHECK_CALL, "Call", "{'name':'n','nmae':null}", "nmae", NULL},
    {VARLINK_CHECK_CALL, "Call", "{'name':'n','yes':1}", "yes", NULL},
    {VARLINK_CHECK_CALL, "Call", "{'name':'n','yes':null,'policy':null}", NULL, "{'name':'n'}"},
    {VARLINK_CHECK_CALL, "Call", "{'name':'n','policy':[]}", "policy", NULL},
    {VARLINK_CHECK_CALL, "Call", "{'name':'n','policy':{}}", NULL, NULL},
    {VARLINK_CHECK_CALL, "Call", "{'name':'n','policy':{'max_pause_ms':1}}", "policy.max_pause_ms", NULL},
    {VARLINK_CHECK_CALL, "Call", "{'name':'n','policy':{'max_ms':'1'}}", "policy.max_ms", NULL},
    {VARLINK_CHECK_CALL, "Call", "{'name':'n','policy':{'max_ms':1.0,'ratio':2,'kind':null}}", NULL,
     "{'name':'n','policy':{'max_ms':1,'ratio':2.0}}"},
    {VARLINK_CHECK_CALL, "Call", "{'name':'n','policy':{'max_ms':1.5}}", "policy.max_ms", NULL},
    {VARLINK_CHECK_CALL, "Call", "{'name':'n','policy':{'max_ms':1e20}}", "policy.max_ms", NULL},
    {VARLINK_CHECK_CALL, "Call", "{'name':'n','policy':{'max_ms':9223372036854775808.0}}", "policy.max_ms",
     NULL},
    {VARLINK_CHECK_CALL, "Call", "{'name':'n','policy':{'max_ms':-9223372036854775808.0}}", NULL,
     "{'name':'n','policy':{'max_ms':-9223372036854775808}}"},
    {VARLINK_CHECK_CALL, "Call", "{'name':'n','policy':{'max_ms':true}}", "policy.max_ms", NULL},
    {VARLINK_CHECK_CALL, "Call", "{'name':'n','policy':{'kind':'three'}}", "policy.kind", NULL},
    {VARLINK_CHECK_CALL, "Call", "{'name':'n','policy':{'kind':1}}", "policy.kind", NULL},
    {VARLINK_CHECK_CALL, "Call", "{'name':'n','policy':{'deep':{}}}", "policy.deep.list", NULL},
    {VARLINK_CHECK_CALL, "Call", "{'name':'n','policy':{'deep':{'list':['one',null,'x']}}}",
     "policy.deep.list[2]", NULL},
    {VARLINK_CHECK_CALL, "Call", "{'name':'n','phases':['one',null]}", "phases[1]", NULL},
    {VARLINK_CHECK_CALL, "Call", "{'name':'n','phases':'one'}", "phases", NULL},
    {VARLINK_CHECK_CALL, "Call", "{'name':'n','phases':[]}", NULL, NULL},
    {VARLINK_CHECK_CALL, "Call", "{'name':'n','map':{'k':1.0}}", NULL, "{'name':'n','map':{'k':1}}"},
    {VARLINK_CHECK_CALL, "Call", "{'name':'n','map':{'k':null}}", "map.k", NULL},
    {VARLINK_CHECK_CALL, "Call", "{'name':'n','set':{'k':{}}}", NULL, NULL},
    {VARLINK_CHECK_CALL, "Call", "{'name':'n','set':{'k':{'v':1}}}", "set.k.v", NULL},
    {VARLINK_CHECK_CALL, "Call", "{'name':'n','any':[1,{'x':null}]}", NULL, NULL},
    {VARLINK_CHECK_CALL, "Call", "{'name':'n','tree':{'value':1,'left':{'value':2,'left':{}}}}",
     "tree.left.left.value", NULL},
    {VARLINK_CHECK_CALL, "Other", "{}", "Other", NULL},
    {VARLINK_CHECK_CALL, "Broken", "{}", "Broken", NULL},
    {VARLINK_CHECK_REPLY, "Call", "{'out':1}", NULL, NULL},
    {VARLINK_CHECK_REPLY, "Call", "{'out':1,'more':1}", "more", NULL},
    {VARLINK_CHECK_REPLY, "Call", "{}", "out", NULL},
    {VARLINK_CHECK_ERROR, "Broken", "{'why':'one'}", NULL, NULL},
    {VARLINK_CHECK_ERROR, "Broken", "{'why':'none'}", "why", NULL},
    {VARLINK_CHECK_ERROR, "Call", "{}", "Call", NULL},
};

static json_t *load(const char *quoted) {
  g_autofree char *text = g_strdelimit(g_strdup(quoted), "'", '"');
  json_t *value = json_loads(text, JSON_DECODE_ANY, NULL);

  if (!value)
    fail_msg("%s", text);
  return value;
}

static void checking(void **state) {
  g_autoptr(VarlinkInterface) interface = varlink_interface_parse(checked, NULL);

  assert_non_null(interface);
  for (size_t i = 0; i < G_N_ELEMENTS(checks); i++) {
    json_t *parameters = load(checks[i].parameters);
    json_t *normal = load(checks[i].normal ? checks[i].normal : checks[i].parameters);
    g_autofree char *bad = NULL;
    bool fits = varlink_interface_check(interface, checks[i].check, checks[i].name, parameters, &bad);

    if (fits != !checks[i].bad || g_strcmp0(bad, checks[i].bad) != 0)
      fail_msg("%s: %s", checks[i].parameters, bad ? bad : "fits");
    if (fits && !json_equal(parameters, normal))
      fail_msg("%s: normal form", checks[i].parameters);
    json_decref(parameters);
    json_decref(normal);
  }
}

static void deep_parameters(void **state) {
  g_autoptr(VarlinkInterface) interface = varlink_interface_parse(checked, NULL);
  g_autofree char *bad = NULL;
  json_t *tree = json_pack("{s:i}", "value", 0);
  json_t *parameters;

  for (int i = 0; i < 1000; i++)
    tree = json_pack("{s:i, s:o}", "value", i, "left", tree);
  parameters = json_pack("{s:s, s:o}", "name", "n", "tree", tree);
  assert_false(varlink_interface_check(interface, VARLINK_CHECK_CALL, "Call", parameters, &bad));
  assert_true(g_str_has_prefix(bad, "tree.left.left."));
  json_decref(parameters);
}

static const struct PlainText {
  const char *parameters;
  const char *bad; /* NULL: plain */
} plain_texts[] = {
    {"{}", NULL},
    {"{\"a\":\"web 3: gr\u00fc\u00df \u2713 \u00a0\u202f\",\"b\":[1,true,null,1.5]}", NULL},
    {"{\"a\":\"\\n\"}", "a"},
    {"{\"a\":\"x\\u0000y\"}", NULL}, /* is no JSON that is taken */
    {"{\"a\":\"\\u0001\"}", "a"},
    {"{\"a\":\"\\u001f\"}", "a"},
    {"{\"a\":\"\\u007f\"}", "a"},
    {"{\"a\":\"\\u0080\"}", "a"},
    {"{\"a\":\"\\u009f\"}", "a"},
    {"{\"a\":\"\\u2028\"}", "a"},
    {"{\"a\":{\"b\":[\"x\",\"y\",\"z\\u2029\"]}}", "a.b[2]"},
    {"{\"a\":{\"b\\n\":1}}", "a"},
    {"{\"a\":[[\"\\t\"]]}", "a[0][0]"},
};

static void text_of_a_call_is_plain(void **state) {
  for (size_t i = 0; i < G_N_ELEMENTS(plain_texts); i++) {
    json_t *parameters = json_loads(plain_texts[i].parameters, 0, NULL);
    g_autofree char *bad = NULL;

    assert_true(parameters || strstr(plain_texts[i].parameters, "\\u0000"));
    if (parameters && varlink_text_check(parameters, &bad) != !plain_texts[i].bad)
      fail_msg("%s", plain_texts[i].parameters);
    if (g_strcmp0(bad, plain_texts[i].bad) != 0)
      fail_msg("%s: %s", plain_texts[i].parameters, bad ? bad : "plain");
    json_decref(parameters);
  }
}

static void long_names_are_cut(void **state) {
  g_autoptr(VarlinkInterface) interface = varlink_interface_parse(checked, NULL);
  g_autofree char *bad = NULL;
  g_autoptr(GString) name = g_string_new("x");
  json_t *parameters = json_pack("{s:s}", "name", "n");

  while (name->len < 100000)
    g_string_append(name, "\xc3\xa4");
  json_object_set_new(parameters, name->str, json_true());
  assert_false(varlink_interface_check(interface, VARLINK_CHECK_CALL, "Call", parameters, &bad));
  assert_true(strlen(bad) < 200);
  assert_true(g_utf8_validate(bad, -1, NULL));
  assert_true(g_str_has_suffix(bad, "..."));
  json_decref(parameters);
}

int main(void) {
  static const struct CMUnitTest tests[] = {
      ROW("the agent's interface file parses whole and its names can be walked", agent_interface),
      ROW("good files are taken; a mistake is named with its line", syntax),
      ROW("what does not fit is named at any depth; what fits gets its normal form", checking),
      ROW("parameters nested without end are refused, not followed", deep_parameters),
      ROW("a control character is found wherever it is", text_of_a_call_is_plain),
      ROW("an unknown name of great length is cut where a character ends", long_names_are_cut),
  };

  return cmocka_run_group_tests_name("idl", tests, NULL, NULL);
}
