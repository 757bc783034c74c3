/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* A server on a context of its own, driven by hand, and raw clients of it: all in one thread, so that each
 * test decides who moves when. */
#pragma once

#include "proto/client.h"
#include "proto/server.h"

#define TEST_OVERLOAD "org.example.test.TooMany"

typedef struct Fixture {
  GMainContext *context;
  VarlinkServer *server;
  char *directory;
  char *path;
  GPtrArray *kept; /* calls of Keep and Stream, each a reference */
  GString *log;    /* "closed ", "drained ", what was called */
  bool deny;
  bool strangers;   /* who connects now is one */
  VarlinkPeer peer; /* of the last call; groups not kept */
} Fixture;

/* Serves org.example.test:
 *   Echo(text) answers at once; Big(size) answers with so many bytes; Keep(text) is kept unanswered, Stream()
 *   too (it streams); Drop() is released unanswered; Flood(n) streams n answers without ever looking;
 *   Unserved() has no function. */
void fixture_start(Fixture *fixture, const VarlinkLimits *limits);
void fixture_stop(Fixture *fixture);

/* Lets the server do all that it can do now. */
void fixture_pump(Fixture *fixture);

/* Waits for what the server does next, an event or a timer of its own. */
void fixture_wait(Fixture *fixture);

/* A connected, non-blocking socket that the server has accepted (or turned away). */
int fixture_connect(Fixture *fixture);

/* Sends text, where '\'' stands for '"' and '|' for a NUL, and lets the server see it. */
void fixture_send(Fixture *fixture, int fd, const char *text);

/* Reads all that there is, pumping, with the same signs; "<end>" is appended at the end of the stream. */
char *fixture_read(Fixture *fixture, int fd);

/* The two together must give this. */
void fixture_expect(Fixture *fixture, int fd, const char *wanted);
void fixture_exchange(Fixture *fixture, int fd, const char *text, const char *wanted);
