/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* arrival-check: see arrival-check.c. A file of its own, so that a faulty core can be linked in front of the right one. */
#include "tests/model/arrival-model.h"

int main(int argc, char **argv) {
  return arrival_check(argc, argv);
}
