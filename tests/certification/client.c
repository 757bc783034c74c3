/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Goes through org.varlink.certification on our client, to judge a server: certification-client SOCKET */
#include "certification.h"

#include "proto/client.h"
#include "tests/unit/proto/interface-check.h"

#include <stdio.h>
#include <string.h>

#define TIMEOUT_MS 10000

typedef struct Run {
  VarlinkClient *client;
  VarlinkInterface *interface;
  char *client_id;
} Run;

static bool say(const char *method, const char *what) {
  fprintf(stderr, "%s: %s\n", method, what);
  return false;
}

/* A reply that fits the interface. */
static bool receive(Run *run, const char *method, VarlinkReply *ret_reply) {
  g_autoptr(GError) error = NULL;
  g_autofree char *parameter = NULL;

  if (!varlink_client_receive(run->client, TIMEOUT_MS, ret_reply, &error))
    return say(method, error->message);
  if (ret_reply->error)
    return say(method, ret_reply->error);
  if (!varlink_interface_check(run->interface, VARLINK_CHECK_REPLY, method, ret_reply->parameters,
                               &parameter))
    return say(method, parameter);
  return true;
}

/* Takes `parameters`. */
static bool send_call(Run *run, const char *method, json_t *parameters, VarlinkCallFlags flags) {
  g_autofree char *name = g_strdup_printf(CERTIFICATION ".%s", method);
  g_autoptr(GError) error = NULL;

  if (run->client_id)
    json_object_set_new(parameters, "client_id", json_string(run->client_id));
  return varlink_client_send(run->client, name, parameters, flags, &error) || say(method, error->message);
}

static bool is_equal(const char *method, json_t *got, const char *wanted) {
  json_t *value = json_loads(wanted, 0, NULL);
  bool equal = json_equal(got, value);

  json_decref(value);
  return equal || say(method, "the answer is not what the specification has");
}

/* An id that nobody has must be refused by name. */
static bool try_wrong_id(Run *run) {
  g_auto(VarlinkReply) reply = {0};
  g_autoptr(GError) error = NULL;

  if (!varlink_client_call(run->client, CERTIFICATION ".Test01", json_pack("{s:s}", "client_id", "nobody"),
                           TIMEOUT_MS, &reply, &error))
    return say("Test01", error->message);
  return g_strcmp0(reply.error, CERTIFICATION ".ClientIdError") == 0 ||
         say("Test01", "an unknown id was taken");
}

static bool run_tests(Run *run) {
  g_auto(VarlinkReply) first = {0};
  json_t *replies = json_array();
  json_t *carried;

  if (!send_call(run, "Start", json_object(), 0) || !receive(run, "Start", &first))
    return false;
  run->client_id = g_strdup(json_string_value(json_object_get(first.parameters, "client_id")));

  /* Each test is given what the one before it answered. */
  carried = json_object();
  for (size_t i = 0; i < n_certification_steps; i++) {
    const CertificationStep *step = &certification_steps[i];
    g_auto(VarlinkReply) reply = {0};

    if (!send_call(run, step->method, carried, 0) || !receive(run, step->method, &reply) ||
        !is_equal(step->method, reply.parameters, step->gives))
      return false;
    carried = json_incref(reply.parameters);
  }

  if (!send_call(run, "Test10", carried, VARLINK_CALL_MORE))
    return false;
  for (unsigned i = 1; i <= CERTIFICATION_REPLIES; i++) {
    g_auto(VarlinkReply) reply = {0};
    json_t *wanted = certification_reply(i);

    if (!receive(run, "Test10", &reply))
      return false;
    if (reply.continues != (i < CERTIFICATION_REPLIES))
      return say("Test10", "\"continues\" does not end with the last reply");
    if (!json_equal(json_object_get(reply.parameters, "string"), wanted))
      return say("Test10", "a reply is missing or out of order");
    json_decref(wanted);
    json_array_append(replies, json_object_get(reply.parameters, "string"));
  }

  /* Nothing answers Test11, so that the next answer is End's. */
  if (!send_call(run, "Test11", json_pack("{s:o}", "last_more_replies", replies), VARLINK_CALL_ONEWAY) ||
      !send_call(run, "End", json_object(), 0))
    return false;
  varlink_reply_clear(&first);
  if (!receive(run, "End", &first))
    return false;
  return json_is_true(json_object_get(first.parameters, "all_ok")) || say("End", "not all was well");
}

int main(int argc, char **argv) {
  g_autoptr(GError) error = NULL;
  Run run = {0};
  bool good;

  if (argc != 2) {
    fprintf(stderr, "certification-client SOCKET\n");
    return 2;
  }
  run.interface = varlink_interface_parse(org_varlink_certification_varlink, &error);
  run.client = run.interface ? varlink_client_connect(argv[1], &error) : NULL;
  if (!run.client) {
    fprintf(stderr, "%s\n", error->message);
    return 1;
  }

  good = run_tests(&run) && try_wrong_id(&run);
  varlink_client_free(run.client);
  varlink_interface_free(run.interface);
  g_free(run.client_id);
  if (good)
    puts("all_ok");
  return good ? 0 : 1;
}
