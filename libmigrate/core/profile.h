/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* What a guest dirtied whenever it was measured: so that a migration need not begin with a measurement, and a forecast knows
 * the time of day. */
#pragma once

#include "libmigrate/core/forecast.h"

#include <stddef.h>

#define MIG_PROFILE_HOURS 24

/* 1-second measurements in one hour of the day (UTC). */
typedef struct MigProfileHour {
  unsigned probes;           /* 0: none, and the rates are 0 */
  uint64_t mean_bytes_per_s; /* newer ones count for more */
  uint64_t most_bytes_per_s;
} MigProfileHour;

/* All zero: it was never measured. */
typedef struct MigProfile {
  unsigned probes;
  int64_t at_usec;            /* realtime of the newest one */
  uint64_t short_bytes_per_s; /* in a short measurement, newer ones counting for more */
  uint64_t long_bytes_per_s;  /* likewise in a long one: what is written twice counts once; 0: none yet */
  double cpu_share;           /* of its CPUs in use, 0 to 1; 0: not known */
  uint64_t resident_bytes;    /* of the newest one, as in MigProbe */
  MigProfileHour hours[MIG_PROFILE_HOURS];
} MigProfile;

/* How many seconds the next measurement should take: short and long ones alternate. */
unsigned mig_profile_seconds(const MigProfile *profile);

/* Adds a measurement of so many seconds, which is all that is in `probe`. */
void mig_profile_note(MigProfile *profile, int64_t now_usec, unsigned seconds, const MigProbe *probe);

/* What the guest is expected to dirty now: as measured lately, else as at this hour of other days. False: nothing is known, or
 * only of more than a week ago, and ret_probe is all zero. */
bool mig_profile_expect(const MigProfile *profile, int64_t now_usec, MigProbe *ret_probe);

/* As text of one line, for a domain's metadata. */
#define MIG_PROFILE_TEXT_SIZE 1000
void mig_profile_format(const MigProfile *profile, char text[static MIG_PROFILE_TEXT_SIZE]);

/* False: it is not such a text, and ret_profile is all zero. The text may come from anybody. */
bool mig_profile_parse(const char *text, MigProfile *ret_profile);
