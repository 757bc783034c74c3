/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Tables and labelled fields. */
#include "agent/ctl/print.h"
#include "agent/ctl/format.h"

#include "libmigrate/core/policy.h"

struct Table {
  const char *const *titles;
  unsigned n_columns;
  GPtrArray *cells; /* char * */
};

Table *table_new(const char *const *titles) {
  Table *table = g_new0(Table, 1);

  table->titles = titles;
  table->n_columns = g_strv_length((char **)titles);
  table->cells = g_ptr_array_new_with_free_func(g_free);
  return table;
}

void table_free(Table *table) {
  if (!table)
    return;
  g_ptr_array_unref(table->cells);
  g_free(table);
}

void table_add(Table *table, const char *format, ...) {
  va_list args;
  char *text;

  va_start(args, format);
  text = g_strdup_vprintf(format, args);
  va_end(args);
  g_ptr_array_add(table->cells, text);
}

static void print_row(Term *term, const char *const *cells, const unsigned *widths, unsigned n_columns) {
  GString *line = g_string_new(NULL);

  for (unsigned i = 0; i < n_columns; i++) {
    g_string_append(line, cells[i]);
    for (unsigned width = format_width(cells[i]); i + 1 < n_columns && width < widths[i] + 2; width++)
      g_string_append_c(line, ' ');
  }
  term_print(term, "%s\n", line->str);
  g_string_free(line, TRUE);
}

void table_print(const Table *table, Term *term) {
  g_autofree unsigned *widths = g_new0(unsigned, table->n_columns);
  const char *const *cells = (const char *const *)table->cells->pdata;

  for (unsigned i = 0; i < table->n_columns; i++)
    widths[i] = format_width(table->titles[i]);
  for (unsigned i = 0; i < table->cells->len; i++)
    widths[i % table->n_columns] = MAX(widths[i % table->n_columns], format_width(cells[i]));

  print_row(term, table->titles, widths, table->n_columns);
  for (unsigned i = 0; i + table->n_columns <= table->cells->len; i += table->n_columns)
    print_row(term, cells + i, widths, table->n_columns);
}

void print_field(Term *term, const char *label, const char *format, ...) {
  g_autofree char *text = NULL;
  va_list args;

  va_start(args, format);
  text = g_strdup_vprintf(format, args);
  va_end(args);
  term_print(term, "%-12s %s\n", label, text);
}

char *print_value(json_t *value) {
  if (json_is_boolean(value))
    return g_strdup(json_is_true(value) ? "yes" : "no");
  if (json_is_integer(value))
    return g_strdup_printf("%" JSON_INTEGER_FORMAT, json_integer_value(value));
  return g_strdup(json_is_string(value) ? json_string_value(value) : "-");
}

void print_policy(Term *term, json_t *policy) {
  const char *key;
  json_t *value;

  term_print(term, "goals\n");
  for (int i = 0; i < MIG_POLICY_KEY_COUNT; i++) {
    const char *name = mig_policy_key_info((MigPolicyKey)i)->name;
    g_autofree char *text = print_value(json_object_get(policy, name));

    if (json_object_get(policy, name))
      term_print(term, "  %s=%s\n", name, text);
  }
  json_object_foreach (policy, key, value) {
    g_autofree char *text = print_value(value);

    if (!mig_policy_key_by_name(key))
      term_print(term, "  %s=%s\n", key, text);
  }
}

void print_hanging(Term *term, json_t *hanging) {
  int64_t now_us = g_get_real_time();
  json_t *call;
  size_t i;

  json_array_foreach (hanging, i, call) {
    int64_t since_us = json_integer_value(json_object_get(call, "since_usec_realtime"));

    print_field(term, i == 0 ? "hanging" : "", "%s: no answer from libvirtd at %s for %s (since %s)",
                or_dash(json_string_of(call, "call")), or_dash(json_string_of(call, "libvirt_uri")),
                format_duration_ms((now_us - since_us) / 1000).text, format_time(since_us).text);
  }
}
