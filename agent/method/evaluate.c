/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Evaluate: what the next start of domains would change. */
#include "agent/method/methods.h"

#include "agent/node/evaluate.h"

void methods_evaluate(VarlinkCall *call, json_t *parameters, gpointer user_data) {
  const Methods *methods = user_data;

  evaluator_answer(methods->node->evaluator, call, parameters);
}
