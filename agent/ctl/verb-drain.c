/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* handoffctl drain: empties this node, and follows the drain. */
#include "agent/base/policyjson.h"
#include "agent/ctl/call.h"
#include "agent/ctl/drainview.h"
#include "agent/ctl/failure.h"
#include "agent/ctl/interrupt.h"

/* How soon a signal that arrived just before a wait is noticed. */
#define TICK_MS 250

/* How often progress is printed without a terminal. */
#define LINE_INTERVAL_MS 10000

typedef struct Following {
  Ctl *ctl;
  DrainView *view;
  int64_t told_ms;
  bool away_told;
} Following;

static int64_t now_ms(void) {
  return g_get_monotonic_time() / 1000;
}

static ExitStatus say_detached(Ctl *ctl) {
  if (!ctl->options.json)
    term_print(&ctl->term, "Detached; the drain continues.\n"
                           "  follow it: handoffctl drain\n"
                           "  abort it:  handoffctl drain --abort\n");
  return EXIT_DONE;
}

static json_t *parameters_of(const Options *options) {
  json_t *targets = json_array();

  for (char **target = options->args; *target; target++)
    json_array_append_new(targets, json_string(*target));
  /* s* and o*: absent when NULL. */
  return json_pack("{s:o, s:s*, s:o*, s:s*}", "targets", targets, "policy_name", options->policy_name,
                   "policy", policy_to_json(&options->policy, options->policy.set), "request_key",
                   options->request_key);
}

/* The first reply to Drain says that the drain is on stable storage. From then on it is followed by WatchDrain, which
 * starts nothing should the agent go away for a while. */
static bool begin(Ctl *ctl, Failure *failure) {
  g_autoptr(Stream) stream = stream_new(ctl, "io.handoffd.Agent.Drain", parameters_of(&ctl->options));

  for (;;) {
    json_t *parameters = NULL;

    switch (stream_next(stream, TICK_MS, &parameters, failure)) {
    case STREAM_REPLY:
    case STREAM_END:
      if (ctl->options.json && ctl->options.detach)
        term_print_json(&ctl->term, parameters);
      json_decref(parameters);
      return true;
    case STREAM_TICK:
      break;
    case STREAM_INTERRUPTED:
      failure_set_signal(
          failure, interrupt_pending(),
          "the agent has not answered yet. If it accepted the drain, the drain continues: handoffctl drain");
      return false;
    case STREAM_FAILED:
      return false;
    }
  }
}

static bool abort_it(Ctl *ctl, Failure *failure) {
  json_t *reply = NULL;

  if (!ctl_call_again(ctl, "io.handoffd.Agent.AbortDrain", json_object(), &reply, failure))
    return false;
  if (ctl->options.json && ctl->options.detach)
    term_print_json(&ctl->term, reply);
  else if (!ctl->options.json)
    term_print(&ctl->term, "No more migrations will be started; those in progress continue.\n");
  json_decref(reply);
  return true;
}

static void tell_progress(Following *following) {
  Term *term = &following->ctl->term;
  /* Leave one column free: terminals wrap when the last one is written. */
  g_autofree char *text =
      drain_view_progress(following->view, term->redraws ? MAX(term_width(term), 2) - 1 : 0);

  if (term->redraws) {
    term_draw(term, text);
  } else if (now_ms() - following->told_ms >= LINE_INTERVAL_MS) {
    term_print(term, "%s\n", text);
    fflush(term->out);
    following->told_ms = now_ms();
  }
}

static bool take_reply(Following *following, json_t *parameters, Failure *failure) {
  Ctl *ctl = following->ctl;

  if (!drain_view_take(following->view, parameters, ctl->options.json ? NULL : &ctl->term)) {
    failure_set_own(failure, FAILURE_PROTOCOL,
                    "the reply to WatchDrain contains no valid drain, or a different one than before.");
    return false;
  }
  if (ctl->options.json) {
    term_print_json(&ctl->term, parameters);
    return true;
  }
  if (following->away_told)
    term_error(&ctl->term, "Reconnected to the agent.");
  following->away_told = false;
  if (!drain_view_is_over(following->view))
    tell_progress(following);
  fflush(ctl->term.out);
  return true;
}

static void note_away(Following *following, int64_t away_ms) {
  if (following->ctl->options.json)
    return;
  if (away_ms >= 0 && !following->away_told)
    term_error(
        &following->ctl->term,
        "Lost the connection to the agent; migrations in progress continue. Reconnecting for up to %d s.",
        STREAM_RECONNECT_MS / 1000);
  following->away_told = away_ms >= 0;
  if (away_ms < 0)
    tell_progress(following);
}

static bool follow(Following *following, Failure *failure) {
  Ctl *ctl = following->ctl;
  g_autoptr(Stream) stream = stream_new(ctl, "io.handoffd.Agent.WatchDrain", json_object());

  for (;;) {
    json_t *parameters = NULL;
    bool ok;

    switch (stream_next(stream, TICK_MS, &parameters, failure)) {
    case STREAM_REPLY:
    case STREAM_END:
      ok = take_reply(following, parameters, failure);
      json_decref(parameters);
      if (!ok || drain_view_is_over(following->view))
        return ok;
      break;
    case STREAM_TICK:
      note_away(following, stream_away_ms(stream));
      break;
    case STREAM_INTERRUPTED:
      failure_set_signal(failure, interrupt_pending(), "no longer watching; the drain continues.");
      return false;
    case STREAM_FAILED:
      return false;
    }
    if (term_is_broken(&ctl->term)) {
      failure_set_own(failure, FAILURE_OUTPUT, "Migrations in progress continue.");
      return false;
    }
  }
}

static ExitStatus follow_to_end(Ctl *ctl) {
  g_autoptr(DrainView) view = drain_view_new();
  Following following = {.ctl = ctl, .view = view, .told_ms = now_ms()};
  g_auto(Failure) failure = {0};
  bool ok = follow(&following, &failure);

  term_clear(&ctl->term);
  if (!ok && interrupt_pending() != 0 && !ctl->options.json) {
    say_detached(ctl);
    return failure.status;
  }
  if (!ok)
    return failure_report(&failure, &ctl->term, ctl->options.json);
  if (!ctl->options.json)
    drain_view_summary(view, &ctl->term);
  return drain_view_status(view);
}

ExitStatus verb_drain(Ctl *ctl) {
  const Options *options = &ctl->options;
  g_auto(Failure) failure = {0};

  interrupt_catch();
  if (options->abort ? !abort_it(ctl, &failure) : options->args[0] && !begin(ctl, &failure))
    return failure_report(&failure, &ctl->term, options->json);
  return options->detach ? say_detached(ctl) : follow_to_end(ctl);
}
