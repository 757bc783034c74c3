/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Varlink messages: converts calls and replies between JSON and structs. */
#include "proto/message.h"

#include "proto/server.h"

#include <string.h>

G_DEFINE_QUARK(varlink - message - error - quark, varlink_message_error)

void varlink_call_message_clear(VarlinkCallMessage *message) {
  json_decref(message->parameters);
  json_decref(message->root);
  *message = (VarlinkCallMessage){0};
}

void varlink_reply_message_clear(VarlinkReplyMessage *message) {
  json_decref(message->parameters);
  json_decref(message->root);
  *message = (VarlinkReplyMessage){0};
}

static json_t *load_object(const char *data, size_t length, GError **error) {
  json_error_t json_error;
  json_t *root = json_loadb(data, length, JSON_REJECT_DUPLICATES, &json_error);

  /* An integer that is too large is a mistake in one parameter, not a broken stream. Parsed as a real number, it is refused by
   * the name of its parameter. */
  if (!root && json_error_code(&json_error) == json_error_numeric_overflow)
    root = json_loadb(data, length, JSON_REJECT_DUPLICATES | JSON_DECODE_INT_AS_REAL, &json_error);

  if (!root) {
    g_set_error(error, VARLINK_MESSAGE_ERROR, VARLINK_MESSAGE_ERROR_JSON, "invalid JSON at byte %d: %s",
                json_error.position, json_error.text);
    return NULL;
  }
  if (!json_is_object(root)) {
    json_decref(root);
    g_set_error_literal(error, VARLINK_MESSAGE_ERROR, VARLINK_MESSAGE_ERROR_FORM,
                        "the message is not a JSON object");
    return NULL;
  }
  return root;
}

static bool form_error(GError **error, const char *key, const char *wanted) {
  g_set_error(error, VARLINK_MESSAGE_ERROR, VARLINK_MESSAGE_ERROR_FORM, "\"%s\" is not %s", key, wanted);
  return false;
}

static bool get_bool(json_t *root, const char *key, bool *ret_value, GError **error) {
  json_t *value = json_object_get(root, key);

  if (value && !json_is_boolean(value) && !json_is_null(value))
    return form_error(error, key, "a boolean");
  *ret_value = json_is_true(value);
  return true;
}

static bool get_parameters(json_t *root, json_t **ret_parameters, GError **error) {
  json_t *value = json_object_get(root, "parameters");

  if (!value || json_is_null(value)) {
    *ret_parameters = json_object();
    return true;
  }
  if (!json_is_object(value))
    return form_error(error, "parameters", "an object");
  *ret_parameters = json_incref(value);
  return true;
}

bool varlink_call_message_parse(const char *data, size_t length, VarlinkCallMessage *ret_message,
                                GError **error) {
  g_auto(VarlinkCallMessage) message = {0};

  if (!varlink_call_check_bounds(data, length, error))
    return false;
  message.root = load_object(data, length, error);
  if (!message.root)
    return false;

  message.method = json_string_value(json_object_get(message.root, "method"));
  if (!message.method)
    return form_error(error, "method", "a string");

  if (!get_bool(message.root, "more", &message.more, error) ||
      !get_bool(message.root, "oneway", &message.oneway, error) ||
      !get_bool(message.root, "upgrade", &message.upgrade, error) ||
      !get_parameters(message.root, &message.parameters, error))
    return false;

  if (message.oneway && (message.more || message.upgrade)) {
    g_set_error_literal(error, VARLINK_MESSAGE_ERROR, VARLINK_MESSAGE_ERROR_FORM,
                        "\"oneway\" cannot be combined with \"more\" or \"upgrade\"");
    return false;
  }

  *ret_message = message;
  message = (VarlinkCallMessage){0};
  return true;
}

bool varlink_reply_message_parse(const char *data, size_t length, VarlinkReplyMessage *ret_message,
                                 GError **error) {
  g_auto(VarlinkReplyMessage) message = {0};
  json_t *name;

  message.root = load_object(data, length, error);
  if (!message.root)
    return false;

  name = json_object_get(message.root, "error");
  if (name && !json_is_null(name)) {
    message.error = json_string_value(name);
    if (!message.error || !*message.error)
      return form_error(error, "error", "a string");
  }

  if (!get_bool(message.root, "continues", &message.continues, error) ||
      !get_parameters(message.root, &message.parameters, error))
    return false;

  if (message.error && message.continues) {
    g_set_error_literal(error, VARLINK_MESSAGE_ERROR, VARLINK_MESSAGE_ERROR_FORM,
                        "an error cannot have \"continues\"");
    return false;
  }

  *ret_message = message;
  message = (VarlinkReplyMessage){0};
  return true;
}

/* Names go into the JSON without escaping. */
static bool is_plain_name(const char *name) {
  return *name &&
         name[strspn(name, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._-")] == '\0';
}

static void append(GByteArray *buffer, const char *text) {
  g_byte_array_append(buffer, (const guint8 *)text, (guint)strlen(text));
}

/* Dumps directly into the buffer. Only a value that does not fit is dumped twice. */
static bool append_json(GByteArray *buffer, json_t *value) {
  guint start = buffer->len;
  size_t room = 4096, length;

  if (!value || json_object_size(value) == 0) {
    append(buffer, "{}");
    return value == NULL || json_is_object(value);
  }

  for (;;) {
    if (room > G_MAXUINT / 4)
      return false;
    g_byte_array_set_size(buffer, start + (guint)room);
    length = json_dumpb(value, (char *)buffer->data + start, room, JSON_COMPACT);
    g_byte_array_set_size(buffer, start + (guint)MIN(length, room));
    if (length == 0)
      return false;
    if (length <= room)
      return true;
    room = length;
  }
}

/* {"LEAD":"NAME","parameters":…REST} with its NUL, `lead` up to the name; without it only the parameters. */
static bool encode(GByteArray *buffer, const char *lead, const char *name, json_t *parameters,
                   const char *rest) {
  guint start = buffer->len;

  if (lead && !is_plain_name(name))
    return false;
  append(buffer, lead ? lead : "{");
  append(buffer, lead ? name : "");
  append(buffer, lead ? "\",\"parameters\":" : "\"parameters\":");
  if (!append_json(buffer, parameters)) {
    g_byte_array_set_size(buffer, start);
    return false;
  }
  append(buffer, rest);
  g_byte_array_append(buffer, (const guint8 *)"}", 2);
  return true;
}

bool varlink_encode_call_to(GByteArray *buffer, const char *method, json_t *parameters, bool more,
                            bool oneway) {
  static const char *const rests[2][2] = {{"", ",\"oneway\":true"},
                                          {",\"more\":true", ",\"more\":true,\"oneway\":true"}};

  return encode(buffer, "{\"method\":\"", method, parameters, rests[more][oneway]);
}

bool varlink_encode_reply_to(GByteArray *buffer, json_t *parameters, bool continues) {
  return encode(buffer, NULL, NULL, parameters, continues ? ",\"continues\":true" : "");
}

bool varlink_encode_error_to(GByteArray *buffer, const char *name, json_t *parameters) {
  return encode(buffer, "{\"error\":\"", name, parameters, "");
}

GBytes *varlink_encode_reply(json_t *parameters, bool continues) {
  GByteArray *buffer = g_byte_array_new();

  if (!varlink_encode_reply_to(buffer, parameters, continues)) {
    g_critical("varlink: cannot encode a reply");
    varlink_encode_reply_to(buffer, NULL, continues);
  }
  json_decref(parameters);
  return g_byte_array_free_to_bytes(buffer);
}
