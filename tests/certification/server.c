/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* org.varlink.certification on our server, to be judged by foreign clients: certification-server SOCKET */
#include "certification.h"

#include "proto/server.h"

#include <glib-unix.h>
#include <stdio.h>
#include <string.h>

/* A test that this many clients began and never ended is forgotten. */
#define CLIENTS_MAX 100

/* How far each client is: client_id → number of the next step + 1. */
typedef struct Certification {
  GHashTable *clients;
  unsigned last_id;
} Certification;

/* The steps after the table's. */
enum { STEP_TEST10 = 9, STEP_TEST11, STEP_END };

static void complain(VarlinkCall *call, json_t *wants, json_t *got) {
  g_autofree char *text = json_dumps(got, JSON_COMPACT);

  g_printerr("%s: got %s\n", varlink_call_get_method(call), text);
  varlink_call_error(call, CERTIFICATION ".CertificationError",
                     json_pack("{s:o, s:O}", "wants", wants, "got", got));
}

/* Is it this client's turn to make this step, with these parameters? Answers if not. */
static bool enter(Certification *certification, VarlinkCall *call, json_t *parameters, unsigned step,
                  json_t *wants) {
  const char *id = json_string_value(json_object_get(parameters, "client_id"));
  unsigned next = GPOINTER_TO_UINT(g_hash_table_lookup(certification->clients, id));
  char *own_id;

  if (next == 0) {
    json_decref(wants);
    varlink_call_error(call, CERTIFICATION ".ClientIdError", NULL);
    return false;
  }
  own_id = g_strdup(id);
  json_object_del(parameters, "client_id");
  if (next != step + 1 || !json_equal(parameters, wants)) {
    g_free(own_id);
    complain(call, wants, parameters);
    return false;
  }
  g_hash_table_replace(certification->clients, own_id, GUINT_TO_POINTER(step + 2));
  json_decref(wants);
  return true;
}

static void start(VarlinkCall *call, json_t *parameters, gpointer user_data) {
  Certification *certification = user_data;
  char *id = g_strdup_printf("client-%u", ++certification->last_id);

  if (g_hash_table_size(certification->clients) >= CLIENTS_MAX)
    g_hash_table_remove_all(certification->clients);
  varlink_call_reply(call, json_pack("{s:s}", "client_id", id), false);
  g_hash_table_insert(certification->clients, id, GUINT_TO_POINTER(1));
}

static void test_by_table(VarlinkCall *call, json_t *parameters, gpointer user_data) {
  const char *name = strrchr(varlink_call_get_method(call), '.') + 1;

  for (unsigned i = 0; i < n_certification_steps; i++) {
    const CertificationStep *step = &certification_steps[i];

    if (strcmp(step->method, name) == 0 &&
        enter(user_data, call, parameters, i, json_loads(step->takes, 0, NULL)))
      varlink_call_reply(call, json_loads(step->gives, 0, NULL), false);
  }
}

static void test10(VarlinkCall *call, json_t *parameters, gpointer user_data) {
  if (!enter(user_data, call, parameters, STEP_TEST10, json_loads(certification_mytype, 0, NULL)))
    return;
  for (unsigned i = 1; i <= CERTIFICATION_REPLIES; i++)
    varlink_call_reply(call, json_pack("{s:o}", "string", certification_reply(i)), i < CERTIFICATION_REPLIES);
}

static void test11(VarlinkCall *call, json_t *parameters, gpointer user_data) {
  json_t *replies = json_array();

  for (unsigned i = 1; i <= CERTIFICATION_REPLIES; i++)
    json_array_append_new(replies, certification_reply(i));
  if (!varlink_call_is_oneway(call)) {
    json_decref(replies);
    complain(call, json_string("oneway"), parameters);
  } else if (enter(user_data, call, parameters, STEP_TEST11,
                   json_pack("{s:o}", "last_more_replies", replies))) {
    varlink_call_reply(call, NULL, false);
  }
}

static void end(VarlinkCall *call, json_t *parameters, gpointer user_data) {
  Certification *certification = user_data;
  g_autofree char *id = g_strdup(json_string_value(json_object_get(parameters, "client_id")));

  /* Nobody gets here with a step left out or done wrong: each step checks the one before it. */
  if (enter(certification, call, parameters, STEP_END, json_object())) {
    g_hash_table_remove(certification->clients, id);
    varlink_call_reply(call, json_pack("{s:b}", "all_ok", 1), false);
  }
}

static gboolean quit(gpointer loop) {
  g_main_loop_quit(loop);
  return G_SOURCE_CONTINUE;
}

int main(int argc, char **argv) {
  static const VarlinkServiceInfo info = {
      .vendor = "handoffd", .product = "certification", .version = "1", .url = ""};
  static const VarlinkMethod methods[] = {
      {.name = "Start", .func = start},
      {.name = "Test01", .func = test_by_table},
      {.name = "Test02", .func = test_by_table},
      {.name = "Test03", .func = test_by_table},
      {.name = "Test04", .func = test_by_table},
      {.name = "Test05", .func = test_by_table},
      {.name = "Test06", .func = test_by_table},
      {.name = "Test07", .func = test_by_table},
      {.name = "Test08", .func = test_by_table},
      {.name = "Test09", .func = test_by_table},
      {.name = "Test10", .func = test10, .streams = true},
      {.name = "Test11", .func = test11},
      {.name = "End", .func = end},
  };
  g_autoptr(GMainLoop) loop = g_main_loop_new(NULL, FALSE);
  g_autoptr(GError) error = NULL;
  VarlinkServer *server = varlink_server_new(NULL, &info, NULL);
  Certification certification = {.clients = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, NULL)};
  bool good = argc == 2 &&
              varlink_server_add_interface(server, org_varlink_certification_varlink, methods,
                                           G_N_ELEMENTS(methods), &certification, &error) &&
              varlink_server_listen_path(server, argv[1], 0600, (gid_t)-1, &error);

  if (good) {
    g_unix_signal_add(SIGTERM, quit, loop);
    g_main_loop_run(loop);
  } else {
    g_printerr("%s\n", error ? error->message : "certification-server SOCKET");
  }
  varlink_server_free(server);
  g_hash_table_unref(certification.clients);
  return good ? 0 : 1;
}
