/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Parses varlink interface files and checks JSON against them. */
#pragma once

#include <glib.h>
#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

#define VARLINK_IDL_ERROR (varlink_idl_error_quark())
GQuark varlink_idl_error_quark(void);

typedef enum VarlinkIdlError {
  VARLINK_IDL_ERROR_SYNTAX /* the message begins with "line N: " */
} VarlinkIdlError;

typedef enum VarlinkTypeKind {
  VARLINK_TYPE_BOOL,
  VARLINK_TYPE_INT,
  VARLINK_TYPE_FLOAT,
  VARLINK_TYPE_STRING,
  VARLINK_TYPE_OBJECT, /* any JSON value */
  VARLINK_TYPE_ENUM,   /* fields have names only */
  VARLINK_TYPE_STRUCT,
  VARLINK_TYPE_ARRAY,
  VARLINK_TYPE_MAP,  /* [string]element */
  VARLINK_TYPE_NAMED /* refers to a `type` of the interface */
} VarlinkTypeKind;

typedef struct VarlinkType VarlinkType;

typedef struct VarlinkField {
  char *name;
  VarlinkType *type; /* NULL in an enum */
} VarlinkField;

/* Read-only outside the parser; owned by the interface. */
struct VarlinkType {
  VarlinkTypeKind kind;
  bool nullable;
  char *name;                 /* NAMED */
  const VarlinkType *element; /* ARRAY, MAP; NAMED: the type that it refers to */
  VarlinkField *fields;       /* ENUM, STRUCT: in the order of the file */
  size_t n_fields;
};

typedef enum VarlinkMemberKind {
  VARLINK_MEMBER_TYPE,
  VARLINK_MEMBER_METHOD,
  VARLINK_MEMBER_ERROR
} VarlinkMemberKind;

typedef struct VarlinkMember {
  VarlinkMemberKind kind;
  char *name;
  unsigned line;
  const VarlinkType *type;  /* TYPE: the type; METHOD: the parameters of the call; ERROR: its parameters */
  const VarlinkType *reply; /* METHOD: the parameters of the reply */
} VarlinkMember;

typedef struct VarlinkInterface VarlinkInterface;

VarlinkInterface *varlink_interface_parse(const char *text, GError **error);
void varlink_interface_free(VarlinkInterface *interface);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(VarlinkInterface, varlink_interface_free)

const char *varlink_interface_get_name(const VarlinkInterface *interface);

/* All members, in the order of the file. */
size_t varlink_interface_get_n_members(const VarlinkInterface *interface);
const VarlinkMember *varlink_interface_get_member(const VarlinkInterface *interface, size_t index);

/* Finds a member by its name, without the interface. NULL: no member of this kind has the name. */
const VarlinkMember *varlink_interface_find(const VarlinkInterface *interface, VarlinkMemberKind kind,
                                            const char *name);

/* Does the value match the type: the parameters of a method, a reply or an error? If not, `ret_parameter` (may be NULL) names the
 * first that does not, as in "policy.max_pause_ms" or "phases[2]": a field that is unknown, that is missing although not
 * nullable, that has the wrong type, or that is not a value of its enum.
 *
 * Valid parameters are normalized in place: null fields are removed, so that an absent field is the only way to say nothing;
 * 1.0 becomes 1 where an int is expected, and 1 becomes 1.0 where a float is expected. */
bool varlink_type_check(const VarlinkType *type, json_t *value, char **ret_parameter);

/* Are all strings and field names free of control characters: C0, DEL, C1, and the line and paragraph separators? If not,
 * `ret_parameter` (may be NULL) says where, as above. */
bool varlink_text_check(json_t *value, char **ret_parameter);
