/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Makes calls out of an interface file: good ones, nearly good ones, and what no client should send. */
#pragma once

#include "proto/idl.h"

#include <glib.h>
#include <stdbool.h>

typedef struct Maker Maker;

/* The interfaces are borrowed. */
Maker *maker_new(guint32 seed, const VarlinkInterface *agent, const VarlinkInterface *service);
void maker_free(Maker *maker);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(Maker, maker_free)

/* What fields of this kind are filled with; the newest ones are kept. */
typedef enum MakerPool { POOL_DOMAIN, POOL_TARGET, POOL_JOB, POOL_KEY, N_POOLS } MakerPool;
void maker_learn(Maker *maker, MakerPool pool, const char *text);

/* Appends the bytes of one call with its NUL. They may be anything, and more or less than one message. */
void maker_append_call(Maker *maker, GString *bytes);

/* From 0 to n - 1. */
unsigned maker_below(Maker *maker, unsigned n);
bool maker_chance(Maker *maker, double probability);
