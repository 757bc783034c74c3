/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Limits the journal messages about refused calls: a caller without permission can still call a hundred thousand times a
 * second, and each message costs the main thread more than the refusal. */
#include "agent/request/denials.h"

struct Denials {
  GHashTable *uids; /* uid → how many in this period */
  uint64_t since_ms;
  unsigned untold;
};

Denials *denials_new(void) {
  Denials *denials = g_new0(Denials, 1);

  denials->uids = g_hash_table_new(NULL, NULL);
  return denials;
}

void denials_free(Denials *denials) {
  if (!denials)
    return;
  g_hash_table_unref(denials->uids);
  g_free(denials);
}

bool denials_note(Denials *denials, uid_t uid, uint64_t now_ms, unsigned *ret_untold) {
  unsigned n;

  *ret_untold = 0;
  if (now_ms >= denials->since_ms + DENIALS_PERIOD_MS) {
    *ret_untold = denials->untold;
    g_hash_table_remove_all(denials->uids);
    denials->untold = 0;
    denials->since_ms = now_ms;
  }
  n = GPOINTER_TO_UINT(g_hash_table_lookup(denials->uids, GUINT_TO_POINTER(uid)));
  if (n == DENIALS_OF_UID || (n == 0 && g_hash_table_size(denials->uids) == DENIALS_USERS)) {
    denials->untold++;
    return false;
  }
  g_hash_table_insert(denials->uids, GUINT_TO_POINTER(uid), GUINT_TO_POINTER(n + 1));
  return true;
}
