/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Private to libmigrate/virt: whether this host has what QEMU's TLS takes to send a migration. */
#pragma once

#include "libmigrate/core/facts.h"

#include <glib.h>

/* Looks below `root`, "/" for this host. UNSEEN: this process may not look where they may be. */
MigSight mig_certificates_look(const char *root);
