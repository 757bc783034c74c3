/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* handoffd: the live-migration agent of one hypervisor. */
#include "agent/daemon/daemon.h"

int main(int argc, char **argv) {
  return daemon_run(argc, argv, mig_driver_libvirt_new);
}
