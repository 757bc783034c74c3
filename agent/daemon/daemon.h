/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The program: options, sockets, signals, the main loop. */
#pragma once

#include "libmigrate/virt/driver.h"

typedef MigDriver *(*DaemonDriverFunc)(GError **error);

/* Runs handoffd until it ends, with the driver from `driver_new`. Returns the exit status. */
int daemon_run(int argc, char **argv, DaemonDriverFunc driver_new);
