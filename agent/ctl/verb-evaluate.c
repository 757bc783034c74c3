/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* handoffctl evaluate: what the next start of a domain would change, and how to apply it earlier. */
#include "agent/ctl/call.h"
#include "agent/ctl/jobview.h"
#include "agent/ctl/print.h"

#include <string.h>

/* In display order. */
static const struct {
  const char *name; /* as in the interface */
  const char *words;
} remedies[] = {
    {"hotplug", "can be applied while it runs"},
    {"migration", "can be applied by a migration"},
    {"restart", "only by a shutdown and a start"},
};

static bool has_remedy(json_t *change, const char *name) {
  const char *remedy = json_string_of(change, "remedy");

  return remedy && strcmp(remedy, name) == 0;
}

static unsigned count(json_t *changes, const char *name) {
  unsigned n = 0;
  json_t *change;
  size_t i;

  json_array_foreach (changes, i, change)
    n += has_remedy(change, name);
  return n;
}

static void print_change(Term *term, json_t *change, const char *remedy) {
  const char *item = json_string_of(change, "item"), *message = json_string_of(change, "message");
  bool also = json_bool_of(change, "by_migration") && strcmp(remedy, "migration") != 0;

  print_field(term, remedy, "%s%s%s%s", or_dash(json_string_of(change, "code")), item && *item ? " of " : "",
              item ? item : "", also ? ", or by a migration" : "");
  print_field(term, "", "%s", message ? message : "");
}

static void print_changes(Term *term, const char *name, json_t *changes, int64_t total) {
  g_autoptr(GString) text = g_string_new(NULL);
  json_t *change;
  size_t i;

  for (size_t r = 0; r < G_N_ELEMENTS(remedies); r++) {
    unsigned n = count(changes, remedies[r].name);

    if (n > 0)
      g_string_append_printf(text, "%s %u %s", text->len > 0 ? "," : ":", n, remedies[r].words);
  }
  term_print(term, "The next start of %s would apply %" G_GINT64_FORMAT " change%s%s.\n", name, total,
             total == 1 ? "" : "s", text->str);
  for (size_t r = 0; r < G_N_ELEMENTS(remedies); r++)
    json_array_foreach (changes, i, change)
      if (has_remedy(change, remedies[r].name))
        print_change(term, change, remedies[r].name);
  if ((int64_t)json_array_size(changes) < total)
    print_field(term, "", "and %" G_GINT64_FORMAT " more", total - (int64_t)json_array_size(changes));
}

static void print_domain(Term *term, json_t *evaluation) {
  const char *name = or_dash(json_string_of(json_object_get(evaluation, "domain"), "name"));
  const char *error = json_string_of(evaluation, "error");
  int64_t total = json_int_of(evaluation, "changes_total");

  if (error)
    term_print(term, "%s could not be evaluated: %s\n", name, error);
  else if (!json_bool_of(evaluation, "running"))
    term_print(term, "%s is not running: its next start applies its whole definition.\n", name);
  else if (!json_bool_of(evaluation, "persistent"))
    term_print(term, "%s is a transient domain, so it has no next start.\n", name);
  else if (total == 0)
    term_print(term, "The next start of %s would change nothing.\n", name);
  else
    print_changes(term, name, json_object_get(evaluation, "changes"), total);
}

static bool is_news(json_t *evaluation) {
  return json_string_of(evaluation, "error") || json_int_of(evaluation, "changes_total") > 0;
}

static void print_all(Term *term, json_t *domains) {
  unsigned n = 0;
  json_t *evaluation;
  size_t i;

  json_array_foreach (domains, i, evaluation) {
    if (!is_news(evaluation))
      continue;
    print_domain(term, evaluation);
    n++;
  }
  term_print(term, "The next start would change %u of %zu running domain%s.\n", n, json_array_size(domains),
             json_array_size(domains) == 1 ? "" : "s");
}

static ExitStatus take_reply(Ctl *ctl, json_t *reply) {
  json_t *domains = json_object_get(reply, "domains");
  const char *domain = ctl->options.args[0];

  if (!json_is_array(domains) || (domain && json_array_size(domains) != 1))
    return ctl_fail(ctl, FAILURE_PROTOCOL, "the reply to Evaluate is not valid.");
  if (ctl_print_json(ctl, reply))
    return EXIT_DONE;
  if (domain)
    print_domain(&ctl->term, json_array_get(domains, 0));
  else
    print_all(&ctl->term, domains);
  return EXIT_DONE;
}

ExitStatus verb_evaluate(Ctl *ctl) {
  return ctl_ask(ctl, ctl_call, "io.handoffd.Agent.Evaluate",
                 json_pack("{s:s*}", "domain", ctl->options.args[0]), take_reply);
}
