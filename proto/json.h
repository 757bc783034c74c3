/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Members of JSON objects, in messages and in records. Absent means unknown. */
#pragma once

#include <jansson.h>
#include <stdbool.h>

/* NULL if it is absent or of another type; otherwise borrowed. */
static inline const char *json_string_of(json_t *object, const char *key) {
  return json_string_value(json_object_get(object, key));
}

static inline bool json_bool_of(json_t *object, const char *key) {
  return json_is_true(json_object_get(object, key));
}

/* Sets nothing for NULL. */
static inline void json_set_string(json_t *object, const char *key, const char *value) {
  if (value)
    json_object_set_new(object, key, json_string(value));
}
