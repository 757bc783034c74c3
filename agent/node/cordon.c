/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The cordon: while it is on, this node takes no new work.
 *
 * Theory of Operation. The cordon takes effect with the call. The reply is sent once it is on stable storage, as the record
 * "node" among those of the jobs. It refuses new work: Start (unless with even_if_cordoned, for those who empty the node) and
 * leases for incoming domains. Jobs accepted before continue, including those that wait. */
#include "agent/node/cordon.h"

#include "agent/job/log.h"
#include "agent/job/recordformat.h"
#include "agent/node/node.h"
#include "agent/request/reply.h"

#include <string.h>

void cordon_clear(Cordon *cordon) {
  g_free(cordon->reason);
  g_free(cordon->by);
  memset(cordon, 0, sizeof *cordon);
}

static void set(Cordon *cordon, const char *reason, const char *by, int64_t since_usec) {
  Cordon next = {true, g_strdup(reason), g_strdup(by), since_usec};

  cordon_clear(cordon);
  *cordon = next;
}

void cordon_read(Cordon *cordon, json_t *record, const GError *error) {
  json_t *state = json_object_get(record, "cordon");
  const char *reason = json_string_of(state, "reason");
  const char *by = json_string_of(state, "by");
  json_int_t since = json_integer_value(json_object_get(state, "since_usec_realtime"));

  if (record && record_upgrade(record, NULL)) {
    if (json_is_object(state))
      set(cordon, reason ? reason : "", by ? by : "", since);
    return;
  }
  log_message(
      LOG_ERR, NAMES_MESSAGE_STORE_DAMAGED, (const LogField[]){{NAMES_FIELD_PATH, CORDON_RECORD_ID ".json"}},
      1,
      "cannot read the record of the cordon (%s): treating this node as cordoned. To accept work again, run "
      "handoffctl uncordon",
      error ? error->message : "its format is missing or unknown");
  set(cordon, "the record of the cordon could not be read when the agent started", "handoffd",
      g_get_real_time());
}

json_t *cordon_to_json(const Cordon *cordon) {
  if (!cordon->on)
    return NULL;
  return json_pack("{ss ss sI}", "reason", cordon->reason, "by", cordon->by, "since_usec_realtime",
                   (json_int_t)cordon->since_usec);
}

static json_t *to_record(const Cordon *cordon) {
  json_t *record = json_pack("{si}", "format", RECORD_FORMAT);

  if (cordon->on)
    json_object_set_new(record, "cordon", cordon_to_json(cordon));
  return record;
}

bool cordon_refuse(const Node *node, VarlinkCall *call) {
  if (!node->cordon.on)
    return false;
  reply_error(call, "NodeCordoned", cordon_to_json(&node->cordon));
  return true;
}

/* --- changes --- */

static void save(Node *node, StoreDoneFunc done, gpointer user_data) {
  mover_status_changed(node->mover);
  store_write(node->jobs->store, CORDON_RECORD_ID, to_record(&node->cordon), done, user_data);
}

void cordon_begin(Node *node, const char *reason, const char *by, StoreDoneFunc done, gpointer user_data) {
  bool again = node->cordon.on;

  if (!again || reason)
    set(&node->cordon, reason ? reason : "", by, again ? node->cordon.since_usec : g_get_real_time());
  if (!again)
    log_message(LOG_NOTICE, NAMES_MESSAGE_CORDONED,
                (const LogField[]){{NAMES_FIELD_REASON, node->cordon.reason}}, 1,
                "this node was cordoned by %s and takes no new work%s%s", by,
                *node->cordon.reason ? ": " : "", node->cordon.reason);
  save(node, done, user_data);
}

void cordon_for_drain(Node *node, const char *by) {
  if (!node->cordon.on)
    cordon_begin(node, "cordoned for a drain", by, NULL, NULL);
}

void cordon_end(Node *node, const char *by, StoreDoneFunc done, gpointer user_data) {
  if (node->cordon.on)
    log_message(LOG_NOTICE, NAMES_MESSAGE_UNCORDONED, NULL, 0,
                "this node was uncordoned by %s and takes work again", by);
  cordon_clear(&node->cordon);
  save(node, done, user_data);
}
