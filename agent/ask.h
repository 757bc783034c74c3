/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Asks one end how a domain stands there, and takes no longer than it may, whatever hangs. */
#pragma once

#include "agent/hypervisor.h"

typedef struct Asker Asker;

typedef struct AskAnswer {
  MigDomainStatus status;
  bool have_final;
  MigFinalStats final; /* the target's count, where the guest has arrived */
} AskAnswer;

/* Of the libvirtd of `uri`, whose connection is kept while it works; NULL: of this node's. What is given is copied, or held.
 */
Asker *asker_new(MigDriver *driver, Hypervisor *hypervisor, const char *uri, const char *domain_uuid);

/* What hangs is left behind, and cleans up after itself. NULL is fine. */
void asker_free(Asker *asker);

/* False: no answer, and why. Within ASK_LONGEST_MS. */
bool asker_status(Asker *asker, AskAnswer *ret_answer, GError **error);

/* The actions that libvirt answers at once. TIMEOUT: whether it was done is not known. */
bool asker_resume(Asker *asker, GError **error);
bool asker_undefine(Asker *asker, GError **error);

#define ASK_LONGEST_MS 4500
