/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Makes calls out of an interface file.
 *
 * A call is written field by field, by the types that the file says. Each value is spoilt with some probability, which is
 * that of the call: none of most, some of a few, so that a call with one mistake is as usual as one that is nonsense all
 * over. In the end a few have bytes changed. */
#include "make.h"

#include <string.h>

#define POOL_SIZE  32
#define DEPTH_MAX  8
#define LONG_BYTES 40000

struct Maker {
  GRand *rand;
  const VarlinkInterface *agent, *service;
  GPtrArray *methods; /* Choice */
  GPtrArray *pools[N_POOLS];
  double spoil;
  unsigned keys; /* made so far */
  unsigned total_weight;
};

typedef struct Choice {
  const VarlinkInterface *interface;
  const VarlinkMember *member;
  unsigned weight;
} Choice;

/* Of the others: 20. What is long, or holds its connection, comes less often. */
static const struct {
  const char *method;
  unsigned weight;
} weights[] = {
    {"Get", 60},       {"Start", 60},    {"Abort", 60},
    {"Tune", 40},      {"GetNode", 4},   {"List", 2},
    {"GetMetrics", 2}, {"Evaluate", 2},  {"Forecast", 4},
    {"Check", 6},      {"Prepare", 10},  {"Drain", 3},
    {"WatchDrain", 3}, {"Watch", 6},     {"GetHistory", 6},
    {"GetPolicy", 8},  {"GetInfo", 20},  {"GetInterfaceDescription", 2},
    {"Cordon", 2},     {"Uncordon", 10},
};

static unsigned weight_of(const char *method) {
  for (size_t i = 0; i < G_N_ELEMENTS(weights); i++)
    if (strcmp(weights[i].method, method) == 0)
      return weights[i].weight;
  return 20;
}

static void add_methods(Maker *maker, const VarlinkInterface *interface) {
  for (size_t i = 0; i < varlink_interface_get_n_members(interface); i++) {
    const VarlinkMember *member = varlink_interface_get_member(interface, i);
    Choice *choice;

    if (member->kind != VARLINK_MEMBER_METHOD)
      continue;
    choice = g_new0(Choice, 1);
    *choice = (Choice){interface, member, weight_of(member->name)};
    maker->total_weight += choice->weight;
    g_ptr_array_add(maker->methods, choice);
  }
}

Maker *maker_new(guint32 seed, const VarlinkInterface *agent, const VarlinkInterface *service) {
  Maker *maker = g_new0(Maker, 1);

  maker->rand = g_rand_new_with_seed(seed);
  maker->agent = agent;
  maker->service = service;
  maker->methods = g_ptr_array_new_with_free_func(g_free);
  add_methods(maker, agent);
  add_methods(maker, service);
  for (int i = 0; i < N_POOLS; i++)
    maker->pools[i] = g_ptr_array_new_with_free_func(g_free);
  return maker;
}

void maker_free(Maker *maker) {
  if (!maker)
    return;
  for (int i = 0; i < N_POOLS; i++)
    g_ptr_array_unref(maker->pools[i]);
  g_ptr_array_unref(maker->methods);
  g_rand_free(maker->rand);
  g_free(maker);
}

void maker_learn(Maker *maker, MakerPool kind, const char *text) {
  GPtrArray *pool = maker->pools[kind];

  if (pool->len == POOL_SIZE)
    g_ptr_array_remove_index(pool, 0);
  g_ptr_array_add(pool, g_strdup(text));
}

unsigned maker_below(Maker *maker, unsigned n) {
  return (unsigned)g_rand_int_range(maker->rand, 0, (gint32)n);
}

bool maker_chance(Maker *maker, double probability) {
  return probability > 0 && g_rand_double(maker->rand) < probability;
}

#define PICK(maker, table) (table)[maker_below(maker, G_N_ELEMENTS(table))]

/* --- strings --- */

/* As they stand in JSON. */
static const char *const odd_strings[] = {
    "",
    " ",
    "x",
    "../../../etc/passwd",
    "%s%n%d",
    "a\\nb\\r\\tc",
    "\\u0001\\u001f\\u007f",
    "\\u0000",
    "\\ud800",
    "\\ud83d\\ude00",
    "\xc3\xa4\xe2\x82\xac\xf0\x9f\x98\x80",
    "\xff\xfe",
    "\xed\xa0\x80",
    "\xf4\x90\x80\x80",
    "\\q",
    "A\\nSTATUS=x\\nREADY=1",
    "00000000-0000-0000-0000-000000000000",
    "qemu+tcp://[::1]:99999/system",
    "qemu+unix:///system?socket=/nonexistent",
    "fake:///nonexistent?host=a",
    "ffffffffffffffffffffffffffffffff",
    "-1",
    "tcp://10.0.0.1:49152",
    "18446744073709551616",
};

static const char *const odd_values[] = {
    "null",
    "true",
    "false",
    "-1",
    "0",
    "1",
    "0.5",
    "-0",
    "1e308",
    "1e309",
    "-1e-400",
    "9223372036854775807",
    "9223372036854775808",
    "-9223372036854775808",
    "-9223372036854775809",
    "1.0",
    "1E2",
    "99999999999999999999999999999999999999999999",
    "[]",
    "{}",
    "[[[]]]",
    "[null]",
    "{\"\":{}}",
    "{\"a\":[{\"b\":0}]}",
    "\"x\"",
    "\"\"",
    "nul",
    "+1",
    "01",
    "'x'",
    "[1,]",
    "NaN",
};

static const gint64 odd_ints[] = {0,          1,          2,   9,          80,        99,    100,
                                  101,        300,        500, 999,        1000,      86400, 86401,
                                  4294967296, G_MAXINT64, -1,  G_MININT64, 2147483648};

static void append_long(Maker *maker, GString *bytes) {
  static const char *const units[] = {"x", "\\u00e9", "\xc3\xa4", "/..", "\\\\", "%n"};
  const char *unit = PICK(maker, units);
  size_t until = bytes->len + maker_below(maker, maker_chance(maker, 0.1) ? LONG_BYTES : 600);

  while (bytes->len < until)
    g_string_append(bytes, unit);
}

static void append_from_pool(Maker *maker, MakerPool kind, GString *bytes) {
  GPtrArray *pool = maker->pools[kind];

  if (pool->len == 0)
    g_string_append(bytes, "none");
  else
    g_string_append(bytes, pool->pdata[maker_below(maker, pool->len)]);
}

/* A new one as often as one that was used. */
static void append_key(Maker *maker, GString *bytes) {
  if (maker_chance(maker, 0.5)) {
    append_from_pool(maker, POOL_KEY, bytes);
  } else {
    g_autofree char *key = g_strdup_printf("key-%u-%u", maker->keys++, maker_below(maker, G_MAXINT32));

    g_string_append(bytes, key);
  }
}

/* Of a job: its id, the beginning of it, or the name of a domain. */
static void append_job(Maker *maker, GString *bytes) {
  gsize before = bytes->len;

  append_from_pool(maker, maker_chance(maker, 0.8) ? POOL_JOB : POOL_DOMAIN, bytes);
  if (maker_chance(maker, 0.1))
    g_string_truncate(bytes, before + maker_below(maker, (unsigned)(bytes->len - before) + 1));
}

static void append_text(Maker *maker, const char *field, GString *bytes) {
  static const char *const policies[] = {"quick", "patient", "none"};
  static const char *const others[] = {"io.handoffd.Agent", "org.varlink.service", "kernel update",
                                       "tcp://10.0.0.2"};

  if (maker_chance(maker, MAX(maker->spoil, 0.02)))
    maker_chance(maker, 0.1) ? append_long(maker, bytes)
                             : (void)g_string_append(bytes, PICK(maker, odd_strings));
  else if (strcmp(field, "domain") == 0)
    append_from_pool(maker, POOL_DOMAIN, bytes);
  else if (strcmp(field, "job") == 0 || strcmp(field, "lease") == 0)
    append_job(maker, bytes);
  else if (g_str_has_prefix(field, "target") || strcmp(field, "source") == 0)
    append_from_pool(maker, POOL_TARGET, bytes);
  else if (strcmp(field, "request_key") == 0)
    append_key(maker, bytes);
  else if (strcmp(field, "policy_name") == 0)
    g_string_append(bytes, PICK(maker, policies));
  else
    g_string_append(bytes, PICK(maker, others));
}

/* --- values --- */

static void append_value(Maker *maker, const VarlinkType *type, const char *field, unsigned depth,
                         GString *bytes);

static void append_name(GString *bytes, const char *name) {
  g_string_append_c(bytes, '"');
  g_string_append(bytes, name);
  g_string_append(bytes, "\":");
}

static void append_struct(Maker *maker, const VarlinkType *type, unsigned depth, GString *bytes) {
  bool first = true;

  g_string_append_c(bytes, '{');
  for (size_t i = 0; i < type->n_fields; i++) {
    const VarlinkField *field = &type->fields[i];
    /* A few of a long list, so that they can be right together. */
    double wanted = type->n_fields > 10 ? 0.1 : 0.35;
    unsigned times = field->type->nullable ? maker_chance(maker, wanted) : !maker_chance(maker, maker->spoil);

    if (times > 0 && maker_chance(maker, maker->spoil / 8))
      times = 2;
    for (; times > 0; times--, first = false) {
      if (!first)
        g_string_append_c(bytes, ',');
      append_name(bytes, field->name);
      append_value(maker, field->type, field->name, depth + 1, bytes);
    }
  }
  if (maker_chance(maker, maker->spoil / 2)) {
    if (!first)
      g_string_append_c(bytes, ',');
    append_name(bytes, maker_chance(maker, 0.2) ? PICK(maker, odd_strings) : "unknown");
    g_string_append(bytes, PICK(maker, odd_values));
  }
  g_string_append_c(bytes, '}');
}

static void append_array(Maker *maker, const VarlinkType *type, const char *field, unsigned depth,
                         GString *bytes) {
  unsigned n = maker_chance(maker, maker->spoil / 20) ? maker_below(maker, 6000) : maker_below(maker, 4);

  g_string_append_c(bytes, '[');
  for (unsigned i = 0; i < n; i++) {
    if (i > 0)
      g_string_append_c(bytes, ',');
    append_value(maker, type->element, field, depth + 1, bytes);
  }
  g_string_append_c(bytes, ']');
}

static void append_nested(Maker *maker, GString *bytes) {
  unsigned n = maker_below(maker, 60);

  for (unsigned i = 0; i < n; i++)
    g_string_append(bytes, "[");
  for (unsigned i = 0; i < n; i++)
    g_string_append(bytes, "]");
}

static void append_odd(Maker *maker, GString *bytes) {
  if (maker_chance(maker, 0.05))
    append_nested(maker, bytes);
  else if (maker_chance(maker, 0.3))
    g_string_append_printf(bytes, "\"%s\"", PICK(maker, odd_strings));
  else
    g_string_append(bytes, PICK(maker, odd_values));
}

static void append_value(Maker *maker, const VarlinkType *type, const char *field, unsigned depth,
                         GString *bytes) {
  const VarlinkType *wanted = type;

  while (wanted->kind == VARLINK_TYPE_NAMED)
    wanted = wanted->element;
  if (depth > DEPTH_MAX || maker_chance(maker, maker->spoil)) {
    append_odd(maker, bytes);
    return;
  }
  if (type->nullable && maker_chance(maker, 0.05)) {
    g_string_append(bytes, "null");
    return;
  }
  switch (wanted->kind) {
  case VARLINK_TYPE_BOOL:
    g_string_append(bytes, maker_chance(maker, 0.5) ? "true" : "false");
    break;
  case VARLINK_TYPE_INT:
    g_string_append_printf(bytes, "%" G_GINT64_FORMAT, PICK(maker, odd_ints));
    break;
  case VARLINK_TYPE_FLOAT:
    g_string_append(bytes, "0.5");
    break;
  case VARLINK_TYPE_ENUM:
    g_string_append_printf(bytes, "\"%s\"",
                           wanted->fields[maker_below(maker, (unsigned)wanted->n_fields)].name);
    break;
  case VARLINK_TYPE_STRING:
    g_string_append_c(bytes, '"');
    append_text(maker, field, bytes);
    g_string_append_c(bytes, '"');
    break;
  case VARLINK_TYPE_ARRAY:
    append_array(maker, wanted, field, depth, bytes);
    break;
  case VARLINK_TYPE_STRUCT:
    append_struct(maker, wanted, depth, bytes);
    break;
  case VARLINK_TYPE_MAP:
  case VARLINK_TYPE_OBJECT:
  case VARLINK_TYPE_NAMED:
    append_odd(maker, bytes);
  }
}

/* --- calls --- */

static const Choice *choose(Maker *maker) {
  unsigned at = maker_below(maker, maker->total_weight);

  for (guint i = 0; i < maker->methods->len; i++) {
    const Choice *choice = maker->methods->pdata[i];

    if (at < choice->weight)
      return choice;
    at -= choice->weight;
  }
  return maker->methods->pdata[0];
}

static bool streams(const char *method) {
  return strcmp(method, "Drain") == 0 || g_str_has_prefix(method, "Watch");
}

static void append_flag(Maker *maker, const char *name, double probability, GString *bytes) {
  if (maker_chance(maker, maker->spoil / 10))
    g_string_append_printf(bytes, ",\"%s\":%s", name, PICK(maker, odd_values));
  else if (maker_chance(maker, probability))
    g_string_append_printf(bytes, ",\"%s\":true", name);
}

/* Changed, taken out, put in twice. */
static void spoil_bytes(Maker *maker, GString *bytes, gsize from) {
  unsigned length = (unsigned)(bytes->len - from);
  unsigned at = maker_below(maker, length), n = 1 + maker_below(maker, MIN(length - at, 40));

  switch (maker_below(maker, 5)) {
  case 0:
    bytes->str[from + at] = (char)maker_below(maker, 256);
    break;
  case 1:
    bytes->str[from + at] ^= (char)(1 << maker_below(maker, 8));
    break;
  case 2:
    g_string_erase(bytes, (gssize)(from + at), n);
    break;
  case 3: {
    g_autofree char *copy = g_memdup2(bytes->str + from + at, n);

    g_string_insert_len(bytes, (gssize)(from + at), copy, n);
    break;
  }
  default:
    g_string_insert_c(bytes, (gssize)(from + at), '\0');
  }
}

static void append_message(Maker *maker, GString *bytes) {
  static const char *const no_methods[] = {
      "io.handoffd.Agent.Fly", "com.example.Nothing.Do",   "GetNode", "", ".", "io.handoffd.Agent.",
      "org.varlink.service.",  "io.handoffd.Agent.Get.Get"};
  const Choice *choice = choose(maker);
  const char *name = choice->member->name;

  g_string_append(bytes, "{\"method\":\"");
  if (maker_chance(maker, MAX(maker->spoil / 4, 0.005)))
    g_string_append(bytes, PICK(maker, no_methods));
  else
    g_string_append_printf(bytes, "%s.%s", varlink_interface_get_name(choice->interface), name);
  g_string_append_c(bytes, '"');
  if (choice->member->type->n_fields > 0 || maker_chance(maker, 0.3)) {
    g_string_append(bytes, ",\"parameters\":");
    append_value(maker, choice->member->type, name, 0, bytes);
  }
  append_flag(maker, "more", streams(name) ? 0.85 : 0.03, bytes);
  append_flag(maker, "oneway", 0.03, bytes);
  append_flag(maker, "upgrade", 0.003, bytes);
  g_string_append_c(bytes, '}');
}

void maker_append_call(Maker *maker, GString *bytes) {
  double kind = g_rand_double(maker->rand);
  gsize from = bytes->len;

  maker->spoil = kind < 0.6 ? 0 : kind < 0.9 ? 0.08 : 0.4;
  append_message(maker, bytes);
  g_string_append_c(bytes, '\0');
  if (maker_chance(maker, 0.02))
    spoil_bytes(maker, bytes, from);
}
