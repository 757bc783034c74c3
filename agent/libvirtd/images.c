/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Creates and removes the images of an incoming job, off the main loop. */
#include "agent/libvirtd/images.h"

/* Each image takes some libvirt calls, and qemu-img. */
#define IMAGE_MS 10000

/* How long a look that found nothing of the domain remains valid. Later removals, say after libvirtd hung, are not carried out. */
#define LOOK_USEC (5 * G_USEC_PER_SEC)

typedef struct ImagesTask {
  ImagesAnswer answer; /* first: the caller gets it for the task */
  bool remove;
  JobLease *lease; /* a copy, for its images */
  char *domain_uuid;
  gint *called_off; /* refcounted: shared with the lease */
} ImagesTask;

static void error_free(gpointer error) {
  if (error)
    g_error_free(error);
}

static void task_free(gpointer data) {
  ImagesTask *task = data;

  job_lease_free(task->lease);
  g_ptr_array_unref(task->answer.errors);
  g_free(task->domain_uuid);
  g_atomic_rc_box_release(task->called_off);
  g_free(task);
}

static bool make(ImagesTask *task, const MigDriverOps *ops, MigConn *conn) {
  for (guint i = 0; i < task->lease->images->len; i++) {
    JobImage *image = task->lease->images->pdata[i];
    const MigImage wanted = job_image_get(image);
    g_autoptr(GError) error = NULL;

    if (image->state != JOB_IMAGE_PLANNED)
      continue;
    if (ops->make_image(conn, &wanted, &image->stamp, &error)) {
      image->state = JOB_IMAGE_MADE;
      continue;
    }
    if (g_error_matches(error, MIG_VIRT_ERROR, MIG_VIRT_ERROR_EXISTS))
      image->state = JOB_IMAGE_LEFT;
    task->answer.errors->pdata[i] = g_steal_pointer(&error);
    if (image->state == JOB_IMAGE_PLANNED)
      return true;
  }
  return true;
}

static bool is_nothing(const MigDomainStatus *status) {
  return status->state == MIG_END_ABSENT && !status->job_active;
}

/* Is this still the connection that all events came by (call->serial)? */
static bool is_unbroken(const MigDriverOps *ops, MigConn *conn, GError **error) {
  if (ops->is_alive(conn))
    return true;
  g_set_error(error, MIG_VIRT_ERROR, MIG_VIRT_ERROR_UNREACHABLE, "the connection to libvirtd broke");
  return false;
}

static bool remove_unused(ImagesTask *task, const MigDriverOps *ops, MigConn *conn, GError **error) {
  MigImageGuard guard = {.domain_uuid = task->domain_uuid,
                         .until_us = g_get_monotonic_time() + LOOK_USEC,
                         .called_off = task->called_off};
  ImagesAnswer *answer = &task->answer;

  if (!ops->domain_status(conn, task->domain_uuid, &answer->status, error) || !is_unbroken(ops, conn, error))
    return false;
  answer->have_status = true;
  if (!is_nothing(&answer->status))
    return true;
  answer->removed = true;
  for (guint i = 0; i < task->lease->images->len; i++) {
    JobImage *image = task->lease->images->pdata[i];
    const MigImage wanted = job_image_get(image);
    GError *failure = NULL;

    if (image->state != JOB_IMAGE_MADE)
      continue;
    guard.stamp = image->stamp;
    image->state = ops->remove_image(conn, &wanted, &guard, &failure) ? JOB_IMAGE_REMOVED : JOB_IMAGE_LEFT;
    answer->errors->pdata[i] = failure;
  }
  answer->have_status = ops->domain_status(conn, task->domain_uuid, &answer->status, NULL);
  return true;
}

static bool run(MigDriver *driver, MigConn *conn, gpointer data, GError **error) {
  ImagesTask *task = data;

  return task->remove ? remove_unused(task, driver->ops, conn, error) : make(task, driver->ops, conn);
}

static void start(LocalCalls *local_calls, const JobLease *lease, const char *domain_uuid, unsigned serial,
                  LocalCallDoneFunc done, gpointer user_data) {
  ImagesTask *task = g_new0(ImagesTask, 1);
  LocalCall call = {.run = run,
                    .task = task,
                    .free_task = task_free,
                    .extra_ms = lease->images->len * IMAGE_MS,
                    .serial = serial};

  task->remove = domain_uuid != NULL;
  task->domain_uuid = g_strdup(domain_uuid);
  task->called_off = g_atomic_rc_box_acquire(lease->called_off);
  task->lease = job_lease_new();
  task->answer.images = task->lease->images;
  task->answer.errors = g_ptr_array_new_with_free_func(error_free);
  for (guint i = 0; i < lease->images->len; i++) {
    const JobImage *image = lease->images->pdata[i];
    const MigImage copy = job_image_get(image);

    job_lease_add_image(task->lease, image->disk, &copy);
    ((JobImage *)task->lease->images->pdata[i])->state = image->state;
    ((JobImage *)task->lease->images->pdata[i])->stamp = image->stamp;
    g_ptr_array_add(task->answer.errors, NULL);
  }
  local_calls_run(local_calls, &call, done, user_data);
}

void images_make(LocalCalls *local_calls, const JobLease *lease, LocalCallDoneFunc done, gpointer user_data) {
  start(local_calls, lease, NULL, 0, done, user_data);
}

void images_remove(LocalCalls *local_calls, const JobLease *lease, const char *domain_uuid, unsigned serial,
                   LocalCallDoneFunc done, gpointer user_data) {
  start(local_calls, lease, domain_uuid, serial, done, user_data);
}
