/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Notification of the layers above. */
#include "agent/move/mover.h"

void mover_status_changed(const Mover *mover) {
  if (mover->status_changed)
    mover->status_changed(mover->status_data);
}
