/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Who may call what. */
#pragma once

#include "agent/config/config.h"
#include "proto/server.h"

/* The permission class of a method. */
typedef enum AccessClass {
  ACCESS_NODE,  /* reads node data only */
  ACCESS_READ,  /* reads jobs and domains */
  ACCESS_CHANGE /* everything else, and methods not in the table */
} AccessClass;

AccessClass access_classify(const char *method);

/* Root, the agent's own user and members of the group are trusted. The server limits how many others may connect, and how
 * much each may send. */
bool access_is_trusted(const VarlinkPeer *peer, gid_t group_gid);

/* Root, the agent's own user and members of the group may do everything; others only what `public_read` permits.
 * Everybody may call org.varlink.service. `group_gid` may be (gid_t)-1: no such group. */
bool access_allowed(const VarlinkPeer *peer, const char *method, ConfigPublicRead public_read,
                    gid_t group_gid);
