/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Fuzzes what a record tells of a lease: the same comes out again, and an image counts as made by this agent only where the record
 * says so. */
#include "fuzz.h"
#include "json-edit.h"

#include "agent/job/job.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

static const char *const bases[] = {
    "{\"leased\":true,\"timeout_ms\":60000,\"expires_usec\":1700000000000009,\"came\":true,\"ran\":false,"
    "\"ending\":\"open\",\"source\":\"qemu+tls://a/system\",\"images\":[{\"disk\":\"vda\",\"path\":\"/d/"
    "a.img\","
    "\"format\":\"qcow2\",\"capacity_bytes\":1048576,\"state\":\"made\"},{\"disk\":\"vdb\",\"path\":\"pool/"
    "b\","
    "\"pool\":\"pool\",\"volume\":\"b\",\"format\":\"raw\",\"capacity_bytes\":4096,\"state\":\"planned\"},"
    "{\"disk\":\"vdc\",\"path\":\"/d/c.img\",\"format\":\"raw\",\"capacity_bytes\":1,\"state\":\"left\"}]}",
    "{\"leased\":false,\"came\":true,\"ran\":true,\"ending\":\"released\",\"images\":[]}",
};

static void must(bool condition) {
  if (!condition)
    abort();
}

static unsigned made_by_the_record(json_t *images) {
  unsigned n = 0;
  json_t *image;
  size_t i;

  json_array_foreach (images, i, image)
    n += g_strcmp0(json_string_value(json_object_get(image, "state")), "made") == 0;
  return n;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  json_t *object = json_of_bytes(data, size, bases, G_N_ELEMENTS(bases)), *first, *second, *wire;
  g_autoptr(JobLease) again = NULL;
  g_autoptr(Job) job = job_new();

  job->lease = job_lease_from_record(object);
  job->target_uri = g_strdup("qemu+tls://here/system");
  must(job_lease_count_images(job->lease, JOB_IMAGE_MADE) <=
       made_by_the_record(json_object_get(object, "images")));
  for (guint i = 0; i < job->lease->images->len; i++) {
    MigImage image = job_image_get(job->lease->images->pdata[i]);

    must(image.path && image.format);
  }
  first = job_lease_to_record(job->lease);
  again = job_lease_from_record(first);
  second = job_lease_to_record(again);
  must(first && json_equal(first, second));
  wire = job_lease_to_json(job);
  must(wire);
  json_decref(wire);
  json_decref(first);
  json_decref(second);
  json_decref(object);
  return 0;
}
