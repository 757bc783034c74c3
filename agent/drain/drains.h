/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The drain and what it works with. Main thread only. */
#pragma once

#include "agent/drain/drain.h"
#include "agent/libvirtd/survey.h"
#include "agent/node/node.h"

struct Drains {
  Jobs *jobs;
  Mover *mover;
  Requests *requests;
  Node *node;
  const Config *config;
  LocalCalls *surveys;
  Drain *drain; /* the one in progress, or the last; NULL: there was none */
};
