/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Makes untrusted text fit on one line. */
#include "libmigrate/core/plain.h"

#include <stddef.h>

/* Length in bytes of the control character at the start of the text; 0: none. */
static size_t control_length(const unsigned char *text) {
  if (*text < 0x20 || *text == 0x7f)
    return 1;
  if (text[0] == 0xc2 && text[1] >= 0x80 && text[1] <= 0x9f)
    return 2;
  return text[0] == 0xe2 && text[1] == 0x80 && (text[2] == 0xa8 || text[2] == 0xa9) ? 3 : 0;
}

void mig_text_make_plain(char *text) {
  char *to = text;

  while (*text) {
    size_t length = control_length((const unsigned char *)text);

    *to++ = length > 0 ? ' ' : *text;
    text += length > 0 ? length : 1;
  }
  *to = '\0';
}
