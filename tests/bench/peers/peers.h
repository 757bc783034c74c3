/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* How others steer a migration, as strategies to race against; and the classes of policy that a race is under. */
#pragma once

#include "tests/sim/strategy.h"

/* What a policy permits beside plain pre-copy. A race compares only what is permitted to do the same. */
typedef enum PeerClass {
  PEER_CLASS_PLAIN,
  PEER_CLASS_AUTO_CONVERGE,
  PEER_CLASS_PAUSE,
  PEER_CLASS_POST_COPY,
  PEER_CLASS_COUNT
} PeerClass;

typedef struct PeerClassInfo {
  const char *name;
  const char *goals; /* "key=value ..." over the defaults */
} PeerClassInfo;

const PeerClassInfo *peer_class_info(PeerClass kind);

/* The kind of a name, or PEER_CLASS_COUNT. */
PeerClass peer_class_find(const char *name);

#define PEER_IN(kind) (1u << (kind))

typedef struct Peer {
  const Strategy *strategy;
  unsigned classes;     /* PEER_IN() of each in which it is at home */
  bool on_iteration;    /* acts on libvirt's event of a new iteration, and does not wait for its next poll */
  const char *defaults; /* its numbers, where a policy does not replace them */
} Peer;

/* All of them, in the order of their names. */
const Peer *peers_list(size_t *ret_n);

/* The peer of a name, or NULL. */
const Peer *peer_find(const char *name);

/* Sets goals from "key=value key=value"; false and a message if one does not parse. */
bool peer_policy_add(MigPolicy *policy, const char *goals, char *ret_message, size_t message_size);
