/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Ids of jobs, leases and drains: 32 random hex digits. */
#pragma once

#define ID_SIZE 33

/* Writes ID_SIZE bytes. */
void id_make(char *ret_id);
