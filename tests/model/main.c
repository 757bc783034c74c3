/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* model-check [STEPS [SEED]], --case SEED, --mutant STEPS [SEED]: see check.c. A file of its own, so that a faulty core can be
 * linked in front of the right one. */
#include "tests/model/model.h"

int main(int argc, char **argv) {
  return model_check(argc, argv);
}
