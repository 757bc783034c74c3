/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Records that could not be read at the start.
 *
 * Theory of Operation. Such a record belongs to an acknowledged job: its domain may be migrating, and its request key is
 * used. So it is not ignored. What the job was for is salvaged from what is left of the file, and nothing new is accepted for
 * that domain or under that key. If they cannot be recovered, no job is accepted at all. Running jobs continue, since they have
 * records of their own. An operator, who can look at both ends, resolves it by moving the file away. The next call notices
 * that, without a restart.
 *
 * The salvage reads what the agent itself wrote (JSON without spaces), and accepts no field that occurs twice. Quotes inside
 * a text are escaped, so text is never mistaken for a field. */
#include "agent/job/damaged.h"

#include "agent/job/log.h"
#include "agent/job/recordformat.h"

#include <gio/gio.h>
#include <string.h>

typedef struct Entry {
  Store *store; /* borrowed */
  char *id;
  char *why;
  bool sure;         /* both fields below are known; a key may be known to be absent */
  char *request_key; /* or NULL */
  char *domain_uuid; /* or NULL */
} Entry;

struct Damaged {
  GPtrArray *entries; /* Entry */
};

static void entry_free(gpointer data) {
  Entry *entry = data;

  g_free(entry->id);
  g_free(entry->why);
  g_free(entry->request_key);
  g_free(entry->domain_uuid);
  g_free(entry);
}

Damaged *damaged_new(void) {
  Damaged *damaged = g_new0(Damaged, 1);

  damaged->entries = g_ptr_array_new_with_free_func(entry_free);
  return damaged;
}

void damaged_free(Damaged *damaged) {
  if (!damaged)
    return;
  g_ptr_array_unref(damaged->entries);
  g_free(damaged);
}

/* --- salvage --- */

/* The end of the JSON string that starts here, or NULL. */
static const char *end_of_string(const char *text, const char *end) {
  for (const char *p = text; p < end; p++) {
    if (*p == '\\')
      p++;
    else if (*p == '"')
      return p;
  }
  return NULL;
}

static char *decode(const char *text, const char *end) {
  json_t *value = json_loadb(text, (size_t)(end - text), JSON_DECODE_ANY, NULL);
  char *copy = g_strdup(json_string_value(value));

  json_decref(value);
  return copy;
}

/* The value after `field` ("\"uuid\":\""), if it occurs exactly once and is complete. */
static char *salvage(const char *text, size_t size, const char *field) {
  const char *end = text + size, *at = memmem(text, size, field, strlen(field)), *begin, *last;

  if (!at)
    return NULL;
  begin = at + strlen(field) - 1; /* at the opening quote */
  last = end_of_string(begin + 1, end);
  if (!last || memmem(last, (size_t)(end - last), field, strlen(field)))
    return NULL;
  return decode(begin, last + 1);
}

static void take_from_json(Entry *entry, json_t *record) {
  json_t *job = json_object_get(record, "job");
  json_t *key = json_object_get(job, "request_key");
  const char *id = json_string_of(job, "id");

  if (g_strcmp0(id, entry->id) != 0)
    return;
  entry->request_key = g_strdup(json_string_value(key));
  entry->domain_uuid = g_strdup(json_string_of(json_object_get(job, "domain"), "uuid"));
  entry->sure = (!key || entry->request_key) && entry->domain_uuid;
}

static void take_from_text(Entry *entry, const char *text, size_t size) {
  g_autofree char *id = salvage(text, size, "\"id\":\"");

  if (g_strcmp0(id, entry->id) != 0)
    return;
  entry->request_key = salvage(text, size, "\"request_key\":\"");
  entry->domain_uuid = salvage(text, size, "\"uuid\":\"");
  /* A missing key proves nothing: it may be in the damaged part. */
  entry->sure = entry->request_key && entry->domain_uuid && g_uuid_string_is_valid(entry->domain_uuid);
}

static bool is_of_a_job(const char *id) {
  return strcmp(id, CORDON_RECORD_ID) != 0 && strcmp(id, DRAIN_RECORD_ID) != 0;
}

/* --- keeping track --- */

static void say(const Entry *entry, const char *file) {
  const LogField fields[] = {{NAMES_FIELD_JOB_ID, entry->id},
                             {NAMES_FIELD_PATH, file},
                             {NAMES_FIELD_DOMAIN_UUID, entry->domain_uuid},
                             {NAMES_FIELD_REQUEST_KEY, entry->request_key}};

  if (entry->sure)
    log_message(
        LOG_CRIT, NAMES_MESSAGE_STORE_DAMAGED, fields, G_N_ELEMENTS(fields),
        "the record of job %s cannot be read (%s): its domain (%s) may be migrating unmonitored. No job "
        "is accepted for it until %s is moved away",
        entry->id, entry->why, entry->domain_uuid, file);
  else
    log_message(LOG_CRIT, NAMES_MESSAGE_STORE_DAMAGED, fields, 2,
                "the record of job %s cannot be read (%s), and its domain is unknown: a domain may be "
                "migrating unmonitored. No job at all is accepted until %s is moved away",
                entry->id, entry->why, file);
}

void damaged_note(Damaged *damaged, Store *store, const char *id, json_t *record, const char *why) {
  Entry *entry = g_new0(Entry, 1);
  g_autofree char *file = store_find_file(store, id);
  g_autofree char *text = NULL;
  size_t size;

  entry->store = store;
  entry->id = g_strdup(id);
  entry->why = g_utf8_make_valid(why, -1);
  if (record)
    take_from_json(entry, record);
  else if ((text = store_read_text(store, id, &size)))
    take_from_text(entry, text, size);
  g_ptr_array_add(damaged->entries, entry);
  /* The owners of the other two records report them. */
  if (is_of_a_job(id))
    say(entry, file);
}

/* Forgets files that were moved away, and the cordon's and the drain's once they were rewritten. */
static void refresh(Damaged *damaged) {
  for (guint i = damaged->entries->len; i-- > 0;) {
    const Entry *entry = damaged->entries->pdata[i];
    g_autofree char *file = store_find_file(entry->store, entry->id);

    if (file && (is_of_a_job(entry->id) || g_str_has_suffix(file, STORE_BAD_SUFFIX)))
      continue;
    log_message(LOG_NOTICE, NULL, (const LogField[]){{NAMES_FIELD_JOB_ID, entry->id}}, 1,
                "the damaged record %s.json no longer blocks new jobs", entry->id);
    g_ptr_array_remove_index(damaged->entries, i);
  }
}

bool damaged_permits(Damaged *damaged, const char *request_key, const char *domain_uuid, GError **error) {
  refresh(damaged);
  for (guint i = 0; i < damaged->entries->len; i++) {
    const Entry *entry = damaged->entries->pdata[i];
    bool same = (entry->domain_uuid && g_ascii_strcasecmp(entry->domain_uuid, domain_uuid) == 0) ||
                (request_key && g_strcmp0(entry->request_key, request_key) == 0);
    g_autofree char *file = NULL;

    if (!is_of_a_job(entry->id) || (entry->sure && !same))
      continue;
    file = store_find_file(entry->store, entry->id);
    g_set_error(
        error, G_IO_ERROR, G_IO_ERROR_INVALID_DATA,
        "the record of job %s cannot be read (%s), and %s: find out at both ends whether its domain is "
        "migrating, then move %s away",
        entry->id, entry->why, entry->sure ? "it is for this domain or request key" : "its domain is unknown",
        file);
    return false;
  }
  return true;
}

unsigned damaged_count(Damaged *damaged) {
  refresh(damaged);
  return damaged->entries->len;
}

json_t *damaged_to_json(Damaged *damaged) {
  json_t *array;

  if (damaged_count(damaged) == 0)
    return NULL;
  array = json_array();
  for (guint i = 0; i < damaged->entries->len; i++) {
    const Entry *entry = damaged->entries->pdata[i];
    g_autofree char *file = store_find_file(entry->store, entry->id);
    json_t *object = json_object();

    json_set_string(object, "path", file);
    json_set_string(object, "message", entry->why);
    json_set_string(object, "request_key", entry->request_key);
    json_set_string(object, "domain_uuid", entry->domain_uuid);
    json_array_append_new(array, object);
  }
  return array;
}
