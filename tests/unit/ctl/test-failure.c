/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Errors of the agent, as a sentence and an exit status. */
#include "agent/ctl/failure.h"
#include "proto/client.h"
#include "tests/unit/core/rows.h"

#include <stdlib.h>
#include <string.h>

static const struct Error {
  const char *name; /* of the error */
  const char *parameters;
  int status;
  const char *says; /* a part of the text */
} errors[] = {
    {"io.handoffd.Agent.HypervisorUnavailable", "{'uri':'qemu:///system','message':'no answer'}", 10,
     "libvirt does not answer: no answer. Check"},
    {"io.handoffd.Agent.NoSuchDomain", "{'domain':'web1'}", 5, "no domain \"web1\""},
    {"io.handoffd.Agent.NoSuchJob", "{'job':'abc'}", 5, "no job \"abc\""},
    {"io.handoffd.Agent.AmbiguousJob", "{'job':'a','candidates':['ab','ac']}", 5,
     "more than one job: ab, ac."},
    {"io.handoffd.Agent.DomainBusy", "{'domain':'web1','job':'ab'}", 4, "handoffctl watch ab"},
    {"io.handoffd.Agent.RequestKeyConflict", "{'request_key':'k','job':'ab'}", 4,
     "\"k\" belongs to a different request"},
    {"io.handoffd.Agent.NoSuchTarget", "{'target':'x','message':'not a URI'}", 5, "\"x\": not a URI. Give"},
    {"io.handoffd.Agent.TargetNotAllowed", "{'target':'x','message':'it is not listed'}", 13,
     "\"x\" is not allowed on this node: it is not listed. Use"},
    {"io.handoffd.Agent.NoSuchPolicy", "{'policy_name':'fast'}", 5, "no policy \"fast\""},
    {"io.handoffd.Agent.InvalidPolicy", "{'key':'tls','message':'yes, no, require'}", 2, "key tls"},
    {"io.handoffd.Agent.PolicyConflict", "{'keys':['a','b'],'code':'A_B','message':'one only'}", 4,
     "(a, b; A_B): one only."},
    {"io.handoffd.Agent.Refused",
     "{'findings':[{'code':'HOSTDEV','blocks':true,'transient':false,'seen':'A device.','remedy':'Detach "
     "it.'}]}",
     4, "\n  HOSTDEV: A device. Detach it."},
    {"io.handoffd.Agent.NotAbortable",
     "{'job':'ab','phase':'migrating','stage':'post_copy','message':'it runs at the target'}", 10,
     "(migrating, post_copy): it runs at the target."},
    {"io.handoffd.Agent.NotPossible",
     "{'job':'ab','phase':'pending','stage':'none','message':'only a job that is migrating'}", 10,
     "(pending, none): only a job that is migrating. handoffctl show ab"},
    {"io.handoffd.Agent.NotMeasurable", "{'domain':'web3','message':'it does not run'}", 4, "web3"},
    {"io.handoffd.Agent.NoBandwidth", "{'target':'qemu+tcp://kvm2/system'}", 4, "--bandwidth 100M"},
    {"io.handoffd.Agent.StoreFailed", "{'message':'No space left on device'}", 10,
     "No space left on device. Check"},
    {"io.handoffd.Agent.TooManyJobs", "{'limit':10000}", 4, "10000 unfinished"},
    {"io.handoffd.Agent.TooManyConnections", "{'limit':4096}", 3, "4096 connections"},
    {"org.varlink.service.InterfaceNotFound", "{'interface':'x.y'}", 1, "does not implement x.y"},
    {"org.varlink.service.MethodNotFound", "{'method':'x.Y'}", 1, "does not know the method x.Y"},
    {"org.varlink.service.MethodNotImplemented", "{'method':'x.Y'}", 1, "does not implement x.Y"},
    {"org.varlink.service.InvalidParameter", "{'parameter':'p'}", 2, "\"p\""},
    {"org.varlink.service.PermissionDenied", "{}", 13, "group handoff"},
    {"org.varlink.service.ExpectedMore", "{}", 1, "streaming"},
    {"org.example.Unheard", "{'a':1}", 1, "org.example.Unheard {\"a\":1}."},
};

static void error_reads(void **state) {
  const struct Error *row = *state;
  g_autofree char *json = g_strdelimit(g_strdup(row->parameters), "'", '"');
  json_t *parameters = json_loads(json, 0, NULL);
  g_auto(Failure) failure = {0};

  assert_non_null(parameters);
  failure_set_reply(&failure, row->name, parameters);
  json_decref(parameters);

  g_autofree char *text = failure_describe(&failure);
  assert_int_equal(failure.status, row->status);
  if (!strstr(text, row->says))
    fail_msg("\"%s\" does not say \"%s\"", text, row->says);
}

/* Parameters that are missing must not take the program down. */
static void error_without_parameters_reads(void **state) {
  for (unsigned i = 0; failure_error_name(i); i++) {
    g_auto(Failure) failure = {0};
    g_autofree char *text = NULL;

    failure_set_reply(&failure, failure_error_name(i), NULL);
    text = failure_describe(&failure);
    assert_true(strlen(text) > 0);
    assert_null(strchr(text, '{'));
  }
}

/* The interface file is the list: an error added there wants a row here. */
static void each_error_of_the_interface_has_a_row(void **state) {
  g_autofree char *text = NULL;
  g_auto(GStrv) lines = NULL;
  unsigned seen = 0;

  assert_true(g_file_get_contents(g_getenv("HANDOFFD_INTERFACE"), &text, NULL, NULL));
  lines = g_strsplit(text, "\n", -1);
  for (unsigned i = 0; lines[i]; i++) {
    g_auto(GStrv) words = g_strsplit_set(lines[i], " (", -1);
    g_autofree char *name = NULL;
    bool found = false;

    if (!words[0] || strcmp(words[0], "error") != 0)
      continue;
    seen++;
    name = g_strconcat("io.handoffd.Agent.", words[1], NULL);
    for (unsigned row = 0; failure_error_name(row); row++)
      found = found || strcmp(failure_error_name(row), name) == 0;
    if (!found)
      fail_msg("no row for %s", name);
  }
  assert_true(seen >= 15);
}

static const struct ClientError {
  const char *name;
  VarlinkClientError code;
  int status;
} client_errors[] = {
    {"nobody there", VARLINK_CLIENT_ERROR_CONNECT, 3},
    {"no permission", VARLINK_CLIENT_ERROR_PERMISSION, 13},
    {"disconnected", VARLINK_CLIENT_ERROR_DISCONNECTED, 3},
    {"no answer", VARLINK_CLIENT_ERROR_TIMEOUT, 3},
    {"no varlink", VARLINK_CLIENT_ERROR_PROTOCOL, 1},
};

static void client_error_has_its_status(void **state) {
  const struct ClientError *row = *state;
  g_autoptr(GError) error = g_error_new_literal(VARLINK_CLIENT_ERROR, (int)row->code, "seen");
  g_auto(Failure) failure = {0};

  failure_set_client(&failure, error, "/run/x");
  assert_int_equal(failure.status, row->status);
  assert_true(g_str_has_prefix(failure.error, "io.handoffd.Ctl."));
}

static void a_signal_is_counted_as_the_shell_does(void **state) {
  g_auto(Failure) failure = {0};

  failure_set_signal(&failure, 15, "x");
  assert_int_equal(failure.status, 143);
}

static void json_goes_out_as_one_line(void **state) {
  char *buffer = NULL;
  size_t size = 0;
  FILE *out = open_memstream(&buffer, &size);
  Term term = {.out = out, .err = out};
  json_t *parameters = json_pack("{s:s}", "job", "a\nb\033");
  g_auto(Failure) failure = {0};

  failure_set_reply(&failure, "io.handoffd.Agent.NoSuchJob", parameters);
  assert_int_equal(failure_report(&failure, &term, true), EXIT_NOT_FOUND);
  fclose(out);
  assert_string_equal(
      buffer, "{\"error\":\"io.handoffd.Agent.NoSuchJob\",\"parameters\":{\"job\":\"a\\nb\\u001B\"}}\n");
  free(buffer);
  json_decref(parameters);
}

int main(void) {
  Tests tests = {0};

  TESTS_ADD_ROWS(&tests, error_reads, errors);
  tests_add(&tests, "error without parameters reads", error_without_parameters_reads, NULL);
  tests_add(&tests, "each error of the interface has a row", each_error_of_the_interface_has_a_row, NULL);
  TESTS_ADD_ROWS(&tests, client_error_has_its_status, client_errors);
  tests_add(&tests, "a signal is counted as the shell does", a_signal_is_counted_as_the_shell_does, NULL);
  tests_add(&tests, "json goes out as one line", json_goes_out_as_one_line, NULL);
  return tests_run(&tests, "ctl-failure");
}
