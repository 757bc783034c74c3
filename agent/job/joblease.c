/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* What only an incoming job has. */
#include "agent/job/joblease.h"

#include "agent/job/job.h"
#include "libmigrate/core/table.h"
#include "proto/server.h"

#include <string.h>

static const char *const image_states[] = {
    [JOB_IMAGE_PLANNED] = "planned",
    [JOB_IMAGE_MADE] = "made",
    [JOB_IMAGE_REMOVED] = "removed",
    [JOB_IMAGE_LEFT] = "left",
};
TABLE_COVERS(image_states, JOB_IMAGE_STATE_COUNT);

static void image_free(gpointer data) {
  JobImage *image = data;

  g_free(image->disk);
  g_free(image->path);
  g_free(image->pool);
  g_free(image->volume);
  g_free(image->format);
  g_free(image);
}

static void call_unref(gpointer call) {
  varlink_call_unref(call);
}

JobLease *job_lease_new(void) {
  JobLease *lease = g_new0(JobLease, 1);

  lease->images = g_ptr_array_new_with_free_func(image_free);
  lease->waiting = g_ptr_array_new_with_free_func(call_unref);
  lease->look_waiters = g_ptr_array_new();
  lease->called_off = g_atomic_rc_box_new0(gint);
  return lease;
}

void job_lease_free(JobLease *lease) {
  if (!lease)
    return;
  g_free(lease->source);
  g_ptr_array_unref(lease->images);
  g_ptr_array_unref(lease->waiting);
  g_ptr_array_unref(lease->look_waiters);
  g_atomic_rc_box_release(lease->called_off);
  g_free(lease);
}

void job_lease_add_image(JobLease *lease, const char *disk, const MigImage *image) {
  JobImage *copy = g_new0(JobImage, 1);

  copy->disk = g_strdup(disk);
  copy->path = g_strdup(image->path);
  copy->pool = g_strdup(image->pool);
  copy->volume = g_strdup(image->volume);
  copy->format = g_strdup(image->format);
  copy->capacity_bytes = image->capacity_bytes;
  g_ptr_array_add(lease->images, copy);
}

unsigned job_lease_count_images(const JobLease *lease, JobImageState state) {
  unsigned n = 0;

  for (guint i = 0; i < lease->images->len; i++)
    n += ((const JobImage *)lease->images->pdata[i])->state == state;
  return n;
}

MigImage job_image_get(const JobImage *image) {
  return (MigImage){.path = image->path,
                    .pool = image->pool,
                    .volume = image->volume,
                    .format = image->format,
                    .capacity_bytes = image->capacity_bytes};
}

/* --- as JSON --- */

json_t *job_lease_to_json(const Job *job) {
  const JobLease *lease = job->lease;
  json_t *images = json_array();
  json_t *object;

  for (guint i = 0; i < lease->images->len; i++) {
    const JobImage *image = lease->images->pdata[i];

    if (image->state == JOB_IMAGE_MADE)
      json_array_append_new(images, json_pack("{ss ss sI}", "disk", image->disk, "path", image->path,
                                              "capacity_bytes", (json_int_t)image->capacity_bytes));
  }
  object = json_pack("{ss sI sI ss so}", "id", job->id, "memory_bytes", (json_int_t)job->memory_bytes,
                     "expires_usec_realtime", (json_int_t)lease->expires_usec, "libvirt_uri", job->target_uri,
                     "images", images);
  json_set_string(object, "migrate_uri", job->migrate_uri);
  return object;
}

json_t *job_lease_to_record(const JobLease *lease) {
  json_t *images = json_array();
  json_t *object;

  for (guint i = 0; i < lease->images->len; i++) {
    const JobImage *image = lease->images->pdata[i];
    json_t *json =
        json_pack("{ss ss ss sI ss}", "disk", image->disk, "path", image->path, "format", image->format,
                  "capacity_bytes", (json_int_t)image->capacity_bytes, "state", image_states[image->state]);

    json_set_string(json, "pool", image->pool);
    json_set_string(json, "volume", image->volume);
    /* Informational. No process removes an image that another one made. */
    if (image->stamp.known)
      json_object_set_new(json, "stamp",
                          json_pack("{sI sI ss}", "allocation_bytes",
                                    (json_int_t)image->stamp.allocation_bytes, "physical_bytes",
                                    (json_int_t)image->stamp.physical_bytes, "mtime", image->stamp.mtime));
    json_array_append_new(images, json);
  }
  object = json_pack("{sb sI sI sb sb sb sb ss so}", "leased", (int)lease->leased, "timeout_ms",
                     (json_int_t)lease->timeout_ms, "expires_usec", (json_int_t)lease->expires_usec, "came",
                     (int)lease->slot.came, "ran", (int)lease->slot.ran, "traces", (int)lease->slot.traces,
                     "started", (int)lease->slot.started, "ending", mig_slot_end_name(lease->slot.ending),
                     "images", images);
  json_set_string(object, "source", lease->source);
  return object;
}

/* An image without a valid state in the record is not known to be this job's: never remove it. */
static JobImageState image_state_from_name(const char *name) {
  int state = table_find(image_states, JOB_IMAGE_STATE_COUNT, name);

  return state == MIG_ENUM_UNKNOWN ? JOB_IMAGE_LEFT : (JobImageState)state;
}

static void read_stamp(json_t *json, MigImageStamp *ret_stamp) {
  const char *mtime = json_string_of(json, "mtime");

  if (!mtime || strlen(mtime) >= sizeof ret_stamp->mtime)
    return;
  ret_stamp->known = true;
  ret_stamp->allocation_bytes = (uint64_t)json_integer_value(json_object_get(json, "allocation_bytes"));
  ret_stamp->physical_bytes = (uint64_t)json_integer_value(json_object_get(json, "physical_bytes"));
  strcpy(ret_stamp->mtime, mtime);
}

static void read_image(JobLease *lease, json_t *json) {
  const char *disk = json_string_of(json, "disk");
  const MigImage image = {
      .path = json_string_of(json, "path"),
      .pool = json_string_of(json, "pool"),
      .volume = json_string_of(json, "volume"),
      .format = json_string_of(json, "format"),
      .capacity_bytes = (uint64_t)json_integer_value(json_object_get(json, "capacity_bytes")),
  };

  JobImage *added;

  if (!disk || !image.path || !image.format)
    return;
  job_lease_add_image(lease, disk, &image);
  added = lease->images->pdata[lease->images->len - 1];
  added->state = image_state_from_name(json_string_of(json, "state"));
  read_stamp(json_object_get(json, "stamp"), &added->stamp);
}

JobLease *job_lease_from_record(json_t *object) {
  JobLease *lease = job_lease_new();
  int ending = mig_slot_end_from_name(json_string_of(object, "ending"));
  json_t *image;
  size_t i;

  lease->source = g_strdup(json_string_of(object, "source"));
  /* If incomplete, it expires at once. */
  lease->leased = !object || json_bool_of(object, "leased");
  lease->timeout_ms = (uint64_t)json_integer_value(json_object_get(object, "timeout_ms"));
  lease->expires_usec = json_integer_value(json_object_get(object, "expires_usec"));
  lease->slot.came = json_bool_of(object, "came");
  lease->slot.ran = json_bool_of(object, "ran");
  lease->slot.traces = json_bool_of(object, "traces");
  lease->slot.started = json_bool_of(object, "started");
  lease->slot.ending = ending == MIG_ENUM_UNKNOWN ? MIG_SLOT_OPEN : (MigSlotEnd)ending;
  json_array_foreach (json_object_get(object, "images"), i, image)
    read_image(lease, image);
  return lease;
}
