/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* handoffctl: the command line client of handoffd. */
#include "agent/ctl/ctl.h"

#include <locale.h>

int main(int argc, char **argv) {
  Ctl ctl = {0};

  setlocale(LC_ALL, "");
  term_init(&ctl.term, stdout, stderr);
  return (int)ctl_run(&ctl, argc, argv);
}
