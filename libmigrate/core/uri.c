/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The URIs that a caller may name, and which of them AllowTargets= allows. */
#include "libmigrate/core/uri.h"

#include "libmigrate/core/match.h"
#include "libmigrate/core/table.h"

#include <string.h>

#define HOST_BYTES_MAX  253
#define LABEL_BYTES_MAX 63
#define USER_BYTES_MAX  32
#define PORT_MAX        65535

#define DIGITS "0123456789"
#define LOWER  "abcdefghijklmnopqrstuvwxyz"
#define UPPER  "ABCDEFGHIJKLMNOPQRSTUVWXYZ"

typedef struct Scheme {
  MigUriKind kind;
  const char *name;
  bool has_user;
} Scheme;

/* No unix:// for migrations: that is a path on this host, where anybody may listen. */
static const Scheme schemes[] = {
    {MIG_URI_LIBVIRT, "qemu+tls", false}, {MIG_URI_LIBVIRT, "qemu+tcp", false},
    {MIG_URI_LIBVIRT, "qemu+ssh", true},  {MIG_URI_MIGRATION, "tcp", false},
    {MIG_URI_MIGRATION, "rdma", false},
};

/* What differs between the two kinds. */
typedef struct Shape {
  const char *path;
  const char *bad_scheme;
  const char *bad_end;
} Shape;

static const Shape shapes[] = {
    [MIG_URI_LIBVIRT] = {"/system",
                         "callers may use qemu+tls://, qemu+tcp:// and qemu+ssh:// only; put any other URI "
                         "into a [Target] of the configuration",
                         "a caller's URI must end with /system; put one with another path, with parameters "
                         "or a fragment into a [Target] of the configuration"},
    [MIG_URI_MIGRATION] = {"",
                           "callers may use tcp:// and rdma:// only; put any other URI into MigrateURI= of a "
                           "[Target] of the configuration",
                           "a caller's URI must end with its host or port"},
};
_Static_assert(TABLE_LENGTH(shapes) == MIG_URI_KIND_COUNT, "a shape for each kind");

static const Scheme *find_scheme(MigUriKind kind, const char *text) {
  for (size_t i = 0; i < TABLE_LENGTH(schemes); i++) {
    size_t length = strlen(schemes[i].name);

    if (schemes[i].kind == kind && strncmp(text, schemes[i].name, length) == 0 &&
        strncmp(text + length, "://", 3) == 0)
      return &schemes[i];
  }
  return NULL;
}

static bool is_of(char c, const char *set) {
  return c && strchr(set, c);
}

static size_t span(const char *text, const char *set) {
  size_t n = 0;

  while (is_of(text[n], set))
    n++;
  return n;
}

/* What useradd accepts: never an ssh option, nor anything special to a shell. */
static bool is_user(const MigUriPart *user) {
  return user->length > 0 && user->length <= USER_BYTES_MAX && is_of(*user->text, LOWER "_") &&
         span(user->text, LOWER DIGITS "_-") == user->length;
}

/* The resolver treats "10.1", "167772161" and "0x7f.1" as addresses. No top-level domain looks like that. */
static bool is_number(const char *label, size_t length) {
  size_t n = span(label, DIGITS);

  if (n == length)
    return true;
  return n == 1 && label[0] == '0' && (label[1] == 'x' || label[1] == 'X') &&
         span(label + 2, DIGITS "abcdefABCDEF") == length - 2;
}

static bool is_dns_name(const MigUriPart *host) {
  const char *label = host->text;
  size_t left = host->length;

  if (left == 0 || left > HOST_BYTES_MAX)
    return false;
  for (;;) {
    size_t length = span(label, LOWER UPPER DIGITS "-_");

    if (length == 0 || length > LABEL_BYTES_MAX || *label == '-' || *label == '_' || label[length - 1] == '-')
      return false;
    if (length >= left)
      return length == left && !is_number(label, length);
    if (label[length] != '.')
      return false;
    label += length + 1;
    left -= length + 1;
  }
}

/* Returns what follows the host, or NULL. */
static const char *take_host(const char *text, MigUri *uri) {
  if (*text == '[') {
    uri->host = (MigUriPart){text + 1, span(text + 1, DIGITS "abcdefABCDEF:.")};
    if (uri->host.text[uri->host.length] != ']' ||
        !mig_address_parse(uri->host.text, uri->host.length, &uri->address) || uri->address.bits != 128)
      return NULL;
    return uri->host.text + uri->host.length + 1;
  }
  uri->host = (MigUriPart){text, span(text, LOWER UPPER DIGITS "-_.")};
  if (!mig_address_parse(text, uri->host.length, &uri->address) && !is_dns_name(&uri->host))
    return NULL;
  return text + uri->host.length;
}

/* Returns what follows the digits, or NULL. */
static const char *take_port(const char *text, unsigned *ret_port) {
  size_t n = span(text, DIGITS);
  unsigned port = 0;

  if (n == 0 || n > 5 || *text == '0')
    return NULL;
  for (size_t i = 0; i < n; i++)
    port = port * 10 + (unsigned)(text[i] - '0');
  if (port > PORT_MAX)
    return NULL;
  *ret_port = port;
  return text + n;
}

const char *mig_uri_parse(MigUriKind kind, const char *text, MigUri *ret_uri) {
  const Scheme *scheme = find_scheme(kind, text);
  MigUri uri = {.port = 0};
  const char *at;
  size_t n;

  if (strlen(text) > MIG_URI_BYTES_MAX)
    return "it is longer than 2048 bytes";
  if (!scheme)
    return shapes[kind].bad_scheme;
  uri.scheme = (MigUriPart){text, strlen(scheme->name)};
  at = text + uri.scheme.length + strlen("://");

  n = span(at, LOWER UPPER DIGITS "_-.");
  if (at[n] == '@') {
    uri.user = (MigUriPart){at, n};
    if (!scheme->has_user)
      return "only qemu+ssh:// takes a user";
    if (!is_user(&uri.user))
      return "its user name is invalid: it takes lower-case letters, digits, '_' and '-', and starts with a "
             "letter or '_'";
    at += n + 1;
  }
  at = take_host(at, &uri);
  if (!at)
    return "its host is neither a DNS name nor an IPv4 address, nor an IPv6 address in brackets";
  if (*at == ':') {
    at = take_port(at + 1, &uri.port);
    if (!at)
      return "its port is not a number from 1 to 65535";
  }
  if (strcmp(at, shapes[kind].path) != 0)
    return shapes[kind].bad_end;
  if (ret_uri)
    *ret_uri = uri;
  return NULL;
}

static char lower(char c) {
  return (char)(c >= 'A' && c <= 'Z' ? c - 'A' + 'a' : c);
}

bool mig_uri_same_host(const MigUri *a, const MigUri *b) {
  if (a->address.bits > 0 || b->address.bits > 0)
    return mig_network_contains(&a->address, a->address.bits, &b->address);
  if (a->host.length != b->host.length)
    return false;
  for (size_t i = 0; i < a->host.length; i++)
    if (lower(a->host.text[i]) != lower(b->host.text[i]))
      return false;
  return true;
}

/* --- AllowTargets= --- */

/* Like mig_glob(), but no wildcard matches a URI's separators; case does not matter, as in host names. */
static bool fits(const char *pattern, const char *text) {
  static const char stops[] = "/@:";
  const char *star = NULL, *from = NULL; /* what follows the last "*", and where it was tried last */

  while (*text) {
    if (*pattern == '*') {
      star = ++pattern;
      from = text;
    } else if (*pattern == '?' ? !is_of(*text, stops) : lower(*pattern) == lower(*text)) {
      pattern++;
      text++;
    } else if (star && !is_of(*from, stops)) {
      pattern = star;
      text = ++from;
    } else {
      return false;
    }
  }
  while (*pattern == '*')
    pattern++;
  return !*pattern;
}

static bool begins_with_known_scheme(const char *pattern) {
  for (int kind = 0; kind < MIG_URI_KIND_COUNT; kind++)
    if (find_scheme((MigUriKind)kind, pattern))
      return true;
  return false;
}

bool mig_allow_parse(const char *pattern, MigAllow *ret_allow) {
  MigAllow allow = {.kind = MIG_ALLOW_NAME, .pattern = pattern};

  if (strstr(pattern, "://")) {
    allow.kind = MIG_ALLOW_URI;
    if (!begins_with_known_scheme(pattern))
      return false;
  } else if (mig_network_parse(pattern, &allow.network, &allow.prefix)) {
    allow.kind = MIG_ALLOW_NETWORK;
  } else if (!*pattern || strchr(pattern, '/')) {
    return false;
  }
  *ret_allow = allow;
  return true;
}

bool mig_allow_name(const MigAllow *allow, const char *name) {
  return allow->kind == MIG_ALLOW_NAME && mig_glob(allow->pattern, name);
}

bool mig_allow_uri(const MigAllow *allow, const char *text, const MigUri *uri) {
  switch (allow->kind) {
  case MIG_ALLOW_URI:
    return fits(allow->pattern, text);
  case MIG_ALLOW_NETWORK:
    return mig_network_contains(&allow->network, allow->prefix, &uri->address);
  case MIG_ALLOW_NAME:
    break;
  }
  return false;
}
