/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* org.varlink.service, which every varlink server provides. */
#include "proto/server-private.h"

static const char service_description[] =
    "# The interface that every varlink service has. It describes the service and its interfaces.\n"
    "interface org.varlink.service\n"
    "\n"
    "# Returns who made this service, and the names of its interfaces.\n"
    "method GetInfo() -> (\n"
    "  vendor: string,\n"
    "  product: string,\n"
    "  version: string,\n"
    "  url: string,\n"
    "  interfaces: []string\n"
    ")\n"
    "\n"
    "# Returns the text of an interface file.\n"
    "method GetInterfaceDescription(interface: string) -> (description: string)\n"
    "\n"
    "# The service has no such interface.\n"
    "error InterfaceNotFound (interface: string)\n"
    "\n"
    "# The interface has no such method.\n"
    "error MethodNotFound (method: string)\n"
    "\n"
    "# The interface has the method, but the service does not implement it.\n"
    "error MethodNotImplemented (method: string)\n"
    "\n"
    "# A parameter is unknown, missing or invalid.\n"
    "error InvalidParameter (parameter: string)\n"
    "\n"
    "# The caller may not call this method.\n"
    "error PermissionDenied ()\n"
    "\n"
    "# The method streams its replies and must be called with \"more\".\n"
    "error ExpectedMore ()\n";

static void get_info(VarlinkCall *call, json_t *parameters, gpointer user_data) {
  VarlinkServer *server = user_data;
  json_t *names = json_array();

  (void)parameters;
  for (size_t i = 0; i < server->services->len; i++) {
    const Service *service = server->services->pdata[i];

    json_array_append_new(names, json_string(varlink_interface_get_name(service->interface)));
  }
  varlink_call_reply(call,
                     json_pack("{s:s, s:s, s:s, s:s, s:o}", "vendor", server->info.vendor, "product",
                               server->info.product, "version", server->info.version, "url", server->info.url,
                               "interfaces", names),
                     false);
}

static void get_interface_description(VarlinkCall *call, json_t *parameters, gpointer user_data) {
  VarlinkServer *server = user_data;
  const char *name = json_string_value(json_object_get(parameters, "interface"));
  const Service *service = g_hash_table_lookup(server->interfaces, name);

  if (!service) {
    varlink_call_error(call, "org.varlink.service.InterfaceNotFound", json_pack("{s:s}", "interface", name));
    return;
  }
  varlink_call_reply(call, json_pack("{s:s}", "description", service->description), false);
}

bool service_add(VarlinkServer *server) {
  static const VarlinkMethod methods[] = {
      {.name = "GetInfo", .func = get_info},
      {.name = "GetInterfaceDescription", .func = get_interface_description},
  };
  GHashTableIter iter;
  gpointer value;

  if (!varlink_server_add_interface(server, service_description, methods, G_N_ELEMENTS(methods), server,
                                    NULL))
    return false;

  g_hash_table_iter_init(&iter, server->methods);
  while (g_hash_table_iter_next(&iter, NULL, &value))
    ((Method *)value)->open_to_all = true;
  return true;
}
