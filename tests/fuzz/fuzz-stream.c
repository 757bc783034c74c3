/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Fuzzes what a peer can send: framing, then each message as a call and as a reply, then the check of its
 * parameters against the agent's interface. The first byte says in what pieces the stream comes. */
#include "fuzz.h"

#include "proto/framing.h"
#include "proto/interface.h"
#include "proto/message.h"
#include "tests/unit/proto/interface-check.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#define PREFIX            "io.handoffd.Agent."
#define MESSAGE_BYTES_MAX 4096

static void must(bool condition) {
  if (!condition)
    abort();
}

/* What was taken must come out of our encoder such that it is taken again, and is the same. */
static void try_call(const VarlinkInterface *interface, const char *data, size_t length) {
  g_auto(VarlinkCallMessage) call = {0}, again = {0};
  g_autoptr(GByteArray) buffer = g_byte_array_new();
  g_autofree char *parameter = NULL;
  const char *name;

  if (!varlink_call_message_parse(data, length, &call, NULL))
    return;
  must(json_is_object(call.parameters));

  if (varlink_encode_call_to(buffer, call.method, call.parameters, call.more, call.oneway)) {
    must(buffer->len > 0 && strlen((char *)buffer->data) == buffer->len - 1);
    must(varlink_call_message_parse((char *)buffer->data, buffer->len - 1, &again, NULL));
    must(again.more == call.more && again.oneway == call.oneway && strcmp(again.method, call.method) == 0);
  }

  name = g_str_has_prefix(call.method, PREFIX) ? call.method + strlen(PREFIX) : "Start";
  if (varlink_interface_check(interface, VARLINK_CHECK_CALL, name, call.parameters, &parameter)) {
    json_t *copy = json_deep_copy(call.parameters);

    /* The normal form is one: checking again changes nothing. */
    must(varlink_interface_check(interface, VARLINK_CHECK_CALL, name, call.parameters, NULL));
    must(json_equal(copy, call.parameters));
    json_decref(copy);
  } else {
    must(parameter && g_utf8_validate(parameter, -1, NULL));
  }
}

static void try_reply(const VarlinkInterface *interface, const char *data, size_t length) {
  g_auto(VarlinkReplyMessage) reply = {0};
  g_autofree char *parameter = NULL;

  if (!varlink_reply_message_parse(data, length, &reply, NULL))
    return;
  must(json_is_object(reply.parameters));
  must(!reply.error || !reply.continues);
  varlink_interface_check(interface, VARLINK_CHECK_REPLY, "Get", reply.parameters, &parameter);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  static VarlinkInterface *interface;
  VarlinkFraming framing;
  size_t piece, taken = 0;

  if (!interface)
    interface = varlink_interface_parse(io_handoffd_Agent_varlink, NULL);
  must(interface != NULL);
  if (size == 0)
    return 0;
  piece = (size_t)data[0] + 1;
  data++;
  size--;

  varlink_framing_init(&framing, MESSAGE_BYTES_MAX);
  for (size_t at = 0; at < size; at += piece) {
    VarlinkFramingResult result;
    char *message;
    size_t length;

    varlink_framing_push(&framing, (const char *)data + at, MIN(piece, size - at));
    while ((result = varlink_framing_next(&framing, &message, &length)) == VARLINK_FRAMING_MESSAGE) {
      must(length <= MESSAGE_BYTES_MAX && message[length] == '\0');
      must(memcmp(message, data + taken, length) == 0);
      taken += length + 1;
      try_call(interface, message, length);
      try_reply(interface, message, length);
    }
    if (result == VARLINK_FRAMING_TOO_LONG)
      break;
    must(framing.allocated <= 4 * MESSAGE_BYTES_MAX);
  }
  varlink_framing_clear(&framing);
  return 0;
}
