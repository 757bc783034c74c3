/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Whole verbs against a scripted agent: lost answers, streams that break off, errors. */
#include "agent/ctl/ctl.h"
#include "agent/ctl/failure.h"
#include "tests/unit/core/rows.h"
#include "tests/unit/ctl/jobs.h"

#include <glib/gstdio.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

/* What the agent does with one connection: takes the calls, and answers each with the next line. */
typedef struct Connection {
  const char *replies[4]; /* ' for "; NULL: closes the connection instead */
} Connection;

typedef struct Scenario {
  const char *name;
  const char *line;
  Connection connections[3];
  unsigned n_connections;
  int status;
  const char *says; /* a part of what was printed, to either stream */
} Scenario;

#define JOB(phase, more)                                                                                     \
  "'job':{'id':'0123456789abcdef','domain':{'name':'web1','uuid':'u'},'target':{'name':'kvm2',"              \
  "'libvirt_uri':'x'},'phase':'" phase "','stage':'none'" more "}"
#define STARTED   "{'parameters':{" JOB("preparing", "") ",'created':true}}"
#define MOVING    "{'parameters':{" JOB("migrating", "") "},'continues':true}"
#define SUCCEEDED "{'parameters':{" JOB("succeeded", ",'result':{'running_at':'target'}") "}}"
#define FORECAST(way, total, pause, meets, message)                                                          \
  "{'parameters':{'way':'" way "','total_time_ms':" total ",'pause_ms':" pause ",'floor_ms':55,"             \
  "'deadline_ms':38000,'dirty_rate_bytes_per_s':20971520,'bandwidth_bytes_per_s':49283072,"                  \
  "'meets_policy':" meets ",'message':'" message "'}}"
#define GOES_BY_PRE_COPY FORECAST("pre_copy", "7900", "60", "true", "pre_copy: 7.9 s; pause: never ends")
#define GOES_BY_NO_WAY   FORECAST("none", "0", "0", "false", "pre_copy: never ends")
#define ABORTED                                                                                              \
  "{'parameters':{" JOB("aborted", ",'failure':{'cause':'USER_ABORT'},'result':{'running_at':'source'}") "}" \
                                                                                                         "}"
#define MIGRATION                                                                                            \
  "{'parameters':{" JOB(                                                                                     \
      "succeeded",                                                                                           \
      ",'started_usec_realtime':1000000,'finished_usec_realtime':3000000,'events':["                         \
      "{'kind':'decision','time_usec_realtime':2000000,'stage':'pre_copy',"                                  \
      "'message':'start_post_copy: why'}],"                                                                  \
      "'result':{'running_at':'target','total_time_ms':2000}") ",'samples':[{'elapsed_ms':2000,'span_ms':"   \
                                                               "2000,'stage':'post_copy','iteration':1,"     \
                                                               "'memory_remaining_bytes':5,'memory_"         \
                                                               "remaining_max_bytes':9,'bandwidth_bytes_"    \
                                                               "per_s':7}]}}"
#define DEADLINE                                                                                             \
  "{'parameters':{" JOB("aborted", ",'failure':{'cause':'DEADLINE'},'result':{'running_at':'source'}") "}}"

#define DRAIN(id, state, counts) "'drain':{'id':'" id "','state':'" state "'," counts "}"
#define DRAIN_GUEST(name, state, more)                                                                       \
  "{'domain':{'name':'" name "','uuid':'u-" name "'},'state':'" state "'" more "}"
#define HELD(message)                                                                                        \
  DRAIN_GUEST("web1", "moving", ",'job':'j','target':'kvm2','phase':'pending','message':'" message "'")
#define REFUSED                                                                                              \
  DRAIN_GUEST(                                                                                               \
      "gpu1", "cannot_move",                                                                                 \
      ",'message':'kvm2: HOSTDEV_PCI','refusals':[{'target':'kvm2','findings':[{'code':"                     \
      "'HOSTDEV_PCI','blocks':true,'transient':false,'seen':'It has one.','remedy':'Unplug it.'}]}]")
#define CHANGE(code, item, remedy, by_migration)                                                             \
  "{'code':'" code "','item':'" item "','remedy':'" remedy "','by_migration':" by_migration                  \
  ",'message':'Why.'}"
/* With one change or two. */
#define EVALUATION(running, changes)                                                                         \
  "{'domain':{'name':'web1','uuid':'u'},'running':" running ",'persistent':true,'changes':[" changes         \
  "],'changes_total':2}"

#define DRAIN_BEGUN                                                                                          \
  "{'parameters':{" DRAIN("d1", "checking", "'total':0,'moved':0") ",'guests':[]},'continues':true}"
#define DRAIN_MOVING                                                                                         \
  "{'parameters':{" DRAIN(                                                                                   \
      "d1", "moving", "'total':2,'moved':0,'moving':1,'cannot_move':1") ",'guests':"                         \
                                                                        "[" DRAIN_GUEST("web1", "moving",    \
                                                                                        ",'job':'j'"         \
                                                                                        ",'target':"         \
                                                                                        "'kvm2','"           \
                                                                                        "phase':'"           \
                                                                                        "migrating'"         \
                                                                                        ",'percent'"         \
                                                                                        ":40") "," REFUSED   \
                                                                                               "]},"         \
                                                                                               "'co"         \
                                                                                               "nti"         \
                                                                                               "nue"         \
                                                                                               "s':"         \
                                                                                               "tru"         \
                                                                                               "e}"
#define DRAIN_HELD(message)                                                                                  \
  "{'parameters':{" DRAIN("d1", "moving", "'total':1,'moved':0,'moving':1") ",'guests':[" HELD(              \
      message) "]},'continues':true}"
#define DRAIN_END(state, counts, guest) "{'parameters':{" DRAIN("d1", state, counts) ",'guests':[" guest "]}}"
#define DRAIN_OVER                                                                                           \
  DRAIN_END("finished", "'total':2,'moved':1,'cannot_move':1",                                               \
            DRAIN_GUEST("web1", "moved", ",'job':'j','target':'kvm2','phase':'succeeded','percent':100"))

static const Scenario scenarios[] = {
    {"a drain: what cannot move is told with its reasons, and its exit status is of a refusal",
     "drain kvm2",
     {{{DRAIN_BEGUN}}, {{DRAIN_BEGUN, DRAIN_MOVING, DRAIN_OVER}}},
     2,
     4,
     "gpu1 cannot be migrated: kvm2: HOSTDEV_PCI\n  to kvm2:\n"},
    {"a drain ends with what came of each domain",
     "drain kvm2",
     {{{DRAIN_BEGUN}}, {{DRAIN_BEGUN, DRAIN_MOVING, DRAIN_OVER}}},
     2,
     4,
     "The drain has finished: 1 of 2 migrated, 1 cannot be migrated.\nThis node stays cordoned"},
    {"a drain of which all moved",
     "drain kvm2",
     {{{DRAIN_BEGUN}},
      {{DRAIN_END("finished", "'total':1,'moved':1", DRAIN_GUEST("web1", "moved", ",'target':'kvm2'"))}}},
     2,
     0,
     "web1    migrated  kvm2    -\n"},
    {"a drain of which one is left",
     "drain kvm2",
     {{{DRAIN_BEGUN}},
      {{DRAIN_END("finished", "'total':2,'left':1,'cannot_move':1",
                  DRAIN_GUEST("web1", "left", ",'message':'NOT_CONVERGING: why'"))}}},
     2,
     10,
     "web1 is left behind: NOT_CONVERGING: why\n"},
    {"a drain that is followed over a restart of the agent",
     "drain",
     {{{DRAIN_MOVING, NULL}}, {{DRAIN_MOVING, DRAIN_OVER}}},
     2,
     4,
     "Reconnected to the agent."},
    {"why a move of a drain waits is told once",
     "drain",
     {{{DRAIN_HELD("not now (1 s)"), DRAIN_HELD("not now (0 s)"),
        DRAIN_END("finished", "'total':1,'moved':1",
                  DRAIN_GUEST("web1", "moved", ",'job':'j','target':'kvm2'"))}}},
     1,
     0,
     "web1 is waiting: not now (1 s)\n"},
    {"a drain that was aborted",
     "drain --abort",
     {{{"{'parameters':{" DRAIN("d1", "stopping", "'total':0,'moved':0") "}}"}},
      {{DRAIN_END("aborted", "'total':1,'left':1", DRAIN_GUEST("web1", "left", ",'message':'aborted'"))}}},
     2,
     11,
     "The drain was aborted: 0 of 1 migrated, 1 left behind.\n"},
    {"a drain that is left to itself",
     "drain kvm2 --detach",
     {{{DRAIN_BEGUN}}},
     1,
     0,
     "handoffctl drain --abort\n"},
    {"a drain as JSON, one object a line",
     "-j drain kvm2",
     {{{DRAIN_BEGUN}}, {{DRAIN_BEGUN, DRAIN_OVER}}},
     2,
     4,
     "\"guests\":[]}\n{\"drain\":{"},
    {"another drain than the one that was followed",
     "drain",
     {{{DRAIN_MOVING,
        "{'parameters':{" DRAIN("d2", "moving", "'total':0") ",'guests':[]},'continues':true}"}}},
     1,
     1,
     "or a different one than before"},
    {"a drain beside another one",
     "drain kvm3",
     {{{"{'error':'io.handoffd.Agent.DrainBusy','parameters':{'drain':'d1','targets':['kvm2','kvm4']}}"}}},
     1,
     4,
     "drain of this node to kvm2, kvm4 is already in progress (drain d1). Follow it with handoffctl drain"},
    {"a job of a drain",
     "show web1",
     {{{"{'parameters':{" JOB("migrating", ",'drain':'d1'") "}}"}}},
     1,
     0,
     "d1: handoffctl drain\n"},
    {"a node that is drained",
     "node",
     {{{"{'parameters':{" DRAIN(
         "d1", "moving", "'by':'uid 0','started_usec_realtime':1,'total':9,'moved':2,'waiting':7") "}}"}}},
     1,
     0,
     "by uid 0: 2 of 9 migrated, 7 waiting\n"},
    {"a node whose domains have changes that wait",
     "node",
     {{{"{'parameters':{'pending_changes':{'domains':9,'hotplug':2,'migration':0,'restart':1,'unread':0}}"
        "}"}}},
     1,
     0,
     "9 running domains: 2 with changes that can be applied now, 1 with changes that need a restart; see "
     "handoffctl evaluate\n"},
    {"a node whose domains have none",
     "node",
     {{{"{'parameters':{'pending_changes':{'domains':9,'hotplug':0,'migration':0,'restart':0,'unread':0}}"
        "}"}}},
     1,
     0,
     "9 running domains: none pending\n"},
    {"the changes of a domain, in the order of what they take",
     "evaluate web1",
     {{{"{'parameters':{'domains':[" EVALUATION(
         "true", CHANGE("MACHINE", "", "restart", "false") "," CHANGE("INTERFACE_MOVED", "interface x",
                                                                      "hotplug", "true")) "]}}"}}},
     1,
     0,
     "The next start of web1 would apply 2 changes: 1 can be applied while it runs, 1 only by a "
     "shutdown and a start.\n"
     "hotplug      INTERFACE_MOVED of interface x, or by a migration\n             Why.\n"
     "restart      MACHINE\n             Why.\n"},
    {"a domain that does not run",
     "evaluate web1",
     {{{"{'parameters':{'domains':[" EVALUATION("false", "") "]}}"}}},
     1,
     0,
     "web1 is not running"},
    {"all domains, of which one has changes",
     "evaluate",
     {{{"{'parameters':{'domains':[" EVALUATION(
         "true", CHANGE("MACHINE", "", "restart",
                        "false")) ",{'domain':{'name':'db'},"
                                  "'running':true,'persistent':true,'changes':[],'changes_total':0}]}}"}}},
     1,
     0,
     "The next start would change 1 of 2 running domains.\n"},
    {"a domain that could not be looked at",
     "evaluate",
     {{{"{'parameters':{'domains':[{'domain':{'name':'db'},'running':true,'persistent':false,'changes':[],'"
        "changes_total':0,"
        "'error':'no XML'}]}}"}}},
     1,
     0,
     "db could not be evaluated: no XML\n"},
    {"a domain that is not there",
     "evaluate web9",
     {{{"{'error':'io.handoffd.Agent.NoSuchDomain','parameters':{'domain':'web9'}}"}}},
     1,
     5,
     "no domain \"web9\""},
    {"no drain",
     "drain",
     {{{"{'error':'io.handoffd.Agent.NoDrain'}"}}},
     1,
     5,
     "Start one with handoffctl drain TARGET..."},
    {"a move that succeeds",
     "migrate web1 kvm2",
     {{{STARTED}}, {{SUCCEEDED}}},
     2,
     0,
     "web1 is now running on kvm2."},
    {"the answer is lost, and asked for again",
     "migrate web1 kvm2 --detach",
     {{{NULL}}, {{STARTED}}},
     2,
     0,
     "retrying"},
    {"the answer is lost twice",
     "migrate web1 kvm2 --detach",
     {{{NULL}}, {{NULL}}},
     2,
     3,
     "could not reconnect"},
    {"the agent is restarted while a move is followed",
     "watch web1",
     {{{MOVING, NULL}}, {{SUCCEEDED}}},
     2,
     0,
     "Reconnected to the agent."},
    {"a stream that ends before the job is taken up again",
     "watch web1",
     {{{"{'parameters':{" JOB("migrating", "") "}}"}}, {{ABORTED}}},
     2,
     11,
     "was aborted"},
    {"a deadline is a time out", "migrate web1 kvm2", {{{STARTED}}, {{MOVING, DEADLINE}}}, 2, 12, "DEADLINE"},
    {"abort waits, and is done when the move was aborted",
     "abort web1",
     {{{STARTED}}, {{MOVING, ABORTED}}},
     2,
     0,
     "is still running on the source"},
    {"abort that comes too late", "abort web1", {{{STARTED}}, {{SUCCEEDED}}}, 2, 10, "Too late"},
    {"abort without waiting", "abort web1 --no-wait", {{{STARTED}}}, 1, 0, "Requested the abort"},
    {"complete waits for the end",
     "complete web1 --by post-copy",
     {{{STARTED}}, {{MOVING, SUCCEEDED}}},
     2,
     0,
     "web1 is now running on kvm2."},
    {"complete that ends at the source",
     "complete web1 --by pause",
     {{{STARTED}}, {{MOVING, ABORTED}}},
     2,
     11,
     "is still running on the source"},
    {"complete without waiting",
     "complete web1 --by pause --no-wait",
     {{{STARTED}}},
     1,
     0,
     "Requested the completion of job 0123456789abcdef."},
    {"complete is asked for once", "complete web1 --by pause", {{{NULL}}}, 1, 3, "Cannot reach the agent"},
    {"complete that is not possible",
     "complete web1 --by post-copy",
     {{{"{'error':'io.handoffd.Agent.NotPossible','parameters':{'job':'ab','phase':'pending','stage':'none',"
        "'message':'only a job that is migrating'}}"}}},
     1,
     10,
     "only a job that is migrating. handoffctl show ab"},
    {"complete as JSON",
     "-j complete web1 --by pause",
     {{{STARTED}}, {{SUCCEEDED}}},
     2,
     0,
     "\"created\":true}\n{\"job\":{"},
    {"a check in words",
     "check web1 kvm2",
     {{{"{'parameters':{'can_move':false,'findings':["
        "{'code':'DISK_LOCAL','blocks':true,'transient':false,'seen':'It is local.','remedy':'Copy it.'},"
        "{'code':'TARGET_MEMORY','blocks':true,'transient':true,'seen':'There is none.','remedy':'Wait.'},"
        "{'code':'PINNED','blocks':false,'transient':false,'seen':'It is.','remedy':''}]}}"}}},
     1,
     4,
     "web1 cannot be migrated to kvm2: 2 blockers, 1 warning.\n"
     "blocker      DISK_LOCAL\n"
     "             It is local.\n"
     "             Copy it.\n"
     "blocker      TARGET_MEMORY (waiting may help)\n"
     "             There is none.\n"
     "             Wait.\n"
     "warning      PINNED\n"
     "             It is.\n"},
    {"a check that waiting may cure",
     "check web1 kvm2",
     {{{"{'parameters':{'can_move':false,'findings':[{'code':'TARGET_MEMORY','blocks':true,'transient':true,"
        "'seen':'There is none.','remedy':'Wait.'}]}}"}}},
     1,
     4,
     "web1 cannot be migrated to kvm2: 1 blocker; waiting may help.\n"},
    {"a check that finds nothing",
     "check web1 kvm2",
     {{{"{'parameters':{'can_move':true,'findings':[]}}"}}},
     1,
     0,
     "web1 can be migrated to kvm2.\n"},
    {"a check as JSON",
     "-j check web1 kvm2",
     {{{"{'parameters':{'can_move':false,'findings':[]}}"}}},
     1,
     4,
     "\"can_move\":false"},
    {"a check that is none",
     "check web1 kvm2",
     {{{"{'parameters':{'findings':[]}}"}}},
     1,
     1,
     "the reply to Check is not valid"},
    {"a check of a domain that is not there",
     "check web1 kvm2",
     {{{"{'error':'io.handoffd.Agent.NoSuchDomain','parameters':{'domain':'web1'}}"}}},
     1,
     5,
     "web1"},
    {"a forecast in words",
     "forecast web1 kvm2",
     {{{GOES_BY_PRE_COPY}}},
     1,
     0,
     "web1 would be migrated to kvm2 by pre-copy in about 7.9 s, with a pause of about 60 ms.\n"
     "way          pre-copy\n"
     "total time   7.9 s\n"
     "pause        60 ms\n"
     "floor        55 ms: the shortest pause of pre-copy on this link\n"
     "deadline     38.0 s\n"
     "dirty rate   20 MiB/s\n"
     "bandwidth    47 MiB/s\n"
     "ways         pre_copy: 7.9 s\n"
     "             pause: never ends\n"},
    {"a forecast by no way",
     "forecast web1 kvm2 --bandwidth 47M",
     {{{GOES_BY_NO_WAY}}},
     1,
     4,
     "No permitted way completes a migration of web1 to kvm2.\nfloor "},
    {"a forecast as JSON", "-j forecast web1 kvm2", {{{GOES_BY_NO_WAY}}}, 1, 4, "{\"way\":\"none\","},
    {"a forecast that is none",
     "forecast web1 kvm2",
     {{{"{'parameters':{'way':'by_air'}}"}}},
     1,
     1,
     "the reply to Forecast is not valid"},
    {"a forecast without a bandwidth",
     "forecast web1 kvm2",
     {{{"{'error':'io.handoffd.Agent.NoBandwidth','parameters':{'target':'x'}}"}}},
     1,
     4,
     "--bandwidth 100M"},
    {"a job's forecast",
     "show web1",
     {{{"{'parameters':{" JOB("migrating", ",'forecast':{'way':'pre_copy','total_time_ms':7900,'pause_ms':60,"
                                           "'floor_ms':55}") "}}"}}},
     1,
     0,
     "forecast     completes by pre-copy, 7.9 s in total, pause 60 ms; shortest pause of pre-copy 55 ms\n"},
    {"a job that waits for what its checks found",
     "show web1",
     {{{"{'parameters':{" JOB("pending",
                              ",'findings':[{'code':'TARGET_MEMORY','blocks':true,'transient':true,"
                              "'seen':'There is none.','remedy':'Wait.'}]") "}}"}}},
     1,
     0,
     "blocker      TARGET_MEMORY (waiting may help)\n             There is none.\n             "
     "Wait.\nevents\n"},
    {"a report of a job that waits",
     "report web1",
     {{{"{'parameters':{" JOB("pending", "") ",'samples':[]}}"}}},
     1,
     0,
     "web1 to kvm2: pending\nThe migration has not started yet.\nso far "},
    {"a report of a job that was refused",
     "report web1",
     {{{"{'parameters':{" JOB("failed",
                              ",'failure':{'cause':'SAME_HOST'},'result':{'running_at':'source'}") "}}"}}},
     1,
     0,
     "The migration never started.\nThe migration of web1 to kvm2 failed. web1 is still running on the "
     "source.\n"},
    {"a report of a migration",
     "report web1",
     {{{MIGRATION}}},
     1,
     0,
     "    stages  |post-copy-----------------------------"
     "-----------------------------\n\nstages       post-copy 2.0 s\ndecisions\n  1       1.0 s  "
     "start_post_copy: why\n"
     "web1 is now running on kvm2.\n  2.0 s in all.\n"},
    {"a report as JSON", "-j report web1", {{{MIGRATION}}}, 1, 0, "\"samples\":[{\"elapsed_ms\":2000,"},
    {"a report into a directory that is not there",
     "report web1 --svg /nonexistent/web1.svg",
     {{{MIGRATION}}},
     1,
     1,
     "handoffctl: Cannot write the output. Could not write /nonexistent/web1.svg: "},
    {"nothing is drawn of what has not moved",
     "report web1 --svg /nonexistent/web1.svg",
     {{{"{'parameters':{" JOB("pending", "") ",'samples':[]}}"}}},
     1,
     10,
     "nothing to draw: /nonexistent/web1.svg was not written. "},
    {"a report of an agent that keeps none",
     "report web1",
     {{{"{'error':'org.varlink.service.MethodNotFound','parameters':{'method':'io.handoffd.Agent.GetHistory'}"
        "}"}}},
     1,
     1,
     "does not know the method io.handoffd.Agent.GetHistory. It is older"},
    {"a report without a job", "report x", {{{"{'parameters':{}}"}}}, 1, 1, "contains no valid job"},
    {"an error as JSON",
     "-j show x",
     {{{"{'error':'io.handoffd.Agent.NoSuchJob','parameters':{'job':'x'}}"}}},
     1,
     5,
     "{\"error\":\"io.handoffd.Agent.NoSuchJob\",\"parameters\":{\"job\":\"x\"}}\n"},
    {"no permission",
     "node",
     {{{"{'error':'org.varlink.service.PermissionDenied'}"}}},
     1,
     13,
     "group handoff"},
    {"a reply without a job", "show x", {{{"{'parameters':{}}"}}}, 1, 1, "contains no valid job"},
    {"no varlink at all", "show x", {{{"HTTP/1.1 400"}}}, 1, 1, "Protocol error: "},
    {"a read is not asked for again", "show x", {{{NULL}}}, 1, 3, "Cannot reach the agent"},
    {"the stream as JSON, one object a line",
     "-j watch web1",
     {{{MOVING, SUCCEEDED}}},
     1,
     0,
     "}}\n{\"job\":{"},
};

typedef struct Server {
  const Scenario *scenario;
  int fd;
} Server;

/* Reads up to one NUL. */
static bool read_call(int fd) {
  char c;

  while (read(fd, &c, 1) == 1) {
    if (c == '\0')
      return true;
  }
  return false;
}

static gpointer serve(gpointer data) {
  const Server *server = data;

  for (unsigned i = 0; i < server->scenario->n_connections; i++) {
    const char *const *replies = server->scenario->connections[i].replies;
    int fd = accept(server->fd, NULL, NULL);

    if (fd >= 0 && read_call(fd)) {
      for (unsigned n = 0; n < 4 && replies[n]; n++) {
        g_autofree char *text = g_strdelimit(g_strdup(replies[n]), "'", '"');

        if (write(fd, text, strlen(text) + 1) < 0)
          break;
      }
    }
    close(fd);
  }
  return NULL;
}

static int listen_at(const char *path) {
  struct sockaddr_un address = {.sun_family = AF_UNIX};
  int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

  g_strlcpy(address.sun_path, path, sizeof(address.sun_path));
  assert_int_equal(bind(fd, (struct sockaddr *)&address, sizeof(address)), 0);
  assert_int_equal(listen(fd, 8), 0);
  return fd;
}

static void scenario_ends_as_it_should(void **state) {
  const Scenario *scenario = *state;
  g_autofree char *directory = g_dir_make_tmp("handoffctl-XXXXXX", NULL);
  g_autofree char *path = g_build_filename(directory, "s", NULL);
  g_autofree char *line = g_strdup_printf("handoffctl --socket %s %s", path, scenario->line);
  g_auto(GStrv) argv = g_strsplit(line, " ", -1);
  Server server = {scenario, listen_at(path)};
  GThread *thread = g_thread_new("agent", serve, &server);
  char *buffer = NULL;
  size_t size = 0;
  FILE *out = open_memstream(&buffer, &size);
  Ctl ctl = {.term = {.out = out, .err = out}};
  ExitStatus status = ctl_run(&ctl, (int)g_strv_length(argv), argv);

  fclose(out);
  /* An agent that was not called as often as it was to be would wait for ever. */
  shutdown(server.fd, SHUT_RDWR);
  g_thread_join(thread);
  close(server.fd);
  g_unlink(path);
  g_rmdir(directory);
  if ((int)status != scenario->status || !strstr(buffer, scenario->says))
    fail_msg("status %d, printed: %s", (int)status, buffer);
  free(buffer);
}

static void no_agent_is_unreachable(void **state) {
  g_auto(GStrv) argv = g_strsplit("handoffctl --socket /nonexistent/s node", " ", -1);
  char *buffer = NULL;
  size_t size = 0;
  FILE *out = open_memstream(&buffer, &size);
  Ctl ctl = {.term = {.out = out, .err = out}};

  assert_int_equal(ctl_run(&ctl, 4, argv), EXIT_UNREACHABLE);
  fclose(out);
  assert_non_null(strstr(buffer, "systemctl status handoffd"));
  free(buffer);
}

static void help_tells_every_verb_key_and_status(void **state) {
  g_auto(GStrv) argv = g_strsplit("handoffctl --help", " ", -1);
  char *buffer = NULL;
  size_t size = 0;
  FILE *out = open_memstream(&buffer, &size);
  Ctl ctl = {.term = {.out = out, .err = out}};

  assert_int_equal(ctl_run(&ctl, 2, argv), EXIT_DONE);
  fclose(out);
  for (int i = 0; i < VERB_COUNT; i++)
    assert_non_null(strstr(buffer, options_verb((VerbId)i)->summary));
  for (int i = 0; i < MIG_POLICY_KEY_COUNT; i++)
    assert_non_null(strstr(buffer, mig_policy_key_info((MigPolicyKey)i)->name));
  for (const ExitStatusInfo *row = exit_status_table(); row->summary; row++)
    assert_non_null(strstr(buffer, row->summary));
  free(buffer);
}

static void help_of_a_verb_tells_of_no_other(void **state) {
  for (int verb = 0; verb < VERB_COUNT; verb++) {
    g_autofree char *line = g_strdup_printf("handoffctl help %s", options_verb((VerbId)verb)->name);
    g_auto(GStrv) argv = g_strsplit(line, " ", -1);
    char *buffer = NULL;
    size_t size = 0;
    FILE *out = open_memstream(&buffer, &size);
    Ctl ctl = {.term = {.out = out, .err = out}};

    assert_int_equal(ctl_run(&ctl, 3, argv), EXIT_DONE);
    fclose(out);
    for (int i = 0; i < VERB_COUNT; i++)
      assert_int_equal(strstr(buffer, options_verb((VerbId)i)->summary) != NULL, i == verb);
    for (unsigned i = 0; options_option(i); i++) {
      const OptionInfo *row = options_option(i);
      g_autofree char *option = g_strdup_printf("--%s %s", row->name, row->argument ? row->argument : "");

      if (!row->verbs || (row->verbs & (1u << verb)))
        assert_non_null(strstr(buffer, option));
    }
    free(buffer);
  }
}

/* The page is written by hand; this keeps it with the tables. */
static void the_manual_page_has_every_verb_option_key_and_status(void **state) {
  g_autofree char *page = NULL;

  assert_true(g_file_get_contents(g_getenv("HANDOFFCTL_PAGE"), &page, NULL, NULL));
  for (int i = 0; i < VERB_COUNT; i++) {
    g_autofree char *text = g_strdup_printf("\n*%s*", options_verb((VerbId)i)->name);

    if (!strstr(page, text))
      fail_msg("no verb%s", text);
  }
  for (unsigned i = 0; options_option(i); i++) {
    const OptionInfo *row = options_option(i);
    g_autofree char *text = g_strdup_printf("*--%s*", row->name);

    if (!strstr(page, text))
      fail_msg("no option %s", text);
  }
  for (int i = 0; i < MIG_POLICY_KEY_COUNT; i++) {
    const char *name = mig_policy_key_info((MigPolicyKey)i)->name;
    MigPolicy policy;
    char value[64];

    mig_policy_init(&policy);
    mig_policy_format(&policy, (MigPolicyKey)i, value, sizeof(value));

    g_autofree char *text = g_strdup_printf("*%s*=%s", name, value);
    if (!strstr(page, text))
      fail_msg("no key %s", text);
  }
  for (const ExitStatusInfo *row = exit_status_table(); row->summary; row++) {
    g_autofree char *text = g_strdup_printf("\n*%d*", (int)row->status);

    if (!strstr(page, text))
      fail_msg("no status%s", text);
  }
}

static void the_page_of_the_interface_has_every_method(void **state) {
  g_autofree char *page = NULL, *text = NULL;
  g_auto(GStrv) parts = NULL;

  assert_true(g_file_get_contents(g_getenv("INTERFACE_PAGE"), &page, NULL, NULL));
  assert_true(g_file_get_contents(g_getenv("HANDOFFD_INTERFACE"), &text, NULL, NULL));
  parts = g_strsplit(text, "\nmethod ", -1);
  assert_true(g_strv_length(parts) > 10);
  for (char **part = parts + 1; *part; part++) {
    g_autofree char *name = g_strndup(*part, strcspn(*part, "("));
    g_autofree char *heading = g_strdup_printf("*%s*", name);

    if (!strstr(page, heading))
      fail_msg("no method %s", name);
  }
}

int main(void) {
  Tests tests = {0};

  TESTS_ADD_ROWS(&tests, scenario_ends_as_it_should, scenarios);
  tests_add(&tests, "no agent is unreachable", no_agent_is_unreachable, NULL);
  tests_add(&tests, "help of a verb tells of no other", help_of_a_verb_tells_of_no_other, NULL);
  tests_add(&tests, "help tells every verb key and status", help_tells_every_verb_key_and_status, NULL);
  tests_add(&tests, "the manual page has every verb, option, key and status",
            the_manual_page_has_every_verb_option_key_and_status, NULL);
  tests_add(&tests, "the page of the interface has every method", the_page_of_the_interface_has_every_method,
            NULL);
  return tests_run(&tests, "ctl-run");
}
