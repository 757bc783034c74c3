/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* What the next start of this node's domains would change: asked for, and counted beside. */
#pragma once

#include "libmigrate/virt/driver.h"
#include "proto/server.h"

#include <glib.h>
#include <jansson.h>

typedef struct Node Node;

typedef struct Evaluator Evaluator;

/* Borrows the agent, whose hypervisor is there already. */
Evaluator *evaluator_new(Node *node);

/* Answers what still waits with an error. NULL is fine. */
void evaluator_free(Evaluator *evaluator);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(Evaluator, evaluator_free)

/* To be told of libvirtd's events, of its coming back, and of the time. None of them waits. */
void evaluator_handle_event(Evaluator *evaluator, const MigVirtEvent *event);
void evaluator_libvirt_is_back(Evaluator *evaluator);
void evaluator_tick(Evaluator *evaluator);

/* As of PendingChanges in the interface; NULL before the first count. What was counted last: asks nobody. */
json_t *evaluator_count_to_json(const Evaluator *evaluator);

/* Answers Evaluate. */
void evaluator_answer(Evaluator *evaluator, VarlinkCall *call, json_t *parameters);
