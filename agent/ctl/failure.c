/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Why a verb could not do what it was asked for: an error of the agent or of the way to it, as text, JSON,
 * status. */
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
     "See systemctl status libvirtd."},
    {AGENT "NoSuchDomain", EXIT_NOT_FOUND, "There is no domain \"{domain}\" on this node.",
     "virsh list --all shows those that are there."},
    {AGENT "NoSuchJob", EXIT_NOT_FOUND, "There is no job \"{job}\".",
     "handoffctl list --all shows those that are kept."},
    {AGENT "AmbiguousJob", EXIT_NOT_FOUND, "\"{job}\" fits more than one job: {candidates}.",
     "Give more digits of the one that you mean."},
    {AGENT "DomainBusy", EXIT_REFUSED, "The domain {domain} is on the move already, as job {job}.",
     "handoffctl watch {job} follows it, handoffctl abort {job} ends it."},
    {AGENT "RequestKeyConflict", EXIT_REFUSED,
     "The request key \"{request_key}\" stands for another move, job {job}.",
     "Use a new key for each move, and the same one only to repeat the same request."},
    {AGENT "NodeCordoned", EXIT_REFUSED, "This node is cordoned by {by}, and takes no new work: {reason}",
     "handoffctl uncordon lets it in again; --even-if-cordoned moves a domain out all the same."},
    {AGENT "DrainBusy", EXIT_REFUSED, "This node is drained already, to {targets}, as drain {drain}.",
     "handoffctl drain follows it, handoffctl drain --abort ends it."},
    {AGENT "NoDrain", EXIT_NOT_FOUND, "This node is not being drained, and no drain of before is kept.",
     "handoffctl drain TARGET... begins."},
    {AGENT "NoSuchTarget", EXIT_NOT_FOUND, "There is no target \"{target}\": {message}",
     "Give a libvirt URI such as qemu+tls://HOST/system, or the name of a [Target] of handoffd.conf: "
     "handoffctl node lists them."},
    {AGENT "TargetNotAllowed", EXIT_PERMISSION, "The target \"{target}\" may not be named here: {message}.",
     "Name one that is allowed, or have AllowTargets= of handoffd.conf changed."},
    {AGENT "NoSuchPolicy", EXIT_NOT_FOUND, "There is no policy \"{policy_name}\".",
     "handoffctl node lists those of handoffd.conf."},
    {AGENT "InvalidPolicy", EXIT_USAGE, "The policy key {key} cannot be so: {message}",
     "handoffctl --help lists keys and ranges."},
    {AGENT "PolicyConflict", EXIT_REFUSED, "Goals exclude each other ({keys}; {code}): {message}",
     "Leave one of them out."},
    {AGENT "Refused", EXIT_REFUSED, "It cannot move:{findings}", NULL},
    {AGENT "NotAbortable", EXIT_FAILED, "The job {job} cannot be aborted ({phase}, {stage}): {message}",
     NULL},
    {AGENT "NotPossible", EXIT_FAILED, "This cannot be done to the job {job} ({phase}, {stage}): {message}",
     "handoffctl show {job} tells where it stands."},
    {AGENT "NotMeasurable", EXIT_REFUSED, "What {domain} dirties cannot be measured now: {message}.",
     "Start it, or wait for the end of its move."},
    {AGENT "NoBandwidth", EXIT_REFUSED,
     "The bandwidth of the link to {target} is not known: no earlier move tells it.",
     "Give it, in bytes per second: --bandwidth 100M, or LinkBandwidth= in the configuration."},
    {AGENT "StoreFailed", EXIT_FAILED,
     "The agent could not put it on stable storage, so nothing was done: {message}",
     "See to the space and the health of the disk under /var/lib/handoffd."},
    {AGENT "TooManyJobs", EXIT_REFUSED, "The agent has {limit} unfinished jobs, its limit.",
     "Wait for some to end, or raise MaxJobs= in handoffd.conf."},
    {AGENT "TooManyConnections", EXIT_UNREACHABLE, "The agent has {limit} connections, its limit.",
     "Try again when some clients have gone."},
    {STD "InterfaceNotFound", EXIT_INTERNAL, "What listens there does not serve {interface}.",
     "Is it handoffd? See --socket."},
    {STD "MethodNotFound", EXIT_INTERNAL, "The agent does not know {method}.",
     "It is older than this handoffctl: compare handoffctl --version with handoffctl node."},
    {STD "MethodNotImplemented", EXIT_INTERNAL, "The agent does not serve {method} in this version.", NULL},
    {STD "InvalidParameter", EXIT_USAGE, "The agent does not accept the parameter \"{parameter}\".",
     "Is handoffctl newer than the agent? Compare handoffctl --version with handoffctl node."},
    {STD "PermissionDenied", EXIT_PERMISSION, "The agent does not let this user do that.",
     "Be root, or be in the group handoff (usermod -aG handoff USER, then log in anew)."},
    {STD "ExpectedMore", EXIT_INTERNAL, "The agent wanted a streaming call.", NULL},
    {CTL "AgentUnreachable", EXIT_UNREACHABLE, "The agent cannot be reached: {message}",
     "See systemctl status handoffd.socket handoffd.service."},
    {CTL "AgentGone", EXIT_UNREACHABLE, "The agent went away and did not come back: {message}",
     "A migration goes on without it. See systemctl status handoffd, then handoffctl list."},
    {CTL "TimedOut", EXIT_UNREACHABLE, "The agent does not answer: {message}",
     "See systemctl status handoffd, and journalctl -u handoffd."},
    {CTL "PermissionDenied", EXIT_PERMISSION, "This user may not connect to the agent: {message}",
     "Be root, or be in the group handoff (usermod -aG handoff USER, then log in anew)."},
    {CTL "ProtocolError", EXIT_INTERNAL, "What answered does not speak as the agent does: {message}",
     "Is it handoffd that listens there? See --socket."},
    {CTL "Interrupted", EXIT_DETACHED, "Interrupted: {message}", NULL},
    {CTL "NothingToDraw", EXIT_FAILED, "{message}", "handoffctl watch follows it."},
    {CTL "OutputFailed", EXIT_INTERNAL, "The output cannot be written. {message}", NULL},
};

static const ErrorRow other_error = {NULL, EXIT_INTERNAL,
                                     "The agent answered with an error that is not known here: ", NULL};

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

/* One finding a line, indented. */
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

/* The agent's messages end as their author liked: here each sentence ends. */
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
