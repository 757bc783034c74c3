/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Varlink messages: converts calls and replies between JSON and structs. */
#pragma once

#include <glib.h>
#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

#define VARLINK_MESSAGE_ERROR (varlink_message_error_quark())
GQuark varlink_message_error_quark(void);

typedef enum VarlinkMessageError {
  VARLINK_MESSAGE_ERROR_JSON,  /* not JSON, or a duplicate name in an object */
  VARLINK_MESSAGE_ERROR_FORM,  /* JSON, but not a valid call or reply */
  VARLINK_MESSAGE_ERROR_BOUNDS /* a call beyond the limits of varlink_call_check_bounds() */
} VarlinkMessageError;

/* A call as received. The strings belong to `root`. */
typedef struct VarlinkCallMessage {
  json_t *root;
  const char *method;
  json_t *parameters; /* always an object; a separate reference */
  bool more;
  bool oneway;
  bool upgrade;
} VarlinkCallMessage;

void varlink_call_message_clear(VarlinkCallMessage *message);
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC(VarlinkCallMessage, varlink_call_message_clear)

/* A reply as received. The strings belong to `root`. */
typedef struct VarlinkReplyMessage {
  json_t *root;
  const char *error;  /* NULL: success */
  json_t *parameters; /* always an object; a separate reference */
  bool continues;
} VarlinkReplyMessage;

void varlink_reply_message_clear(VarlinkReplyMessage *message);
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC(VarlinkReplyMessage, varlink_reply_message_clear)

/* Limits on a call besides its length, far above what any interface needs. They matter because a parser may allocate a hundred
 * bytes for a single byte of JSON. */
#define VARLINK_CALL_VALUES_MAX       4096
#define VARLINK_CALL_DEPTH_MAX        32
#define VARLINK_CALL_NUMBER_BYTES_MAX 256

/* Checks these limits on the bytes of a call before it is parsed. Allocates nothing. */
bool varlink_call_check_bounds(const char *data, size_t length, GError **error);

/* `data` is one message without its NUL. The parameters may be absent, null or {}. Keys that varlink does not define are
 * ignored. */
bool varlink_call_message_parse(const char *data, size_t length, VarlinkCallMessage *ret_message,
                                GError **error);
bool varlink_reply_message_parse(const char *data, size_t length, VarlinkReplyMessage *ret_message,
                                 GError **error);

/* Each appends one message including its NUL. `parameters` is borrowed; NULL means {}. Returns false and appends nothing if it
 * cannot be encoded (the parameters contain themselves, or the name is invalid). */
bool varlink_encode_call_to(GByteArray *buffer, const char *method, json_t *parameters, bool more,
                            bool oneway);
bool varlink_encode_reply_to(GByteArray *buffer, json_t *parameters, bool continues);
bool varlink_encode_error_to(GByteArray *buffer, const char *name, json_t *parameters);
