/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Fuzzes the parser of interface files. */
#include "fuzz.h"

#include "proto/idl.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

static void must(bool condition) {
  if (!condition)
    abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  g_autofree char *text = g_strndup((const char *)data, size);
  g_autoptr(GError) error = NULL;
  g_autoptr(VarlinkInterface) interface = varlink_interface_parse(text, &error);

  if (!interface) {
    must(error && g_str_has_prefix(error->message, "line "));
    return 0;
  }

  must(!error && strchr(varlink_interface_get_name(interface), '.'));
  for (size_t i = 0; i < varlink_interface_get_n_members(interface); i++) {
    const VarlinkMember *member = varlink_interface_get_member(interface, i);
    json_t *empty = json_object();

    must(varlink_interface_find(interface, member->kind, member->name) == member);
    varlink_type_check(member->type, empty, NULL);
    json_decref(empty);
  }
  return 0;
}
