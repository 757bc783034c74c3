/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Watch: one job or all jobs, with every change. */
#include "agent/method/methods.h"

#include "agent/request/reply.h"
#include "agent/request/watch.h"

void methods_watch(VarlinkCall *call, json_t *parameters, gpointer user_data) {
  Methods *methods = user_data;
  Job *job = NULL;

  if (json_string_of(parameters, "job") && !(job = reply_take_job(methods->requests, call, parameters)))
    return;
  watch_add(methods->requests, job, call);
}
