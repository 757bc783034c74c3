/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Checks JSON against the types of a varlink interface and normalizes it. */
#include "proto/idl.h"

#include <string.h>

/* An unknown name is returned to its sender, but not megabytes of it. */
#define NAME_BYTES_MAX 128

/* Deeper than any interface needs. jansson's own limit is 2,048, so this one bounds recursive types. */
#define DEPTH_MAX 128

/* The current place in the parameters: a linked list on the stack, turned into text only if something is wrong. */
typedef struct Place {
  const struct Place *up;
  const char *name; /* NULL: an array element, `index` */
  size_t index;
  unsigned depth;
} Place;

static void spell(const Place *place, GString *text) {
  if (!place)
    return;
  spell(place->up, text);

  if (!place->name) {
    g_string_append_printf(text, "[%zu]", place->index);
    return;
  }
  if (text->len > 0)
    g_string_append_c(text, '.');
  if (strlen(place->name) <= NAME_BYTES_MAX) {
    g_string_append(text, place->name);
  } else {
    const char *end = g_utf8_find_prev_char(place->name, place->name + NAME_BYTES_MAX);

    g_string_append_len(text, place->name, end ? end - place->name : 0);
    g_string_append(text, "...");
  }
}

static bool refuse(const Place *place, char **ret_parameter) {
  if (ret_parameter) {
    GString *text = g_string_new(NULL);

    spell(place, text);
    *ret_parameter = g_string_free(text, FALSE);
  }
  return false;
}

static const VarlinkType *resolve(const VarlinkType *type) {
  while (type->kind == VARLINK_TYPE_NAMED)
    type = type->element;
  return type;
}

/* The limits are exact: as a double, 2^63 itself is the first value that does not fit. */
static bool real_to_int(json_t *value, json_int_t *ret_int) {
  double real = json_real_value(value);

  if (!(real >= -0x1p63 && real < 0x1p63) || real != (double)(json_int_t)real)
    return false;
  *ret_int = (json_int_t)real;
  return true;
}

/* Sets `ret_normal` if another value must replace this one. */
static bool check_value(const VarlinkType *type, json_t *value, const Place *place, json_t **ret_normal,
                        char **ret_parameter);

static bool check_fields_present(const VarlinkType *type, json_t *object, const Place *place,
                                 char **ret_parameter) {
  for (size_t i = 0; i < type->n_fields; i++) {
    const VarlinkField *field = &type->fields[i];

    if (!field->type->nullable && !json_object_get(object, field->name)) {
      Place missing = {.up = place, .name = field->name};

      return refuse(&missing, ret_parameter);
    }
  }
  return true;
}

static const VarlinkType *find_field(const VarlinkType *type, const char *name) {
  for (size_t i = 0; i < type->n_fields; i++)
    if (strcmp(type->fields[i].name, name) == 0)
      return type->fields[i].type;
  return NULL;
}

static bool check_object(const VarlinkType *type, json_t *object, const Place *place, char **ret_parameter) {
  bool is_struct = type->kind == VARLINK_TYPE_STRUCT;
  const char *name;
  json_t *value;
  void *next;

  json_object_foreach_safe(object, next, name, value) {
    const VarlinkType *wanted = is_struct ? find_field(type, name) : type->element;
    Place here = {.up = place, .name = name, .depth = place ? place->depth + 1 : 0};
    json_t *normal = NULL;

    if (!wanted || !check_value(wanted, value, &here, &normal, ret_parameter))
      return wanted ? false : refuse(&here, ret_parameter);
    if (is_struct && json_is_null(value) && wanted->nullable)
      json_object_del(object, name);
    else if (normal)
      json_object_set_new(object, name, normal);
  }

  return !is_struct || check_fields_present(type, object, place, ret_parameter);
}

static bool check_array(const VarlinkType *type, json_t *array, const Place *place, char **ret_parameter) {
  size_t index;
  json_t *value;

  json_array_foreach (array, index, value) {
    Place here = {.up = place, .index = index, .depth = place ? place->depth + 1 : 0};
    json_t *normal = NULL;

    if (!check_value(type->element, value, &here, &normal, ret_parameter))
      return false;
    if (normal)
      json_array_set_new(array, index, normal);
  }
  return true;
}

static bool check_value(const VarlinkType *type, json_t *value, const Place *place, json_t **ret_normal,
                        char **ret_parameter) {
  const VarlinkType *wanted = resolve(type);
  json_int_t integer;
  bool fits = false;

  if (json_is_null(value) && type->nullable)
    return true;
  if (place && place->depth > DEPTH_MAX)
    return refuse(place, ret_parameter);

  switch (wanted->kind) {
  case VARLINK_TYPE_BOOL:
    fits = json_is_boolean(value);
    break;
  case VARLINK_TYPE_INT:
    fits = json_is_integer(value);
    if (json_is_real(value) && real_to_int(value, &integer)) {
      fits = true;
      *ret_normal = json_integer(integer);
    }
    break;
  case VARLINK_TYPE_FLOAT:
    fits = json_is_number(value);
    if (json_is_integer(value))
      *ret_normal = json_real((double)json_integer_value(value));
    break;
  case VARLINK_TYPE_STRING:
    fits = json_is_string(value);
    break;
  case VARLINK_TYPE_OBJECT:
    fits = true;
    break;
  case VARLINK_TYPE_ENUM:
    for (size_t i = 0; json_is_string(value) && !fits && i < wanted->n_fields; i++)
      fits = strcmp(wanted->fields[i].name, json_string_value(value)) == 0;
    break;
  case VARLINK_TYPE_ARRAY:
    if (json_is_array(value))
      return check_array(wanted, value, place, ret_parameter);
    break;
  case VARLINK_TYPE_MAP:
  case VARLINK_TYPE_STRUCT:
    if (json_is_object(value))
      return check_object(wanted, value, place, ret_parameter);
    break;
  case VARLINK_TYPE_NAMED:
    break;
  }

  return fits || refuse(place, ret_parameter);
}

static bool is_plain(const char *text) {
  for (const char *p = text; *p; p = g_utf8_next_char(p)) {
    gunichar c = g_utf8_get_char(p);

    if (c < 0x20 || (c >= 0x7f && c <= 0x9f) || c == 0x2028 || c == 0x2029)
      return false;
  }
  return true;
}

static bool check_text(json_t *value, const Place *place, char **ret_parameter) {
  Place here = {.up = place, .depth = place ? place->depth + 1 : 0};
  json_t *element;

  if (here.depth > DEPTH_MAX || (json_is_string(value) && !is_plain(json_string_value(value))))
    return refuse(place, ret_parameter);
  json_object_foreach (value, here.name, element)
    if (!is_plain(here.name) || !check_text(element, &here, ret_parameter))
      return is_plain(here.name) ? false : refuse(place, ret_parameter);
  here.name = NULL;
  json_array_foreach (value, here.index, element)
    if (!check_text(element, &here, ret_parameter))
      return false;
  return true;
}

bool varlink_text_check(json_t *value, char **ret_parameter) {
  return check_text(value, NULL, ret_parameter);
}

bool varlink_type_check(const VarlinkType *type, json_t *value, char **ret_parameter) {
  json_t *normal = NULL;
  bool fits = check_value(type, value, NULL, &normal, ret_parameter);

  json_decref(normal); /* a lone number has no container in which to replace it */
  return fits;
}
