/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Asks one end about a domain's state there, within a time limit, whatever hangs. */
#pragma once

#include "agent/libvirtd/hypervisor.h"

typedef struct Endpoint Endpoint;

typedef struct EndpointAnswer {
  MigDomainStatus status;
  bool have_final;
  MigFinalStats final; /* the target's, if the guest has arrived */
  /* What libvirt reported about the domain by events, on the connection that was asked, before it answered. For a target; for this
   * node's libvirtd only the time. */
  uint64_t watched_since_ms; /* monotonic: the connection is unbroken since then */
  bool had_guest;            /* the guest ran there at some time since endpoint_new() */
  bool ended;                /* it was shut down, destroyed or crashed there, and no later event came */
  uint64_t took_us;          /* to ask for the status: no round trip takes longer */
} EndpointAnswer;

/* Hears each event of the domain's state at a target while it is watched, on the driver's thread. The event is borrowed. */
typedef void (*EndpointHearFunc)(const MigVirtEvent *event, gpointer user_data);

/* What an action rests on: the domain's state at that end when the action was decided. */
typedef struct EndpointBasis {
  MigEndState state;
  int id; /* as in MigDomainStatus */
} EndpointBasis;

/* For the libvirtd of `uri`, whose connection is kept while it works; NULL: this node's. Copies or references its arguments. */
Endpoint *endpoint_new(Hypervisor *hypervisor, const char *uri, const char *domain_uuid);

/* Before the first question. Until endpoint_free() returns. */
void endpoint_listen(Endpoint *endpoint, EndpointHearFunc func, gpointer user_data);

/* A hung thread is left behind, and cleans up after itself. NULL is fine. */
void endpoint_free(Endpoint *endpoint);

/* False: no answer; the error says why. Within ENDPOINT_LONGEST_MS. */
bool endpoint_status(Endpoint *endpoint, EndpointAnswer *ret_answer, GError **error);

/* Actions that libvirt answers at once. Each is bound to `basis`: right before acting, the thread looks at the domain once more, and
 * does nothing if the state differs or nobody waits for the answer any more (STALE). TIMEOUT: no answer in time. The action will not
 * be carried out later, unless libvirtd had already received it: ret_sent. */
bool endpoint_resume(Endpoint *endpoint, const EndpointBasis *basis, bool *ret_sent, GError **error);
bool endpoint_undefine(Endpoint *endpoint, const EndpointBasis *basis, bool *ret_sent, GError **error);

#define ENDPOINT_LONGEST_MS 4500
