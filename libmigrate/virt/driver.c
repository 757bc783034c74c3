/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* What all drivers have in common. */
#include "libmigrate/virt/driver.h"

void mig_driver_free(MigDriver *driver) {
  if (driver)
    driver->ops->free(driver);
}
