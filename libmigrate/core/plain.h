/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Text from outside, made fit for one line. */
#pragma once

/* Puts a blank in the place of each control character: C0, DEL, C1, and the separators of lines and paragraphs (U+2028, U+2029).
 * What is left can neither begin a line of its own nor steer a terminal. In place; what was UTF-8 stays that. */
void mig_text_make_plain(char *text);
