/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Who may call what. */
#pragma once

#include "agent/config/config.h"
#include "proto/server.h"

/* What a method does to the world, as far as permission goes. */
typedef enum AccessClass {
  ACCESS_NODE,  /* reads what concerns the node only */
  ACCESS_READ,  /* reads jobs and domains */
  ACCESS_CHANGE /* everything else, and whatever the table does not know */
} AccessClass;

AccessClass access_classify(const char *method);

/* Root, the agent's own user and members of the group. Others are strangers: the server has a place for some of them, and
 * takes less of each. */
bool access_is_trusted(const VarlinkPeer *peer, gid_t group_gid);

/* Root, the agent's own user and members of the group may do everything; others what `public_read` says. The
 * questions of org.varlink.service are open to all. `group_gid` may be (gid_t)-1: no such group. */
bool access_allowed(const VarlinkPeer *peer, const char *method, ConfigPublicRead public_read,
                    gid_t group_gid);
