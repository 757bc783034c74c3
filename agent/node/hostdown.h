/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* A shutdown of this host: migrations in progress finish first, or are aborted. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

typedef struct Node Node;

typedef struct HostDown {
  bool taken_back;   /* migrations that could be aborted were */
  uint64_t until_ms; /* monotonic: until then migrations may finish */
} HostDown;

/* A LogindFunc; `user_data` is Node. */
void hostdown_on_shutdown(bool begins, uint64_t delay_ms, void *user_data);

/* Call it several times a second. */
void hostdown_tick(Node *node);
