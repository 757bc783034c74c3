/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The parser for varlink interface files. */
#include "proto/idl.h"

#include <stdarg.h>
#include <string.h>

/* Theory of Operation
 *
 * A recursive descent parser, with one function per rule of the grammar. A list in the interface owns all types, so an error
 * leaves nothing to unwind. A name may be used before its `type` is defined; names are resolved at the end. Every failure goes
 * through fail(), which adds the line and keeps the first message. The parser trusts the text only to be NUL-terminated; it is
 * fuzzed. */

/* Deeper nesting in one type is a mistake and must not exhaust the stack. */
#define DEPTH_MAX 32

struct VarlinkInterface {
  char *name;
  GPtrArray *members;  /* VarlinkMember */
  GHashTable *by_name; /* all kinds: they share one name space in varlink */
  GPtrArray *types;    /* VarlinkType, all of them */
};

typedef struct Parser {
  VarlinkInterface *interface;
  const char *at;
  unsigned line;
  unsigned depth;
  GPtrArray *uses; /* NAMED types to resolve */
  GArray *use_lines;
  GError **error;
} Parser;

G_DEFINE_QUARK(varlink - idl - error - quark, varlink_idl_error)

static void type_free(gpointer data) {
  VarlinkType *type = data;

  for (size_t i = 0; i < type->n_fields; i++)
    g_free(type->fields[i].name);
  g_free(type->fields);
  g_free(type->name);
  g_free(type);
}

static void member_free(gpointer data) {
  VarlinkMember *member = data;

  g_free(member->name);
  g_free(member);
}

void varlink_interface_free(VarlinkInterface *interface) {
  if (!interface)
    return;

  g_hash_table_unref(interface->by_name);
  g_ptr_array_unref(interface->members);
  g_ptr_array_unref(interface->types);
  g_free(interface->name);
  g_free(interface);
}

G_GNUC_PRINTF(3, 4)
static bool fail_at(Parser *parser, unsigned line, const char *format, ...) {
  g_autofree char *text = NULL;
  va_list arguments;

  va_start(arguments, format);
  text = g_strdup_vprintf(format, arguments);
  va_end(arguments);
  if (!parser->error || !*parser->error)
    g_set_error(parser->error, VARLINK_IDL_ERROR, VARLINK_IDL_ERROR_SYNTAX, "line %u: %s", line, text);
  return false;
}

#define fail(parser, ...) fail_at(parser, (parser)->line, __VA_ARGS__)

static void skip_space(Parser *parser) {
  for (;; parser->at++) {
    if (*parser->at == '#')
      parser->at += strcspn(parser->at, "\n");
    if (*parser->at == '\n')
      parser->line++;
    else if (!*parser->at || !strchr(" \t\r", *parser->at))
      return;
  }
}

static bool accept_char(Parser *parser, char c) {
  skip_space(parser);
  if (*parser->at != c)
    return false;
  parser->at++;
  return true;
}

static bool expect(Parser *parser, const char *token) {
  skip_space(parser);
  if (strncmp(parser->at, token, strlen(token)) != 0)
    return fail(parser, "expected \"%s\"", token);
  parser->at += strlen(token);
  return true;
}

/* The length of a word of letters and digits that begins with a letter; 0 if there is none. */
static size_t word_length(const char *at) {
  size_t length = 0;

  if (g_ascii_isalpha(*at))
    while (g_ascii_isalnum(at[length]))
      length++;
  return length;
}

static bool accept_keyword(Parser *parser, const char *keyword) {
  size_t length;

  skip_space(parser);
  length = word_length(parser->at);
  if (length != strlen(keyword) || strncmp(parser->at, keyword, length) != 0)
    return false;
  parser->at += length;
  return true;
}

static char *take(Parser *parser, size_t length) {
  char *text = g_strndup(parser->at, length);

  parser->at += length;
  return text;
}

/* [A-Z][A-Za-z0-9]* */
static char *parse_member_name(Parser *parser) {
  skip_space(parser);
  if (!g_ascii_isupper(*parser->at)) {
    fail(parser, "expected a name that begins with a capital letter");
    return NULL;
  }
  return take(parser, word_length(parser->at));
}

/* [A-Za-z](_?[A-Za-z0-9])* */
static char *parse_field_name(Parser *parser) {
  size_t length;

  skip_space(parser);
  length = word_length(parser->at);
  if (length == 0) {
    fail(parser, "expected a field name");
    return NULL;
  }
  while (g_ascii_isalnum(parser->at[length]) ||
         (parser->at[length] == '_' && g_ascii_isalnum(parser->at[length + 1])))
    length++;
  return take(parser, length);
}

/* [A-Za-z](-*[A-Za-z0-9])*(\.[A-Za-z0-9](-*[A-Za-z0-9])*)+ */
static char *parse_interface_name(Parser *parser) {
  size_t length, dots = 0;
  const char *name;

  skip_space(parser);
  name = parser->at;
  length = strspn(name, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789.-");
  for (size_t i = 0; i < length; i++)
    if (name[i] == '.') {
      dots++;
      if (i == 0 || name[i - 1] == '-' || name[i + 1] == '-' || name[i + 1] == '.' || i + 1 == length)
        dots = length;
    }
  if (!g_ascii_isalpha(*name) || dots == 0 || dots >= length || name[length - 1] == '-' || length > 255) {
    fail(parser, "expected an interface name, such as \"org.example.Name\"");
    return NULL;
  }
  return take(parser, length);
}

static VarlinkType *type_new(Parser *parser, VarlinkTypeKind kind) {
  VarlinkType *type = g_new0(VarlinkType, 1);

  type->kind = kind;
  g_ptr_array_add(parser->interface->types, type);
  return type;
}

static VarlinkType *parse_type(Parser *parser);

/* "(a: int, b: ?string)" is a struct, "(a, b)" an enum, "()" a struct without fields. */
static VarlinkType *parse_fields(Parser *parser) {
  g_autoptr(GHashTable) names = g_hash_table_new(g_str_hash, g_str_equal);
  g_autoptr(GArray) fields = g_array_new(FALSE, FALSE, sizeof(VarlinkField));
  VarlinkType *type = type_new(parser, VARLINK_TYPE_STRUCT);
  bool good;

  good = expect(parser, "(");
  if (good && accept_char(parser, ')'))
    return type;

  while (good) {
    VarlinkField field = {.name = parse_field_name(parser)};
    bool typed;

    if (!field.name) {
      good = false;
      break;
    }
    g_array_append_val(fields, field);

    typed = accept_char(parser, ':');
    if (fields->len == 1 && !typed)
      type->kind = VARLINK_TYPE_ENUM;

    if (!g_hash_table_add(names, field.name))
      good = fail(parser, "duplicate field \"%s\"", field.name);
    else if (typed != (type->kind == VARLINK_TYPE_STRUCT))
      good = fail(parser, typed ? "the enum value \"%s\" has a type" : "the field \"%s\" has no type",
                  field.name);
    else if (typed)
      good = (g_array_index(fields, VarlinkField, fields->len - 1).type = parse_type(parser)) != NULL;

    if (good && !accept_char(parser, ',')) {
      good = expect(parser, ")");
      break;
    }
  }

  type->n_fields = fields->len;
  type->fields = (VarlinkField *)(void *)g_array_free(g_steal_pointer(&fields), FALSE);
  return good ? type : NULL;
}

static VarlinkType *parse_element(Parser *parser) {
  static const struct {
    const char *keyword;
    VarlinkTypeKind kind;
  } simple[] = {
      {"bool", VARLINK_TYPE_BOOL},     {"int", VARLINK_TYPE_INT},       {"float", VARLINK_TYPE_FLOAT},
      {"string", VARLINK_TYPE_STRING}, {"object", VARLINK_TYPE_OBJECT},
  };
  VarlinkType *type;

  for (size_t i = 0; i < G_N_ELEMENTS(simple); i++)
    if (accept_keyword(parser, simple[i].keyword))
      return type_new(parser, simple[i].kind);

  skip_space(parser);
  if (*parser->at == '(')
    return parse_fields(parser);

  if (accept_char(parser, '[')) {
    type = type_new(parser, accept_keyword(parser, "string") ? VARLINK_TYPE_MAP : VARLINK_TYPE_ARRAY);
    if (!expect(parser, "]"))
      return NULL;
    type->element = parse_type(parser);
    return type->element ? type : NULL;
  }

  if (!g_ascii_isupper(*parser->at)) {
    fail(parser, "expected a type");
    return NULL;
  }
  type = type_new(parser, VARLINK_TYPE_NAMED);
  type->name = take(parser, word_length(parser->at));
  g_ptr_array_add(parser->uses, type);
  g_array_append_val(parser->use_lines, parser->line);
  return type;
}

static VarlinkType *parse_type(Parser *parser) {
  bool nullable = accept_char(parser, '?');
  VarlinkType *type = NULL;

  if (++parser->depth > DEPTH_MAX)
    fail(parser, "types are nested too deeply");
  else
    type = parse_element(parser);
  parser->depth--;

  if (type)
    type->nullable = nullable;
  return type;
}

static bool parse_member(Parser *parser) {
  VarlinkMember *member = g_new0(VarlinkMember, 1);

  g_ptr_array_add(parser->interface->members, member);

  if (accept_keyword(parser, "type"))
    member->kind = VARLINK_MEMBER_TYPE;
  else if (accept_keyword(parser, "method"))
    member->kind = VARLINK_MEMBER_METHOD;
  else if (accept_keyword(parser, "error"))
    member->kind = VARLINK_MEMBER_ERROR;
  else
    return fail(parser, "expected \"type\", \"method\" or \"error\"");

  member->name = parse_member_name(parser);
  if (!member->name)
    return false;
  member->line = parser->line;
  if (g_hash_table_contains(parser->interface->by_name, member->name))
    return fail(parser, "\"%s\" is defined twice", member->name);
  g_hash_table_insert(parser->interface->by_name, member->name, member);

  member->type = parse_fields(parser);
  if (!member->type)
    return false;
  if (member->kind != VARLINK_MEMBER_TYPE && member->type->kind != VARLINK_TYPE_STRUCT)
    return fail_at(parser, member->line, "the parameters of \"%s\" have no types", member->name);

  if (member->kind == VARLINK_MEMBER_METHOD) {
    if (!expect(parser, "->"))
      return false;
    member->reply = parse_fields(parser);
    if (!member->reply)
      return false;
    if (member->reply->kind != VARLINK_TYPE_STRUCT)
      return fail_at(parser, member->line, "the reply of \"%s\" has no types", member->name);
  }
  return true;
}

static bool parse_file(Parser *parser) {
  if (!accept_keyword(parser, "interface"))
    return fail(parser, "expected \"interface\"");
  parser->interface->name = parse_interface_name(parser);
  if (!parser->interface->name)
    return false;

  for (;;) {
    /* In the grammar, the end of a line separates members. */
    unsigned line = parser->line;

    skip_space(parser);
    if (!*parser->at)
      break;
    if (parser->line == line)
      return fail(parser, "expected a new line before \"%.20s\"", parser->at);
    if (!parse_member(parser))
      return false;
  }

  for (size_t i = 0; i < parser->uses->len; i++) {
    VarlinkType *use = parser->uses->pdata[i];
    const VarlinkMember *member = varlink_interface_find(parser->interface, VARLINK_MEMBER_TYPE, use->name);

    if (!member)
      return fail_at(parser, g_array_index(parser->use_lines, unsigned, i), "unknown type \"%s\"", use->name);
    use->element = member->type;
  }
  return true;
}

VarlinkInterface *varlink_interface_parse(const char *text, GError **error) {
  g_autoptr(VarlinkInterface) interface = g_new0(VarlinkInterface, 1);
  g_autoptr(GPtrArray) uses = g_ptr_array_new();
  g_autoptr(GArray) use_lines = g_array_new(FALSE, FALSE, sizeof(unsigned));
  g_autoptr(GError) first = NULL;
  Parser parser = {
      .interface = interface, .at = text, .line = 1, .uses = uses, .use_lines = use_lines, .error = &first};

  interface->members = g_ptr_array_new_with_free_func(member_free);
  interface->by_name = g_hash_table_new(g_str_hash, g_str_equal);
  interface->types = g_ptr_array_new_with_free_func(type_free);

  if (!parse_file(&parser)) {
    g_propagate_error(error, g_steal_pointer(&first));
    return NULL;
  }
  return g_steal_pointer(&interface);
}

const char *varlink_interface_get_name(const VarlinkInterface *interface) {
  return interface->name;
}

size_t varlink_interface_get_n_members(const VarlinkInterface *interface) {
  return interface->members->len;
}

const VarlinkMember *varlink_interface_get_member(const VarlinkInterface *interface, size_t index) {
  return index < interface->members->len ? interface->members->pdata[index] : NULL;
}

const VarlinkMember *varlink_interface_find(const VarlinkInterface *interface, VarlinkMemberKind kind,
                                            const char *name) {
  const VarlinkMember *member = g_hash_table_lookup(interface->by_name, name);

  return member && member->kind == kind ? member : NULL;
}
