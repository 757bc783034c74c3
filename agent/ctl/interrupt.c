/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Signals that end a wait but not what is being waited for. */
#include "agent/ctl/interrupt.h"

#include <glib.h>
#include <signal.h>

/* A global, since a signal handler gets no user data. */
static volatile sig_atomic_t pending;

static void note(int number) {
  pending = number;
}

void interrupt_catch(void) {
  static const int signals[] = {SIGINT, SIGTERM, SIGHUP};
  /* No SA_RESTART, so that a signal ends the wait. One that arrives just before the wait is noticed at the next
   * tick. A second signal kills the program, in case the first had no effect. */
  struct sigaction action = {.sa_handler = note, .sa_flags = (int)SA_RESETHAND};
  struct sigaction ignore = {.sa_handler = SIG_IGN};

  for (unsigned i = 0; i < G_N_ELEMENTS(signals); i++) {
    struct sigaction old;

    /* nohup and shells (for background jobs) ignore it on purpose: leave it ignored. */
    if (sigaction(signals[i], NULL, &old) == 0 && old.sa_handler != SIG_IGN)
      sigaction(signals[i], &action, NULL);
  }
  sigaction(SIGPIPE, &ignore, NULL);
}

int interrupt_pending(void) {
  return pending;
}
