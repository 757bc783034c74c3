/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Signals that end a wait but not what is being waited for. */
#pragma once

/* From now on SIGINT, SIGTERM and SIGHUP are recorded and interrupt system calls. SIGPIPE is ignored. */
void interrupt_catch(void);

/* The signal that arrived, or 0. */
int interrupt_pending(void);
