/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Do messages match their interface? */
#pragma once

#include "proto/idl.h"

typedef enum VarlinkCheck { VARLINK_CHECK_CALL, VARLINK_CHECK_REPLY, VARLINK_CHECK_ERROR } VarlinkCheck;

/* Do the parameters of a call, a reply or an error (by its name without the interface) match the interface? `ret_parameter` as in
 * varlink_type_check(); if the interface has no such member, its name. */
static inline bool varlink_interface_check(const VarlinkInterface *interface, VarlinkCheck check,
                                           const char *name, json_t *parameters, char **ret_parameter) {
  VarlinkMemberKind kind = check == VARLINK_CHECK_ERROR ? VARLINK_MEMBER_ERROR : VARLINK_MEMBER_METHOD;
  const VarlinkMember *member = varlink_interface_find(interface, kind, name);

  if (member)
    return varlink_type_check(check == VARLINK_CHECK_REPLY ? member->reply : member->type, parameters,
                              ret_parameter);
  if (ret_parameter)
    *ret_parameter = g_strdup(name);
  return false;
}
