/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Findings of the checks, as reported by the agent. */
#include "agent/ctl/findings.h"

#include "agent/ctl/jobview.h"
#include "agent/ctl/print.h"

static bool blocks(json_t *finding) {
  return json_bool_of(finding, "blocks");
}

static bool is_transient(json_t *finding) {
  return json_bool_of(finding, "transient");
}

static const char *text_of(json_t *finding, const char *key) {
  const char *text = json_string_of(finding, key);

  return text ? text : "";
}

FindingsCount findings_count(json_t *findings) {
  FindingsCount count = {0};
  json_t *finding;
  size_t i;

  json_array_foreach (findings, i, finding) {
    if (blocks(finding))
      count.blockers++;
    else
      count.warnings++;
    if (blocks(finding) && is_transient(finding))
      count.transient++;
  }
  return count;
}

void findings_print(Term *term, json_t *findings, bool warnings_only) {
  json_t *finding;
  size_t i;

  json_array_foreach (findings, i, finding) {
    if (warnings_only && blocks(finding))
      continue;
    print_field(term, blocks(finding) ? "blocker" : "warning", "%s%s", text_of(finding, "code"),
                is_transient(finding) ? " (waiting may help)" : "");
    print_field(term, "", "%s", text_of(finding, "seen"));
    if (*text_of(finding, "remedy"))
      print_field(term, "", "%s", text_of(finding, "remedy"));
  }
}

void findings_print_blockers(Term *term, json_t *findings) {
  json_t *finding;
  size_t i;

  json_array_foreach (findings, i, finding)
    if (blocks(finding))
      term_print(term, "  %s: %s %s\n", text_of(finding, "code"), text_of(finding, "seen"),
                 text_of(finding, "remedy"));
}
