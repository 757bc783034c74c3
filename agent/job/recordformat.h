/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The format of records, and upgrades from older formats. */
#pragma once

#include "proto/json.h"

#include <glib.h>
#include <stdbool.h>

/* 1: the first. 2: waiting time is also kept on the monotonic clock. 3: the total time counts from the request. */
#define RECORD_FORMAT 3

/* Two records among those of the jobs: whether the node is cordoned, and the drain. */
#define CORDON_RECORD_ID "node"
#define DRAIN_RECORD_ID  "drain"

/* Upgrades a record to RECORD_FORMAT, in memory. On failure: G_IO_ERROR_NOT_SUPPORTED, a newer agent's;
 * G_IO_ERROR_INVALID_DATA, no format. */
bool record_upgrade(json_t *record, GError **error);
