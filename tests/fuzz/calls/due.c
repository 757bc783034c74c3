/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* What a message is to be answered with, by the interface file, and whether an answer is that. */
#include "due.h"
#include "tests/unit/proto/interface-check.h"

#include "proto/interface.h"

#include <string.h>

#define SERVICE        "org.varlink.service"
#define MESSAGE_MAX    ((size_t)256 * 1024)
#define STRANGER_MAX   ((size_t)64 * 1024)
#define INTERNAL_ERROR SERVICE ".InternalError"
#define INVALID        SERVICE ".InvalidParameter"
#define DENIED         SERVICE ".PermissionDenied"
#define REPORTED_BYTES 2000

static const char service_interface[] =
    "interface org.varlink.service\n"
    "method GetInfo() -> (vendor: string, product: string, version: string, url: string, interfaces: "
    "[]string)\n"
    "method GetInterfaceDescription(interface: string) -> (description: string)\n"
    "error InterfaceNotFound (interface: string)\n"
    "error MethodNotFound (method: string)\n"
    "error MethodNotImplemented (method: string)\n"
    "error InvalidParameter (parameter: string)\n"
    "error PermissionDenied ()\n"
    "error ExpectedMore ()\n";

void interfaces_init(Interfaces *interfaces) {
  interfaces->agent = varlink_interface_parse(io_handoffd_Agent_varlink, NULL);
  interfaces->service = varlink_interface_parse(service_interface, NULL);
  g_assert(interfaces->agent && interfaces->service);
}

void interfaces_clear(Interfaces *interfaces) {
  varlink_interface_free(interfaces->agent);
  varlink_interface_free(interfaces->service);
}

void due_free(Due *due) {
  if (!due)
    return;
  g_free(due->method);
  g_free(due->message);
  json_decref(due->keyed);
  g_free(due);
}

/* By all but the last part of a full name; NULL: there is none. *ret_member is the last part. */
static const VarlinkInterface *find_interface(const Interfaces *interfaces, const char *full,
                                              const char **ret_member) {
  const VarlinkInterface *const all[] = {interfaces->agent, interfaces->service};
  const char *dot = strrchr(full, '.');

  *ret_member = dot ? dot + 1 : full;
  for (size_t i = 0; dot && i < G_N_ELEMENTS(all); i++) {
    const char *name = varlink_interface_get_name(all[i]);

    if (strlen(name) == (size_t)(dot - full) && strncmp(name, full, strlen(name)) == 0)
      return all[i];
  }
  return NULL;
}

static bool is_stream(const char *method) {
  return strcmp(method, "Drain") == 0 || strcmp(method, "Watch") == 0 || strcmp(method, "WatchDrain") == 0;
}

/* In the order in which the server looks. */
static const char *error_of(const Interfaces *interfaces, VarlinkCallMessage *call, bool *ret_streams) {
  const char *name;
  const VarlinkInterface *interface = find_interface(interfaces, call->method, &name);

  *ret_streams = false;
  if (!interface)
    return strrchr(call->method, '.') ? SERVICE ".InterfaceNotFound" : SERVICE ".MethodNotFound";
  if (!varlink_interface_find(interface, VARLINK_MEMBER_METHOD, name))
    return SERVICE ".MethodNotFound";
  if (call->upgrade)
    return SERVICE ".MethodNotImplemented";
  if (is_stream(name) && !call->more)
    return SERVICE ".ExpectedMore";
  *ret_streams = is_stream(name);
  if (!varlink_interface_check(interface, VARLINK_CHECK_CALL, name, call->parameters, NULL))
    return INVALID;
  return NULL;
}

static bool makes_job(const char *method) {
  return strcmp(method, "io.handoffd.Agent.Start") == 0 || strcmp(method, "io.handoffd.Agent.Prepare") == 0;
}

DueKind due_of(const Interfaces *interfaces, const char *data, size_t length, bool trusted, Due **ret_due) {
  g_auto(VarlinkCallMessage) call = {0};
  Due *due;

  *ret_due = NULL;
  if (length > (trusted ? MESSAGE_MAX : STRANGER_MAX) ||
      !varlink_call_message_parse(data, length, &call, NULL))
    return DUE_END;
  if (call.oneway)
    return DUE_NOTHING;
  due = g_new0(Due, 1);
  due->method = g_strdup(call.method);
  due->error = error_of(interfaces, &call, &due->streams);
  due->may_refuse = !trusted && !g_str_has_prefix(call.method, SERVICE ".");
  due->message = g_strndup(data, MIN(length, REPORTED_BYTES));
  if (!due->error && makes_job(call.method) && json_object_get(call.parameters, "request_key"))
    due->keyed = json_incref(call.parameters);
  *ret_due = due;
  return DUE_ANSWER;
}

static char *judge_error(const Interfaces *interfaces, const Due *due, const VarlinkReplyMessage *reply) {
  const char *name;
  const VarlinkInterface *interface = find_interface(interfaces, reply->error, &name);
  g_autofree char *parameter = NULL;

  if (strcmp(reply->error, INTERNAL_ERROR) == 0)
    return g_strdup("a call was forgotten, or its answer could not be encoded");
  if (!interface ||
      !varlink_interface_check(interface, VARLINK_CHECK_ERROR, name, reply->parameters, &parameter))
    return g_strdup_printf("the error is not as the interface says, at %s",
                           parameter ? parameter : "its name");
  if (due->may_refuse && strcmp(reply->error, DENIED) == 0)
    return NULL;
  if (due->error)
    return strcmp(due->error, reply->error) == 0 ? NULL : g_strdup_printf("%s was due", due->error);
  /* Some parameters have rules of their own; the other errors of the service are none of a call that is good. */
  if (interface == interfaces->service && strcmp(reply->error, INVALID) != 0 &&
      !g_str_has_prefix(due->method, SERVICE "."))
    return g_strdup("the call is good");
  return NULL;
}

char *due_judge(const Interfaces *interfaces, const Due *due, const VarlinkReplyMessage *reply) {
  const char *name;
  const VarlinkInterface *interface;
  g_autofree char *parameter = NULL;

  if (reply->error)
    return judge_error(interfaces, due, reply);
  if (due->error)
    return g_strdup_printf("%s was due", due->error);
  if (reply->continues && !due->streams)
    return g_strdup("it continues, and is no stream");
  interface = find_interface(interfaces, due->method, &name);
  if (!interface ||
      !varlink_interface_check(interface, VARLINK_CHECK_REPLY, name, reply->parameters, &parameter))
    return g_strdup_printf("the answer is not as the interface says, at %s", parameter);
  return NULL;
}
