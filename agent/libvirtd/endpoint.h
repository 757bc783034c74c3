/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Asks one end how a domain stands there, and takes no longer than it may, whatever hangs. */
#pragma once

#include "agent/libvirtd/hypervisor.h"

typedef struct Endpoint Endpoint;

typedef struct EndpointAnswer {
  MigDomainStatus status;
  bool have_final;
  MigFinalStats final; /* the target's count, where the guest has arrived */
  /* What libvirt has told of the domain by events, on the connection that was asked, before it answered. Of a target; of this
   * node's libvirtd only the time. */
  uint64_t watched_since_ms; /* monotonic: that connection is there since then, and has not broken */
  bool had_guest;            /* the guest ran there, at any time since the endpoint was made */
  bool ended; /* it was shut down there, was destroyed or crashed, and nothing came after that */
} EndpointAnswer;

/* What an action rests on: how the domain stood at that end when it was decided on. */
typedef struct EndpointBasis {
  MigEndState state;
  int id; /* as in MigDomainStatus */
} EndpointBasis;

/* Of the libvirtd of `uri`, whose connection is kept while it works; NULL: of this node's. What is given is copied, or held.
 */
Endpoint *endpoint_new(MigDriver *driver, Hypervisor *hypervisor, const char *uri, const char *domain_uuid);

/* What hangs is left behind, and cleans up after itself. NULL is fine. */
void endpoint_free(Endpoint *endpoint);

/* False: no answer, and why. Within ENDPOINT_LONGEST_MS. */
bool endpoint_status(Endpoint *endpoint, EndpointAnswer *ret_answer, GError **error);

/* The actions that libvirt answers at once. Each is bound to `basis`: right before it is taken the domain is looked at once more, and
 * nothing is done if it stands otherwise, or if nobody waits for the answer any more (STALE). TIMEOUT: no answer came in time. It
 * will not be done any more, unless libvirtd had it already: ret_sent. */
bool endpoint_resume(Endpoint *endpoint, const EndpointBasis *basis, bool *ret_sent, GError **error);
bool endpoint_undefine(Endpoint *endpoint, const EndpointBasis *basis, bool *ret_sent, GError **error);

#define ENDPOINT_LONGEST_MS 4500
