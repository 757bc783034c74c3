/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* proto/message: a corpus of good and bad messages, and what we encode. */
#include "test.h"

#include "proto/message.h"
#include "proto/server.h"

#include <stdbool.h>
#include <string.h>

#define BAD_JSON (-1)
#define BAD_FORM (-2)

typedef struct CallRow {
  const char *text;
  int flags; /* or BAD_* */
  const char *parameters;
} CallRow;

enum { MORE = 1, ONEWAY = 2, UPGRADE = 4 };

static const CallRow call_rows[] = {
    {"{\"method\":\"a.b.C\"}", 0, "{}"},
    {"{\"method\":\"a.b.C\",\"parameters\":null}", 0, "{}"},
    {"{\"method\":\"a.b.C\",\"parameters\":{}}", 0, "{}"},
    {"{\"method\":\"a.b.C\",\"parameters\":{\"x\":[1,2]}}", 0, "{\"x\":[1,2]}"},
    {"  {\"parameters\":{\"x\":\"\\u00e4\"},\n\"method\":\"a.b.C\"}\n", 0, "{\"x\":\"\xc3\xa4\"}"},
    {"{\"method\":\"a.b.C\",\"more\":true}", MORE, "{}"},
    {"{\"method\":\"a.b.C\",\"more\":false,\"oneway\":null}", 0, "{}"},
    {"{\"method\":\"a.b.C\",\"oneway\":true}", ONEWAY, "{}"},
    {"{\"method\":\"a.b.C\",\"upgrade\":true}", UPGRADE, "{}"},
    {"{\"method\":\"a.b.C\",\"more\":true,\"upgrade\":true}", MORE | UPGRADE, "{}"},
    {"{\"method\":\"a.b.C\",\"x-trace\":[{}]}", 0, "{}"},
    {"{\"method\":\"\"}", 0, "{}"},
    {"{\"method\":\"a.b.C\",\"parameters\":{\"x\":99999999999999999999}}", 0, "{\"x\":1e20}"},

    {"", BAD_JSON, NULL},
    {"x", BAD_JSON, NULL},
    {"{\"method\":\"a.b.C\"", BAD_JSON, NULL},
    {"{\"method\":\"a.b.C\"}}", BAD_JSON, NULL},
    {"{\"method\":\"a.b.C\"} {}", BAD_JSON, NULL},
    {"{\"method\":\"a.b.C\",\"method\":\"a.b.D\"}", BAD_JSON, NULL},
    {"{\"method\":\"a.b.C\",\"parameters\":{\"x\":1,\"x\":2}}", BAD_JSON, NULL},
    {"{\"method\":\"a\\u0000b\"}", BAD_JSON, NULL},
    {"{\"method\":\"\xff\"}", BAD_JSON, NULL},
    {"{\"method\":\"a.b.C\",\"parameters\":{\"x\":1e999}}", BAD_JSON, NULL},
    {"{'method':'a.b.C'}", BAD_JSON, NULL},
    {"[]", BAD_FORM, NULL},
    {"[{\"method\":\"a.b.C\"}]", BAD_FORM, NULL},
    {"{}", BAD_FORM, NULL},
    {"{\"method\":null}", BAD_FORM, NULL},
    {"{\"method\":7}", BAD_FORM, NULL},
    {"{\"method\":\"a.b.C\",\"parameters\":[]}", BAD_FORM, NULL},
    {"{\"method\":\"a.b.C\",\"parameters\":\"x\"}", BAD_FORM, NULL},
    {"{\"method\":\"a.b.C\",\"more\":1}", BAD_FORM, NULL},
    {"{\"method\":\"a.b.C\",\"more\":true,\"oneway\":true}", BAD_FORM, NULL},
    {"{\"method\":\"a.b.C\",\"oneway\":true,\"upgrade\":true}", BAD_FORM, NULL},
};

static void assert_json(json_t *got, const char *wanted) {
  json_t *value = json_loads(wanted, 0, NULL);

  assert_non_null(value);
  assert_true(json_equal(got, value));
  json_decref(value);
}

static void assert_refused(const char *text, bool taken, const GError *error, int wanted) {
  if (taken)
    fail_msg("taken: %s", text);
  if (!g_error_matches(error, VARLINK_MESSAGE_ERROR,
                       wanted == BAD_JSON ? VARLINK_MESSAGE_ERROR_JSON : VARLINK_MESSAGE_ERROR_FORM))
    fail_msg("%s: %s", text, error->message);
}

static void calls(void **state) {
  for (size_t i = 0; i < G_N_ELEMENTS(call_rows); i++) {
    const CallRow *row = &call_rows[i];
    g_auto(VarlinkCallMessage) message = {0};
    g_autoptr(GError) error = NULL;
    bool taken = varlink_call_message_parse(row->text, strlen(row->text), &message, &error);

    if (row->flags < 0) {
      assert_refused(row->text, taken, error, row->flags);
      assert_null(message.root);
      continue;
    }
    if (!taken)
      fail_msg("%s: %s", row->text, error->message);
    assert_int_equal((message.more ? MORE : 0) | (message.oneway ? ONEWAY : 0) |
                         (message.upgrade ? UPGRADE : 0),
                     row->flags);
    assert_json(message.parameters, row->parameters);
  }
}

typedef struct ReplyRow {
  const char *text;
  int continues; /* or BAD_* */
  const char *error;
  const char *parameters;
} ReplyRow;

static const ReplyRow reply_rows[] = {
    {"{}", 0, NULL, "{}"},
    {"{\"parameters\":{\"a\":1}}", 0, NULL, "{\"a\":1}"},
    {"{\"parameters\":null,\"continues\":true}", 1, NULL, "{}"},
    {"{\"continues\":false,\"error\":null,\"new\":1}", 0, NULL, "{}"},
    {"{\"error\":\"a.b.E\"}", 0, "a.b.E", "{}"},
    {"{\"error\":\"a.b.E\",\"parameters\":{\"x\":true}}", 0, "a.b.E", "{\"x\":true}"},
    {"", BAD_JSON, NULL, NULL},
    {"{\"a\":1,\"a\":1}", BAD_JSON, NULL, NULL},
    {"null", BAD_JSON, NULL, NULL},
    {"[]", BAD_FORM, NULL, NULL},
    {"{\"parameters\":1}", BAD_FORM, NULL, NULL},
    {"{\"error\":1}", BAD_FORM, NULL, NULL},
    {"{\"error\":\"\"}", BAD_FORM, NULL, NULL},
    {"{\"continues\":\"yes\"}", BAD_FORM, NULL, NULL},
    {"{\"error\":\"a.b.E\",\"continues\":true}", BAD_FORM, NULL, NULL},
};

static void replies(void **state) {
  for (size_t i = 0; i < G_N_ELEMENTS(reply_rows); i++) {
    const ReplyRow *row = &reply_rows[i];
    g_auto(VarlinkReplyMessage) message = {0};
    g_autoptr(GError) error = NULL;
    bool taken = varlink_reply_message_parse(row->text, strlen(row->text), &message, &error);

    if (row->continues < 0) {
      assert_refused(row->text, taken, error, row->continues);
      continue;
    }
    if (!taken)
      fail_msg("%s: %s", row->text, error->message);
    assert_int_equal(message.continues, row->continues);
    assert_int_equal(g_strcmp0(message.error, row->error), 0);
    assert_json(message.parameters, row->parameters);
  }
}

static void assert_bytes(const void *data, size_t length, const char *wanted) {
  assert_int_equal(length, strlen(wanted) + 1);
  assert_memory_equal(data, wanted, length);
}

static void encoding(void **state) {
  g_autoptr(GByteArray) buffer = g_byte_array_new();
  json_t *parameters = json_pack("{s:s}", "a", "b\n");

  assert_true(varlink_encode_call_to(buffer, "a.b.C", parameters, true, false));
  assert_bytes(buffer->data, buffer->len,
               "{\"method\":\"a.b.C\",\"parameters\":{\"a\":\"b\\n\"},\"more\":true}");
  g_byte_array_set_size(buffer, 0);
  assert_true(varlink_encode_call_to(buffer, "a.b.C", NULL, false, true));
  assert_bytes(buffer->data, buffer->len, "{\"method\":\"a.b.C\",\"parameters\":{},\"oneway\":true}");
  g_byte_array_set_size(buffer, 0);
  assert_true(varlink_encode_reply_to(buffer, parameters, true));
  assert_bytes(buffer->data, buffer->len, "{\"parameters\":{\"a\":\"b\\n\"},\"continues\":true}");
  g_byte_array_set_size(buffer, 0);
  assert_true(varlink_encode_error_to(buffer, "a.b.E", NULL));
  assert_bytes(buffer->data, buffer->len, "{\"error\":\"a.b.E\",\"parameters\":{}}");
  json_decref(parameters);
}

static void what_cannot_be_encoded(void **state) {
  g_autoptr(GByteArray) buffer = g_byte_array_new();
  json_t *loop = json_object();
  json_t *inner = json_object();
  json_t *list = json_array();

  /* jansson refuses the short way round, not the long one. */
  json_object_set(loop, "inner", inner);
  json_object_set(inner, "loop", loop);

  g_byte_array_append(buffer, (const guint8 *)"before", 6);
  assert_false(varlink_encode_reply_to(buffer, loop, false));
  assert_false(varlink_encode_reply_to(buffer, list, false));
  assert_false(varlink_encode_error_to(buffer, "quote\"", NULL));
  assert_false(varlink_encode_call_to(buffer, "", NULL, false, false));
  assert_int_equal(buffer->len, 6);

  json_object_clear(inner);
  json_decref(inner);
  json_decref(loop);
  json_decref(list);
}

static void a_long_reply_comes_back(void **state) {
  json_t *parameters = json_object();
  json_t *list = json_array();
  g_auto(VarlinkReplyMessage) message = {0};
  g_autoptr(GError) error = NULL;
  g_autoptr(GBytes) bytes = NULL;
  const char *data;
  size_t length;

  for (int i = 0; i < 20000; i++)
    json_array_append_new(list, json_sprintf("item %d", i));
  json_object_set_new(parameters, "list", list);

  bytes = varlink_encode_reply(json_incref(parameters), false);
  data = g_bytes_get_data(bytes, &length);
  assert_int_equal(strlen(data), length - 1);
  assert_true(varlink_reply_message_parse(data, length - 1, &message, &error));
  assert_true(json_equal(message.parameters, parameters));
  json_decref(parameters);
}

/* n of `unit`, in a parameter between `open` and `close`. */
static char *call_of(const char *open, const char *unit, const char *separator, unsigned n,
                     const char *close) {
  GString *text = g_string_new("{\"method\":\"a.b.C\",\"parameters\":{\"x\":");

  g_string_append(text, open);
  for (unsigned i = 0; i < n; i++) {
    if (i > 0)
      g_string_append(text, separator);
    g_string_append(text, unit);
  }
  g_string_append(text, close);
  g_string_append(text, "}}");
  return g_string_free(text, FALSE);
}

static void bounds(void **state) {
  static const struct {
    const char *open, *unit, *separator;
    unsigned n;
    const char *close;
    bool fits;
  } rows[] = {
      /* The message, its two members and the array come on top. */
      {"[", "{}", ",", VARLINK_CALL_VALUES_MAX / 2 - 2, "]", true},
      {"[", "{}", ",", VARLINK_CALL_VALUES_MAX / 2, "]", false},
      {"[", "1", ",", VARLINK_CALL_VALUES_MAX - 4, "]", true},
      {"[", "1", ",", VARLINK_CALL_VALUES_MAX, "]", false},
      {"[", "\"a\"", ",", VARLINK_CALL_VALUES_MAX, "]", false},
      {"\"", "[{,", "", 100000, "\"", true},
      {"\"", "\\\"[{,", "", 100000, "\"", true},
      {"\"", "\\\\", "", 100000, "\"", true},
      {"", "[", "", VARLINK_CALL_DEPTH_MAX - 2, "", true},
      {"", "[", "", VARLINK_CALL_DEPTH_MAX, "", false},
      {"", "{\"a\":", "", VARLINK_CALL_DEPTH_MAX, "", false},
      {"", "7", "", VARLINK_CALL_NUMBER_BYTES_MAX, "", true},
      {"", "7", "", VARLINK_CALL_NUMBER_BYTES_MAX + 1, "", false},
      {"0.", "0", "", 100000, "1", false},
      {"", " ", "", 100000, "1", true},
      {"]]]]", "[", "", VARLINK_CALL_DEPTH_MAX + 4, "", false},
      {"\"", "", "", 0, "\\", true}, /* a string that does not end */
  };

  for (size_t i = 0; i < G_N_ELEMENTS(rows); i++) {
    g_autofree char *text = call_of(rows[i].open, rows[i].unit, rows[i].separator, rows[i].n, rows[i].close);
    g_auto(VarlinkCallMessage) message = {0};
    g_autoptr(GError) error = NULL;

    if (varlink_call_check_bounds(text, strlen(text), &error) != rows[i].fits)
      fail_msg("row %zu: %s", i, error ? error->message : "taken");
    g_clear_error(&error);
    if (!varlink_call_message_parse(text, strlen(text), &message, &error))
      assert_int_equal(g_error_matches(error, VARLINK_MESSAGE_ERROR, VARLINK_MESSAGE_ERROR_BOUNDS),
                       !rows[i].fits);
    else
      assert_true(rows[i].fits);
  }
}

int main(void) {
  static const struct CMUnitTest tests[] = {
      ROW("calls: the good are taken, the bad are refused by kind", calls),
      ROW("replies: the good are taken, the bad are refused by kind", replies),
      ROW("messages are encoded as varlink has them, NUL and all", encoding),
      ROW("what cannot be encoded leaves the buffer as it was", what_cannot_be_encoded),
      ROW("a reply longer than any first guess comes back whole", a_long_reply_comes_back),
      ROW("a call of too many values, levels or digits is not parsed", bounds),
  };

  return cmocka_run_group_tests_name("message", tests, NULL, NULL);
}
