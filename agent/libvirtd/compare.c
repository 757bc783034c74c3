/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Compares what domains run with to what their next start would use, on a thread. */
#include "agent/libvirtd/compare.h"

void comparison_free(gpointer data) {
  Comparison *comparison = data;

  if (!comparison)
    return;
  g_free(comparison->name);
  g_free(comparison->error);
  g_free(comparison->changes);
  if (comparison->items)
    g_string_chunk_free(comparison->items);
  g_free(comparison);
}

/* Copies the changes, which have to outlive the definitions. */
static void take_changes(Comparison *comparison, MigChange *changes, size_t n) {
  comparison->n_changes = n;
  for (size_t i = 0; i < n; i++)
    comparison->counts[changes[i].remedy]++;
  n = MIN(n, COMPARE_CHANGES_MAX);
  comparison->items = g_string_chunk_new(256);
  comparison->changes = g_memdup2(changes, n * sizeof *changes);
  for (size_t i = 0; i < n; i++)
    comparison->changes[i].item = g_string_chunk_insert_const(comparison->items, changes[i].item);
}

static void compare(Comparison *comparison, const MigDefinitions *definitions) {
  size_t n = mig_changes(&definitions->live, &definitions->next, NULL, 0);
  g_autofree MigChange *changes = g_new(MigChange, MAX(n, 1));

  mig_changes(&definitions->live, &definitions->next, changes, n);
  take_changes(comparison, changes, n);
}

Comparison *compare_domain(MigDriver *driver, MigConn *conn, const char *name_or_uuid, GError **error) {
  g_auto(MigDefinitions) definitions = {0};
  Comparison *comparison;

  if (!driver->ops->definitions(conn, name_or_uuid, &definitions, error))
    return NULL;
  comparison = g_new0(Comparison, 1);
  comparison->name = g_utf8_make_valid(definitions.name, -1);
  g_strlcpy(comparison->uuid, definitions.uuid, sizeof comparison->uuid);
  comparison->running = definitions.running;
  comparison->persistent = definitions.persistent;
  compare(comparison, &definitions);
  return comparison;
}

/* Does the error concern only this domain? */
static bool is_its_own(const GError *error) {
  return !g_error_matches(error, MIG_VIRT_ERROR, MIG_VIRT_ERROR_UNREACHABLE) &&
         !g_error_matches(error, MIG_VIRT_ERROR, MIG_VIRT_ERROR_TIMEOUT);
}

static Comparison *not_compared(const char *name, const char *uuid, const GError *error) {
  Comparison *comparison = g_new0(Comparison, 1);

  comparison->name = g_utf8_make_valid(name, -1);
  g_strlcpy(comparison->uuid, uuid, sizeof comparison->uuid);
  comparison->running = true;
  comparison->error = g_utf8_make_valid(error->message, -1);
  return comparison;
}

static bool add(MigDriver *driver, MigConn *conn, const char *uuid, const char *name, GPtrArray *all,
                GError **error) {
  g_autoptr(GError) failure = NULL;
  Comparison *comparison = compare_domain(driver, conn, uuid, &failure);

  if (failure && !is_its_own(failure)) {
    g_propagate_error(error, g_steal_pointer(&failure));
    return false;
  }
  if (failure && !g_error_matches(failure, MIG_VIRT_ERROR, MIG_VIRT_ERROR_NO_DOMAIN))
    comparison = not_compared(name, uuid, failure);
  if (comparison && comparison->running)
    g_ptr_array_add(all, comparison);
  else
    comparison_free(comparison);
  return true;
}

GPtrArray *compare_domains(MigDriver *driver, MigConn *conn, const GPtrArray *uuids, GError **error) {
  g_autoptr(GPtrArray) all = g_ptr_array_new_with_free_func(comparison_free);
  g_autoptr(GPtrArray) active = NULL;

  if (!uuids) {
    active = driver->ops->list_active(conn, error);
    if (!active)
      return NULL;
  }
  for (guint i = 0; i < (uuids ? uuids : active)->len; i++) {
    const MigActiveDomain *one = active ? active->pdata[i] : NULL;
    const char *uuid = one ? one->uuid : uuids->pdata[i];

    if (!add(driver, conn, uuid, one ? one->name : uuid, all, error))
      return NULL;
  }
  return g_steal_pointer(&all);
}
