/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Ids: a random UUID without its dashes. */
#include "agent/base/id.h"

#include <glib.h>

void id_make(char *ret_id) {
  g_autofree char *uuid = g_uuid_string_random();

  for (const char *from = uuid; *from; from++)
    if (*from != '-')
      *ret_id++ = *from;
  *ret_id = '\0';
}
