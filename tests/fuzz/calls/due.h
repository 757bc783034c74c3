/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* What a message is to be answered with, and whether an answer is that. */
#pragma once

#include "proto/idl.h"
#include "proto/message.h"

#include <glib.h>
#include <stdbool.h>

typedef struct Interfaces {
  VarlinkInterface *agent, *service;
} Interfaces;

void interfaces_init(Interfaces *interfaces);
void interfaces_clear(Interfaces *interfaces);

typedef struct Due {
  char *method; /* full name */
  const char
      *error;      /* the one that it has to be, of org.varlink.service; NULL: whatever fits the interface */
  bool streams;    /* may answer more than once */
  bool may_refuse; /* the caller may lack the right */
  char *message;   /* for the report */
  json_t *keyed;   /* the parameters, of a call that makes a job by a request key; else NULL */
} Due;

typedef enum DueKind {
  DUE_ANSWER,
  DUE_NOTHING, /* oneway */
  DUE_END      /* of the connection: it is no call */
} DueKind;

/* What comes of one message without its NUL, sent by a peer that is trusted or not. */
DueKind due_of(const Interfaces *interfaces, const char *data, size_t length, bool trusted, Due **ret_due);
void due_free(Due *due);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(Due, due_free)

/* NULL: it is right. Else what is wrong with it. */
char *due_judge(const Interfaces *interfaces, const Due *due, const VarlinkReplyMessage *reply);
