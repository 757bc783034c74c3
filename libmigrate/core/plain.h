/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Makes untrusted text fit on one line. */
#pragma once

/* Replaces each control character with a blank: C0, DEL, C1, and the line and paragraph separators (U+2028, U+2029).
 * The result can neither start a new line nor control a terminal. In place; valid UTF-8 stays valid. */
void mig_text_make_plain(char *text);
