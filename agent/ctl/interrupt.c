/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The signals that end a wait without ending what is waited for. */
#include "agent/ctl/interrupt.h"

#include <glib.h>
#include <signal.h>

/* A signal handler can be told nothing: this is the one thing that it can write to. */
static volatile sig_atomic_t pending;

static void note(int number) {
  pending = number;
}

void interrupt_catch(void) {
  static const int signals[] = {SIGINT, SIGTERM, SIGHUP};
  /* No SA_RESTART: the wait is to end. A signal that arrives between looking here and waiting is seen when
   * the wait ticks. A second one ends the program at once, in case that the first is not heard. */
  struct sigaction action = {.sa_handler = note, .sa_flags = (int)SA_RESETHAND};
  struct sigaction ignore = {.sa_handler = SIG_IGN};

  for (unsigned i = 0; i < G_N_ELEMENTS(signals); i++) {
    struct sigaction old;

    /* nohup and a shell's background jobs have it ignored on purpose. */
    if (sigaction(signals[i], NULL, &old) == 0 && old.sa_handler != SIG_IGN)
      sigaction(signals[i], &action, NULL);
  }
  sigaction(SIGPIPE, &ignore, NULL);
}

int interrupt_pending(void) {
  return pending;
}
