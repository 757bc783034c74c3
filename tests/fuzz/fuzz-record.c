/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Fuzzes the records of jobs, those of older formats too: what is taken is written such that it is taken again, and is the same,
 * and the interface may show it. */
#include "fuzz.h"
#include "json-edit.h"

#include "agent/job/jobjson.h"
#include "agent/job/jobrecord.h"
#include "agent/job/store.h"
#include "proto/interface.h"
#include "tests/unit/proto/interface-check.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define BOOT "11111111-2222-4333-8444-555555555555"
#define HEAD                                                                                                 \
  "\"id\":\"0123456789abcdef0123456789abcdef\",\"request_key\":\"k\",\"domain\":{\"name\":\"web\","          \
  "\"uuid\":\"e47a3cb2-3cf1-43db-8764-d2f9d88cca43\"},\"target\":{\"name\":\"b\",\"libvirt_uri\":"           \
  "\"qemu+tls://b/system\",\"migrate_uri\":\"tcp://b\"},\"revision\":9,\"policy\":{\"max_downtime_ms\":300," \
  "\"tls\":\"yes\",\"allow_post_copy\":true},\"policy_sources\":[{\"key\":\"tls\",\"source\":\"named\"}],"   \
  "\"abort_requested\":false,\"created_usec_realtime\":1700000000000001,\"events\":[{\"seq\":1,"             \
  "\"time_usec_realtime\":1700000000000001,\"phase\":\"pending\",\"stage\":\"none\",\"kind\":\"accepted\","  \
  "\"message\":\"to be moved to b\",\"cause\":\"DEADLINE\"}]"
#define TAIL                                                                                                 \
  "\"seq\":3,\"boot_id\":\"" BOOT "\",\"started_ms\":5000,\"memory_bytes\":1048576,\"disk_bytes\":4096,"     \
  "\"pending_since_usec\":1700000000000002,\"pending_since_ms\":4000,\"events_seq\":1,\"have_sample\":true," \
  "\"begun\":true,\"request_digest\":\"d\",\"plan\":{\"post_copy\":true,\"auto_converge\":true,"             \
  "\"throttle_initial_pct\":20,\"throttle_increment_pct\":10,\"downtime_ms\":300},\"before\":"               \
  "{\"ran_before\":true,\"target_was_absent\":true}"

static const char *const bases[] = {
    "{\"format\":2,\"job\":{" HEAD
    ",\"direction\":\"outgoing\",\"phase\":\"migrating\",\"stage\":\"pre_copy\","
    "\"progress\":{\"percent\":40,\"elapsed_ms\":1}},\"agent\":{" TAIL "}}",
    "{\"format\":2,\"job\":{" HEAD ",\"direction\":\"outgoing\",\"phase\":\"failed\",\"stage\":\"none\","
    "\"failure\":{\"cause\":\"LINK_LOST\",\"phase\":\"migrating\",\"stage\":\"pre_copy\",\"message\":"
    "\"lost\","
    "\"libvirt_code\":38,\"libvirt_message\":\"closed\"},\"findings\":[{\"blocks\":true,\"transient\":false,"
    "\"code\":\"DISKS\",\"seen\":\"s\",\"remedy\":\"r\"}],\"result\":{\"total_time_ms\":1,\"downtime_ms\":0,"
    "\"running_at\":\"source\",\"evidence\":\"e\"}},\"agent\":{" TAIL ",\"finished_ms\":9000}}",
    "{\"format\":1,\"job\":{" HEAD ",\"direction\":\"outgoing\",\"phase\":\"pending\",\"stage\":\"none\"},"
    "\"agent\":{" TAIL "}}",
    "{\"format\":2,\"job\":{" HEAD ",\"direction\":\"incoming\",\"phase\":\"recovering\",\"stage\":\"none\"},"
    "\"agent\":{" TAIL ",\"recovering_since_usec\":1700000000000003,\"lease\":{\"leased\":true,"
    "\"timeout_ms\":60000,\"expires_usec\":1700000000000009,\"came\":true,\"ran\":false,\"ending\":\"open\","
    "\"images\":[{\"disk\":\"vda\",\"path\":\"/d/a\",\"format\":\"raw\",\"capacity_bytes\":1,"
    "\"state\":\"made\"}],\"source\":\"a\"}}}",
};

static void must(bool condition) {
  if (!condition)
    abort();
}

/* As the store does it. */
static Job *through_the_disk(json_t *record) {
  char *text = json_dumps(record, JSON_COMPACT);
  json_t *read = text ? json_loads(text, JSON_REJECT_DUPLICATES, NULL) : NULL;
  Job *job;

  must(text && strlen(text) <= STORE_RECORD_BYTES_MAX && read);
  job = job_from_record(read, BOOT, NULL);
  json_decref(read);
  free(text);
  return job;
}

/* Each start of the agent raises it. */
static void forget_revision(json_t *record) {
  json_object_del(json_object_get(record, "job"), "revision");
}

static void try_views(const Job *job) {
  static const JobContext context = {.pending_reason = "NEXT", .pending_message = "next in the queue"};
  static VarlinkInterface *interface;
  json_t *reply = json_pack("{so}", "job", job_to_json(job, &context, JOB_DETAIL_FULL));
  json_t *summary = job_to_summary(job, &context);
  g_autofree char *parameter = NULL;

  if (!interface)
    interface = varlink_interface_parse(io_handoffd_Agent_varlink, NULL);
  if (!varlink_interface_check(interface, VARLINK_CHECK_REPLY, "Get", reply, &parameter)) {
    fprintf(stderr, "not as the interface has it: %s\n", parameter);
    abort();
  }
  json_decref(summary);
  json_decref(reply);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  json_t *record = json_of_bytes(data, size, bases, G_N_ELEMENTS(bases)), *first, *second;
  g_autoptr(GError) error = NULL;
  g_autoptr(Job) job = record ? job_from_record(record, BOOT, &error) : NULL;
  g_autoptr(Job) again = NULL;

  if (!job) {
    must(!record || (error && g_utf8_validate(error->message, -1, NULL)));
    json_decref(record);
    return 0;
  }
  must(job->events->len <= JOB_EVENTS_MAX &&
       (job->lease != NULL) == (job->direction == MIG_DIRECTION_INCOMING));
  try_views(job);
  first = job_to_record(job, BOOT);
  again = through_the_disk(first);
  must(again);
  second = job_to_record(again, BOOT);
  forget_revision(first);
  forget_revision(second);
  if (!json_equal(first, second)) {
    json_dumpf(first, stderr, JSON_SORT_KEYS | JSON_INDENT(1));
    json_dumpf(second, stderr, JSON_SORT_KEYS | JSON_INDENT(1));
    fprintf(stderr, "\nthey differ\n");
    abort();
  }
  json_decref(first);
  json_decref(second);
  json_decref(record);
  return 0;
}
