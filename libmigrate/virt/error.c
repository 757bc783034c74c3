/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Translates libvirt's errors to ours, by one table, and keeps libvirt's own code and text. */
#include "libmigrate/virt/libvirt.h"

#include "libmigrate/core/plain.h"

#include <string.h>

typedef struct MigVirtErrorPrivate {
  bool from_libvirt;
  int code;
  char *message;
} MigVirtErrorPrivate;

static void mig_virt_error_private_init(MigVirtErrorPrivate *priv) {
  memset(priv, 0, sizeof *priv);
}

static void mig_virt_error_private_copy(const MigVirtErrorPrivate *from, MigVirtErrorPrivate *to) {
  *to = *from;
  to->message = g_strdup(from->message);
}

static void mig_virt_error_private_clear(MigVirtErrorPrivate *priv) {
  g_free(priv->message);
}

G_DEFINE_EXTENDED_ERROR(MigVirtError, mig_virt_error)

static const char *const names[] = {
    [MIG_VIRT_ERROR_UNREACHABLE] = "UNREACHABLE",
    [MIG_VIRT_ERROR_PEER_LOST] = "PEER_LOST",
    [MIG_VIRT_ERROR_TIMEOUT] = "TIMEOUT",
    [MIG_VIRT_ERROR_NO_DOMAIN] = "NO_DOMAIN",
    [MIG_VIRT_ERROR_NOT_RUNNING] = "NOT_RUNNING",
    [MIG_VIRT_ERROR_DENIED] = "DENIED",
    [MIG_VIRT_ERROR_SAME_HOST] = "SAME_HOST",
    [MIG_VIRT_ERROR_EXISTS] = "EXISTS",
    [MIG_VIRT_ERROR_BUSY] = "BUSY",
    [MIG_VIRT_ERROR_ABORTED] = "ABORTED",
    [MIG_VIRT_ERROR_STILL_RUNNING] = "STILL_RUNNING",
    [MIG_VIRT_ERROR_UNSUPPORTED] = "UNSUPPORTED",
    [MIG_VIRT_ERROR_NO_TLS] = "NO_TLS",
    [MIG_VIRT_ERROR_STALE] = "STALE",
    [MIG_VIRT_ERROR_INVALID] = "INVALID",
    [MIG_VIRT_ERROR_FAILED] = "FAILED",
};
G_STATIC_ASSERT(G_N_ELEMENTS(names) == MIG_VIRT_ERROR_COUNT);

const char *mig_virt_error_name(MigVirtError error) {
  return (unsigned)error < MIG_VIRT_ERROR_COUNT ? names[error] : NULL;
}

/* libvirt uses OPERATION_INVALID, OPERATION_FAILED and INTERNAL_ERROR for many things, so these are told apart by their text,
 * as of libvirt 9 in the C locale. Our side of libvirt does not translate it, since nothing here calls setlocale(). If a
 * libvirtd runs in another language, or a text changes, the row of its code applies, or FAILED: less exact, never wrong. */
static const MigVirtErrorRow rows[] = {
    {MIG_ANY, VIR_ERR_OPERATION_ABORTED, NULL, MIG_VIRT_ERROR_ABORTED},
    {MIG_ANY, MIG_ANY, "canceled by client", MIG_VIRT_ERROR_ABORTED},
    {MIG_ANY, MIG_ANY, "migrate guest to the same host", MIG_VIRT_ERROR_SAME_HOST},
    {MIG_ANY, MIG_ANY, "QEMU reports migration is still running", MIG_VIRT_ERROR_STILL_RUNNING},
    {MIG_ANY, VIR_ERR_OPERATION_INVALID, "has not failed", MIG_VIRT_ERROR_STILL_RUNNING},

    /* From an end without certificates, if TLS was requested. The last text is QEMU's. */
    {MIG_ANY, MIG_ANY, "migration TLS directory not configured", MIG_VIRT_ERROR_NO_TLS},
    {MIG_ANY, MIG_ANY, "TLS migration is not supported", MIG_VIRT_ERROR_NO_TLS},
    {MIG_ANY, MIG_ANY, "Unable to access credentials", MIG_VIRT_ERROR_NO_TLS},

    /* At the target: by UUID, by name, or just being started. */
    {MIG_ANY, MIG_ANY, "is already active", MIG_VIRT_ERROR_EXISTS},
    {MIG_ANY, MIG_ANY, "is already being started", MIG_VIRT_ERROR_EXISTS},
    {MIG_ANY, MIG_ANY, "already exists with uuid", MIG_VIRT_ERROR_EXISTS},
    {MIG_ANY, VIR_ERR_DOM_EXIST, NULL, MIG_VIRT_ERROR_EXISTS},

    {MIG_ANY, MIG_ANY, "cannot acquire state change lock", MIG_VIRT_ERROR_BUSY},
    {MIG_ANY, MIG_ANY, "another migration job is already running", MIG_VIRT_ERROR_BUSY},
    {MIG_ANY, VIR_ERR_OPERATION_INVALID, "already in progress", MIG_VIRT_ERROR_BUSY},
    {MIG_ANY, VIR_ERR_RESOURCE_BUSY, NULL, MIG_VIRT_ERROR_BUSY},
    {MIG_ANY, VIR_ERR_BLOCK_COPY_ACTIVE, NULL, MIG_VIRT_ERROR_BUSY},

    /* "client socket is closed" may mean the source's connection to the target as well as ours. */
    {MIG_ANY, MIG_ANY, "client socket is closed", MIG_VIRT_ERROR_UNREACHABLE},
    {MIG_ANY, MIG_ANY, "connection closed due to keepalive timeout", MIG_VIRT_ERROR_UNREACHABLE},
    {MIG_ANY, MIG_ANY, "received hangup event on socket", MIG_VIRT_ERROR_UNREACHABLE},
    {MIG_ANY, MIG_ANY, "received hangup / error event on socket", MIG_VIRT_ERROR_UNREACHABLE},
    {MIG_ANY, MIG_ANY, "End of file while", MIG_VIRT_ERROR_UNREACHABLE},
    {MIG_ANY, MIG_ANY, "Failed to connect to remote libvirt URI", MIG_VIRT_ERROR_UNREACHABLE},
    {MIG_ANY, MIG_ANY, "connection which controls migration", MIG_VIRT_ERROR_UNREACHABLE},

    {MIG_ANY, VIR_ERR_SYSTEM_ERROR, "Permission denied", MIG_VIRT_ERROR_DENIED},
    {MIG_ANY, VIR_ERR_SYSTEM_ERROR, "cannot limit locked memory", MIG_VIRT_ERROR_DENIED},
    {MIG_ANY, VIR_ERR_AUTH_FAILED, NULL, MIG_VIRT_ERROR_DENIED},
    {MIG_ANY, VIR_ERR_AUTH_CANCELLED, NULL, MIG_VIRT_ERROR_DENIED},
    {MIG_ANY, VIR_ERR_AUTH_UNAVAILABLE, NULL, MIG_VIRT_ERROR_DENIED},
    {MIG_ANY, VIR_ERR_ACCESS_DENIED, NULL, MIG_VIRT_ERROR_DENIED},
    {MIG_ANY, VIR_ERR_OPERATION_DENIED, NULL, MIG_VIRT_ERROR_DENIED},
    {VIR_FROM_POLKIT, MIG_ANY, NULL, MIG_VIRT_ERROR_DENIED},
    {MIG_ANY, VIR_ERR_GNUTLS_ERROR, NULL, MIG_VIRT_ERROR_DENIED},

    /* What waiting does not cure: an unknown host name (unlike a name server that does not answer: "Temporary failure in name
     * resolution"), and a missing or invalid certificate. */
    {MIG_ANY, MIG_ANY, "Name or service not known", MIG_VIRT_ERROR_INVALID},
    {MIG_ANY, MIG_ANY, "No address associated with hostname", MIG_VIRT_ERROR_INVALID},
    {VIR_FROM_RPC, VIR_ERR_SYSTEM_ERROR, "ertificate", MIG_VIRT_ERROR_DENIED},
    {VIR_FROM_QEMU, VIR_ERR_OPERATION_FAILED, "The certificate ", MIG_VIRT_ERROR_DENIED},

    {VIR_FROM_RPC, VIR_ERR_SYSTEM_ERROR, NULL, MIG_VIRT_ERROR_UNREACHABLE},
    {MIG_ANY, VIR_ERR_RPC, NULL, MIG_VIRT_ERROR_UNREACHABLE},
    {MIG_ANY, VIR_ERR_UNKNOWN_HOST, NULL, MIG_VIRT_ERROR_UNREACHABLE},
    {MIG_ANY, VIR_ERR_INVALID_CONN, NULL, MIG_VIRT_ERROR_UNREACHABLE},
    {MIG_ANY, VIR_ERR_SSH, NULL, MIG_VIRT_ERROR_UNREACHABLE},
    {MIG_ANY, VIR_ERR_LIBSSH, NULL, MIG_VIRT_ERROR_UNREACHABLE},

    {MIG_ANY, VIR_ERR_NO_DOMAIN, NULL, MIG_VIRT_ERROR_NO_DOMAIN},

    {MIG_ANY, VIR_ERR_OPERATION_INVALID, "not running", MIG_VIRT_ERROR_NOT_RUNNING},
    {MIG_ANY, VIR_ERR_OPERATION_INVALID, "no job is active", MIG_VIRT_ERROR_NOT_RUNNING},
    {MIG_ANY, VIR_ERR_OPERATION_INVALID, "is not being migrated", MIG_VIRT_ERROR_NOT_RUNNING},
    {MIG_ANY, VIR_ERR_OPERATION_INVALID, "domain is not active", MIG_VIRT_ERROR_NOT_RUNNING},
    {MIG_ANY, VIR_ERR_OPERATION_INVALID, "only be started while outgoing migration",
     MIG_VIRT_ERROR_NOT_RUNNING},
    {MIG_ANY, VIR_ERR_OPERATION_INVALID, "started with VIR_MIGRATE_POSTCOPY", MIG_VIRT_ERROR_UNSUPPORTED},
    {MIG_ANY, VIR_ERR_OPERATION_INVALID, "cannot abort", MIG_VIRT_ERROR_UNSUPPORTED},
    {MIG_ANY, VIR_ERR_OPERATION_INVALID, "cannot migrate", MIG_VIRT_ERROR_UNSUPPORTED},
    {MIG_ANY, VIR_ERR_OPERATION_INVALID, "only with VIR_MIGRATE_TLS", MIG_VIRT_ERROR_UNSUPPORTED},

    {MIG_ANY, VIR_ERR_OPERATION_TIMEOUT, NULL, MIG_VIRT_ERROR_TIMEOUT},

    /* "no connection driver available for foo:///": libvirt does not know the URI's scheme. */
    {MIG_ANY, VIR_ERR_NO_CONNECT, NULL, MIG_VIRT_ERROR_INVALID},
    {VIR_FROM_URI, MIG_ANY, NULL, MIG_VIRT_ERROR_INVALID},
    {MIG_ANY, MIG_ANY, "Unable to parse URI", MIG_VIRT_ERROR_INVALID},
    {MIG_ANY, VIR_ERR_INVALID_ARG, NULL, MIG_VIRT_ERROR_INVALID},
    {MIG_ANY, VIR_ERR_OVERFLOW, NULL, MIG_VIRT_ERROR_INVALID},
    {MIG_ANY, VIR_ERR_XML_ERROR, NULL, MIG_VIRT_ERROR_INVALID},

    {MIG_ANY, VIR_ERR_NO_SUPPORT, NULL, MIG_VIRT_ERROR_UNSUPPORTED},
    {MIG_ANY, VIR_ERR_CONFIG_UNSUPPORTED, NULL, MIG_VIRT_ERROR_UNSUPPORTED},
    {MIG_ANY, VIR_ERR_ARGUMENT_UNSUPPORTED, NULL, MIG_VIRT_ERROR_UNSUPPORTED},
    {MIG_ANY, VIR_ERR_OPERATION_UNSUPPORTED, NULL, MIG_VIRT_ERROR_UNSUPPORTED},
    {MIG_ANY, VIR_ERR_MIGRATE_UNSAFE, NULL, MIG_VIRT_ERROR_UNSUPPORTED},
    {MIG_ANY, VIR_ERR_CPU_INCOMPATIBLE, NULL, MIG_VIRT_ERROR_UNSUPPORTED},
};

const MigVirtErrorRow *mig_virt_error_rows(size_t *ret_n) {
  *ret_n = G_N_ELEMENTS(rows);
  return rows;
}

MigVirtError mig_virt_error_classify(int domain, int code, const char *text) {
  for (size_t i = 0; i < G_N_ELEMENTS(rows); i++) {
    const MigVirtErrorRow *row = &rows[i];

    if ((row->domain == MIG_ANY || row->domain == domain) && (row->code == MIG_ANY || row->code == code) &&
        (!row->text || (text && strstr(text, row->text))))
      return row->error;
  }

  return MIG_VIRT_ERROR_FAILED;
}

bool mig_virt_error_take(GError **error, const char *format, ...) {
  virErrorPtr last = virGetLastError();
  int code = last ? last->code : 0;
  int domain = last ? last->domain : 0;
  const char *text = last && last->message ? last->message : "no reason given";
  g_autofree char *what = NULL;
  GError *made;
  va_list args;

  va_start(args, format);
  what = g_strdup_vprintf(format, args);
  va_end(args);

  /* The text may come from a hostile libvirtd. */
  made = g_error_new(MIG_VIRT_ERROR, mig_virt_error_classify(domain, code, text), "%s: libvirt error %d: %s",
                     what, code, text);
  mig_text_make_plain(made->message);
  if (last) {
    MigVirtErrorPrivate *priv = mig_virt_error_get_private(made);

    priv->from_libvirt = true;
    priv->code = code;
    priv->message = g_strdup(text);
    mig_text_make_plain(priv->message);
  }
  virResetLastError();
  g_propagate_error(error, made);
  return false;
}

bool mig_virt_error_get_libvirt(const GError *error, int *ret_code, const char **ret_message) {
  MigVirtErrorPrivate *priv;

  if (!error || error->domain != MIG_VIRT_ERROR)
    return false;
  priv = mig_virt_error_get_private(error);
  if (!priv->from_libvirt)
    return false;

  *ret_code = priv->code;
  *ret_message = priv->message;
  return true;
}

bool mig_virt_error_is_answer(const GError *error) {
  return !g_error_matches(error, MIG_VIRT_ERROR, MIG_VIRT_ERROR_UNREACHABLE) &&
         !g_error_matches(error, MIG_VIRT_ERROR, MIG_VIRT_ERROR_TIMEOUT);
}
