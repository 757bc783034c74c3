/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* A model of a migration's target: libvirtd, the guest that arrives, its owner, the image made for it, and the agent with its
 * lease, whose decisions are the real core's. */
#pragma once

#include "libmigrate/core/slot.h"

#include <stdio.h>

typedef enum Daemon { DAEMON_UP, DAEMON_HUNG, DAEMON_DOWN } Daemon;

/* How much of the domain is alive here. */
typedef enum Life {
  LIFE_NONE,
  LIFE_COPY,      /* QEMU waits for the stream */
  LIFE_POST_COPY, /* the guest runs while its memory arrives */
  LIFE_POST_COPY_CUT,
  LIFE_RUNNING,
  LIFE_PAUSED,
  LIFE_CRASHED
} Life;

/* libvirt's reason for its state. */
typedef enum Reason { REASON_MIGRATED, REASON_BOOTED, REASON_UNPAUSED } Reason;

/* libvirtd's events, in order. */
typedef struct News {
  MigSlotNews news;
  uint64_t since_ms;
  bool sent; /* libvirtd has sent it: a hang no longer delays it */
} News;

#define NEWS_MAX 16

/* The longest time that an event from a healthy libvirtd takes. */
#define HEARD_MS 200

/* The state of an errand of the agent: a look, or a removal. */
typedef enum Call {
  CALL_NONE,
  CALL_SENT,
  CALL_ANSWERED,  /* but the agent does not know yet */
  CALL_TO_COMPARE /* a removal: nothing of the domain is here; compare the image next */
} Call;

typedef struct LocalCall {
  Call call;
  bool remove;
  uint64_t since_ms;
  unsigned epoch; /* of the connection that it depends on */
  MigSlotLook look;
  bool unbroken;
  bool failed, nothing, removed; /* of a removal */
} LocalCall;

/* A thread that the agent has given up may still be working on a removal. */
typedef struct Lost {
  bool compares;
  bool called_off;
} Lost;

typedef enum ImageState { IMAGE_NONE, IMAGE_MADE, IMAGE_LEFT, IMAGE_REMOVED } ImageState;

/* The contents of the record. */
typedef struct Record {
  bool came, ran, traces, started;
  MigSlotEnd ending;
  ImageState image;
  bool done;
  uint64_t expires_ms;
} Record;

typedef struct Agent {
  bool up;
  bool connected;
  unsigned epoch; /* of the libvirtd that it is connected to */
  MigSlot slot;
  ImageState image;
  LocalCall errand;
  bool called_off; /* the current removal */
  Lost lost;
  bool ask_again;
  uint64_t due_ms;
  bool unsaved;
  Record record;
  /* how it ended */
  bool done;
  MigSlotEnd end;
} Agent;

/* Faults in the agent's own steps, to see that the model finds them. */
typedef enum ShellFault {
  SHELL_RIGHT,
  SHELL_HEARS_NO_EVENT,
  SHELL_SEES_NO_BREAK,
  SHELL_REMEMBERS_ITS_WATCH,
  SHELL_REMOVES_WHAT_WAS_WRITTEN,
  SHELL_REMOVES_BY_AN_OLD_LOOK,
  SHELL_FAULT_COUNT
} ShellFault;

typedef struct Setup {
  bool persist;        /* Finish writes a definition */
  bool had_definition; /* before the lease */
  bool images;         /* one was made for it */
  bool idle;           /* the guest does not write to its disk, and nothing is copied */
  bool was_paused;     /* by its owner, at the source */
  bool owner_acts;
} Setup;

typedef struct World {
  uint64_t random;
  uint64_t now_ms;
  Setup setup;
  ShellFault fault;
  Daemon daemon;
  unsigned epoch;
  uint64_t broke_ms; /* when the last of its connections did */
  News news[NEWS_MAX];
  unsigned n_news;

  bool defined;
  Life life;
  Reason reason;
  bool incoming, outgoing; /* libvirt's job */
  bool by_migration;       /* what is alive here came by a migration */
  bool at_source;          /* the guest is there, and may migrate */
  bool moving;             /* its source sends it */
  uint64_t began_ms;       /* since then */

  bool image;           /* there is a file of that name */
  unsigned image_mtime; /* when it was written last */
  unsigned made_mtime;  /* as the agent saw it */

  Agent agent;

  /* ghosts: the truth, whoever knows it */
  bool copy_came; /* since the lease; and when */
  uint64_t first_ms;
  bool booted_here;
  bool guest_here;
  bool image_used; /* a guest ran with it, or somebody wrote to it: it may be the only disk */
  unsigned removed, kept, raced;
  char violation[200];
} World;

unsigned arrival_random(World *world, unsigned n);
void arrival_violation(World *world, const char *format, ...) __attribute__((format(printf, 2, 3)));

typedef enum Kind { KIND_WORLD, KIND_AGENT, KIND_FAULT, KIND_HEAL, KIND_OWNER, KIND_COUNT } Kind;

typedef struct Event {
  const char *name;
  Kind kind;
  unsigned weight;
  bool (*may)(const World *world);
  void (*happen)(World *world);
} Event;

/* --- arrival-world.c --- */

const Event *arrival_world_events(size_t *ret_n);
void arrival_world_init(World *world, uint64_t seed, ShellFault fault);
void arrival_world_heal(World *world);
MigSlotLook arrival_world_look(const World *world);
/* libvirtd removes the image now. */
void arrival_world_delete(World *world);
/* It answers a call: that also flushes its events. */
void arrival_world_flush(World *world);
/* Events that are old enough reach the agent. */
void arrival_world_tell_due(World *world);

/* --- arrival-agent.c --- */

const Event *arrival_agent_events(size_t *ret_n);
/* The lease is granted, and the image created. */
void arrival_agent_begin(World *world);
void arrival_agent_hear(World *world, const MigSlotNews *news);
void arrival_agent_kill(World *world);

void arrival_agent_notice_due(World *world);

/* --- arrival-check.c --- */

int arrival_check(int argc, char **argv);
