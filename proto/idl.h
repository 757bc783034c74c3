/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Varlink interface files: parsing them, and checking JSON against what they say. */
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

/* Read-only outside of the parser; owned by the interface. */
struct VarlinkType {
  VarlinkTypeKind kind;
  bool nullable;
  char *name;                 /* NAMED */
  const VarlinkType *element; /* ARRAY, MAP, and NAMED: what the name stands for */
  VarlinkField *fields;       /* ENUM, STRUCT, in the order of the file */
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
  const VarlinkType *type;  /* TYPE: itself; METHOD: what goes in; ERROR: its parameters */
  const VarlinkType *reply; /* METHOD: what comes out */
} VarlinkMember;

typedef struct VarlinkInterface VarlinkInterface;

VarlinkInterface *varlink_interface_parse(const char *text, GError **error);
void varlink_interface_free(VarlinkInterface *interface);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(VarlinkInterface, varlink_interface_free)

const char *varlink_interface_get_name(const VarlinkInterface *interface);

/* All members, in the order of the file. */
size_t varlink_interface_get_n_members(const VarlinkInterface *interface);
const VarlinkMember *varlink_interface_get_member(const VarlinkInterface *interface, size_t index);

/* By the name without the interface; NULL: there is none of this kind. */
const VarlinkMember *varlink_interface_find(const VarlinkInterface *interface, VarlinkMemberKind kind,
                                            const char *name);

/* Names of the fields of a struct, or the values of an enum; `index` runs from 0, NULL is past the end. So
 * that a test can hold a table in C against `type NAME (...)` of the interface. */
const char *varlink_interface_get_field_name(const VarlinkInterface *interface, const char *type_name,
                                             size_t index);

typedef enum VarlinkCheck { VARLINK_CHECK_CALL, VARLINK_CHECK_REPLY, VARLINK_CHECK_ERROR } VarlinkCheck;

/* Do the parameters of a call, a reply or an error (by the name without the interface) fit the interface? If
 * not, `ret_parameter` (may be NULL) is the name of the first that does not, as in "policy.max_pause_ms" or
 * "phases[2]": a field that is unknown, missing though not nullable, of a wrong type, no value of its enum. A
 * member that the interface does not have fits nothing; its name is returned then.
 *
 * What fits is put into its normal form, in place: a field that is null is taken out, so that absent is the
 * only way to say nothing; 1.0 where an int is wanted becomes 1, and 1 where a float is wanted 1.0. */
bool varlink_interface_check(const VarlinkInterface *interface, VarlinkCheck check, const char *name,
                             json_t *parameters, char **ret_parameter);

/* Has no string of it, nor the name of a field, a control character: C0, DEL, C1, or a separator of lines or paragraphs? If one
 * has, `ret_parameter` (may be NULL) says where, as above. */
bool varlink_text_check(json_t *value, char **ret_parameter);

/* The same for one type. */
bool varlink_type_check(const VarlinkType *type, json_t *value, char **ret_parameter);
