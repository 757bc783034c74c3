/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The real handoffd with a scripted hypervisor. For tests and measurements. */
#include "agent/daemon/daemon.h"
#include "tests/fake/fake-driver.h"

static MigDriver *driver_new(GError **error) {
  return fake_driver_new();
}

int main(int argc, char **argv) {
  return daemon_run(argc, argv, driver_new);
}
