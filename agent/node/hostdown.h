/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* This host goes down: what runs ends first, or is taken back. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

typedef struct Node Node;

typedef struct HostDown {
  bool on;           /* logind has said so */
  bool taken_back;   /* what could be was */
  uint64_t until_ms; /* monotonic: so long a move may still end by itself */
} HostDown;

/* As logind says it; see LogindFunc. `user_data` is the Agent. */
void hostdown_on_shutdown(bool begins, uint64_t delay_ms, void *user_data);

/* Some times a second. */
void hostdown_tick(Node *node);
