/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Fuzzes the URIs that a caller may name, and the patterns of AllowTargets=: what is taken is put together again from its parts,
 * has no byte outside of the few that hosts and users are made of, and GLib's parser sees the same parts in it. */
#include "fuzz.h"

#include "libmigrate/core/uri.h"

#include <gio/gio.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

static void must(bool condition) {
  if (!condition)
    abort();
}

static void must_be_plain(const char *text) {
  must(strlen(text) <= MIG_URI_BYTES_MAX);
  for (const char *p = text; *p; p++)
    must(g_ascii_isalnum(*p) || strchr("+:/@.-_[]", *p));
  must(!strstr(text, "/-") && !strstr(text, "@-") && !strstr(text, "..") && !strchr(text, '%'));
}

static void must_come_together(const char *text, const MigUri *uri, const char *path) {
  g_autoptr(GString) again = g_string_new_len(uri->scheme.text, (gssize)uri->scheme.length);
  bool brackets = uri->address.bits == 128;

  g_string_append(again, "://");
  if (uri->user.length > 0) {
    g_string_append_len(again, uri->user.text, (gssize)uri->user.length);
    g_string_append_c(again, '@');
  }
  g_string_append(again, brackets ? "[" : "");
  g_string_append_len(again, uri->host.text, (gssize)uri->host.length);
  g_string_append(again, brackets ? "]" : "");
  if (uri->port > 0)
    g_string_append_printf(again, ":%u", uri->port);
  g_string_append(again, path);
  must(strcmp(again->str, text) == 0);
}

/* Another parser, which libvirt's own is like, sees nothing else in it. */
static void must_be_seen_alike(const char *text, const MigUri *uri, const char *path) {
  g_autoptr(GUri) other = g_uri_parse(text, G_URI_FLAGS_NONE, NULL);
  g_autofree char *host = g_strndup(uri->host.text, uri->host.length);
  g_autofree char *user = g_strndup(uri->user.text, uri->user.length);

  must(other && !g_uri_get_query(other) && !g_uri_get_fragment(other));
  must(strcmp(g_uri_get_host(other), host) == 0);
  must(g_uri_get_port(other) == (uri->port > 0 ? (int)uri->port : -1));
  must(strcmp(g_uri_get_path(other), path) == 0);
  must(g_strcmp0(g_uri_get_userinfo(other) ? g_uri_get_userinfo(other) : "", user ? user : "") == 0);
}

/* As the kernel's resolver reads it: all that it takes for an address was told to be that one. */
static void must_be_the_address(const MigUri *uri) {
  g_autofree char *host = g_strndup(uri->host.text, uri->host.length);
  g_autoptr(GInetAddress) address = g_inet_address_new_from_string(host);

  must((address != NULL) == (uri->address.bits > 0));
  if (address) {
    must(g_inet_address_get_native_size(address) * 8 == uri->address.bits);
    must(memcmp(g_inet_address_to_bytes(address), uri->address.bytes, uri->address.bits / 8) == 0);
  }
}

static void try_uri(MigUriKind kind, const char *text, const char *path, const char *pattern) {
  MigUri uri;
  MigAllow allow;

  if (mig_uri_parse(kind, text, &uri))
    return;
  must_be_plain(text);
  must_come_together(text, &uri, path);
  must_be_seen_alike(text, &uri, path);
  must_be_the_address(&uri);
  must(mig_uri_same_host(&uri, &uri));
  must(mig_allow_parse(text, &allow) && mig_allow_uri(&allow, text, &uri));
  if (mig_allow_parse(pattern, &allow) && mig_allow_uri(&allow, text, &uri))
    must(allow.kind != MIG_ALLOW_NAME);
}

/* A network has its own address, and GLib takes it for one. */
static void try_network(const char *text) {
  g_autoptr(GInetAddressMask) mask = NULL;
  MigAddress network;
  unsigned prefix;

  if (!mig_network_parse(text, &network, &prefix))
    return;
  mask = g_inet_address_mask_new_from_string(text, NULL);
  must(mask && g_inet_address_mask_get_length(mask) == prefix);
  must(mig_network_contains(&network, prefix, &network));
}

/* Up to the first newline a URI, behind it a pattern. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  g_autofree char *text = g_strndup((const char *)data, size);
  char *end = strchr(text, '\n');
  const char *pattern = end ? end + 1 : "";
  MigUri uri;

  must(mig_uri_parse(MIG_URI_LIBVIRT, text, NULL) || !end);
  if (end)
    *end = '\0';
  must(mig_uri_parse(MIG_URI_LIBVIRT, text, &uri) || mig_uri_parse(MIG_URI_MIGRATION, text, &uri));
  try_uri(MIG_URI_LIBVIRT, text, "/system", pattern);
  try_uri(MIG_URI_MIGRATION, text, "", pattern);
  try_network(text);
  try_network(pattern);
  return 0;
}
