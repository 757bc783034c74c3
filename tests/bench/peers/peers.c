/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The table of the peers, and the policies that they are raced under. */
#include "tests/bench/peers/peers.h"

#include "tests/bench/peers/steering.h"

#include <stdio.h>
#include <string.h>

#define LENGTH(table) (sizeof(table) / sizeof((table)[0]))

/* One permission each. The rest is as by default, so that peers keep their own numbers. */
static const PeerClassInfo classes[] = {
    [PEER_CLASS_PLAIN] = {"plain", ""},
    [PEER_CLASS_AUTO_CONVERGE] = {"auto-converge", "allow_auto_converge=yes max_throttle_pct=99"},
    [PEER_CLASS_PAUSE] = {"pause", "max_pause_ms=4s"},
    [PEER_CLASS_POST_COPY] = {"post-copy", "allow_post_copy=yes"},
};
_Static_assert(LENGTH(classes) == PEER_CLASS_COUNT, "a class without a row");

enum {
  PLAIN = PEER_IN(PEER_CLASS_PLAIN),
  CONVERGE = PEER_IN(PEER_CLASS_AUTO_CONVERGE),
  PAUSE = PEER_IN(PEER_CLASS_PAUSE),
  POST_COPY = PEER_IN(PEER_CLASS_POST_COPY),
};

static const Peer peers[] = {
    {&kubevirt_strategy, PLAIN | CONVERGE | PAUSE | POST_COPY, false,
     "poll 400 ms, 150 s/GB rounded up, progress 150 s"},
    {&kubevirt_stall_strategy, PLAIN | CONVERGE | PAUSE | POST_COPY, true,
     "window 40 s, margin 4 %, downtime 300 to 900 ms, 150 s/GB rounded up"},
    {&nova_abort_strategy, PLAIN | CONVERGE, false,
     "downtime 50 to 500 ms by 45 each 75 s/GiB, 800 s/GiB, at least 2 GiB"},
    {&nova_force_strategy, PAUSE | POST_COPY, false,
     "downtime 50 to 500 ms by 45 each 75 s/GiB, 800 s/GiB, at least 2 GiB"},
    {&ovirt_minimal_strategy, PLAIN | CONVERGE, false,
     "poll 10 s, downtime 100, 150, 200, 300, 400, 500 ms, abort"},
    {&ovirt_post_copy_strategy, POST_COPY, false, "poll 10 s, downtime 100, 150, 200 ms, post-copy"},
    {&ovirt_suspend_strategy, PAUSE, false,
     "poll 10 s, downtime 100, 150, 200, 300, 400, 500, 5000 ms, abort"},
    {&proxmox_strategy, CONVERGE, false, "poll 1 s, downtime 100 ms doubled at each 6th rise"},
    {&virsh_auto_converge_strategy, CONVERGE, false, "downtime 300 ms, throttle 20 by 10 to 99 %"},
    {&virsh_plain_strategy, PLAIN, false, "downtime 300 ms"},
    {&virsh_post_copy_after_pre_copy_strategy, POST_COPY, true, "post-copy at the second iteration"},
    {&virsh_timeout_post_copy_strategy, POST_COPY, false, "post-copy after 10 s"},
    {&virsh_timeout_suspend_strategy, PAUSE, false, "pause after 10 s"},
};

const PeerClassInfo *peer_class_info(PeerClass kind) {
  return (unsigned)kind < PEER_CLASS_COUNT ? &classes[kind] : NULL;
}

PeerClass peer_class_find(const char *name) {
  unsigned kind = 0;
  while (kind < PEER_CLASS_COUNT && strcmp(classes[kind].name, name) != 0)
    kind++;
  return (PeerClass)kind;
}

const Peer *peers_list(size_t *ret_n) {
  *ret_n = LENGTH(peers);
  return peers;
}

const Peer *peer_find(const char *name) {
  for (size_t i = 0; i < LENGTH(peers); i++)
    if (strcmp(peers[i].strategy->name, name) == 0)
      return &peers[i];
  return NULL;
}

bool peer_policy_add(MigPolicy *policy, const char *goals, char *ret_message, size_t message_size) {
  char word[128];
  for (int used = 0; sscanf(goals, " %127s%n", word, &used) == 1; goals += used) {
    char *equals = strchr(word, '=');
    if (!equals) {
      snprintf(ret_message, message_size, "not key=value: %s", word);
      return false;
    }
    *equals = '\0';
    if (mig_policy_set_text(policy, word, equals + 1, ret_message, message_size) != MIG_POLICY_OK)
      return false;
  }
  return true;
}
