/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* proto/framing: messages are the same wherever the stream is cut, and nothing grows without bound. */
#include "test.h"

#include "proto/framing.h"

#include <glib.h>
#include <string.h>

#define LIMIT 16

static void assert_next(VarlinkFraming *framing, const char *wanted) {
  char *message;
  size_t length;

  assert_int_equal(varlink_framing_next(framing, &message, &length), VARLINK_FRAMING_MESSAGE);
  assert_int_equal(length, strlen(wanted));
  assert_string_equal(message, wanted);
}

static void assert_result(VarlinkFraming *framing, VarlinkFramingResult wanted) {
  char *message;
  size_t length;

  assert_int_equal(varlink_framing_next(framing, &message, &length), wanted);
}

static void split_at_each_byte(void **state) {
  static const char stream[] = "one\0two\0\0three"; /* and the NUL of the literal */

  for (size_t cut = 0; cut <= sizeof stream; cut++) {
    VarlinkFraming framing;
    static const char *const wanted[] = {"one", "two", "", "three"};
    size_t n = 0;
    char *message;
    size_t length;

    varlink_framing_init(&framing, LIMIT);
    varlink_framing_push(&framing, stream, cut);
    while (varlink_framing_next(&framing, &message, &length) == VARLINK_FRAMING_MESSAGE)
      assert_string_equal(message, wanted[n++]);
    varlink_framing_push(&framing, stream + cut, sizeof stream - cut);
    while (varlink_framing_next(&framing, &message, &length) == VARLINK_FRAMING_MESSAGE)
      assert_string_equal(message, wanted[n++]);

    assert_int_equal(n, G_N_ELEMENTS(wanted));
    assert_true(varlink_framing_is_empty(&framing));
    varlink_framing_clear(&framing);
  }
}

static void byte_by_byte(void **state) {
  static const char stream[] = "abc\0def";
  VarlinkFraming framing;

  varlink_framing_init(&framing, LIMIT);
  for (size_t i = 0; i < sizeof stream; i++) {
    varlink_framing_push(&framing, stream + i, 1);
    if (i == 3)
      assert_next(&framing, "abc");
    else if (i < 7)
      assert_result(&framing, VARLINK_FRAMING_INCOMPLETE);
  }
  assert_next(&framing, "def");
  assert_result(&framing, VARLINK_FRAMING_INCOMPLETE);
  varlink_framing_clear(&framing);
}

static void memory_is_given_back(void **state) {
  enum { LONG = 100000 };
  g_autofree char *text = g_strnfill(LONG, 'x');
  VarlinkFraming framing;
  char *message;
  size_t length;

  varlink_framing_init(&framing, LONG);
  for (size_t sent = 0; sent < LONG; sent += 1000) {
    varlink_framing_push(&framing, text, 1000);
    assert_false(varlink_framing_has_more(&framing));
  }
  varlink_framing_push(&framing, "\0begun", 1);
  assert_true(varlink_framing_has_more(&framing));
  assert_true(framing.allocated <= LONG + 1);
  varlink_framing_push(&framing, "begun", 5);
  assert_int_equal(varlink_framing_next(&framing, &message, &length), VARLINK_FRAMING_MESSAGE);
  assert_int_equal(length, LONG);
  varlink_framing_release(&framing);
  assert_true(framing.allocated <= 4096);
  varlink_framing_push(&framing, "", 1);
  assert_next(&framing, "begun");
  varlink_framing_release(&framing);
  assert_true(framing.allocated <= 4096);
  varlink_framing_clear(&framing);
}

static void nul_flood(void **state) {
  static const char nuls[4096];
  VarlinkFraming framing;

  varlink_framing_init(&framing, LIMIT);
  varlink_framing_push(&framing, nuls, sizeof nuls);
  for (size_t i = 0; i < sizeof nuls; i++)
    assert_next(&framing, "");
  assert_result(&framing, VARLINK_FRAMING_INCOMPLETE);
  assert_true(framing.allocated <= sizeof nuls);
  varlink_framing_release(&framing);
  assert_null(framing.buffer);
}

static void exactly_the_limit(void **state) {
  VarlinkFraming framing;

  varlink_framing_init(&framing, 4);
  varlink_framing_push(&framing, "abcd", 4);
  assert_result(&framing, VARLINK_FRAMING_INCOMPLETE);
  varlink_framing_push(&framing, "", 1);
  assert_next(&framing, "abcd");
  varlink_framing_clear(&framing);
}

static void over_the_limit_unended(void **state) {
  VarlinkFraming framing;

  varlink_framing_init(&framing, 4);
  varlink_framing_push(&framing, "abcde", 5);
  assert_result(&framing, VARLINK_FRAMING_TOO_LONG);
  assert_result(&framing, VARLINK_FRAMING_TOO_LONG);
  varlink_framing_clear(&framing);
}

static void over_the_limit_ended(void **state) {
  VarlinkFraming framing;

  varlink_framing_init(&framing, 4);
  varlink_framing_push(&framing, "ok\0abcde", 9);
  assert_next(&framing, "ok");
  assert_result(&framing, VARLINK_FRAMING_TOO_LONG);
  varlink_framing_push(&framing, "ok", 3);
  assert_result(&framing, VARLINK_FRAMING_TOO_LONG);
  varlink_framing_clear(&framing);
}

/* 16 MiB in small pieces: each byte is looked at once, or this would take minutes. */
static void long_message_in_small_pieces(void **state) {
  enum { PIECE = 512, PIECES = 32768 };
  VarlinkFraming framing;
  char piece[PIECE];
  char *message;
  size_t length;

  memset(piece, 'x', sizeof piece);
  varlink_framing_init(&framing, (size_t)PIECE * PIECES);
  for (size_t i = 0; i < PIECES; i++) {
    varlink_framing_push(&framing, piece, sizeof piece);
    assert_int_equal(varlink_framing_next(&framing, &message, &length), VARLINK_FRAMING_INCOMPLETE);
    assert_int_equal(framing.scanned, framing.end);
  }
  varlink_framing_push(&framing, "", 1);
  assert_int_equal(varlink_framing_next(&framing, &message, &length), VARLINK_FRAMING_MESSAGE);
  assert_int_equal(length, (size_t)PIECE * PIECES);
  assert_true(framing.allocated <= 2 * (length + PIECE));
  varlink_framing_release(&framing);
  assert_null(framing.buffer);
}

static void a_rest_moves_to_the_front(void **state) {
  VarlinkFraming framing;

  varlink_framing_init(&framing, LIMIT);
  for (unsigned i = 0; i < 10000; i++) {
    varlink_framing_push(&framing, i == 0 ? "he" : "llo\0he", i == 0 ? 2 : 6);
    if (i > 0)
      assert_next(&framing, "hello");
    assert_result(&framing, VARLINK_FRAMING_INCOMPLETE);
  }
  assert_true(framing.allocated <= 1024);
  varlink_framing_clear(&framing);
}

int main(void) {
  static const struct CMUnitTest tests[] = {
      ROW("messages are the same wherever the stream is cut", split_at_each_byte),
      ROW("a stream may come byte by byte", byte_by_byte),
      ROW("a flood of NULs is as many empty messages, in bounded memory", nul_flood),
      ROW("a message as long as the limit is taken", exactly_the_limit),
      ROW("a message over the limit is refused before its end", over_the_limit_unended),
      ROW("a message over the limit is refused for good when its end came too", over_the_limit_ended),
      ROW("a long message in small pieces costs linear time", long_message_in_small_pieces),
      ROW("an unfinished rest moves to the front and the buffer stays small", a_rest_moves_to_the_front),
      ROW("after a long message its memory is given back, and what has begun is kept", memory_is_given_back),
  };

  return cmocka_run_group_tests_name("framing", tests, NULL, NULL);
}
