/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* A daemon for each test: its directory, its hypervisor's script, its process, and clients that check every reply
 * against the interface. */
#pragma once

#include "tests/unit/core/rows.h"

#include "proto/client.h"
#include "proto/idl.h"

#include <glib.h>
#include <jansson.h>
#include <sys/types.h>

/* No wait takes longer. Far above what is expected, because sanitizers and a busy machine slow things down. */
#define BB_PATIENCE_MS 60000

/* The state of a test. It owns everything that the functions below return, and frees it. */
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

/* Hosts a (this node) and b; domains vm1 to vm4 on a, 16 MiB each, that do not write. A link of 64 MiB/s. Polls every
 * 50 ms, notifies watchers every 10 ms. */
void bb_start(Bb *bb);

/* Lines added to the configuration's section [Agent], or whole sections after it. Before bb_start(). */
void bb_configure(Bb *bb, const char *text);

/* Sets the time of day, for the daemon alone: see tests/fake/fake-clock.c. Before the first bb_start(), if at all. */
void bb_set_clock(Bb *bb, int64_t offset_s);

/* A slow disk: records are not durable until the test releases it. */
void bb_hold_disk(Bb *bb);
void bb_let_disk_go(Bb *bb);

/* What the daemon tells the service manager from now on. Close it soon: a reader that does not read blocks the daemon. */
int bb_listen_to_status(Bb *bb);
/* Reads until a message has the text. */
void bb_await_status(int fd, const char *text);

/* Sends the signal, waits for the exit, returns the wait status. */
int bb_stop(Bb *bb, int signal);
bool bb_is_alive(Bb *bb);

/* Prints the daemon's log as TAP comments, to help explain a failure. */
void bb_print_log(Bb *bb);

/* --- the script: see tests/fake/fake-driver.h --- */

void bb_publish(Bb *bb);
void bb_set_link(Bb *bb, const char *key, json_t *value);
void bb_set_host(Bb *bb, const char *host, const char *key, json_t *value);
/* Adds one on a, like the others. */
void bb_add_domain(Bb *bb, const char *domain);
void bb_set_domain(Bb *bb, const char *domain, const char *key, json_t *value);
/* `knob` NULL removes it. */
void bb_set_call(Bb *bb, const char *call, json_t *knob);
/* So slow that a migration runs until the test lets it end. */
void bb_link_slow(Bb *bb);
void bb_link_fast(Bb *bb);
/* A URI of the host that a caller may name. */
char *bb_target(Bb *bb, const char *host);
/* Did the daemon ever try to open this URI, or to reach its host? */
bool bb_was_opened(Bb *bb, const char *uri);

/* What the scripted hypervisor says about a domain: "host", "job" while it migrates, … */
json_t *bb_truth(Bb *bb, const char *domain);

/* --- records --- */

char *bb_record_path(Bb *bb, const char *id);
json_t *bb_record(Bb *bb, const char *id);

/* --- clients --- */

Client *bb_connect(Bb *bb);
Client *bb_client_for(Bb *bb, VarlinkClient *varlink); /* takes `varlink` */
void client_close(Client *client);

/* A method without a dot belongs to io.handoffd.Agent. Takes `parameters`. */
void client_send(Client *client, const char *method, json_t *parameters, VarlinkCallFlags flags);

/* The next reply: its parameters; *ret_error is the error's short name. If ret_error is NULL, an error fails the test. */
json_t *client_receive(Client *client, char **ret_error, bool *ret_continues);
json_t *client_call(Client *client, const char *method, json_t *parameters);
/* The same, but expects an error of this name. */
json_t *client_refused(Client *client, const char *method, json_t *parameters, const char *error);

/* Expects the server to close the connection. */
void client_expect_end(Client *client);

/* --- jobs --- */

json_t *bb_start_parameters(Bb *bb, const char *domain);
/* Starts a domain towards b, with these policy keys (takes them; NULL: none). Returns the job. */
json_t *client_start(Client *client, const char *domain, json_t *policy);
json_t *client_get(Client *client, const char *job);
/* Follows the job by a stream until it is in this phase; fails if it ends in another. Returns the job. Checks the
 * stream's promises meanwhile. */
json_t *bb_await_phase(Bb *bb, const char *job, const char *phase);
/* Follows it until `done` returns true. */
json_t *bb_await(Bb *bb, const char *job, bool (*done)(json_t *job, gconstpointer data), gconstpointer data);
/* For bb_await(): bytes flow, so libvirt has a job. Phase migrating begins before that. */
bool bb_has_numbers(json_t *job, gconstpointer data);
/* Follows it until an event of this kind contains the text. */
json_t *bb_await_event(Bb *bb, const char *job, const char *kind, const char *text);

const char *text_of(json_t *object, const char *path);
json_int_t number_of(json_t *object, const char *path);
/* By a path with dots. */
json_t *member_of(json_t *object, const char *path);
void assert_text(json_t *object, const char *path, const char *expected);
json_t *find_event(json_t *job, const char *kind, const char *text);
/* The history has no gap. */
void assert_events_whole(json_t *job);

/* Connects as another user, with only these two groups. The credentials at connect() count. */
Client *bb_connect_as(Bb *bb, uid_t uid, gid_t gid, gid_t group);

json_t *bb_keep(Bb *bb, json_t *json);
