/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Text from outside, made fit for one line. */
#include "libmigrate/core/plain.h"

#include "tests/unit/core/rows.h"

static const struct Text {
  const char *name;
  const char *text, *expected;
} texts[] = {
    {"nothing", "", ""},
    {"letters", "web3", "web3"},
    {"other letters", "gr\xc3\xbc\xc3\x9f \xe2\x9c\x93 \xf0\x9f\x90\xa7",
     "gr\xc3\xbc\xc3\x9f \xe2\x9c\x93 \xf0\x9f\x90\xa7"},
    {"a newline", "a\nSTATUS=b", "a STATUS=b"},
    {"a tab and a return", "a\tb\r\n", "a b  "},
    {"an escape of a terminal", "\033[2Jx", " [2Jx"},
    {"DEL", "a\x7f", "a "},
    {"the first and the last of C1", "\xc2\x80\xc2\x9f\xc2\xa0", "  \xc2\xa0"},
    {"C1's own CSI",
     "\xc2\x9b"
     "2J",
     " 2J"},
    {"separators of lines and paragraphs",
     "a\xe2\x80\xa8"
     "b\xe2\x80\xa9"
     "c\xe2\x80\xaa",
     "a b c\xe2\x80\xaa"},
    {"the beginning of one at the end", "a\xe2\x80", "a\xe2\x80"},
    {"half of C1 at the end", "a\xc2", "a\xc2"},
};

static void becomes(void **state) {
  const struct Text *row = *state;
  char text[64];

  assert_true(strlen(row->text) < sizeof text);
  strcpy(text, row->text);
  mig_text_make_plain(text);
  assert_string_equal(text, row->expected);
}

int main(void) {
  Tests tests = {0};

  TESTS_ADD_ROWS(&tests, becomes, texts);
  return tests_run(&tests, "plain");
}
