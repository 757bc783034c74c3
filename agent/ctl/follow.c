/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Following jobs: shows the replies of Watch as a progress line, as log lines or as JSON. */
#include "agent/ctl/follow.h"
#include "agent/ctl/call.h"
#include "agent/ctl/format.h"
#include "agent/ctl/interrupt.h"
#include "agent/ctl/progress.h"

#include <string.h>

/* How often progress is printed without a terminal. */
#define LINE_INTERVAL_MS 10000

/* Which kinds of events are printed. Unknown kinds are: they come from a newer agent that considers them worth it. */
typedef struct EventKind {
  const char *kind;
  bool on_terminal; /* above the progress line */
  bool elsewhere;
} EventKind;

static const EventKind event_kinds[] = {
    {"accepted", false, true},   {"phase", false, true},          {"stage", false, true},
    {"iteration", false, false}, {"decision", true, true},        {"action", true, true},
    {"tuned", true, true},       {"abort_requested", true, true}, {"agent_restarted", true, true},
    {"warning", true, true},
};

/* What has been printed about one job. */
typedef struct Followed {
  json_t *json;
  int64_t received_ms;
  int64_t told_ms; /* time of the last progress line */
  int64_t percent;
  int64_t last_seq;
  MigPhase phase; /* as last printed */
  MigStage stage;
  bool told; /* anything at all */
} Followed;

typedef struct Follower {
  Ctl *ctl;
  bool single;
  bool away_told;
  GHashTable *jobs; /* id → Followed */
  json_t *ended;    /* the single job, once it has */
} Follower;

static void followed_free(gpointer data) {
  Followed *followed = data;

  json_decref(followed->json);
  g_free(followed);
}

static int64_t now_ms(void) {
  return g_get_monotonic_time() / 1000;
}

/* With several jobs, each line names its job. */
static void tell(Follower *follower, const JobView *job, int64_t time_us, const char *text) {
  Term *term = &follower->ctl->term;

  if (follower->single)
    term_print(term, "%s  %s\n", format_clock(time_us).text, text);
  else
    term_print(term, "%s  %.8s %s: %s\n", format_clock(time_us).text, job->id, job->domain, text);
  fflush(term->out);
}

static bool event_is_shown(const char *kind, bool on_terminal) {
  for (size_t i = 0; i < G_N_ELEMENTS(event_kinds); i++) {
    if (strcmp(event_kinds[i].kind, kind) == 0)
      return on_terminal ? event_kinds[i].on_terminal : event_kinds[i].elsewhere;
  }
  return true;
}

static void tell_events(Follower *follower, Followed *followed, const JobView *job) {
  bool on_terminal = follower->single && follower->ctl->term.redraws;
  /* When following all jobs, earlier events are not news. */
  bool quiet = !follower->single && !followed->told;
  json_t *event;
  size_t i;

  json_array_foreach (json_object_get(job->json, "events"), i, event) {
    const char *kind = json_string_of(event, "kind"), *message = json_string_of(event, "message");
    const char *phase = json_string_of(event, "phase"), *stage = json_string_of(event, "stage");
    int64_t seq = json_int_of(event, "seq");

    if (seq <= followed->last_seq || !kind || !message)
      continue;
    followed->last_seq = seq;
    if (quiet || !event_is_shown(kind, on_terminal))
      continue;
    tell(follower, job, json_int_of(event, "time_usec_realtime"), message);
    if (phase && strcmp(kind, "phase") == 0 && mig_phase_from_name(phase) != MIG_ENUM_UNKNOWN)
      followed->phase = (MigPhase)mig_phase_from_name(phase);
    if (stage && strcmp(kind, "stage") == 0 && mig_stage_from_name(stage) != MIG_ENUM_UNKNOWN)
      followed->stage = (MigStage)mig_stage_from_name(stage);
  }
}

static void tell_progress(Follower *follower, Followed *followed, const JobView *job, int64_t away_ms) {
  Term *term = &follower->ctl->term;
  ProgressInput input = {
      .job = job,
      .percent = followed->percent,
      .now_us = g_get_real_time(),
      .received_ms = now_ms() - followed->received_ms,
      .away_ms = away_ms,
  };
  g_autofree char *text = NULL;

  if (follower->single && term->redraws) {
    /* Leave one column free: terminals wrap when the last one is written. */
    text = progress_bar(&input, MAX(term_width(term), 2) - 1, term->utf8);
    term_draw(term, text);
    return;
  }
  text = progress_line(&input);
  tell(follower, job, input.now_us, text);
  followed->told_ms = now_ms();
}

/* A change of phase or stage that no event reported. */
static bool is_changed(Followed *followed, const JobView *job) {
  bool changed = !followed->told || followed->phase != job->phase ||
                 (job->phase == MIG_PHASE_MIGRATING && followed->stage != job->stage);

  followed->phase = job->phase;
  followed->stage = job->stage;
  followed->told = true;
  return changed;
}

static void take_job(Follower *follower, json_t *json, const JobView *job) {
  Followed *followed = g_hash_table_lookup(follower->jobs, job->id);
  bool changed;

  if (!followed) {
    followed = g_new0(Followed, 1);
    g_hash_table_insert(follower->jobs, g_strdup(job->id), followed);
  }
  json_incref(json);
  json_decref(followed->json);
  followed->json = json;
  followed->received_ms = now_ms();
  followed->percent = MAX(followed->percent, job->percent);

  tell_events(follower, followed, job);
  changed = is_changed(followed, job);
  if (mig_phase_is_final(job->phase)) {
    if (!follower->single) {
      follow_summary(&follower->ctl->term, job);
      g_hash_table_remove(follower->jobs, job->id);
    }
    return;
  }
  if ((follower->single && follower->ctl->term.redraws) || changed ||
      now_ms() - followed->told_ms >= LINE_INTERVAL_MS)
    tell_progress(follower, followed, job, -1);
}

/* Time passed and nothing arrived. */
static void tick(gpointer user_data, int64_t away_ms) {
  Follower *follower = user_data;
  Ctl *ctl = follower->ctl;
  GHashTableIter iter;
  gpointer value;

  if (ctl->options.json)
    return;
  if (away_ms >= 0 && !follower->away_told)
    term_error(&ctl->term,
               "Lost the connection to the agent; the migration continues. Reconnecting for up to %d s.",
               STREAM_RECONNECT_MS / 1000);
  follower->away_told = away_ms >= 0;

  g_hash_table_iter_init(&iter, follower->jobs);
  while (g_hash_table_iter_next(&iter, NULL, &value)) {
    Followed *followed = value;
    JobView job;

    if (!job_view_read(followed->json, &job))
      continue;
    if ((follower->single && ctl->term.redraws) || now_ms() - followed->told_ms >= LINE_INTERVAL_MS)
      tell_progress(follower, followed, &job, away_ms);
  }
}

static bool take_reply(gpointer user_data, json_t *reply, bool *ret_done, Failure *failure) {
  Follower *follower = user_data;
  Ctl *ctl = follower->ctl;
  json_t *json = json_object_get(reply, "job");
  JobView job;

  if (!job_view_read(json, &job)) {
    failure_set_own(failure, FAILURE_PROTOCOL, "the reply to Watch contains no valid job.");
    return false;
  }
  if (!ctl_print_json(ctl, reply)) {
    if (follower->away_told)
      term_error(&ctl->term, "Reconnected to the agent.");
    follower->away_told = false;
    take_job(follower, json, &job);
  }
  /* If the job has not ended and this was the last reply, the agent is shutting down: the stream reconnects to the next one. */
  *ret_done = follower->single && mig_phase_is_final(job.phase);
  if (*ret_done)
    follower->ended = json_incref(json);
  return true;
}

bool follow_job(Ctl *ctl, const char *job, json_t **ret_job, Failure *failure) {
  Follower follower = {
      .ctl = ctl,
      .single = job != NULL,
      .jobs = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, followed_free),
  };
  static const StreamTaker taker = {take_reply, tick, "no longer watching."};
  bool ok = stream_follow(ctl, "io.handoffd.Agent.Watch", json_pack("{s:s*}", "job", job), &taker, &follower,
                          failure);

  term_clear(&ctl->term);
  if (ok)
    *ret_job = follower.ended;
  g_hash_table_unref(follower.jobs);
  return ok;
}
