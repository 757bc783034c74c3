/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Asks one end about a domain's state there.
 *
 * Theory of Operation. A libvirt call returns when libvirtd answers, or when keepalive gives up, after half a minute. So each
 * question gets a thread of its own, and the caller waits for ANSWER_MS. A question that takes longer is *lost*: it is abandoned
 * together with its connection, and its result is dropped. The next question uses another connection. The number of lost
 * questions is limited; at the limit, further questions fail at once until one of the lost ones ends.
 *
 * A target is only connected to once it is reachable over the network: see reachable() in driver.h. So a link that comes back is
 * noticed within a second, however long it was down.
 *
 * An *action* dies with its question: right before libvirtd is asked to act, the thread looks at the domain once more, on the same
 * connection, and checks under the mutex that somebody still waits (may_act()). So a libvirtd that hung for an hour and continues
 * finds no outdated request, except one that was already in its socket when it hung.
 *
 * *The watch.* A target's connection is opened with libvirt's events, and kept between questions. It reports what happens to the
 * domain there; and since libvirt sends everything in order, an answer proves that nothing was missed before it. If the
 * connection breaks, or goes with a lost question, the watch ends, and the next question starts another.
 *
 * Locks: `mutex` guards lost, the watch, and ended, lost and sent of each question. Not held over calls. */
#include "agent/libvirtd/endpoint.h"

#include "agent/base/clock.h"
#define ANSWER_MS  3000
#define REACH_MS   1000
#define ACQUIRE_MS 500
#define OPEN_MS    2500 /* less than ANSWER_MS: an open that hangs times out first */
#define LOST_MAX   3

G_STATIC_ASSERT(ANSWER_MS + REACH_MS < ENDPOINT_LONGEST_MS);

/* The watch of a target's connection. An end there is the guest's end only if the guest was alive before: a stopped copy left by
 * a later migration ends without the guest. */
typedef struct Watch {
  unsigned number;   /* of the watched connection; other connections' events do not count */
  uint64_t since_ms; /* 0: none */
  bool had_guest;    /* survives the watch */
  bool alive;        /* the guest was there when last seen */
  bool ended;
  unsigned heard; /* number of events of the domain's state */
} Watch;

struct Endpoint {
  gint refs; /* one for the owner, one for each question */
  MigDriver *driver;
  Hypervisor *hypervisor; /* held for a target, too, so that threads left behind are noticed */
  char *uri;              /* NULL: this node's */
  char *domain_uuid;
  MigConn *conn; /* owner only: a target's, between two questions */
  EndpointHearFunc hear;
  gpointer hear_data;

  GMutex mutex;
  GCond cond;
  unsigned lost;
  Watch watch;
  GPtrArray *ears; /* of Ear */
};

typedef struct Question Question;
typedef bool (*QuestionFunc)(Question *question, MigConn *conn, GError **error);

struct Question {
  Endpoint *endpoint;
  QuestionFunc func;
  MigConn *conn; /* a target's; in: NULL to open one; out: to keep */
  bool ended;
  bool lost;
  bool sent;           /* an action: it went to libvirtd */
  EndpointBasis basis; /* an action: what it rests on */
  bool ok;
  EndpointAnswer answer;
  GError *error;
};

static void endpoint_unref(Endpoint *endpoint) {
  if (!g_atomic_int_dec_and_test(&endpoint->refs))
    return;
  hypervisor_unref(endpoint->hypervisor);
  g_free(endpoint->uri);
  g_free(endpoint->domain_uuid);
  g_ptr_array_unref(endpoint->ears);
  g_mutex_clear(&endpoint->mutex);
  g_cond_clear(&endpoint->cond);
  g_free(endpoint);
}

Endpoint *endpoint_new(Hypervisor *hypervisor, const char *uri, const char *domain_uuid) {
  Endpoint *endpoint = g_new0(Endpoint, 1);

  endpoint->refs = 1;
  endpoint->driver = hypervisor_get_driver(hypervisor);
  endpoint->hypervisor = hypervisor_ref(hypervisor);
  endpoint->uri = g_strdup(uri);
  endpoint->domain_uuid = g_strdup(domain_uuid);
  endpoint->ears = g_ptr_array_new_with_free_func(g_free);
  g_mutex_init(&endpoint->mutex);
  g_cond_init(&endpoint->cond);
  return endpoint;
}

void endpoint_listen(Endpoint *endpoint, EndpointHearFunc func, gpointer user_data) {
  endpoint->hear = func;
  endpoint->hear_data = user_data;
}

void endpoint_free(Endpoint *endpoint) {
  if (!endpoint)
    return;
  if (endpoint->conn)
    endpoint->driver->ops->close(endpoint->conn);
  endpoint->conn = NULL;
  endpoint_unref(endpoint);
}

static void question_free(Question *question) {
  if (question->conn)
    question->endpoint->driver->ops->close(question->conn);
  g_clear_error(&question->error);
  endpoint_unref(question->endpoint);
  g_free(question);
}

/* --- events --- */

/* The events of one connection. Lives as long as the endpoint: each open connection belongs to a question or to the owner. */
typedef struct Ear {
  Endpoint *endpoint;
  unsigned number;
} Ear;

static bool is_alive(MigEndState state) {
  return state == MIG_END_RUNNING || state == MIG_END_PAUSED || state == MIG_END_RUNNING_POSTCOPY ||
         state == MIG_END_RUNNING_POSTCOPY_FAILED;
}

static bool is_not_alive(MigEndState state) {
  return state == MIG_END_INACTIVE || state == MIG_END_ABSENT || state == MIG_END_CRASHED ||
         state == MIG_END_PAUSED_MIGRATION;
}

static void hear_state(Watch *watch, const MigVirtEvent *event) {
  bool there = is_alive(event->state);

  watch->heard++;
  watch->had_guest = watch->had_guest || there;
  if (event->ended && watch->alive)
    watch->ended = true;
  else if (there || event->arriving)
    watch->ended = false;
  watch->alive = there || (watch->alive && !is_not_alive(event->state) && !event->arriving);
}

static void on_event(const MigVirtEvent *event, gpointer user_data) {
  const Ear *ear = user_data;
  Endpoint *endpoint = ear->endpoint;

  g_mutex_lock(&endpoint->mutex);
  if (ear->number == endpoint->watch.number) {
    if (event->kind == MIG_VIRT_EVENT_CLOSED)
      endpoint->watch.since_ms = 0;
    else if (event->kind == MIG_VIRT_EVENT_STATE &&
             g_ascii_strcasecmp(event->uuid, endpoint->domain_uuid) == 0) {
      hear_state(&endpoint->watch, event);
      if (endpoint->hear)
        endpoint->hear(event, endpoint->hear_data);
    }
  }
  g_mutex_unlock(&endpoint->mutex);
}

/* Events of earlier connections are ignored from now on. Call it with the mutex. */
static void reset_watch(Watch *watch) {
  watch->number++;
  watch->since_ms = 0;
  watch->alive = watch->ended = false;
}

static void end_watch(Endpoint *endpoint) {
  g_mutex_lock(&endpoint->mutex);
  reset_watch(&endpoint->watch);
  g_mutex_unlock(&endpoint->mutex);
}

static MigConn *open_watched(Endpoint *endpoint, GError **error) {
  Ear *ear = g_new0(Ear, 1);
  MigConn *conn;

  g_mutex_lock(&endpoint->mutex);
  reset_watch(&endpoint->watch);
  ear->endpoint = endpoint;
  ear->number = endpoint->watch.number;
  g_ptr_array_add(endpoint->ears, ear);
  g_mutex_unlock(&endpoint->mutex);
  conn = endpoint->driver->ops->open(endpoint->driver, endpoint->uri, OPEN_MS, on_event, ear, error);
  if (!conn)
    return NULL;
  g_mutex_lock(&endpoint->mutex);
  if (endpoint->watch.number == ear->number)
    endpoint->watch.since_ms = clock_now_ms();
  g_mutex_unlock(&endpoint->mutex);
  return conn;
}

/* --- on the question's thread --- */

static bool ask_source(Question *question) {
  HypervisorConn *conn = hypervisor_acquire(question->endpoint->hypervisor, ACQUIRE_MS, &question->error);
  bool ok;

  if (!conn)
    return false;
  ok = question->func(question, conn->conn, &question->error);
  question->answer.watched_since_ms = conn->since_ms;
  hypervisor_release(conn, question->error);
  return ok;
}

static void take_heard(Endpoint *endpoint, EndpointAnswer *answer) {
  g_mutex_lock(&endpoint->mutex);
  answer->watched_since_ms = endpoint->watch.since_ms;
  answer->had_guest = endpoint->watch.had_guest;
  answer->ended = endpoint->watch.ended;
  g_mutex_unlock(&endpoint->mutex);
}

static bool ask_target(Question *question) {
  const MigDriverOps *ops = question->endpoint->driver->ops;
  bool ok;

  if (question->conn && !ops->is_alive(question->conn)) {
    ops->close(question->conn);
    question->conn = NULL;
  }
  if (!question->conn)
    question->conn = open_watched(question->endpoint, &question->error);
  if (!question->conn)
    return false;
  ok = question->func(question, question->conn, &question->error);
  take_heard(question->endpoint, &question->answer);
  /* A refusal is an answer, too; only a broken connection is not kept. */
  if (!ok && !ops->is_alive(question->conn)) {
    ops->close(question->conn);
    question->conn = NULL;
  }
  return ok;
}

static gpointer question_thread(gpointer data) {
  Question *question = data;
  Endpoint *endpoint = question->endpoint;
  bool ok = endpoint->uri ? ask_target(question) : ask_source(question);
  bool lost;

  g_mutex_lock(&endpoint->mutex);
  question->ok = ok;
  question->ended = true;
  lost = question->lost;
  if (lost)
    endpoint->lost--;
  else
    g_cond_broadcast(&endpoint->cond);
  g_mutex_unlock(&endpoint->mutex);
  if (lost)
    question_free(question);
  return NULL;
}

/* --- the asking side --- */

/* NULL: lost. `ret_sent`: libvirtd may have received the request nevertheless. */
static Question *wait_for_answer(Endpoint *endpoint, Question *question, bool *ret_sent) {
  gint64 until = g_get_monotonic_time() + ANSWER_MS * G_TIME_SPAN_MILLISECOND;

  g_mutex_lock(&endpoint->mutex);
  while (!question->ended && g_cond_wait_until(&endpoint->cond, &endpoint->mutex, until))
    ;
  *ret_sent = question->sent;
  if (!question->ended) {
    question->lost = true;
    endpoint->lost++;
    question = NULL;
  }
  g_mutex_unlock(&endpoint->mutex);
  return question;
}

static const char *who(const Endpoint *endpoint) {
  return endpoint->uri ? endpoint->uri : "this node's libvirtd";
}

static bool may_ask(Endpoint *endpoint, GError **error) {
  unsigned lost;

  g_mutex_lock(&endpoint->mutex);
  lost = endpoint->lost;
  g_mutex_unlock(&endpoint->mutex);
  if (lost >= LOST_MAX) {
    g_set_error(error, MIG_VIRT_ERROR, MIG_VIRT_ERROR_TIMEOUT, "%s does not answer: calls to it hang",
                who(endpoint));
    return false;
  }
  return !endpoint->uri || endpoint->conn ||
         endpoint->driver->ops->reachable(endpoint->driver, endpoint->uri, REACH_MS, error);
}

static bool ask(Endpoint *endpoint, QuestionFunc func, const EndpointBasis *basis, EndpointAnswer *ret_answer,
                bool *ret_sent, GError **error) {
  Question *question, *answered;
  GThread *thread;
  bool ok;

  *ret_sent = false;
  if (!may_ask(endpoint, error)) {
    end_watch(endpoint);
    return false;
  }
  question = g_new0(Question, 1);
  g_atomic_int_inc(&endpoint->refs);
  question->endpoint = endpoint;
  question->func = func;
  if (basis)
    question->basis = *basis;
  question->conn = g_steal_pointer(&endpoint->conn);
  thread = g_thread_try_new(endpoint->uri ? "ask-target" : "ask-source", question_thread, question, error);
  if (!thread) {
    question_free(question);
    return false;
  }
  g_thread_unref(thread);

  answered = wait_for_answer(endpoint, question, ret_sent);
  if (!answered) {
    end_watch(endpoint); /* the connection is lost, too */
    g_set_error(error, MIG_VIRT_ERROR, MIG_VIRT_ERROR_TIMEOUT, "%s did not answer within %d s", who(endpoint),
                ANSWER_MS / 1000);
    return false;
  }
  ok = answered->ok;
  if (ok && ret_answer)
    *ret_answer = answered->answer;
  if (!ok)
    g_propagate_error(error, g_steal_pointer(&answered->error));
  endpoint->conn = g_steal_pointer(&answered->conn);
  question_free(answered);
  return ok;
}

static unsigned count_heard(Endpoint *endpoint) {
  g_autoptr(GMutexLocker) G_GNUC_UNUSED locker = g_mutex_locker_new(&endpoint->mutex);

  return endpoint->watch.heard;
}

/* A look counts as much as an event, unless an event came meanwhile, which may be newer. */
static void note_seen(Endpoint *endpoint, MigEndState state, unsigned heard_before) {
  g_autoptr(GMutexLocker) G_GNUC_UNUSED locker = g_mutex_locker_new(&endpoint->mutex);
  Watch *watch = &endpoint->watch;

  if (watch->heard == heard_before)
    watch->alive = is_alive(state) || (watch->alive && !is_not_alive(state));
}

static bool ask_status(Question *question, MigConn *conn, GError **error) {
  const MigDriverOps *ops = question->endpoint->driver->ops;
  const char *uuid = question->endpoint->domain_uuid;
  EndpointAnswer *answer = &question->answer;
  unsigned heard = count_heard(question->endpoint);
  gint64 asked_us = g_get_monotonic_time();

  if (!ops->domain_status(conn, uuid, &answer->status, error))
    return false;
  answer->took_us = (uint64_t)(g_get_monotonic_time() - asked_us);
  note_seen(question->endpoint, answer->status.state, heard);
  if (question->endpoint->uri &&
      (answer->status.state == MIG_END_RUNNING || answer->status.state == MIG_END_PAUSED))
    answer->have_final = ops->final_stats(conn, uuid, &answer->final, NULL);
  return true;
}

/* Right before libvirtd is asked to act: is the domain unchanged, and does somebody still wait? */
static bool may_act(const MigDomainStatus *status, gpointer user_data, GError **error) {
  Question *question = user_data;
  g_autoptr(GMutexLocker) G_GNUC_UNUSED locker = g_mutex_locker_new(&question->endpoint->mutex);

  if (!question->lost && status->state == question->basis.state && status->id == question->basis.id &&
      !status->job_active)
    return question->sent = true;
  if (question->lost)
    g_set_error(error, MIG_VIRT_ERROR, MIG_VIRT_ERROR_STALE,
                "the request timed out before libvirtd could act on it");
  else
    g_set_error(error, MIG_VIRT_ERROR, MIG_VIRT_ERROR_STALE, "the domain is now %s%s; nothing was done",
                mig_end_state_name(status->state), status->job_active ? ", with a migration job" : "");
  return false;
}

static bool ask_resume(Question *question, MigConn *conn, GError **error) {
  const MigGuard guard = {may_act, question};

  return question->endpoint->driver->ops->resume(conn, question->endpoint->domain_uuid, &guard, error);
}

static bool ask_undefine(Question *question, MigConn *conn, GError **error) {
  const MigGuard guard = {may_act, question};

  return question->endpoint->driver->ops->undefine(conn, question->endpoint->domain_uuid, &guard, error);
}

bool endpoint_status(Endpoint *endpoint, EndpointAnswer *ret_answer, GError **error) {
  bool sent;

  return ask(endpoint, ask_status, NULL, ret_answer, &sent, error);
}

bool endpoint_resume(Endpoint *endpoint, const EndpointBasis *basis, bool *ret_sent, GError **error) {
  return ask(endpoint, ask_resume, basis, NULL, ret_sent, error);
}

bool endpoint_undefine(Endpoint *endpoint, const EndpointBasis *basis, bool *ret_sent, GError **error) {
  return ask(endpoint, ask_undefine, basis, NULL, ret_sent, error);
}
