/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Private to core: what the files of settling share. */
#pragma once

#include "libmigrate/core/settle.h"

/* What stays behind, although the outcome is known; NULL: nothing. Static. */
const char *settle_what_is_left(const MigSettle *settle, MigVerdict verdict, MigTouch touch);
