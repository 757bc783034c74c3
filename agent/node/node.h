/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The state of the node as a whole. Main thread only. */
#pragma once

#include "agent/node/cordon.h"
#include "agent/node/evaluate.h"
#include "agent/node/hostdown.h"
#include "agent/node/logind.h"
#include "agent/node/metrics.h"
#include "agent/node/profiler.h"
#include "agent/request/requests.h"

struct Node {
  Jobs *jobs;
  Mover *mover;
  Requests *requests;
  const Config *config;
  Cordon cordon;
  Logind *logind;
  HostDown host_down;
  Metrics metrics;
  Evaluator *evaluator;
  Profiler *profiler;
  int64_t started_usec;
};
