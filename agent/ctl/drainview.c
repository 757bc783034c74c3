/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* A drain as reported by the agent. */
#include "agent/ctl/drainview.h"

#include "agent/ctl/findings.h"
#include "agent/ctl/format.h"
#include "agent/ctl/jobview.h"
#include "agent/ctl/print.h"

#include <string.h>

struct DrainView {
  json_t *status; /* the newest */
  json_t *guests; /* by UUID, as last reported */
};

/* How a state reads in the totals, and for a single domain. */
typedef struct StateRow {
  const char *name; /* as the interface has it */
  const char *counted;
  const char *outcome;
} StateRow;

static const StateRow states[] = {
    {"moved", "migrated", "migrated"},
    {"moving", "migrating", "migrating"},
    {"checking", "being checked", "being checked"},
    {"waiting", "waiting", "waiting"},
    {"cannot_move", "cannot be migrated", "cannot be migrated"},
    {"left", "left behind", "left behind"},
    {"gone", "gone", "gone"},
};

DrainView *drain_view_new(void) {
  DrainView *view = g_new0(DrainView, 1);

  view->guests = json_object();
  return view;
}

void drain_view_free(DrainView *view) {
  if (!view)
    return;
  json_decref(view->status);
  json_decref(view->guests);
  g_free(view);
}

static const char *name_of(json_t *guest) {
  return or_dash(json_string_of(json_object_get(guest, "domain"), "name"));
}

static bool is_in(json_t *guest, const char *state) {
  return g_strcmp0(json_string_of(guest, "state"), state) == 0;
}

static bool is_waiting_job(json_t *guest) {
  return is_in(guest, "moving") && g_strcmp0(json_string_of(guest, "phase"), "pending") == 0;
}

static int64_t count_of(const DrainView *view, const char *state) {
  return MAX(json_int_of(view->status, state), 0);
}

/* --- news --- */

static void print_refusals(Term *term, json_t *refusals) {
  json_t *refusal;
  size_t i;

  json_array_foreach (refusals, i, refusal) {
    term_print(term, "  to %s:\n", or_dash(json_string_of(refusal, "target")));
    findings_print_blockers(term, json_object_get(refusal, "findings"));
  }
}

static void tell(Term *term, json_t *guest, const char *before, const char *text, const char *after) {
  term_print(term, "%s  %s %s%s%s\n", format_clock(g_get_real_time()).text, name_of(guest), before,
             or_dash(text), after);
}

/* Reports a state when it is reached, except those that precede a migration. */
static void tell_state(Term *term, json_t *guest) {
  const char *target = json_string_of(guest, "target"), *message = json_string_of(guest, "message");

  if (is_in(guest, "moving")) {
    tell(term, guest, "is migrating to ", target, "");
  } else if (is_in(guest, "moved")) {
    tell(term, guest, "now runs on ", target, "");
  } else if (is_in(guest, "cannot_move")) {
    tell(term, guest, "cannot be migrated: ", message, "");
    print_refusals(term, json_object_get(guest, "refusals"));
  } else if (is_in(guest, "left")) {
    tell(term, guest, "is left behind: ", message, "");
  } else if (is_in(guest, "gone")) {
    tell(term, guest, "is gone: ", message, "");
  }
}

/* Reports only once per job that it is waiting: the message says for how long, so it changes all the time. */
static void tell_news(Term *term, json_t *before, json_t *guest) {
  bool same_job = g_strcmp0(json_string_of(before, "job"), json_string_of(guest, "job")) == 0;

  if (!before || !is_in(before, json_string_of(guest, "state")) || !same_job)
    tell_state(term, guest);
  if (is_waiting_job(guest) && json_string_of(guest, "message") &&
      !(same_job && is_waiting_job(before) && json_string_of(before, "message")))
    tell(term, guest, "is waiting: ", json_string_of(guest, "message"), "");
}

bool drain_view_take(DrainView *view, json_t *parameters, Term *term) {
  json_t *status = json_object_get(parameters, "drain"), *guests = json_object_get(parameters, "guests");
  const char *id = json_string_of(status, "id");
  json_t *guest;
  size_t i;

  if (!id || !json_string_of(status, "state") || !json_is_array(guests) ||
      (view->status && strcmp(id, json_string_of(view->status, "id")) != 0))
    return false;
  json_incref(status);
  json_decref(view->status);
  view->status = status;
  json_array_foreach (guests, i, guest) {
    const char *uuid = json_string_of(json_object_get(guest, "domain"), "uuid");

    if (!uuid || !json_string_of(guest, "state"))
      return false;
    if (term)
      tell_news(term, json_object_get(view->guests, uuid), guest);
    json_object_set(view->guests, uuid, guest);
  }
  return true;
}

/* --- progress --- */

static const char *state_of(const DrainView *view) {
  return view->status ? json_string_of(view->status, "state") : "";
}

bool drain_view_is_over(const DrainView *view) {
  return strcmp(state_of(view), "finished") == 0 || strcmp(state_of(view), "aborted") == 0;
}

static void add_moving(const DrainView *view, GString *text) {
  const char *separator = " (";
  const char *uuid;
  json_t *guest;

  json_object_foreach (view->guests, uuid, guest) {
    if (!is_in(guest, "moving"))
      continue;
    if (is_waiting_job(guest))
      g_string_append_printf(text, "%s%s waiting", separator, name_of(guest));
    else
      g_string_append_printf(text, "%s%s %d %%", separator, name_of(guest),
                             (int)MAX(json_int_of(guest, "percent"), 0));
    separator = ", ";
  }
  if (*separator == ',')
    g_string_append_c(text, ')');
}

char *drain_view_progress(const DrainView *view, unsigned width) {
  g_autoptr(GString) text = g_string_new(NULL);

  if (strcmp(state_of(view), "stopping") == 0)
    g_string_append(text, "stopping: ");
  g_string_append_printf(text, "%d of %d migrated", (int)count_of(view, "moved"),
                         (int)count_of(view, "total"));
  for (size_t i = 1; i < G_N_ELEMENTS(states); i++) {
    int64_t count = count_of(view, states[i].name);

    if (count == 0)
      continue;
    g_string_append_printf(text, ", %d %s", (int)count, states[i].counted);
    if (strcmp(states[i].name, "moving") == 0)
      add_moving(view, text);
  }
  if (width > 0 && (unsigned)g_utf8_strlen(text->str, -1) > width)
    return g_utf8_substring(text->str, 0, (glong)width);
  return g_string_free(g_steal_pointer(&text), FALSE);
}

/* --- the end --- */

static const char *outcome_of(json_t *guest) {
  for (size_t i = 0; i < G_N_ELEMENTS(states); i++)
    if (is_in(guest, states[i].name))
      return states[i].outcome;
  return "?";
}

void drain_view_summary(const DrainView *view, Term *term) {
  static const char *const titles[] = {"DOMAIN", "OUTCOME", "TARGET", "REASON", NULL};
  g_autoptr(Table) table = table_new(titles);
  g_autofree char *progress = drain_view_progress(view, 0);
  const char *uuid;
  json_t *guest;

  json_object_foreach (view->guests, uuid, guest) {
    table_add(table, "%s", name_of(guest));
    table_add(table, "%s", outcome_of(guest));
    table_add(table, "%s", or_dash(json_string_of(guest, "target")));
    table_add(table, "%s", or_dash(json_string_of(guest, "message")));
  }
  if (json_object_size(view->guests) > 0)
    table_print(table, term);
  term_print(term,
             "The drain %s: %s.\nThis node stays cordoned; run handoffctl uncordon to accept work again.\n",
             strcmp(state_of(view), "aborted") == 0 ? "was aborted" : "has finished", progress);
}

ExitStatus drain_view_status(const DrainView *view) {
  if (strcmp(state_of(view), "aborted") == 0)
    return EXIT_ABORTED;
  if (count_of(view, "left") > 0)
    return EXIT_FAILED;
  return count_of(view, "cannot_move") > 0 ? EXIT_REFUSED : EXIT_DONE;
}
