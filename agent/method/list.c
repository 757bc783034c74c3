/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* List: all jobs, or those of a domain or in certain phases. */
#include "agent/method/methods.h"

#include "agent/request/reply.h"
#include "agent/request/view.h"

#include <string.h>

void methods_list(VarlinkCall *call, json_t *parameters, gpointer user_data) {
  Methods *methods = user_data;
  json_t *phases = json_object_get(parameters, "phases");
  const char *domain = json_string_of(parameters, "domain");
  const GPtrArray *all = job_table_all(methods->jobs->table);
  bool wanted[MIG_PHASE_COUNT];
  json_t *jobs = json_array();
  json_t *phase;
  size_t index;

  for (int i = 0; i < MIG_PHASE_COUNT; i++)
    wanted[i] = !json_is_array(phases);
  json_array_foreach (phases, index, phase)
    wanted[mig_phase_from_name(json_string_value(phase))] = true;
  for (guint i = 0; i < all->len; i++) {
    const Job *job = all->pdata[i];

    if (!job->durable || !wanted[job->phase] ||
        (domain && strcmp(domain, job->domain_name) != 0 &&
         g_ascii_strcasecmp(domain, job->domain_uuid) != 0))
      continue;
    json_array_append_new(jobs, view_summary(methods->requests, job));
  }
  varlink_call_reply(call, json_pack("{so}", "jobs", jobs), false);
}
