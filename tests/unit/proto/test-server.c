/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* proto/server: calls and answers over real sockets. */
#include "fixture.h"
#include "test.h"

#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define CALL(method, rest) "{'method':'org.example.test." method "'" rest "}|"
#define ECHO(text)         CALL("Echo", ",'parameters':{'text':'" text "'}")
#define TEXT(text)         "{'parameters':{'text':'" text "'}}|"
#define MORE_TEXT(text)    "{'parameters':{'text':'" text "'},'continues':true}|"
#define ERROR(name, key, value)                                                                              \
  "{'error':'org.varlink.service." name "','parameters':{'" key "':'" value "'}}|"

static int set_up(void **state) {
  Fixture *fixture = g_new0(Fixture, 1);

  fixture_start(fixture, NULL);
  *state = fixture;
  return 0;
}

static int tear_down(void **state) {
  fixture_stop(*state);
  g_free(*state);
  return 0;
}

static void answer(VarlinkCall *call, const char *text, bool continues) {
  varlink_call_reply(call, json_pack("{s:s}", "text", text), continues);
}

static const struct {
  const char *call;
  const char *reply;
} rows[] = {
    {ECHO("a"), TEXT("a")},
    {CALL("Echo", ",'parameters':{'text':'a','number':1.0}"), TEXT("a")},
    {CALL("Echo", ",'parameters':{'text':'a','number':null},'x':1"), TEXT("a")},
    {CALL("Echo", ",'more':true,'parameters':{'text':'a'}"), TEXT("a")},
    {CALL("Echo", ""), ERROR("InvalidParameter", "parameter", "text")},
    {CALL("Echo", ",'parameters':null"), ERROR("InvalidParameter", "parameter", "text")},
    {CALL("Echo", ",'parameters':{'text':'a','txet':1}"), ERROR("InvalidParameter", "parameter", "txet")},
    {CALL("Echo", ",'parameters':{'text':'a','number':99999999999999999999}"),
     ERROR("InvalidParameter", "parameter", "number")},
    {CALL("Unserved", ""), ERROR("MethodNotImplemented", "method", "org.example.test.Unserved")},
    {CALL("Echo", ",'upgrade':true,'parameters':{'text':'a'}"),
     ERROR("MethodNotImplemented", "method", "org.example.test.Echo")},
    {CALL("Missing", ""), ERROR("MethodNotFound", "method", "org.example.test.Missing")},
    {"{'method':'org.example.none.Echo'}|", ERROR("InterfaceNotFound", "interface", "org.example.none")},
    {"{'method':'Echo'}|", ERROR("MethodNotFound", "method", "Echo")},
    {"{'method':''}|", ERROR("MethodNotFound", "method", "")},
    {CALL("Stream", ""), "{'error':'org.varlink.service.ExpectedMore','parameters':{}}|"},
    {CALL("Drop", ""), "{'error':'org.varlink.service.InternalError','parameters':{'method':"
                       "'org.example.test.Drop'}}|"},
    {"{'method':'org.varlink.service.GetInfo'}|",
     "{'parameters':{'vendor':'v','product':'p','version':'1','url':'u','interfaces':["
     "'org.varlink.service','org.example.test']}}|"},
    {"{'method':'org.varlink.service.GetInterfaceDescription','parameters':{'interface':'a.b'}}|",
     ERROR("InterfaceNotFound", "interface", "a.b")},
};

static void one_call_one_answer(void **state) {
  int fd = fixture_connect(*state);

  for (size_t i = 0; i < G_N_ELEMENTS(rows); i++)
    fixture_exchange(*state, fd, rows[i].call, rows[i].reply);
  close(fd);
}

static void interface_description(void **state) {
  int fd = fixture_connect(*state);
  g_autofree char *text = NULL;

  fixture_send(*state, fd,
               "{'method':'org.varlink.service.GetInterfaceDescription','parameters':{'interface':"
               "'org.example.test'}}|");
  text = fixture_read(*state, fd);
  assert_non_null(strstr(text, "'description':'interface org.example.test\\nmethod Echo("));
  close(fd);
}

static void pipelined_in_order(void **state) {
  Fixture *fixture = *state;
  int fd = fixture_connect(fixture);

  fixture_exchange(fixture, fd, ECHO("1") CALL("Keep", "") ECHO("2") CALL("Missing", "") ECHO("3"),
                   TEXT("1"));
  assert_string_equal(fixture->log->str, "Echo Keep ");
  answer(fixture->kept->pdata[0], "kept", false);
  fixture_expect(fixture, fd,
                 TEXT("kept") TEXT("2") ERROR("MethodNotFound", "method", "org.example.test.Missing")
                     TEXT("3"));
  close(fd);
}

static void many_pipelined(void **state) {
  Fixture *fixture = *state;
  int fd = fixture_connect(fixture);
  g_autoptr(GString) calls = g_string_new(NULL);
  g_autoptr(GString) wanted = g_string_new(NULL);

  for (int i = 0; i < 500; i++) {
    g_string_append_printf(calls, CALL("Echo", ",'parameters':{'text':'%d'}"), i);
    g_string_append_printf(wanted, TEXT("%d"), i);
  }
  fixture_exchange(fixture, fd, calls->str, wanted->str);
  close(fd);
}

static void oneway(void **state) {
  Fixture *fixture = *state;
  int fd = fixture_connect(fixture);

  fixture_exchange(fixture, fd,
                   CALL("Echo", ",'oneway':true,'parameters':{'text':'1'}") CALL("Echo", ",'oneway':true")
                       CALL("Missing", ",'oneway':true") CALL("Unserved", ",'oneway':true")
                           CALL("Drop", ",'oneway':true") CALL("Stream", ",'oneway':true") ECHO("2"),
                   TEXT("2"));
  assert_string_equal(fixture->log->str, "Echo Drop Echo ");
  close(fd);
}

static void stream(void **state) {
  Fixture *fixture = *state;
  int fd = fixture_connect(fixture);
  VarlinkCall *call;
  g_autoptr(GBytes) encoded = varlink_encode_reply(json_pack("{s:s}", "text", "b"), true);

  fixture_exchange(fixture, fd, CALL("Stream", ",'more':true") ECHO("after"), "");
  call = fixture->kept->pdata[0];
  assert_true(varlink_call_wants_more(call));
  answer(call, "a", true);
  fixture_expect(fixture, fd, MORE_TEXT("a"));
  varlink_call_reply_encoded(call, encoded, true);
  assert_true(varlink_call_is_open(call));
  answer(call, "c", false);
  assert_false(varlink_call_is_open(call));
  answer(call, "d", false);
  fixture_expect(fixture, fd, MORE_TEXT("b") TEXT("c") TEXT("after"));
  close(fd);
}

static void permission(void **state) {
  Fixture *fixture = *state;
  int fd = fixture_connect(fixture);
  g_autofree char *info = NULL;

  fixture->deny = true;
  fixture_exchange(fixture, fd, CALL("Echo", ",'parameters':{'wrong':1}"),
                   "{'error':'org.varlink.service.PermissionDenied','parameters':{}}|");
  fixture_send(fixture, fd, "{'method':'org.varlink.service.GetInfo'}|");
  info = fixture_read(fixture, fd);
  assert_non_null(strstr(info, "'vendor'"));
  assert_string_equal(fixture->log->str, "");
  close(fd);
}

static void peer_credentials(void **state) {
  Fixture *fixture = *state;
  int fd = fixture_connect(fixture);

  fixture_exchange(fixture, fd, ECHO("1"), TEXT("1"));
  assert_int_equal(fixture->peer.uid, getuid());
  assert_int_equal(fixture->peer.gid, getgid());
  assert_int_equal(fixture->peer.pid, getpid());
  assert_int_equal(fixture->peer.n_groups, getgroups(0, NULL));
  close(fd);
}

static void half_close(void **state) {
  Fixture *fixture = *state;
  int fd = fixture_connect(fixture);

  fixture_send(fixture, fd, ECHO("1") CALL("Stream", ",'more':true") ECHO("2"));
  assert_int_equal(shutdown(fd, SHUT_WR), 0);
  fixture_expect(fixture, fd, TEXT("1"));
  answer(fixture->kept->pdata[0], "a", true);
  answer(fixture->kept->pdata[0], "b", false);
  fixture_expect(fixture, fd, MORE_TEXT("a") TEXT("b") TEXT("2") "<end>");
  assert_int_equal(varlink_server_get_n_connections(fixture->server), 0);
  close(fd);
}

static void hang_up_tells_the_call(void **state) {
  Fixture *fixture = *state;
  int fd = fixture_connect(fixture);
  int other = fixture_connect(fixture);

  fixture_send(fixture, fd, CALL("Stream", ",'more':true"));
  close(fd);
  fixture_pump(fixture);
  assert_string_equal(fixture->log->str, "Stream closed ");
  assert_int_equal(fixture->kept->len, 0);
  assert_int_equal(varlink_server_get_n_connections(fixture->server), 1);
  fixture_exchange(fixture, other, ECHO("1"), TEXT("1"));
  close(other);
}

static void answering_the_dead_is_safe(void **state) {
  Fixture *fixture = *state;

  for (int i = 0; i < 10; i++) {
    int fd = fixture_connect(fixture);

    fixture_send(fixture, fd, CALL("Stream", ",'more':true"));
    close(fd);
    if (i % 2)
      continue;
    fd = fixture_connect(fixture); /* which pumps, so that the server knows of the one before */
    fixture_send(fixture, fd, CALL("Stream", ",'more':true"));
    close(fd); /* of this one it does not know yet */

    /* The list must not change under whoever walks it. */
    for (guint k = 0; k < fixture->kept->len; k++)
      answer(fixture->kept->pdata[k], "a", true);
    assert_int_equal(fixture->kept->len, 1);
  }
  fixture_pump(fixture);
  assert_int_equal(fixture->kept->len, 0);
  assert_int_equal(varlink_server_get_n_connections(fixture->server), 0);
}

static void oneway_then_close(void **state) {
  Fixture *fixture = *state;
  int fd = fixture_connect(fixture);
  static const char call[] =
      "{\"method\":\"org.example.test.Echo\",\"oneway\":true,\"parameters\":{\"text\":\"1\"}}";

  assert_int_equal(send(fd, call, sizeof call, 0), sizeof call);
  close(fd); /* before the server sees anything */
  fixture_pump(fixture);
  assert_string_equal(fixture->log->str, "Echo ");
}

static const char *const broken[] = {
    "x|",
    "{|",
    "{}|",
    "|",
    "||||",
    "[]|",
    "{'method':1}|",
    "{'method':'a.b.C','method':'a.b.C'}|",
    "{'method':'org.example.test.Echo','parameters':[]}|",
};

static void broken_messages(void **state) {
  Fixture *fixture = *state;
  int other = fixture_connect(fixture);

  for (size_t i = 0; i < G_N_ELEMENTS(broken); i++) {
    int fd = fixture_connect(fixture);
    g_autofree char *text = g_strconcat(ECHO("before"), broken[i], ECHO("after"), NULL);

    fixture_exchange(fixture, fd, text, TEXT("before") "<end>");
    fixture_exchange(fixture, other, ECHO("1"), TEXT("1"));
    assert_int_equal(varlink_server_get_n_connections(fixture->server), 1);
    close(fd);
  }
  close(other);
}

static void calls_outlive_the_server(void **state) {
  Fixture *fixture = *state;
  int fd = fixture_connect(fixture);
  VarlinkCall *call;

  fixture_send(fixture, fd, CALL("Keep", ""));
  call = fixture->kept->pdata[0];
  varlink_server_free(fixture->server);
  fixture->server = NULL;
  assert_false(varlink_call_is_open(call));
  assert_string_equal(varlink_call_get_method(call), "org.example.test.Keep");
  assert_int_equal(varlink_call_get_peer(call)->pid, getpid());
  answer(call, "late", false);
  fixture_expect(fixture, fd, "<end>");
  assert_string_equal(fixture->log->str, "Keep ");
  close(fd);
}

static void wrong_tables(void **state) {
  Fixture *fixture = *state;
  static const VarlinkMethod methods[] = {{.name = "Missing"}};
  static const char good[] = "interface a.b\nmethod M() -> ()";
  static const struct {
    const char *text;
    size_t n_methods;
    const char *message;
  } tables[] = {
      {good, 1, "a.b has no method Missing"},
      {"interface a.b\nmethod M", 0, "line 2: expected \"(\""},
      {"interface org.example.test\n", 0, "org.example.test is already served"},
  };

  for (size_t i = 0; i < G_N_ELEMENTS(tables); i++) {
    g_autoptr(GError) error = NULL;

    assert_false(varlink_server_add_interface(fixture->server, tables[i].text, methods, tables[i].n_methods,
                                              NULL, &error));
    assert_string_equal(error->message, tables[i].message);
  }
}

#define SERVER_ROW(name_, function)                                                                          \
  { .name = (name_), .test_func = (function), .setup_func = set_up, .teardown_func = tear_down }

int main(void) {
  static const struct CMUnitTest tests[] = {
      SERVER_ROW("each call gets its answer or its named error", one_call_one_answer),
      SERVER_ROW("an interface is described by its text", interface_description),
      SERVER_ROW("pipelined calls wait for the one before and are answered in order", pipelined_in_order),
      SERVER_ROW("more pipelined calls than one round takes are all answered", many_pipelined),
      SERVER_ROW("a oneway call is done and never answered, not even with an error", oneway),
      SERVER_ROW("a stream continues until its last answer, then the next call comes", stream),
      SERVER_ROW("who may not call is told before the parameters are looked at", permission),
      SERVER_ROW("a method knows who called", peer_credentials),
      SERVER_ROW("a client that sends no more still gets its answers", half_close),
      SERVER_ROW("a call is told that its client went away", hang_up_tells_the_call),
      SERVER_ROW("answering clients that are gone changes no list under the walker",
                 answering_the_dead_is_safe),
      SERVER_ROW("a oneway call that was sent before close is done", oneway_then_close),
      SERVER_ROW("a broken message ends its connection, after the answers before it, and no other",
                 broken_messages),
      SERVER_ROW("a call may outlive the server", calls_outlive_the_server),
      SERVER_ROW("an interface that is wrong or not the table's is refused", wrong_tables),
  };

  return cmocka_run_group_tests_name("server", tests, NULL, NULL);
}
