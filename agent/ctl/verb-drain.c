/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* handoffctl drain: empties this node, and follows the drain. */
#include "agent/base/policyjson.h"
#include "agent/ctl/call.h"
#include "agent/ctl/drainview.h"
#include "agent/ctl/failure.h"
#include "agent/ctl/interrupt.h"

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

static bool take_begun(gpointer user_data, json_t *reply, bool *ret_done, Failure *failure) {
  Ctl *ctl = user_data;

  if (ctl->options.json && ctl->options.detach)
    term_print_json(&ctl->term, reply);
  return *ret_done = true;
}

/* The first reply to Drain says that the drain is on stable storage. From then on it is followed by WatchDrain, which
 * starts nothing should the agent go away for a while. */
static bool begin(Ctl *ctl, Failure *failure) {
  static const StreamTaker taker = {
      take_begun, NULL,
      "the agent has not answered yet. If it accepted the drain, the drain continues: handoffctl drain"};

  return stream_follow(ctl, "io.handoffd.Agent.Drain", parameters_of(&ctl->options), &taker, ctl, failure);
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

static bool take_reply(gpointer user_data, json_t *parameters, bool *ret_done, Failure *failure) {
  Following *following = user_data;
  Ctl *ctl = following->ctl;

  if (!drain_view_take(following->view, parameters, ctl->options.json ? NULL : &ctl->term)) {
    failure_set_own(failure, FAILURE_PROTOCOL,
                    "the reply to WatchDrain contains no valid drain, or a different one than before.");
    return false;
  }
  *ret_done = drain_view_is_over(following->view);
  if (ctl_print_json(ctl, parameters))
    return true;
  if (following->away_told)
    term_error(&ctl->term, "Reconnected to the agent.");
  following->away_told = false;
  if (!*ret_done)
    tell_progress(following);
  fflush(ctl->term.out);
  return true;
}

static void note_away(gpointer user_data, int64_t away_ms) {
  Following *following = user_data;

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

static ExitStatus follow_to_end(Ctl *ctl) {
  g_autoptr(DrainView) view = drain_view_new();
  Following following = {.ctl = ctl, .view = view, .told_ms = now_ms()};
  g_auto(Failure) failure = {0};
  static const StreamTaker taker = {take_reply, note_away, "no longer watching; the drain continues."};
  bool ok = stream_follow(ctl, "io.handoffd.Agent.WatchDrain", json_object(), &taker, &following, &failure);

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
