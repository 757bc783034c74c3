/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* A daemon of a test's own: its directory, its hypervisor's script, its process, and clients that hold every
 * answer against the interface. */
#pragma once

#include "tests/unit/core/rows.h"

#include "proto/client.h"
#include "proto/idl.h"

#include <glib.h>
#include <jansson.h>
#include <sys/types.h>

/* No wait takes longer. Far above what is expected, since sanitizers and a busy machine slow things down. */
#define BB_PATIENCE_MS 60000

/* What a test has. All that the functions below return belongs to it and goes with it. */
typedef struct Bb {
  const void *row; /* of a table: what the test was added with */
  char *directory;
  char *socket;
  char *state_directory;
  char *control;
  char *config;
  char *log;     /* stderr of all its daemons */
  json_t *world; /* the script; bb_publish() makes it hold */
  pid_t pid;     /* 0: no daemon runs */
  char *libvirt_uri;
  VarlinkInterface *interface;
  VarlinkInterface *service;
  GPtrArray *clients;
  GPtrArray *json;
} Bb;

typedef struct Client {
  Bb *bb;
  VarlinkClient *varlink;
  GQueue asked; /* char *: methods whose answers are to come, for the check against the interface */
} Client;

/* Like tests_run(), with a Bb for each test as its *state. No daemon runs yet. */
int bb_run(Tests *tests, const char *group);

#define TESTS_ADD(tests, function) tests_add(tests, #function, function, NULL)

/* Hosts a (this node) and b; domains vm1 to vm4 on a, 16 MiB each, that do not write. A link of 64 MiB/s. Polls each
 * 50 ms, tells watchers each 10 ms. */
void bb_start(Bb *bb);

/* Lines added to the configuration's section [Agent], or whole sections after it. Before bb_start(). */
void bb_configure(Bb *bb, const char *text);

/* Sets the time of day, for the daemon alone: see tests/fake/fake-clock.c. Before the first bb_start(), if at all. */
void bb_set_clock(Bb *bb, int64_t offset_s);

/* A disk that takes its time: records are not durable until it is let go. */
void bb_hold_disk(Bb *bb);
void bb_let_disk_go(Bb *bb);

/* What the daemon tells the service manager from now on, to be closed soon: who does not read it holds the daemon up. */
int bb_listen_to_status(Bb *bb);
/* Reads on until a message has the text. */
void bb_await_status(int fd, const char *text);

/* Sends the signal, waits for the end, returns the wait status. */
int bb_stop(Bb *bb, int signal);
bool bb_is_alive(Bb *bb);

/* What the daemon said is worth reading when something went wrong; as TAP's comments. */
void bb_print_log(Bb *bb);

/* --- the script: see tests/fake/fake-driver.h --- */

void bb_publish(Bb *bb);
void bb_set_link(Bb *bb, const char *key, json_t *value);
void bb_set_host(Bb *bb, const char *host, const char *key, json_t *value);
/* One more on a, like those that are there. */
void bb_add_domain(Bb *bb, const char *domain);
void bb_set_domain(Bb *bb, const char *domain, const char *key, json_t *value);
/* `knob` NULL takes it away. */
void bb_set_call(Bb *bb, const char *call, json_t *knob);
/* So slow that a migration goes on until the test lets it end. */
void bb_link_slow(Bb *bb);
void bb_link_fast(Bb *bb);
/* A URI of the host that a caller may name. */
char *bb_target(Bb *bb, const char *host);
/* Did the daemon ever ask for a connection with this URI, or whether its host can be reached? */
bool bb_was_opened(Bb *bb, const char *uri);

/* What the scripted hypervisor says of a domain: "host", "job" while it moves, … */
json_t *bb_truth(Bb *bb, const char *domain);

/* --- records --- */

char *bb_record_path(Bb *bb, const char *id);
json_t *bb_record(Bb *bb, const char *id);

/* --- clients --- */

Client *bb_connect(Bb *bb);
Client *bb_client_for(Bb *bb, VarlinkClient *varlink); /* takes `varlink` */
void client_close(Client *client);

/* A method without a dot is one of io.handoffd.Agent. Takes `parameters`. */
void client_send(Client *client, const char *method, json_t *parameters, VarlinkCallFlags flags);

/* The next answer: its parameters; *ret_error (may be NULL: then an error fails the test) the short name of the error.
 * */
json_t *client_receive(Client *client, char **ret_error, bool *ret_continues);
json_t *client_call(Client *client, const char *method, json_t *parameters);
/* The same, and an error of this name is expected. */
json_t *client_refused(Client *client, const char *method, json_t *parameters, const char *error);

/* The server ends the connection. */
void client_expect_end(Client *client);

/* --- jobs --- */

json_t *bb_start_parameters(Bb *bb, const char *domain);
/* Start of a domain towards b, with these keys of the policy (takes them; NULL: none). Returns the job. */
json_t *client_start(Client *client, const char *domain, json_t *policy);
json_t *client_get(Client *client, const char *job);
/* Follows the job by a stream until its phase is this one; fails if it becomes a final other. Returns the job. The
 * stream's promises are checked on the way. */
json_t *bb_await_phase(Bb *bb, const char *job, const char *phase);
/* Until `done` says so. */
json_t *bb_await(Bb *bb, const char *job, bool (*done)(json_t *job, gconstpointer data), gconstpointer data);
/* For bb_await(): bytes move, so that libvirt has a job. "migrating" is said before that. */
bool bb_has_numbers(json_t *job, gconstpointer data);
/* Until an event of this kind holds the text. */
json_t *bb_await_event(Bb *bb, const char *job, const char *kind, const char *text);

const char *text_of(json_t *object, const char *path);
json_int_t number_of(json_t *object, const char *path);
/* By a path with dots. */
json_t *member_of(json_t *object, const char *path);
void assert_text(json_t *object, const char *path, const char *expected);
json_t *find_event(json_t *job, const char *kind, const char *text);
/* The history has no gap. */
void assert_events_whole(json_t *job);

/* Connects as another user, with no group but these two. What counts are the credentials at the moment of connect().
 * */
Client *bb_connect_as(Bb *bb, uid_t uid, gid_t gid, gid_t group);

json_t *bb_keep(Bb *bb, json_t *json);
