/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Who may call what. */
#include "agent/request/access.h"

#include <string.h>
#include <unistd.h>

static const struct {
  const char *method;
  AccessClass access;
} classes[] = {
    {"io.handoffd.Agent.GetNode", ACCESS_NODE},    {"io.handoffd.Agent.GetMetrics", ACCESS_NODE},
    {"io.handoffd.Agent.Get", ACCESS_READ},        {"io.handoffd.Agent.List", ACCESS_READ},
    {"io.handoffd.Agent.Watch", ACCESS_READ},      {"io.handoffd.Agent.Check", ACCESS_READ},
    {"io.handoffd.Agent.Forecast", ACCESS_READ},   {"io.handoffd.Agent.GetPolicy", ACCESS_READ},
    {"io.handoffd.Agent.GetHistory", ACCESS_READ}, {"io.handoffd.Agent.Evaluate", ACCESS_READ},
    {"io.handoffd.Agent.WatchDrain", ACCESS_READ},
};

AccessClass access_classify(const char *method) {
  for (size_t i = 0; i < G_N_ELEMENTS(classes); i++)
    if (strcmp(classes[i].method, method) == 0)
      return classes[i].access;
  return ACCESS_CHANGE;
}

bool access_is_trusted(const VarlinkPeer *peer, gid_t group_gid) {
  if (peer->uid == 0 || peer->uid == geteuid())
    return true;
  if (group_gid == (gid_t)-1)
    return false;
  if (peer->gid == group_gid)
    return true;
  for (size_t i = 0; i < peer->n_groups; i++)
    if (peer->groups[i] == group_gid)
      return true;
  return false;
}

bool access_allowed(const VarlinkPeer *peer, const char *method, ConfigPublicRead public_read,
                    gid_t group_gid) {
  if (g_str_has_prefix(method, "org.varlink.service.") || access_is_trusted(peer, group_gid))
    return true;
  switch (access_classify(method)) {
  case ACCESS_NODE:
    return public_read != CONFIG_PUBLIC_READ_NONE;
  case ACCESS_READ:
    return public_read == CONFIG_PUBLIC_READ_ALL;
  case ACCESS_CHANGE:
    break;
  }
  return false;
}
