/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The signals that end a wait without ending what is waited for. */
#pragma once

/* From now on SIGINT, SIGTERM and SIGHUP are only noted, and interrupt a system call. SIGPIPE is ignored. */
void interrupt_catch(void);

/* The signal that came, or 0. */
int interrupt_pending(void);
