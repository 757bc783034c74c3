/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* A daemon to measure: its directory, its process, and what the kernel says of it. */
#pragma once

#include "proto/client.h"

#include <glib.h>
#include <jansson.h>
#include <sys/types.h>

typedef struct DaemonOptions {
  const char *program;     /* NULL: the one with the scripted hypervisor */
  const char *libvirt_uri; /* NULL: the scripted one's host a */
  const char *config;      /* lines of [Agent] */
  const char *policy;      /* lines of [Policy] */
  unsigned domains;        /* vm0, vm1, … on host a */
  gint64 memory_bytes;     /* of each */
  gint64 link_bytes_per_s;
  unsigned watchdog_ms; /* 0: none; else the service manager's socket stays open in notify_fd */
} DaemonOptions;

typedef struct Daemon {
  DaemonOptions options;
  char *directory;
  char *socket;
  char *control;
  char *state_directory;
  char *config;
  pid_t pid; /* 0: none runs */
  int notify_fd;
} Daemon;

/* The strings of `options` are borrowed. */
Daemon *daemon_new(const DaemonOptions *options);
void daemon_free(Daemon *daemon);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(Daemon, daemon_free)

/* Its end by SIGKILL, and another on the same directory. */
void daemon_kill(Daemon *daemon);
void daemon_start(Daemon *daemon);

VarlinkClient *daemon_connect(const Daemon *daemon);

/* Hands a domain over; returns the job's id. */
char *daemon_start_move(const Daemon *daemon, VarlinkClient *client, unsigned domain);

/* Ends the program with a message if the answer is an error. Takes `parameters`. */
json_t *call(VarlinkClient *client, const char *method, json_t *parameters);

/* Follows the job until it is in this phase. */
void await_phase(const Daemon *daemon, const char *job, const char *phase);

/* In KiB, of /proc/PID/smaps_rollup and status. */
typedef struct Memory {
  long rss;           /* resident: with what is shared with other programs */
  long pss;           /* shared pages counted by their share */
  long private_pages; /* what would be free if it ended */
  long shared;        /* program and libraries, mostly */
  long anonymous;     /* its own data */
  long threads;
  long peak_rss;
} Memory;

Memory daemon_memory(const Daemon *daemon);

/* User and system time so far, in seconds. */
double daemon_cpu_s(const Daemon *daemon);

void die(const char *format, ...) G_GNUC_PRINTF(1, 2) G_GNUC_NORETURN;
