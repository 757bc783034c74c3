/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Evaluate: what would the next start of a domain change? Forwarded to node/evaluate.c, which answers it. */
#include "agent/method/methods.h"

#include "agent/node/evaluate.h"

void methods_evaluate(VarlinkCall *call, json_t *parameters, gpointer user_data) {
  const Methods *methods = user_data;

  evaluator_answer(methods->node->evaluator, call, parameters);
}
