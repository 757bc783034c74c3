/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Edits are groups of bytes: how deep to go and which way at each step, what to do there, and with what. */
#include "json-edit.h"

#include <glib.h>

#define STEPS_MAX  6
#define COPIES_MAX 70 /* more than the limit on targets */
#define EDITS_MAX  16
#define BASES_MAX  8

typedef struct Bytes {
  const uint8_t *next, *end;
  unsigned copies; /* that may still be made of an array's members: of arrays in arrays they multiply */
} Bytes;

static unsigned take(Bytes *bytes) {
  return bytes->next < bytes->end ? *bytes->next++ : 0;
}

/* What is apt to be taken for something else. */
static json_t *odd_value(Bytes *bytes) {
  static const json_int_t integers[] = {
      0, 1, -1, 100, 101, INT32_MAX, INT64_MAX, INT64_MIN, (json_int_t)1 << 53, 1700000000000000};
  static const char *const texts[] = {"",
                                      "0",
                                      "\x01\n\t\"\\",
                                      "0123456789abcdef0123456789abcdef",
                                      "\xe2\x82\xac\xf0\x9f\x98\x80",
                                      "succeeded",
                                      "incoming",
                                      "pending",
                                      "recovering",
                                      "checking",
                                      "finished",
                                      "made",
                                      "%s%n"};
  unsigned kind = take(bytes), which = take(bytes);

  switch (kind % 8) {
  case 0:
    return json_null();
  case 1:
    return json_boolean(which & 1);
  case 2:
    return json_real((double)which * 1e300);
  case 3:
  case 4:
    return json_integer(integers[which % G_N_ELEMENTS(integers)]);
  case 5: {
    g_autofree char *text = g_strnfill(which * 32, '\x02');

    return json_string(text);
  }
  case 6:
    return json_string(texts[which % G_N_ELEMENTS(texts)]);
  default:
    return which & 1 ? json_array() : json_object();
  }
}

static void edit_object(json_t *object, Bytes *bytes, unsigned which) {
  void *at = json_object_iter(object);

  for (which %= (unsigned)json_object_size(object); which > 0; which--)
    at = json_object_iter_next(object, at);
  if (take(bytes) % 4 == 0)
    json_object_del(object, json_object_iter_key(at));
  else
    json_object_iter_set_new(object, at, odd_value(bytes));
}

static void edit_array(json_t *array, Bytes *bytes, unsigned which) {
  size_t i = which % json_array_size(array);
  unsigned what = take(bytes);

  if (what % 4 == 0)
    json_array_remove(array, i);
  else if (what % 4 == 1)
    for (unsigned n = what / 4; n > 0 && bytes->copies > 0; n--, bytes->copies--)
      json_array_append(array, json_array_get(array, i));
  else
    json_array_set_new(array, i, odd_value(bytes));
}

static json_t *child(json_t *value, unsigned which) {
  void *at;

  if (json_array_size(value) > 0)
    return json_array_get(value, which % json_array_size(value));
  if (json_object_size(value) == 0)
    return NULL;
  at = json_object_iter(value);
  for (which %= (unsigned)json_object_size(value); which > 0; which--)
    at = json_object_iter_next(value, at);
  return json_object_iter_value(at);
}

static void edit(json_t *root, Bytes *bytes) {
  unsigned depth = take(bytes) % STEPS_MAX;
  json_t *value = root;

  for (; depth > 0; depth--) {
    json_t *below = child(value, take(bytes));

    if (!json_is_object(below) && !json_is_array(below))
      break;
    value = below;
  }
  if (json_object_size(value) > 0)
    edit_object(value, bytes, take(bytes));
  else if (json_array_size(value) > 0)
    edit_array(value, bytes, take(bytes));
}

json_t *json_of_bytes(const uint8_t *data, size_t size, const char *const *bases, size_t n_bases) {
  static json_t *sound[BASES_MAX];
  Bytes bytes = {data, data + size, COPIES_MAX};
  json_t *value;
  unsigned which;

  if (size > 0 && *data == '{')
    return json_loadb((const char *)data, size, JSON_REJECT_DUPLICATES, NULL);
  which = take(&bytes) % (unsigned)MIN(n_bases, BASES_MAX);
  if (!sound[which])
    sound[which] = json_loads(bases[which], 0, NULL);
  g_assert(sound[which]);
  value = json_deep_copy(sound[which]);
  for (unsigned n = 0; n < EDITS_MAX && bytes.next < bytes.end; n++)
    edit(value, &bytes);
  return value;
}
