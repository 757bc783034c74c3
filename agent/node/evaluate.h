/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* What the next start of this node's domains would change: the method Evaluate, and a count for GetNode. */
#pragma once

#include "libmigrate/virt/driver.h"
#include "proto/json.h"
#include "proto/server.h"

#include <glib.h>

typedef struct Node Node;

typedef struct Evaluator Evaluator;

/* Borrows `node`, whose mover has its hypervisor already. */
Evaluator *evaluator_new(Node *node);

/* Answers outstanding calls with an error. NULL is fine. */
void evaluator_free(Evaluator *evaluator);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(Evaluator, evaluator_free)

/* Call these on libvirtd's events, when libvirtd is reachable again, and several times a second. None of them blocks. */
void evaluator_handle_event(Evaluator *evaluator, const MigVirtEvent *event);
void evaluator_libvirt_is_back(Evaluator *evaluator);
void evaluator_tick(Evaluator *evaluator);

/* The last count as the interface's type PendingChanges; NULL before the first one. Asks nobody. */
json_t *evaluator_count_to_json(const Evaluator *evaluator);

/* Answers the method Evaluate; method/evaluate.c only forwards to it. */
void evaluator_answer(Evaluator *evaluator, VarlinkCall *call, json_t *parameters);
