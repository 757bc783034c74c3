/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The last words about a job. */
#include "agent/ctl/follow.h"
#include "tests/unit/core/rows.h"
#include "tests/unit/ctl/jobs.h"

#include <stdlib.h>

static const struct End {
  const char *name;
  const char *changes; /* members of the job; ' for " */
  const char *text;    /* up to "next:", which test-exitcode knows */
} ends[] = {
    {"succeeded",
     "{'phase':'succeeded','result':{'running_at':'target','evidence':'e','total_time_ms':5012,'downtime_ms':"
     "41,"
     "'transferred_bytes':1234567890}}",
     "web1 is now running on kvm2.\n  5.0 s in all.\n  Downtime 41 ms.\n  1.1 GiB transferred, 3 passes.\n"},
    {"succeeded, with all of its times",
     "{'phase':'succeeded','progress':null,'result':{'running_at':'target','total_time_ms':6812,"
     "'parts':{'exact':true,'queued_ms':2,'checks_ms':105,'begin_ms':412,'disks_ms':0,'first_pass_ms':3900,"
     "'passes_ms':0,'switch_ms':41,'post_copy_ms':2150,'settle_ms':202},'libvirt_time_ms':6490,"
     "'downtime_ms':41,'downtime_error_ms':2}}",
     "web1 is now running on kvm2.\n  6.8 s in all: 2 ms waiting, 105 ms checks, 412 ms to begin, 3.9 s "
     "first "
     "pass, 41 ms switchover, 2.1 s post-copy, 202 ms to settle. libvirt itself counts 6.5 s.\n"
     "  Downtime 41 ms, give or take 2 ms.\n"},
    {"succeeded while nobody watched",
     "{'phase':'succeeded','progress':null,'result':{'running_at':'target','total_time_ms':6812,"
     "'parts':{'exact':false,'first_pass_ms':6812},'downtime_unknown':'the agent did not run'}}",
     "web1 is now running on kvm2.\n  6.8 s in all: 6.8 s first pass. The agent did not watch all the time: "
     "the sum is right, but the parts may be off.\n  Downtime unknown: the agent did not run.\n"},
    {"succeeded, and libvirt counted the downtime as well",
     "{'phase':'succeeded','progress':null,'result':{'running_at':'target','downtime_ms':41,"
     "'downtime_error_ms':2,'libvirt_downtime_ms':43}}",
     "web1 is now running on kvm2.\n  Downtime 41 ms, give or take 2 ms; libvirt itself counts 43 ms.\n"},
    {"succeeded, and nothing was counted",
     "{'phase':'succeeded','progress':null,'result':{'running_at':'target'}}",
     "web1 is now running on kvm2.\n"},
    {"moved, and gone from there since",
     "{'phase':'succeeded','progress':null,'result':{'running_at':'unknown'}}",
     "web1 was migrated to kvm2, but is no longer there: it was shut down or migrated onward.\n"},
    {"aborted",
     "{'phase':'aborted','progress':null,'failure':{'cause':'USER_ABORT','phase':'migrating','stage':'pre_"
     "copy',"
     "'message':'uid 0 asked for it'},'result':{'running_at':'source','evidence':'source: running'}}",
     "The migration of web1 to kvm2 was aborted. web1 is still running on the source.\n"
     "  cause: USER_ABORT, while migrating, pre_copy\n  uid 0 asked for it\n  seen: source: running\n"},
    {"failed, with libvirt's words",
     "{'phase':'failed','progress':null,'failure':{'cause':'LIBVIRT_ERROR','phase':'preparing','stage':'none'"
     ","
     "'message':'m','libvirt_code':38,'libvirt_message':'no "
     "way'},'result':{'running_at':'source','evidence':''}}",
     "The migration of web1 to kvm2 failed. web1 is still running on the source.\n  cause: LIBVIRT_ERROR, "
     "while preparing\n"
     "  m\n  libvirt: no way (code 38)\n"},
    {"refused by its checks",
     "{'phase':'failed','progress':null,'failure':{'cause':'REFUSED','phase':'preparing','stage':'none',"
     "'message':'A: a. Do. B: b. Wait.'},'result':{'running_at':'source'},'findings':["
     "{'code':'A','blocks':true,'transient':false,'seen':'It is a.','remedy':'Do.'},"
     "{'code':'B','blocks':true,'transient':true,'seen':'It is b.','remedy':'Wait.'},"
     "{'code':'C','blocks':false,'transient':false,'seen':'It is c.','remedy':'Know.'}]}",
     "The migration of web1 to kvm2 failed. web1 is still running on the source.\n  cause: REFUSED, while "
     "preparing\n"
     "  A: It is a. Do.\n  B: It is b. Wait.\n"},
    {"failed in another way than by what its checks once found",
     "{'phase':'failed','progress':null,'failure':{'cause':'PREPARE_TIMEOUT','phase':'preparing','stage':'"
     "none',"
     "'message':'the checks did not end'},'result':{'running_at':'source'},'findings':["
     "{'code':'B','blocks':true,'transient':true,'seen':'It is b.','remedy':'Wait.'}]}",
     "The migration of web1 to kvm2 failed. web1 is still running on the source.\n"
     "  cause: PREPARE_TIMEOUT, while preparing\n  the checks did not end\n"},
    {"failed later, with warnings of its checks",
     "{'phase':'failed','progress':null,'failure':{'cause':'DEADLINE','phase':'migrating','stage':'pre_copy',"
     "'message':'m'},'result':{'running_at':'source'},'findings':["
     "{'code':'C','blocks':false,'transient':false,'seen':'It is c.','remedy':'Know.'}]}",
     "The migration of web1 to kvm2 failed. web1 is still running on the source.\n"
     "  cause: DEADLINE, while migrating, pre_copy\n  m\n"},
    {"failed, nobody knows where it runs",
     "{'phase':'failed','progress':null,'failure':{'cause':'LINK_LOST'},'result':{'running_at':'unknown'}}",
     "The migration of web1 to kvm2 failed. It is not known where web1 is running: check both ends before "
     "you "
     "start it anywhere.\n  cause: LINK_LOST\n"},
    {"failed, and runs nowhere",
     "{'phase':'failed','progress':null,'failure':{'cause':'GUEST_STOPPED'},'result':{'running_at':'none'}}",
     "The migration of web1 to kvm2 failed. web1 is running on neither end.\n  cause: GUEST_STOPPED\n"},
};

static void end_reads(void **state) {
  const struct End *row = *state;
  g_autofree char *changes = g_strdelimit(g_strdup(row->changes), "'", '"');
  json_t *json = job_new(json_loads(changes, 0, NULL));
  char *buffer = NULL, *next;
  size_t size = 0;
  FILE *out = open_memstream(&buffer, &size);
  Term term = {.out = out, .err = out};
  JobView job;

  assert_true(job_view_read(json, &job));
  follow_summary(&term, &job);
  fclose(out);
  next = g_strrstr(buffer, "  next: ");
  assert_true((next == NULL) == (job.phase == MIG_PHASE_SUCCEEDED));
  if (next)
    *next = '\0';
  assert_string_equal(buffer, row->text);
  free(buffer);
  json_decref(json);
}

int main(void) {
  Tests tests = {0};

  TESTS_ADD_ROWS(&tests, end_reads, ends);
  return tests_run(&tests, "ctl-summary");
}
