/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Why a verb failed: an error from the agent or on the way to it, as text, JSON and exit status. */
#include "agent/ctl/failure.h"
#include "agent/ctl/jobview.h"
#include "proto/client.h"

#include <string.h>

#define AGENT "io.handoffd.Agent."
#define STD   "org.varlink.service."
#define CTL   "io.handoffd.Ctl."

/* {name} stands for the parameter of that name. */
typedef struct ErrorRow {
  const char *error;
  ExitStatus status;
  const char *seen;
  const char *remedy;
} ErrorRow;

static const ErrorRow errors[] = {
    {AGENT "HypervisorUnavailable", EXIT_FAILED, "libvirt does not answer: {message}",
     "Check systemctl status libvirtd."},
    {AGENT "NoSuchDomain", EXIT_NOT_FOUND, "There is no domain \"{domain}\" on this node.",
     "virsh list --all shows the domains that exist."},
    {AGENT "NoSuchJob", EXIT_NOT_FOUND, "There is no job \"{job}\".",
     "handoffctl list --all shows all jobs."},
    {AGENT "AmbiguousJob", EXIT_NOT_FOUND, "\"{job}\" matches more than one job: {candidates}.",
     "Give more digits of the job id."},
    {AGENT "DomainBusy", EXIT_REFUSED, "The domain {domain} already has an unfinished job: {job}.",
     "Follow it with handoffctl watch {job}, or abort it with handoffctl abort {job}."},
    {AGENT "RequestKeyConflict", EXIT_REFUSED,
     "The request key \"{request_key}\" belongs to a different request, job {job}.",
     "Use a new key for each migration; reuse a key only to repeat the same request."},
    {AGENT "NodeCordoned", EXIT_REFUSED, "This node was cordoned by {by} and accepts no new work: {reason}",
     "Run handoffctl uncordon to accept work again, or use --even-if-cordoned to migrate a domain away "
     "anyway."},
    {AGENT "DrainBusy", EXIT_REFUSED,
     "A drain of this node to {targets} is already in progress (drain {drain}).",
     "Follow it with handoffctl drain, or abort it with handoffctl drain --abort."},
    {AGENT "NoDrain", EXIT_NOT_FOUND,
     "No drain is in progress on this node, and there is no record of an earlier one.",
     "Start one with handoffctl drain TARGET..."},
    {AGENT "NoSuchTarget", EXIT_NOT_FOUND, "There is no target \"{target}\": {message}",
     "Give a libvirt URI such as qemu+tls://HOST/system, or the name of a [Target] in handoffd.conf: "
     "handoffctl node lists them."},
    {AGENT "TargetNotAllowed", EXIT_PERMISSION,
     "The target \"{target}\" is not allowed on this node: {message}.",
     "Use an allowed target, or have AllowTargets= in handoffd.conf changed."},
    {AGENT "NoSuchPolicy", EXIT_NOT_FOUND, "There is no policy \"{policy_name}\".",
     "handoffctl node lists the policies in handoffd.conf."},
    {AGENT "InvalidPolicy", EXIT_USAGE, "Invalid policy key {key}: {message}",
     "handoffctl --help lists keys and ranges."},
    {AGENT "PolicyConflict", EXIT_REFUSED, "Conflicting goals ({keys}; {code}): {message}",
     "Drop one of them."},
    {AGENT "Refused", EXIT_REFUSED, "The domain cannot be migrated:{findings}", NULL},
    {AGENT "NotAbortable", EXIT_FAILED, "Job {job} cannot be aborted ({phase}, {stage}): {message}", NULL},
    {AGENT "NotPossible", EXIT_FAILED, "Not possible for job {job} ({phase}, {stage}): {message}",
     "handoffctl show {job} shows its state."},
    {AGENT "NotMeasurable", EXIT_REFUSED, "Cannot measure the dirty rate of {domain} right now: {message}.",
     "Start the domain, or wait for its migration to end."},
    {AGENT "NoBandwidth", EXIT_REFUSED,
     "The bandwidth of the link to {target} is unknown: there was no earlier migration to learn it from.",
     "Specify it in bytes per second: --bandwidth 100M, or LinkBandwidth= in handoffd.conf."},
    {AGENT "StoreFailed", EXIT_FAILED,
     "The agent could not write the request to stable storage, so it did nothing: {message}",
     "Check free space and disk health under /var/lib/handoffd."},
    {AGENT "TooManyJobs", EXIT_REFUSED, "The agent has reached its limit of {limit} unfinished jobs.",
     "Wait for some of them to finish, or raise MaxJobs= in handoffd.conf."},
    {AGENT "TooManyConnections", EXIT_UNREACHABLE, "The agent has reached its limit of {limit} connections.",
     "Try again when some clients have disconnected."},
    {STD "InterfaceNotFound", EXIT_INTERNAL, "The service on this socket does not implement {interface}.",
     "Check that --socket points to handoffd."},
    {STD "MethodNotFound", EXIT_INTERNAL, "The agent does not know the method {method}.",
     "It is older than this handoffctl: compare handoffctl --version with handoffctl node."},
    {STD "MethodNotImplemented", EXIT_INTERNAL, "This version of the agent does not implement {method}.",
     NULL},
    {STD "InvalidParameter", EXIT_USAGE, "The agent rejected the parameter \"{parameter}\".",
     "Is handoffctl newer than the agent? Compare handoffctl --version with handoffctl node."},
    {STD "PermissionDenied", EXIT_PERMISSION, "The agent does not allow this user to do that.",
     "Run as root or as a member of group handoff (usermod -aG handoff USER, then log in again)."},
    {STD "ExpectedMore", EXIT_INTERNAL, "The agent expected a streaming call.", NULL},
    {CTL "AgentUnreachable", EXIT_UNREACHABLE, "Cannot reach the agent: {message}",
     "Check systemctl status handoffd.socket handoffd.service."},
    {CTL "AgentGone", EXIT_UNREACHABLE, "Lost the connection to the agent and could not reconnect: {message}",
     "Migrations continue without the agent. Check systemctl status handoffd, then handoffctl list."},
    {CTL "TimedOut", EXIT_UNREACHABLE, "The agent does not answer: {message}",
     "Check systemctl status handoffd and journalctl -u handoffd."},
    {CTL "PermissionDenied", EXIT_PERMISSION, "This user is not allowed to connect to the agent: {message}",
     "Run as root or as a member of group handoff (usermod -aG handoff USER, then log in again)."},
    {CTL "ProtocolError", EXIT_INTERNAL, "Protocol error: {message}",
     "Check that handoffd is listening on this socket (--socket)."},
    {CTL "Interrupted", EXIT_DETACHED, "Interrupted: {message}", NULL},
    {CTL "NothingToDraw", EXIT_FAILED, "{message}", "Follow the job with handoffctl watch."},
    {CTL "OutputFailed", EXIT_INTERNAL, "Cannot write the output. {message}", NULL},
};

static const ErrorRow other_error = {NULL, EXIT_INTERNAL, "The agent returned an unknown error: ", NULL};

static const ErrorRow *find_row(const char *error) {
  for (size_t i = 0; i < G_N_ELEMENTS(errors); i++) {
    if (g_strcmp0(errors[i].error, error) == 0)
      return &errors[i];
  }
  return &other_error;
}

const char *failure_error_name(unsigned row) {
  return row < G_N_ELEMENTS(errors) ? errors[row].error : NULL;
}

void failure_clear(Failure *failure) {
  g_clear_pointer(&failure->error, g_free);
  g_clear_pointer(&failure->parameters, json_decref);
  failure->status = EXIT_DONE;
}

static void failure_set(Failure *failure, const char *error, json_t *parameters /* taken */) {
  failure_clear(failure);
  failure->error = g_strdup(error);
  failure->parameters = parameters ? parameters : json_object();
  failure->status = find_row(error)->status;
}

void failure_set_reply(Failure *failure, const char *error, json_t *parameters) {
  failure_set(failure, error, json_incref(parameters));
}

void failure_set_client(Failure *failure, const GError *error, const char *socket_path) {
  static const struct {
    VarlinkClientError code;
    const char *error;
  } codes[] = {
      {VARLINK_CLIENT_ERROR_CONNECT, CTL "AgentUnreachable"},
      {VARLINK_CLIENT_ERROR_PERMISSION, CTL "PermissionDenied"},
      {VARLINK_CLIENT_ERROR_DISCONNECTED, CTL "AgentUnreachable"},
      {VARLINK_CLIENT_ERROR_TIMEOUT, CTL "TimedOut"},
      {VARLINK_CLIENT_ERROR_INTERRUPTED, CTL "Interrupted"},
  };
  const char *name = CTL "ProtocolError";

  for (size_t i = 0; i < G_N_ELEMENTS(codes); i++) {
    if (g_error_matches(error, VARLINK_CLIENT_ERROR, (int)codes[i].code))
      name = codes[i].error;
  }
  failure_set(failure, name, json_pack("{s:s, s:s}", "message", error->message, "socket", socket_path));
}

void failure_set_own(Failure *failure, FailureKind kind, const char *message) {
  static const char *const names[] = {
      [FAILURE_PROTOCOL] = CTL "ProtocolError", [FAILURE_GONE] = CTL "AgentGone",
      [FAILURE_TIMED_OUT] = CTL "TimedOut",     [FAILURE_OUTPUT] = CTL "OutputFailed",
      [FAILURE_NOTHING] = CTL "NothingToDraw",
  };

  failure_set(failure, names[kind], json_pack("{s:s}", "message", message));
}

void failure_set_signal(Failure *failure, int signal_number, const char *what) {
  failure_set(failure, CTL "Interrupted", json_pack("{s:s}", "message", what));
  failure->status = (ExitStatus)(128 + signal_number);
}

/* One finding per line, indented. */
static void append_findings(GString *out, json_t *findings) {
  json_t *finding;
  size_t i;

  json_array_foreach (findings, i, finding) {
    const char *code = json_string_of(finding, "code"), *seen = json_string_of(finding, "seen");
    const char *remedy = json_string_of(finding, "remedy");

    g_string_append_printf(out, "\n  %s: %s", code ? code : "?", seen ? seen : "");
    if (remedy && *remedy)
      g_string_append_printf(out, " %s", remedy);
  }
}

static void append_value(GString *out, json_t *value) {
  json_t *item;
  size_t i;

  if (json_is_string(value)) {
    g_string_append(out, json_string_value(value));
  } else if (json_is_integer(value)) {
    g_string_append_printf(out, "%" JSON_INTEGER_FORMAT, json_integer_value(value));
  } else if (json_is_array(value) && json_is_object(json_array_get(value, 0))) {
    append_findings(out, value);
  } else if (json_is_array(value)) {
    json_array_foreach (value, i, item) {
      if (i > 0)
        g_string_append(out, ", ");
      append_value(out, item);
    }
  } else {
    g_string_append_c(out, '?');
  }
}

static void append_template(GString *out, const char *template, json_t *parameters) {
  for (const char *p = template; *p; p++) {
    const char *end = *p == '{' ? strchr(p, '}') : NULL;

    if (end) {
      g_autofree char *name = g_strndup(p + 1, (gsize)(end - p - 1));

      append_value(out, json_object_get(parameters, name));
      p = end;
    } else {
      g_string_append_c(out, *p);
    }
  }
}

/* The agent's messages may or may not end in a full stop; here every sentence does. */
static void end_sentence(GString *out) {
  if (out->len > 0 && !strchr(".!?:\n", out->str[out->len - 1]))
    g_string_append_c(out, '.');
}

char *failure_describe(const Failure *failure) {
  const ErrorRow *row = find_row(failure->error);
  GString *out = g_string_new(NULL);

  append_template(out, row->seen, failure->parameters);
  if (!row->error) {
    char *dump = json_dumps(failure->parameters, JSON_COMPACT);

    g_string_append_printf(out, "%s %s", failure->error, dump ? dump : "");
    free(dump);
  }
  end_sentence(out);
  if (row->remedy) {
    g_string_append_c(out, ' ');
    append_template(out, row->remedy, failure->parameters);
  }
  return g_string_free(out, FALSE);
}

ExitStatus failure_report(const Failure *failure, Term *term, bool json) {
  if (json) {
    json_t *object = json_pack("{s:s, s:O}", "error", failure->error, "parameters", failure->parameters);

    term_print_json(term, object);
    json_decref(object);
  } else {
    g_autofree char *text = failure_describe(failure);

    term_error(term, "%s", text);
  }
  return failure->status;
}
