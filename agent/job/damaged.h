/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Records that could not be read at the start: what is known of them, and what may not be begun because of them. */
#pragma once

#include "agent/job/store.h"

#include <glib.h>
#include <jansson.h>
#include <stdbool.h>

typedef struct Damaged Damaged;

Damaged *damaged_new(void);
void damaged_free(Damaged *damaged);

/* The record ID.json could not be read, or is none, for this reason. `record`: it is JSON all the same; or NULL. What it was asked
 * for is taken from it as far as that can still be told. Says so in the journal. */
void damaged_note(Damaged *damaged, Store *store, const char *id, json_t *record, const char *why);

/* May a job be begun for this domain, under this key (or NULL)? False: such a job may be there already, in a record that cannot be
 * read. Until an operator moves that file away. */
bool damaged_permits(Damaged *damaged, const char *request_key, const char *domain_uuid, GError **error);

/* Those that no operator has moved away yet. */
unsigned damaged_count(Damaged *damaged);
/* The interface's []DamagedRecord, or NULL: there are none. */
json_t *damaged_to_json(Damaged *damaged);
