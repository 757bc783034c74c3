/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Fuzzes the record of a drain: what is taken is written such that it is taken again, and is the same. */
#include "fuzz.h"
#include "json-edit.h"

#include "agent/drain/drain-private.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#define HEAD                                                                                                 \
  "{\"format\":2,\"drain\":{\"id\":\"0123456789abcdef0123456789abcdef\",\"targets\":[{\"name\":\"b\","       \
  "\"libvirt_uri\":\"qemu+tls://b/system\",\"migrate_uri\":\"tcp://b\"},{\"libvirt_uri\":"                   \
  "\"qemu+ssh://c/system\"}],\"by\":\"uid 0 (pid 1)\",\"started_usec_realtime\":1700000000000001,"           \
  "\"request_key\":\"k\",\"digest\":\"d\",\"policy_name\":\"gentle\",\"policy\":{\"max_downtime_ms\":300}"

static const char *const bases[] = {
    HEAD ",\"state\":\"checking\"}}",
    HEAD
    ",\"state\":\"finished\",\"finished_usec_realtime\":1700000000000002,\"guests\":[{\"domain\":"
    "{\"name\":\"web\",\"uuid\":\"e47a3cb2-3cf1-43db-8764-d2f9d88cca43\"},\"state\":\"moved\"},{\"domain\":"
    "{\"name\":\"db\",\"uuid\":\"e47a3cb2-3cf1-43db-8764-d2f9d88cca44\"},\"state\":\"cannot_move\","
    "\"message\":\"no\",\"refusals\":[{\"target\":\"b\",\"findings\":[]}]}]}}",
    HEAD ",\"state\":\"stopping\",\"aborted_by\":\"uid 0 (pid 2)\"}}",
};

static void must(bool condition) {
  if (!condition)
    abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  static Drains drains;
  json_t *record = json_of_bytes(data, size, bases, G_N_ELEMENTS(bases)), *first, *second, *status;
  g_autoptr(GError) error = NULL;
  Drain *drain = record ? drain_from_record(&drains, record, &error) : NULL, *again;

  if (!drain) {
    must(!record || (error && g_utf8_validate(error->message, -1, NULL)));
    json_decref(record);
    return 0;
  }
  must(drain->targets->len > 0 && drain->targets->len <= DRAIN_TARGETS_MAX);
  status = drain_status_to_json(drain);
  must(status);
  first = drain_to_record(drain);
  must(first && json_dumpb(first, NULL, 0, JSON_COMPACT) <= STORE_RECORD_BYTES_MAX);
  again = drain_from_record(&drains, first, NULL);
  must(again);
  second = drain_to_record(again);
  must(json_equal(first, second));
  json_decref(status);
  json_decref(first);
  json_decref(second);
  json_decref(record);
  drain_free(again);
  drain_free(drain);
  return 0;
}
