/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Varlink messages: the JSON of calls and replies to structs and back. */
#pragma once

#include <glib.h>
#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

#define VARLINK_MESSAGE_ERROR (varlink_message_error_quark())
GQuark varlink_message_error_quark(void);

typedef enum VarlinkMessageError {
  VARLINK_MESSAGE_ERROR_JSON,  /* not JSON, or a name twice in one object */
  VARLINK_MESSAGE_ERROR_FORM,  /* JSON, but no call or no reply */
  VARLINK_MESSAGE_ERROR_BOUNDS /* a call past what varlink_call_check_bounds() takes */
} VarlinkMessageError;

/* A call as it came. The strings belong to `root`. */
typedef struct VarlinkCallMessage {
  json_t *root;
  const char *method;
  json_t *parameters; /* always an object, of its own reference */
  bool more;
  bool oneway;
  bool upgrade;
} VarlinkCallMessage;

void varlink_call_message_clear(VarlinkCallMessage *message);
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC(VarlinkCallMessage, varlink_call_message_clear)

/* A reply as it came. The strings belong to `root`. */
typedef struct VarlinkReplyMessage {
  json_t *root;
  const char *error;  /* NULL: a success */
  json_t *parameters; /* always an object, of its own reference */
  bool continues;
} VarlinkReplyMessage;

void varlink_reply_message_clear(VarlinkReplyMessage *message);
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC(VarlinkReplyMessage, varlink_reply_message_clear)

/* What a call may consist of, beside its length: far more than any interface means to have. A parser makes up to a
 * hundred bytes of one that stands for an empty object. */
#define VARLINK_CALL_VALUES_MAX       4096
#define VARLINK_CALL_DEPTH_MAX        32
#define VARLINK_CALL_NUMBER_BYTES_MAX 256

/* Looks at the bytes of a call without parsing them: whether it is worth it. Allocates nothing. */
bool varlink_call_check_bounds(const char *data, size_t length, GError **error);

/* `data` is one message without its NUL. Parameters may be left out, null or {}; keys that varlink does not
 * know are ignored. */
bool varlink_call_message_parse(const char *data, size_t length, VarlinkCallMessage *ret_message,
                                GError **error);
bool varlink_reply_message_parse(const char *data, size_t length, VarlinkReplyMessage *ret_message,
                                 GError **error);

/* Each appends one message with its NUL. `parameters` is borrowed and may be NULL: {}. False, with nothing
 * appended, if it cannot be encoded (it contains itself, or a name is none). */
bool varlink_encode_call_to(GByteArray *buffer, const char *method, json_t *parameters, bool more,
                            bool oneway);
bool varlink_encode_reply_to(GByteArray *buffer, json_t *parameters, bool continues);
bool varlink_encode_error_to(GByteArray *buffer, const char *name, json_t *parameters);
