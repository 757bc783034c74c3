/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The images of an incoming job: which of them stay, and what is reported about them. */
#include "agent/move/incoming-private.h"

#include "agent/job/log.h"

void incoming_take_image_states(Job *job, const ImagesAnswer *answer) {
  GPtrArray *images = job->lease->images;

  for (guint i = 0; i < images->len && i < answer->images->len; i++) {
    JobImage *image = images->pdata[i];
    const JobImage *now = answer->images->pdata[i];

    image->state = now->state;
    image->stamp = now->stamp;
  }
}

void incoming_note_left(Job *job, const JobImage *image, const char *why) {
  job_add_event(job, "warning", MIG_CAUSE_NONE, "left %s (%s) in place: %s", image->path, image->disk, why);
  log_job(job, LOG_WARNING, NAMES_MESSAGE_JOB_LEFTOVER, "left %s (%s) in place: %s", image->path, image->disk,
          why);
}

/* It was created for a guest, and may be its only disk. */
static void leave_image(Job *job, JobImage *image, const char *why) {
  g_autofree char *name =
      image->pool ? g_strdup_printf("--pool %s %s", image->pool, image->volume) : g_strdup(image->path);
  g_autofree char *text = g_strdup_printf(
      "%s. It may be the guest's only disk. Another migration with copy_disks=all overwrites it. Once you "
      "know that the guest has its disk elsewhere, you can delete it: virsh vol-delete %s",
      why, name);

  image->state = JOB_IMAGE_LEFT;
  incoming_note_left(job, image, text);
}

void incoming_leave_images(Job *job, const char *why) {
  const GPtrArray *images = job->lease->images;

  for (guint i = 0; i < images->len; i++) {
    JobImage *image = images->pdata[i];

    if (image->state == JOB_IMAGE_MADE)
      leave_image(job, image, why);
  }
}

void incoming_note_removed(Job *job, const ImagesAnswer *answer) {
  const GPtrArray *images = job->lease->images;

  for (guint i = 0; i < images->len; i++) {
    JobImage *image = images->pdata[i];
    const GError *error = answer->errors->pdata[i];

    if (error)
      leave_image(job, image, error->message);
    else if (image->state == JOB_IMAGE_REMOVED) {
      job_add_event(job, "action", MIG_CAUSE_NONE,
                    "removed %s: the guest that it was created for did not arrive", image->path);
      log_job(job, LOG_NOTICE, NAMES_MESSAGE_IMAGE_REMOVED,
              "removed %s: the guest that it was created for did not arrive", image->path);
    }
  }
}
