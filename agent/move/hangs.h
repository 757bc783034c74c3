/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Calls that a libvirtd does not answer: reported when they are late, and when they have returned. */
#pragma once

#include "agent/move/mover.h"
#include "proto/json.h"

#include <glib.h>

Hangs *hangs_new(void);

/* Call it several times a second. */
void hangs_tick(Mover *mover);

unsigned hangs_count(const Hangs *hangs);

/* An array of the interface's type HangingCall: those about the domain; with NULL all of them. */
json_t *hangs_to_json(const Hangs *hangs, const char *domain_uuid);

/* "; 2 calls hang, …", for the service manager; "" if none hangs. The caller's. */
char *hangs_describe(const Hangs *hangs);
