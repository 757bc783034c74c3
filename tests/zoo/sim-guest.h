/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Guests of the zoo for the simulator. */
#pragma once

#include "tests/sim/engine.h"
#include "tests/zoo/zoo.h"

/* The guest, whose phases began so long before the migration. */
void zoo_sim_guest(const ZooGuest *guest, uint64_t begun_ms, SimGuest *ret_guest);

/* What the link carries, less the headers of Ethernet, IP and TCP (1448 of 1514 bytes). */
uint64_t zoo_link_bytes_per_s(const ZooGuest *guest);
