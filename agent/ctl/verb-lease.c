/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* handoffctl prepare and release, on a target: obtain and release a lease for an incoming domain. */
#include "agent/base/policyjson.h"
#include "agent/ctl/call.h"
#include "agent/ctl/format.h"
#include "agent/ctl/jobview.h"
#include "agent/ctl/print.h"

static json_t *parameters_of(const Options *options) {
  g_autofree char *made_up = g_uuid_string_random();
  const char *key = options->request_key ? options->request_key : made_up;
  /* s* and o*: absent when NULL. */
  json_t *parameters = json_pack("{s:s, s:s, s:s*, s:o*, s:s}", "domain", options->args[0], "source",
                                 options->args[1], "policy_name", options->policy_name, "policy",
                                 policy_to_json(&options->policy, options->policy.set), "request_key", key);

  if (options->make_disks)
    json_object_set_new(parameters, "make_disks", json_true());
  if (options->timeout_s > 0)
    json_object_set_new(parameters, "timeout_s", json_integer((json_int_t)options->timeout_s));
  return parameters;
}

static void print_lease(Term *term, json_t *reply, const JobView *job) {
  json_t *lease = json_object_get(job->json, "lease"), *image, *finding;
  const char *migrate_uri = json_string_of(lease, "migrate_uri");
  size_t i;

  if (!lease) {
    /* The request key was used before. */
    term_print(term, "Lease %s has ended: %s.\n", job->id, mig_phase_name(job->phase));
    return;
  }
  term_print(term, "Lease %s: room reserved for %s%s.\n", job->id, job->domain,
             json_is_false(json_object_get(reply, "created")) ? ", as requested earlier with this request key"
                                                              : "");
  print_field(term, "expires", "%s", format_time(json_int_of(lease, "expires_usec_realtime")).text);
  print_field(term, "memory", "%s reserved", format_bytes(json_int_of(lease, "memory_bytes")).text);
  json_array_foreach (json_object_get(lease, "images"), i, image)
    print_field(term, i == 0 ? "created" : "", "%s (%s)", or_dash(json_string_of(image, "path")),
                format_bytes(json_int_of(image, "capacity_bytes")).text);
  json_array_foreach (json_object_get(job->json, "findings"), i, finding)
    print_field(term, "warning", "%s: %s", or_dash(json_string_of(finding, "code")),
                or_dash(json_string_of(finding, "seen")));
  print_field(term, "migrate it", "handoffctl migrate %s %s%s%s", job->domain,
              or_dash(json_string_of(lease, "libvirt_uri")), migrate_uri ? " --migrate-uri " : "",
              migrate_uri ? migrate_uri : "");
  print_field(term, "follow it", "handoffctl watch %.8s", job->id);
  print_field(term, "release it", "handoffctl release %.8s", job->id);
}

static ExitStatus take_lease(Ctl *ctl, json_t *reply) {
  JobView job;

  if (ctl_print_json(ctl, reply))
    return EXIT_DONE;
  if (!job_view_read(json_object_get(reply, "job"), &job))
    return ctl_fail(ctl, FAILURE_PROTOCOL, "the reply to Prepare contains no valid job.");
  print_lease(&ctl->term, reply, &job);
  return EXIT_DONE;
}

ExitStatus verb_prepare(Ctl *ctl) {
  /* With the key, repeating the call yields the same lease. */
  return ctl_ask(ctl, ctl_call_again, "io.handoffd.Agent.Prepare", parameters_of(&ctl->options), take_lease);
}

static ExitStatus take_released(Ctl *ctl, json_t *reply) {
  JobView job;

  if (ctl_print_json(ctl, reply))
    return EXIT_DONE;
  if (!job_view_read(json_object_get(reply, "job"), &job))
    return ctl_fail(ctl, FAILURE_PROTOCOL, "the reply to Release contains no valid job.");
  if (mig_phase_is_final(job.phase))
    term_print(&ctl->term, "The lease for %s has ended (%s).\n", job.domain, mig_phase_name(job.phase));
  else
    term_print(&ctl->term, "The lease for %s is being released; what was created for it will be removed.\n",
               job.domain);
  return EXIT_DONE;
}

ExitStatus verb_release(Ctl *ctl) {
  return ctl_ask(ctl, ctl_call_again, "io.handoffd.Agent.Release",
                 json_pack("{s:s}", "lease", ctl->options.args[0]), take_released);
}
