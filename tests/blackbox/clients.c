/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The clients of a test's daemon, and how they follow jobs. */
#include "tests/blackbox/harness.h"
#include "tests/unit/proto/interface-check.h"

#include <grp.h>
#include <unistd.h>

Client *bb_client_for(Bb *bb, VarlinkClient *varlink) {
  Client *client = g_new0(Client, 1);

  client->bb = bb;
  client->varlink = varlink;
  g_ptr_array_add(bb->clients, client);
  return client;
}

Client *bb_connect(Bb *bb) {
  g_autoptr(GError) error = NULL;
  VarlinkClient *varlink = varlink_client_connect(bb->socket, &error);

  if (!varlink)
    fail_msg("connect: %s", error->message);
  return bb_client_for(bb, varlink);
}

void client_close(Client *client) {
  g_ptr_array_remove_fast(client->bb->clients, client);
}

void client_send(Client *client, const char *method, json_t *parameters, VarlinkCallFlags flags) {
  char *full = strchr(method, '.') ? g_strdup(method) : g_strconcat("io.handoffd.Agent.", method, NULL);
  g_autoptr(GError) error = NULL;

  g_queue_push_tail(&client->asked, full);
  if (!varlink_client_send(client->varlink, full, parameters, flags, &error))
    fail_msg("%s: %s", method, error->message);
}

/* Splits "io.handoffd.Agent.Get" at its last dot; NULL: an interface that is not ours to check. */
static const VarlinkInterface *interface_of(Bb *bb, const char *full, const char **ret_member) {
  const char *dot = strrchr(full, '.');
  g_autofree char *name = g_strndup(full, (gsize)(dot - full));

  *ret_member = dot + 1;
  if (strcmp(name, varlink_interface_get_name(bb->interface)) == 0)
    return bb->interface;
  if (strcmp(name, varlink_interface_get_name(bb->service)) == 0)
    return bb->service;
  return NULL;
}

static void check_answer(Bb *bb, const char *method, const VarlinkReply *reply) {
  const char *member;
  const VarlinkInterface *interface = interface_of(bb, reply->error ? reply->error : method, &member);
  g_autofree char *parameter = NULL;
  json_t *copy;

  assert_non_null(interface);
  copy = json_deep_copy(reply->parameters);
  if (!varlink_interface_check(interface, reply->error ? VARLINK_CHECK_ERROR : VARLINK_CHECK_REPLY, member,
                               copy, &parameter)) {
    g_autofree char *text = json_dumps(reply->parameters, JSON_INDENT(1));

    fail_msg("%s: the answer (%s) is not as the interface says, at %s: %s", method,
             reply->error ? reply->error : "a reply", parameter, text);
  }
  json_decref(copy);
}

json_t *client_receive(Client *client, char **ret_error, bool *ret_continues) {
  const char *method = g_queue_peek_head(&client->asked);
  g_auto(VarlinkReply) reply = {0};
  g_autoptr(GError) error = NULL;
  const char *member;
  json_t *parameters;

  if (!varlink_client_receive(client->varlink, BB_PATIENCE_MS, &reply, &error)) {
    bb_print_log(client->bb);
    fail_msg("%s: %s", method ? method : "no call", error->message);
  }
  /* A client that is turned away gets an error before any call. */
  check_answer(client->bb, method ? method : "", &reply);
  if (!reply.continues)
    g_free(g_queue_pop_head(&client->asked));
  parameters = bb_keep(client->bb, json_incref(reply.parameters));
  if (reply.error && !ret_error) {
    g_autofree char *text = json_dumps(parameters, 0);

    bb_print_log(client->bb);
    fail_msg("unexpected error %s %s", reply.error, text);
  }
  if (ret_error) {
    g_free(*ret_error);
    *ret_error = NULL;
    if (reply.error) {
      interface_of(client->bb, reply.error, &member);
      *ret_error = g_strdup(member);
    }
  }
  if (ret_continues)
    *ret_continues = reply.continues;
  return parameters;
}

json_t *client_call(Client *client, const char *method, json_t *parameters) {
  bool continues;
  json_t *answer;

  client_send(client, method, parameters, 0);
  answer = client_receive(client, NULL, &continues);
  assert_false(continues);
  return answer;
}

json_t *client_refused(Client *client, const char *method, json_t *parameters, const char *expected) {
  g_autofree char *error = NULL;
  json_t *answer;

  client_send(client, method, parameters, 0);
  answer = client_receive(client, &error, NULL);
  if (!error)
    fail_msg("%s: no error, though %s was expected", method, expected);
  assert_string_equal(error, expected);
  return answer;
}

void client_expect_end(Client *client) {
  g_auto(VarlinkReply) reply = {0};
  g_autoptr(GError) error = NULL;

  assert_false(varlink_client_receive(client->varlink, BB_PATIENCE_MS, &reply, &error));
  assert_true(g_error_matches(error, VARLINK_CLIENT_ERROR, VARLINK_CLIENT_ERROR_DISCONNECTED));
}

/* --- jobs --- */

json_t *bb_start_parameters(Bb *bb, const char *domain) {
  g_autofree char *target = bb_target(bb, "b");

  return json_pack("{ss ss}", "domain", domain, "target", target);
}

json_t *client_start(Client *client, const char *domain, json_t *policy) {
  json_t *parameters = bb_start_parameters(client->bb, domain);
  json_t *answer;

  if (policy)
    json_object_set_new(parameters, "policy", policy);
  answer = client_call(client, "Start", parameters);
  assert_true(json_is_true(json_object_get(answer, "created")));
  return json_object_get(answer, "job");
}

json_t *client_get(Client *client, const char *job) {
  return json_object_get(client_call(client, "Get", json_pack("{ss}", "job", job)), "job");
}

static bool is_final(json_t *job) {
  const char *phase = text_of(job, "phase");

  return strcmp(phase, "succeeded") == 0 || strcmp(phase, "failed") == 0 || strcmp(phase, "aborted") == 0;
}

json_t *bb_await(Bb *bb, const char *id, bool (*done)(json_t *job, gconstpointer data), gconstpointer data) {
  gint64 until_us = g_get_monotonic_time() + BB_PATIENCE_MS * 1000;
  json_int_t revision = -1, percent = -1;
  Client *client = bb_connect(bb);
  bool continues = true;
  json_t *job = NULL;

  client_send(client, "Watch", json_pack("{ss}", "job", id), VARLINK_CALL_MORE);
  while (continues && g_get_monotonic_time() < until_us) {
    job = json_object_get(client_receive(client, NULL, &continues), "job");
    assert_true(number_of(job, "revision") >= revision);
    revision = number_of(job, "revision");
    if (member_of(job, "progress")) {
      assert_true(number_of(job, "progress.percent") >= percent);
      percent = number_of(job, "progress.percent");
      assert_true(percent < 100 || strcmp(text_of(job, "phase"), "succeeded") == 0);
    }
    assert_int_equal(continues, !is_final(job));
    if (done(job, data)) {
      client_close(client);
      return job;
    }
  }
  bb_print_log(bb);
  {
    g_autofree char *text = json_dumps(job, JSON_INDENT(1));

    fail_msg("what was waited for did not come; the last state: %s", text);
  }
  return NULL;
}

bool bb_has_numbers(json_t *job, gconstpointer data) {
  return member_of(job, "progress.memory_processed_bytes") &&
         number_of(job, "progress.memory_processed_bytes") > 0;
}

static bool has_phase(json_t *job, gconstpointer phase) {
  return strcmp(text_of(job, "phase"), phase) == 0;
}

json_t *bb_await_phase(Bb *bb, const char *job, const char *phase) {
  return bb_await(bb, job, has_phase, phase);
}

typedef struct EventWanted {
  const char *kind;
  const char *text;
} EventWanted;

static bool has_event(json_t *job, gconstpointer data) {
  const EventWanted *wanted = data;

  return find_event(job, wanted->kind, wanted->text) != NULL;
}

json_t *bb_await_event(Bb *bb, const char *job, const char *kind, const char *text) {
  return bb_await(bb, job, has_event, &(EventWanted){kind, text});
}

json_t *member_of(json_t *object, const char *path) {
  g_auto(GStrv) names = g_strsplit(path, ".", -1);

  for (char **name = names; object && *name; name++)
    object = json_object_get(object, *name);
  return object;
}

const char *text_of(json_t *object, const char *path) {
  const char *text = json_string_value(member_of(object, path));

  if (!text)
    fail_msg("there is no text at %s", path);
  return text;
}

json_int_t number_of(json_t *object, const char *path) {
  json_t *number = member_of(object, path);

  if (!json_is_integer(number))
    fail_msg("there is no number at %s", path);
  return json_integer_value(number);
}

void assert_text(json_t *object, const char *path, const char *expected) {
  const char *text = json_string_value(member_of(object, path));

  if (!text || strcmp(text, expected) != 0) {
    g_autofree char *all = json_dumps(object, JSON_INDENT(1));

    fail_msg("%s is %s, not %s, in %s", path, text ? text : "absent", expected, all);
  }
}

json_t *find_event(json_t *job, const char *kind, const char *text) {
  json_t *event;
  size_t i;

  json_array_foreach (json_object_get(job, "events"), i, event)
    if (strcmp(text_of(event, "kind"), kind) == 0 && strstr(text_of(event, "message"), text))
      return event;
  return NULL;
}

void assert_events_whole(json_t *job) {
  json_int_t expected = 1;
  json_t *event;
  size_t i;

  json_array_foreach (json_object_get(job, "events"), i, event) {
    assert_int_equal(number_of(event, "seq"), expected);
    expected++;
  }
  assert_true(expected > 1);
}

/* --- other users --- */

Client *bb_connect_as(Bb *bb, uid_t uid, gid_t gid, gid_t group) {
  gid_t groups[128];
  int n = getgroups(G_N_ELEMENTS(groups), groups);
  Client *client;

  assert_true(n >= 0);
  assert_int_equal(setgroups(1, &group), 0);
  assert_int_equal(setegid(gid), 0);
  assert_int_equal(seteuid(uid), 0);
  client = bb_connect(bb);
  assert_int_equal(seteuid(0), 0);
  assert_int_equal(setegid(getgid()), 0);
  assert_int_equal(setgroups((size_t)n, groups), 0);
  return client;
}
