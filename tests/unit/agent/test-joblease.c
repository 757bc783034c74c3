/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* A lease in its job's record: what comes back, and what a record that is not whole is taken for. */
#include "agent/job/jobrecord.h"

#include "tests/unit/core/rows.h"

#define BOOT "11111111-2222-4333-8444-555555555555"

static Job *leased_job(void) {
  const MigImage by_path = {.path = "/d/a.img", .format = "qcow2", .capacity_bytes = 4096};
  const MigImage by_name = {
      .path = "pool/b", .pool = "pool", .volume = "b", .format = "raw", .capacity_bytes = 8192};
  Job *job = job_new();

  job->direction = MIG_DIRECTION_INCOMING;
  job->domain_name = g_strdup("web");
  strcpy(job->domain_uuid, "e47a3cb2-3cf1-43db-8764-d2f9d88cca43");
  job->target_uri = g_strdup("qemu+tls://here/system");
  job->memory_bytes = 1 << 20;
  job->lease = job_lease_new();
  job->lease->leased = true;
  job->lease->source = g_strdup("qemu+tls://there/system");
  job->lease->timeout_ms = 60000;
  job->lease->expires_usec = 1700000000000001;
  job->lease->slot = (MigSlot){.came = true,
                               .ran = true,
                               .traces = true,
                               .started = true,
                               .ending = MIG_SLOT_RELEASED,
                               .watched = true,
                               .likely = MIG_SLOT_RELEASED,
                               .agreed = 1};
  job_lease_add_image(job->lease, "vda", &by_path);
  job_lease_add_image(job->lease, "vdb", &by_name);
  ((JobImage *)job->lease->images->pdata[0])->state = JOB_IMAGE_MADE;
  ((JobImage *)job->lease->images->pdata[0])->stamp =
      (MigImageStamp){true, 196608, 196624, "1700000000.000000001"};
  return job;
}

static Job *read_back(json_t *record) {
  g_autoptr(GError) error = NULL;
  Job *job = job_from_record(record, BOOT, &error);

  if (!job)
    fail_msg("%s", error->message);
  return job;
}

static json_t *lease_in(json_t *record) {
  return json_object_get(json_object_get(record, "agent"), "lease");
}

static const JobImage *image(const Job *job, guint i) {
  assert_in_range(i, 0, job->lease->images->len - 1);
  return job->lease->images->pdata[i];
}

static void it_comes_back_as_it_was(void **state) {
  g_autoptr(Job) job = leased_job();
  json_t *record = job_to_record(job, BOOT), *again;
  g_autoptr(Job) back = read_back(record);

  assert_int_equal(back->direction, MIG_DIRECTION_INCOMING);
  assert_true(back->lease->leased);
  assert_string_equal(back->lease->source, job->lease->source);
  assert_int_equal(back->lease->timeout_ms, 60000);
  assert_int_equal(back->lease->expires_usec, 1700000000000001);
  assert_true(back->lease->slot.came && back->lease->slot.ran);
  assert_int_equal(back->lease->slot.ending, MIG_SLOT_RELEASED);
  assert_true(back->lease->slot.traces && back->lease->slot.started);
  /* Nothing that another process has seen is taken for a watch of this one. */
  assert_false(back->lease->slot.watched);
  assert_int_equal(back->lease->slot.agreed, 0);
  assert_int_equal(back->lease->slot.likely, MIG_SLOT_OPEN);
  assert_true(image(back, 0)->stamp.known);
  assert_int_equal(image(back, 0)->stamp.allocation_bytes, 196608);
  assert_int_equal(image(back, 0)->stamp.physical_bytes, 196624);
  assert_string_equal(image(back, 0)->stamp.mtime, "1700000000.000000001");
  assert_false(image(back, 1)->stamp.known);
  assert_string_equal(image(back, 0)->path, "/d/a.img");
  assert_int_equal(image(back, 0)->state, JOB_IMAGE_MADE);
  assert_null(image(back, 0)->pool);
  assert_string_equal(image(back, 1)->pool, "pool");
  assert_string_equal(image(back, 1)->volume, "b");
  assert_int_equal(image(back, 1)->state, JOB_IMAGE_PLANNED);
  again = job_to_record(back, BOOT);
  assert_true(json_equal(lease_in(record), lease_in(again)));
  json_decref(again);
  json_decref(record);
}

static void what_others_moved_away_has_no_lease(void **state) {
  g_autoptr(Job) job = leased_job();
  g_autoptr(Job) back = NULL;
  json_t *record;

  job->direction = MIG_DIRECTION_OUTGOING;
  record = job_to_record(job, BOOT);
  back = read_back(record);
  assert_null(back->lease);
  json_decref(record);
}

/* Nothing that is not told for sure to be this job's may ever be removed. */
static void an_image_of_an_unknown_state_is_nobodys_to_remove(void **state) {
  static const char *const states[] = {"", "mad", "kept by a newer agent"};
  g_autoptr(Job) job = leased_job();

  for (size_t i = 0; i < LENGTH(states); i++) {
    json_t *record = job_to_record(job, BOOT);
    json_t *first = json_array_get(json_object_get(lease_in(record), "images"), 0);
    g_autoptr(Job) back = NULL;

    json_object_set_new(first, "state", json_string(states[i]));
    back = read_back(record);
    assert_int_equal(image(back, 0)->state, JOB_IMAGE_LEFT);
    json_decref(record);
  }
}

static void a_record_without_its_lease_holds_nothing_for_long(void **state) {
  g_autoptr(Job) job = leased_job();
  g_autoptr(Job) back = NULL;
  json_t *record = job_to_record(job, BOOT);

  json_object_del(json_object_get(record, "agent"), "lease");
  back = read_back(record);
  assert_non_null(back->lease);
  assert_int_equal(back->lease->timeout_ms, 0);
  assert_int_equal(back->lease->images->len, 0);
  json_decref(record);
}

static void clients_see_the_images_that_were_made(void **state) {
  g_autoptr(Job) job = leased_job();
  json_t *json = job_lease_to_json(job);
  json_t *images = json_object_get(json, "images");

  assert_int_equal(json_array_size(images), 1);
  assert_string_equal(json_string_value(json_object_get(json_array_get(images, 0), "path")), "/d/a.img");
  assert_string_equal(json_string_value(json_object_get(json, "id")), job->id);
  json_decref(json);
}

int main(void) {
  Tests tests = {0};

  tests_add(&tests, "it comes back as it was", it_comes_back_as_it_was, NULL);
  tests_add(&tests, "what others moved away has no lease", what_others_moved_away_has_no_lease, NULL);
  tests_add(&tests, "an image of an unknown state is nobody's to remove",
            an_image_of_an_unknown_state_is_nobodys_to_remove, NULL);
  tests_add(&tests, "a record without its lease holds nothing for long",
            a_record_without_its_lease_holds_nothing_for_long, NULL);
  tests_add(&tests, "clients see the images that were made", clients_see_the_images_that_were_made, NULL);
  return tests_run(&tests, "joblease");
}
