/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Private to libmigrate/virt: does this host have the certificates that QEMU needs to send a migration over TLS? */
#pragma once

#include "libmigrate/core/facts.h"

#include <glib.h>

/* Looks below `root`; "/" is this host. UNSEEN: this process cannot see where the certificates may be. */
MigSight mig_certificates_look(const char *root);
