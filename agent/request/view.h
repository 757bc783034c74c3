/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* A job as clients see it now: with its position in the queue and the age of its statistics. */
#pragma once

#include "agent/job/jobjson.h"
#include "agent/request/requests.h"

/* The interface's type Job. */
json_t *view_job(const Requests *requests, const Job *job, JobDetail view);

/* {"job": …} */
json_t *view_job_reply(const Requests *requests, const Job *job, JobDetail view);

/* The interface's type JobSummary. */
json_t *view_summary(const Requests *requests, const Job *job);
