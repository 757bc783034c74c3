/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The URIs that a caller may name: a short allow list.
 *
 *   of a libvirtd       qemu+tls|tcp|ssh://[USER@]HOST[:PORT]/system     a USER with ssh only
 *   of a migration      tcp|rdma://HOST[:PORT]
 *
 * HOST is a DNS name (which may contain '_', as host names do), an IPv4 address, or an IPv6 address in brackets. There are
 * no parameters, fragments, escapes or control characters, and nothing has two spellings. libvirt's URIs can do far more:
 * run a program, name a socket, a key or a known_hosts file, open another URI. All of that is left to the configuration. */
#pragma once

#include "libmigrate/core/address.h"

#define MIG_URI_BYTES_MAX 2048

typedef enum MigUriKind { MIG_URI_LIBVIRT, MIG_URI_MIGRATION, MIG_URI_KIND_COUNT } MigUriKind;

typedef struct MigUriPart {
  const char *text; /* borrowed from the URI; not terminated */
  size_t length;    /* 0: it has none */
} MigUriPart;

typedef struct MigUri {
  MigUriPart scheme;
  MigUriPart user;
  MigUriPart host;    /* without brackets */
  MigAddress address; /* if the host is an address; otherwise its bits are 0 */
  unsigned port;      /* 0: not given */
} MigUri;

/* NULL: it is good, and ret_uri (may be NULL) has its parts. Otherwise what is wrong with it, as the rest of a
 * sentence. */
const char *mig_uri_parse(MigUriKind kind, const char *text, MigUri *ret_uri);

/* The same host, by name or address. */
bool mig_uri_same_host(const MigUri *a, const MigUri *b);

/* A pattern of AllowTargets=. */
typedef enum MigAllowKind { MIG_ALLOW_NAME, MIG_ALLOW_URI, MIG_ALLOW_NETWORK } MigAllowKind;

typedef struct MigAllow {
  MigAllowKind kind;
  const char *pattern; /* borrowed */
  MigAddress network;
  unsigned prefix;
} MigAllow;

/* "10.0.0.0/8", "qemu+tls://node-?/system", or otherwise the name of a [Target]. False: it looks like a network or a
 * URI and can never match. */
bool mig_allow_parse(const char *pattern, MigAllow *ret_allow);

/* Does it match the [Target] of that name? "*" and "?" stand for any characters. */
bool mig_allow_name(const MigAllow *allow, const char *name);

/* Does it match this URI, which mig_uri_parse() accepted? "*" and "?" stand for any characters but "/", "@" and ":",
 * so that a pattern for a host matches only a host. */
bool mig_allow_uri(const MigAllow *allow, const char *text, const MigUri *uri);
