/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* A JSON value of a fuzzer's bytes: as it stands, or a sound one with edits that the bytes tell. Of plain bytes hardly any are
 * JSON, and of those hardly any come past the first member. */
#pragma once

#include <jansson.h>
#include <stddef.h>
#include <stdint.h>

/* NULL: it is none. `bases`: JSON texts. The first byte chooses: '{' begins JSON, else it is the number of the one to edit. */
json_t *json_of_bytes(const uint8_t *data, size_t size, const char *const *bases, size_t n_bases);
