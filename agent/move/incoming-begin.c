/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* How an incoming job begins: as a lease, with its images, or as a migration that nobody announced.
 *
 * Theory of Operation. The job is on stable storage before anything is done for it. Images are in the record before they are
 * created, so that an agent that is killed in between knows of them. It treats as its own only those that it saw created, and
 * records that before anybody learns of the lease. The others stay where they are and are named in the journal.
 *
 * Once the job is in the table, libvirt's events for the domain reach it. Its watch begins then, before any image is created,
 * and ends with the connection to libvirtd or with the process. */
#include "agent/move/incoming-private.h"

#include "agent/base/clock.h"
#include "agent/job/log.h"
#include "agent/libvirtd/images.h"
#include "agent/move/lifecycle.h"

/* --- creating images --- */

static void on_await_saved(const char *id, const GError *error, gpointer user_data) {
  g_autofree IncomingBack *back = user_data;
  Job *job = jobs_take_saved(back->mover->jobs, id, error);

  /* The caller gets an error, so there must be no lease. */
  if (error && job && mig_slot_release(&job->lease->slot))
    job_note_failure(job, MIG_CAUSE_INTERNAL, error, "could not store its record: %s", error->message);
  if (back->ready)
    back->ready(job, error, back->user_data);
  if (job)
    jobs_tell(back->mover->jobs, job, JOB_CHANGE_LEASED);
  incoming_tell_waiters(back->mover, back->id);
}

/* The lease is ready: it waits for its domain, or for its end. The record must say which images are its own before anybody
 * relies on it. Takes `back`. */
static void await(Mover *mover, Job *job, IncomingBack *back) {
  incoming_enter(mover, job, MIG_PHASE_PENDING, "nothing has arrived yet");
  job->lease->due_ms = clock_now_ms();
  jobs_announce(mover->jobs, job);
  jobs_save(mover->jobs, job, on_await_saved, back);
}

static void on_made(gpointer task, const GError *error, gpointer user_data) {
  const ImagesAnswer *answer = task;
  IncomingBack *back = user_data;
  Job *job = incoming_back_find(back);

  if (!job) {
    if (back->ready)
      back->ready(NULL, error, back->user_data);
    g_free(back);
    return;
  }
  job->lease->asking = false;
  if (answer)
    incoming_take_image_states(job, answer);
  for (guint i = 0; i < job->lease->images->len; i++) {
    JobImage *image = job->lease->images->pdata[i];
    const GError *failure = answer ? answer->errors->pdata[i] : error;

    if (image->state == JOB_IMAGE_MADE)
      job_add_event(job, "action", MIG_CAUSE_NONE, "created %s for disk %s", image->path, image->disk);
    else if (image->state == JOB_IMAGE_LEFT)
      incoming_note_left(job, image, "it already existed and is used as it is");
    if (image->state == JOB_IMAGE_PLANNED && failure) {
      job_note_failure(job, MIG_CAUSE_LIBVIRT_ERROR, failure, "%s", failure->message);
      mig_slot_release(&job->lease->slot);
    }
    /* The call failed as a whole: the image may exist or not. */
    if (image->state == JOB_IMAGE_PLANNED && error) {
      image->state = JOB_IMAGE_LEFT;
      incoming_note_left(job, image, "unknown whether the agent created it");
    }
  }
  await(back->mover, job, back);
}

void incoming_make_images(Mover *mover, Job *job, IncomingBack *back) {
  if (job_lease_count_images(job->lease, JOB_IMAGE_PLANNED) == 0 && job->phase == MIG_PHASE_PENDING) {
    job->lease->due_ms = clock_now_ms();
    jobs_announce(mover->jobs, job);
    if (back->ready)
      back->ready(job, NULL, back->user_data);
    g_free(back);
    return;
  }
  if (job_lease_count_images(job->lease, JOB_IMAGE_PLANNED) == 0) {
    await(mover, job, back);
    return;
  }
  job->lease->asking = true;
  incoming_enter(mover, job, MIG_PHASE_PREPARING, "creating its disk images");
  jobs_state_changed(mover->jobs, job);
  images_make(mover->local_calls, job->lease, on_made, back);
}

/* --- a new job --- */

static void on_accepted(const char *id, const GError *error, gpointer user_data) {
  IncomingBack *back = user_data;
  Mover *mover = back->mover;
  Job *job = job_table_find_id(mover->jobs->table, id);

  if (job && error) {
    log_job(job, LOG_ERR, NAMES_MESSAGE_STORE_FAILED, "refused: could not store its record: %s",
            error->message);
    if (back->ready)
      back->ready(job, error, back->user_data);
    incoming_tell_waiters(mover, job->id);
    store_remove(mover->jobs->store, job->id);
    job_table_remove(mover->jobs->table, job);
    job = NULL;
  }
  if (!job) {
    g_free(back);
    return;
  }
  job->durable = true;
  if (job->lease->leased) {
    log_job_by(job, job->caller, LOG_INFO, NAMES_MESSAGE_LEASE_GRANTED,
               "may migrate here from %s (lease %.8s)", incoming_name_source(job), job->id);
    incoming_make_images(mover, job, back);
    return;
  }
  g_free(back);
  jobs_announce(mover->jobs, job);
  incoming_ask(mover, job);
}

void incoming_accept(Mover *mover, Job *job, IncomingReadyFunc ready, gpointer user_data) {
  IncomingBack *back;
  g_autoptr(GError) error = NULL;

  /* An unannounced migration is already here, and is followed in any case. */
  if (job->lease->leased &&
      (!job_check_limits(job, &error) ||
       !damaged_permits(mover->jobs->damaged, job->request_key, job->domain_uuid, &error))) {
    log_job(job, LOG_ERR, NAMES_MESSAGE_STORE_FAILED, "refused: %s", error->message);
    if (ready)
      ready(job, error, user_data);
    job_free(job);
    return;
  }
  back = incoming_back_new(mover, job);
  back->ready = ready;
  back->user_data = user_data;
  if (hypervisor_get_state(mover->hypervisor)->reachable)
    mig_slot_watch(&job->lease->slot);
  job_add_event(job, "accepted", MIG_CAUSE_NONE, job->lease->leased ? "expected from %s" : "arriving from %s",
                incoming_name_source(job));
  job_table_add(mover->jobs->table, job);
  jobs_save(mover->jobs, job, on_accepted, back);
}

/* A migration that nobody announced. It is already here, so of the limits only MaxJobs= applies. */
void incoming_begin(Mover *mover, const MigVirtEvent *event) {
  g_autofree char *uri = incoming_uri(mover);
  Job *job;

  if (job_table_count_unfinished(mover->jobs->table) >= mover->config->max_jobs)
    return;
  job = job_new();
  job->direction = MIG_DIRECTION_INCOMING;
  job->domain_name = job_copy_text(event->name);
  g_strlcpy(job->domain_uuid, event->uuid, sizeof job->domain_uuid);
  job->target_uri = g_strdup(uri);
  job->migrate_uri = g_strdup(mover->config->incoming_migrate_uri);
  job->lease = job_lease_new();
  job->lease->slot.came = true;
  incoming_accept(mover, job, NULL, NULL);
}
