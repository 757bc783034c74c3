/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The format of records, and how those of older ones become the present one. */
#pragma once

#include <glib.h>
#include <jansson.h>
#include <stdbool.h>

/* 1: the first. 2: how long a job has waited is kept on the clock that goes on evenly, too. */
#define RECORD_FORMAT 2

/* Two records among those of the jobs: whether the node is cordoned, and the drain. */
#define CORDON_RECORD_ID "node"
#define DRAIN_RECORD_ID  "drain"

/* Brings a record to RECORD_FORMAT, in memory. On failure: G_IO_ERROR_NOT_SUPPORTED, it is of a newer agent;
 * G_IO_ERROR_INVALID_DATA, it has no format. */
bool record_upgrade(json_t *record, GError **error);
