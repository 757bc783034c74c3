/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Asks one end how a domain stands there.
 *
 * Theory of Operation. A call of libvirt's ends when libvirtd answers, or when keepalive gives it up, which takes half a
 * minute. So each question has a thread of its own, and who asks waits for ANSWER_MS; a question that takes longer is
 * *lost*: it is left to itself, with the connection that it is asked on, and what it finds is thrown away. The next
 * question is asked on another connection. Only so many may be lost at a time; until one of them ends, the answer is at
 * once that there is none.
 *
 * A target is not connected to before there is a way to it over the network: see reachable() in driver.h. So a link that
 * is back is noticed within a second, however long it was away.
 *
 * Locks: `mutex` guards lost, and of each question ended and lost. Not held over calls. */
#include "agent/ask.h"

#define ANSWER_MS  3000
#define REACH_MS   1000
#define ACQUIRE_MS 500
#define OPEN_MS    2500 /* less than ANSWER_MS: an open that hangs ends by itself */
#define LOST_MAX   3

G_STATIC_ASSERT(ANSWER_MS + REACH_MS < ASK_LONGEST_MS);

struct Asker {
  gint refs; /* the owner's, and one for each question */
  MigDriver *driver;
  Hypervisor *hypervisor; /* held also for a target's: so it is known that threads are left */
  char *uri;              /* NULL: this node's */
  char *domain_uuid;
  MigConn *conn; /* the owner's, of a target, between two questions */

  GMutex mutex;
  GCond cond;
  unsigned lost;
};

typedef struct Question Question;
typedef bool (*QuestionFunc)(Question *question, MigConn *conn, GError **error);

struct Question {
  Asker *asker;
  QuestionFunc func;
  MigConn *conn; /* of a target: to be asked on; NULL: to be opened. Afterwards: to be kept */
  bool ended;
  bool lost;
  bool ok;
  AskAnswer answer;
  GError *error;
};

static void asker_unref(Asker *asker) {
  if (!g_atomic_int_dec_and_test(&asker->refs))
    return;
  hypervisor_unref(asker->hypervisor);
  g_free(asker->uri);
  g_free(asker->domain_uuid);
  g_mutex_clear(&asker->mutex);
  g_cond_clear(&asker->cond);
  g_free(asker);
}

Asker *asker_new(MigDriver *driver, Hypervisor *hypervisor, const char *uri, const char *domain_uuid) {
  Asker *asker = g_new0(Asker, 1);

  asker->refs = 1;
  asker->driver = driver;
  asker->hypervisor = hypervisor_ref(hypervisor);
  asker->uri = g_strdup(uri);
  asker->domain_uuid = g_strdup(domain_uuid);
  g_mutex_init(&asker->mutex);
  g_cond_init(&asker->cond);
  return asker;
}

void asker_free(Asker *asker) {
  if (!asker)
    return;
  if (asker->conn)
    asker->driver->ops->close(asker->conn);
  asker->conn = NULL;
  asker_unref(asker);
}

static void question_free(Question *question) {
  if (question->conn)
    question->asker->driver->ops->close(question->conn);
  g_clear_error(&question->error);
  asker_unref(question->asker);
  g_free(question);
}

/* --- on the question's thread --- */

static bool ask_source(Question *question) {
  HypervisorConn *conn = hypervisor_acquire(question->asker->hypervisor, ACQUIRE_MS, &question->error);
  bool ok;

  if (!conn)
    return false;
  ok = question->func(question, hypervisor_conn_get(conn), &question->error);
  hypervisor_release(conn, question->error);
  return ok;
}

static bool ask_target(Question *question) {
  const MigDriverOps *ops = question->asker->driver->ops;
  bool ok;

  if (question->conn && !ops->is_alive(question->conn)) {
    ops->close(question->conn);
    question->conn = NULL;
  }
  if (!question->conn)
    question->conn =
        ops->open(question->asker->driver, question->asker->uri, OPEN_MS, NULL, NULL, &question->error);
  if (!question->conn)
    return false;
  ok = question->func(question, question->conn, &question->error);
  /* A refusal is an answer, too; only of a connection that broke nothing more is to be had. */
  if (!ok && !ops->is_alive(question->conn)) {
    ops->close(question->conn);
    question->conn = NULL;
  }
  return ok;
}

static gpointer question_thread(gpointer data) {
  Question *question = data;
  Asker *asker = question->asker;
  bool ok = asker->uri ? ask_target(question) : ask_source(question);
  bool lost;

  g_mutex_lock(&asker->mutex);
  question->ok = ok;
  question->ended = true;
  lost = question->lost;
  if (lost)
    asker->lost--;
  else
    g_cond_broadcast(&asker->cond);
  g_mutex_unlock(&asker->mutex);
  if (lost)
    question_free(question);
  return NULL;
}

/* --- who asks --- */

/* NULL: lost. */
static Question *wait_for_answer(Asker *asker, Question *question) {
  gint64 until = g_get_monotonic_time() + ANSWER_MS * G_TIME_SPAN_MILLISECOND;

  g_mutex_lock(&asker->mutex);
  while (!question->ended && g_cond_wait_until(&asker->cond, &asker->mutex, until))
    ;
  if (!question->ended) {
    question->lost = true;
    asker->lost++;
    question = NULL;
  }
  g_mutex_unlock(&asker->mutex);
  return question;
}

static const char *who(const Asker *asker) {
  return asker->uri ? asker->uri : "this node's libvirtd";
}

static bool may_ask(Asker *asker, GError **error) {
  unsigned lost;

  g_mutex_lock(&asker->mutex);
  lost = asker->lost;
  g_mutex_unlock(&asker->mutex);
  if (lost >= LOST_MAX) {
    g_set_error(error, MIG_VIRT_ERROR, MIG_VIRT_ERROR_TIMEOUT, "%s does not answer: calls to it hang",
                who(asker));
    return false;
  }
  return !asker->uri || asker->conn ||
         asker->driver->ops->reachable(asker->driver, asker->uri, REACH_MS, error);
}

static bool ask(Asker *asker, QuestionFunc func, AskAnswer *ret_answer, GError **error) {
  Question *question, *answered;
  GThread *thread;
  bool ok;

  if (!may_ask(asker, error))
    return false;
  question = g_new0(Question, 1);
  g_atomic_int_inc(&asker->refs);
  question->asker = asker;
  question->func = func;
  question->conn = g_steal_pointer(&asker->conn);
  thread = g_thread_try_new(asker->uri ? "ask-target" : "ask-source", question_thread, question, error);
  if (!thread) {
    question_free(question);
    return false;
  }
  g_thread_unref(thread);

  answered = wait_for_answer(asker, question);
  if (!answered) {
    g_set_error(error, MIG_VIRT_ERROR, MIG_VIRT_ERROR_TIMEOUT, "%s did not answer within %d s", who(asker),
                ANSWER_MS / 1000);
    return false;
  }
  ok = answered->ok;
  if (ok && ret_answer)
    *ret_answer = answered->answer;
  if (!ok)
    g_propagate_error(error, g_steal_pointer(&answered->error));
  asker->conn = g_steal_pointer(&answered->conn);
  question_free(answered);
  return ok;
}

static bool ask_status(Question *question, MigConn *conn, GError **error) {
  const MigDriverOps *ops = question->asker->driver->ops;
  const char *uuid = question->asker->domain_uuid;
  AskAnswer *answer = &question->answer;

  if (!ops->domain_status(conn, uuid, &answer->status, error))
    return false;
  if (question->asker->uri &&
      (answer->status.state == MIG_END_RUNNING || answer->status.state == MIG_END_PAUSED))
    answer->have_final = ops->final_stats(conn, uuid, &answer->final, NULL);
  return true;
}

static bool ask_resume(Question *question, MigConn *conn, GError **error) {
  return question->asker->driver->ops->resume(conn, question->asker->domain_uuid, error);
}

static bool ask_undefine(Question *question, MigConn *conn, GError **error) {
  return question->asker->driver->ops->undefine(conn, question->asker->domain_uuid, error);
}

bool asker_status(Asker *asker, AskAnswer *ret_answer, GError **error) {
  return ask(asker, ask_status, ret_answer, error);
}

bool asker_resume(Asker *asker, GError **error) {
  return ask(asker, ask_resume, NULL, error);
}

bool asker_undefine(Asker *asker, GError **error) {
  return ask(asker, ask_undefine, NULL, error);
}
