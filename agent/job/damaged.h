/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Records that could not be read at the start: what is known of them, and which jobs they block. */
#pragma once

#include "agent/job/store.h"
#include "proto/json.h"

#include <glib.h>
#include <stdbool.h>

typedef struct Damaged Damaged;

Damaged *damaged_new(void);
void damaged_free(Damaged *damaged);

/* Notes that the record ID.json could not be read or is invalid, and why; logs it. `record` is its content if that is JSON, or
 * NULL. Salvages what the job was for, as far as possible. */
void damaged_note(Damaged *damaged, Store *store, const char *id, json_t *record, const char *why);

/* May a job be accepted for this domain, under this key (or NULL)? False: an unreadable record may hold such a job; an
 * operator has to move that file away first. */
bool damaged_permits(Damaged *damaged, const char *request_key, const char *domain_uuid, GError **error);

/* Those not moved away yet. */
unsigned damaged_count(Damaged *damaged);
/* The interface's []DamagedRecord; NULL: none. */
json_t *damaged_to_json(Damaged *damaged);
