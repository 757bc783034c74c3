/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* A guest's profile. */
#include "libmigrate/core/profile.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SHORT_S 1u
#define LONG_S  3u
/* A newer measurement weighs at least this much, an hour's own at least that much. */
#define RECENT_WEIGHT 0.5
#define HOUR_WEIGHT   0.125
#define USEC_PER_HOUR INT64_C(3600000000)
/* Until then the newest measurements count, and not the hour's. */
#define RECENT_USEC (USEC_PER_HOUR / 2)
#define OLD_USEC    (7 * 24 * USEC_PER_HOUR)
/* The text has rates in KiB/s. */
#define UNIT_BYTES UINT64_C(1024)
#define RATE_MAX   (UINT64_C(1) << 50)
#define PROBES_MAX 1000000u

static unsigned hour_of(int64_t usec) {
  return usec > 0 ? (unsigned)(usec / USEC_PER_HOUR % MIG_PROFILE_HOURS) : 0;
}

/* `n` values, this one included; the first ones have equal weights. */
static uint64_t blend(uint64_t mean, uint64_t value, unsigned n, double least_weight) {
  double weight = n > 0 && 1.0 / n > least_weight ? 1.0 / n : least_weight;
  return (uint64_t)((1 - weight) * (double)mean + weight * (double)value);
}

unsigned mig_profile_seconds(const MigProfile *profile) {
  return profile->probes % 2 == 0 ? SHORT_S : LONG_S;
}

void mig_profile_note(MigProfile *profile, int64_t now_usec, unsigned seconds, const MigProbe *probe) {
  double bytes_per_s = mig_dirty_curve_lower(&probe->curve, seconds) / seconds;
  uint64_t rate = bytes_per_s < (double)RATE_MAX ? (uint64_t)bytes_per_s : RATE_MAX;
  uint64_t *recent = seconds < LONG_S ? &profile->short_bytes_per_s : &profile->long_bytes_per_s;
  MigProfileHour *hour = &profile->hours[hour_of(now_usec)];

  *recent = blend(*recent, rate, *recent > 0 ? 2 : 1, RECENT_WEIGHT);
  if (probe->cpu_share > 0)
    profile->cpu_share =
        profile->cpu_share > 0 ? (profile->cpu_share + probe->cpu_share) / 2 : probe->cpu_share;
  profile->resident_bytes = probe->resident_bytes < RATE_MAX ? probe->resident_bytes : RATE_MAX;
  if (seconds < LONG_S && hour->probes < PROBES_MAX) {
    hour->probes++;
    hour->mean_bytes_per_s = blend(hour->mean_bytes_per_s, rate, hour->probes, HOUR_WEIGHT);
    if (rate > hour->most_bytes_per_s)
      hour->most_bytes_per_s = rate;
  }
  if (profile->probes < PROBES_MAX)
    profile->probes++;
  profile->at_usec = now_usec;
}

bool mig_profile_expect(const MigProfile *profile, int64_t now_usec, MigProbe *ret_probe) {
  int64_t age_usec = now_usec > profile->at_usec ? now_usec - profile->at_usec : 0;
  const MigProfileHour *hour = &profile->hours[hour_of(now_usec)];
  double rate = (double)profile->short_bytes_per_s;

  memset(ret_probe, 0, sizeof(*ret_probe));
  if (profile->probes == 0 || age_usec > OLD_USEC)
    return false;
  if (age_usec > RECENT_USEC && hour->probes > 0)
    rate = (double)hour->mean_bytes_per_s;
  mig_dirty_curve_observe(&ret_probe->curve, SHORT_S, rate * SHORT_S);
  /* At another hour the guest is taken for the same one, only busier or less busy. */
  if (profile->long_bytes_per_s > 0 && profile->short_bytes_per_s > 0) {
    double share = (double)profile->long_bytes_per_s / (double)profile->short_bytes_per_s;
    double bytes = rate * (share < 1 ? share : 1) * LONG_S;

    mig_dirty_curve_observe(&ret_probe->curve, LONG_S, bytes > rate * SHORT_S ? bytes : rate * SHORT_S);
  }
  ret_probe->cpu_share = profile->cpu_share;
  ret_probe->resident_bytes = profile->resident_bytes;
  return true;
}

/* --- text --- */

/* "1 AT_S PROBES SHORT LONG CPU_PERMILLE RESIDENT", and for each hour that was measured " HOUR:PROBES:MEAN:MOST". */
#define VERSION 1

void mig_profile_format(const MigProfile *profile, char text[static MIG_PROFILE_TEXT_SIZE]) {
  int n = snprintf(text, MIG_PROFILE_TEXT_SIZE, "%d %" PRId64 " %u %" PRIu64 " %" PRIu64 " %u %" PRIu64,
                   VERSION, profile->at_usec / 1000000, profile->probes,
                   profile->short_bytes_per_s / UNIT_BYTES, profile->long_bytes_per_s / UNIT_BYTES,
                   (unsigned)(profile->cpu_share * 1000 + 0.5), profile->resident_bytes / UNIT_BYTES);

  for (unsigned i = 0; i < MIG_PROFILE_HOURS && n > 0 && n < MIG_PROFILE_TEXT_SIZE; i++) {
    const MigProfileHour *hour = &profile->hours[i];

    if (hour->probes > 0)
      n += snprintf(text + n, (size_t)(MIG_PROFILE_TEXT_SIZE - n), " %u:%u:%" PRIu64 ":%" PRIu64, i,
                    hour->probes, hour->mean_bytes_per_s / UNIT_BYTES, hour->most_bytes_per_s / UNIT_BYTES);
  }
}

/* A decimal number of at most `most`, followed by `end` or, at a space, by the end of the text. */
static bool take_number(const char **text, char end, uint64_t most, uint64_t *ret_value) {
  const char *at = *text;
  uint64_t value = 0;

  if (*at < '0' || *at > '9')
    return false;
  for (; *at >= '0' && *at <= '9'; at++) {
    value = value * 10 + (uint64_t)(*at - '0');
    if (value > most)
      return false;
  }
  if (*at == end)
    at++;
  else if (end != ' ' || *at)
    return false;
  *text = at;
  *ret_value = value;
  return true;
}

static bool take_hour(const char **text, MigProfile *profile) {
  uint64_t index, probes, mean, most;

  if (!take_number(text, ':', MIG_PROFILE_HOURS - 1, &index) ||
      !take_number(text, ':', PROBES_MAX, &probes) || !take_number(text, ':', RATE_MAX / UNIT_BYTES, &mean) ||
      !take_number(text, ' ', RATE_MAX / UNIT_BYTES, &most) || probes == 0 || mean > most)
    return false;
  profile->hours[index] = (MigProfileHour){(unsigned)probes, mean * UNIT_BYTES, most * UNIT_BYTES};
  return true;
}

static bool take_head(const char **text, MigProfile *profile) {
  uint64_t version, at_s, probes, short_rate, long_rate, permille, resident;

  if (!take_number(text, ' ', VERSION, &version) || version != VERSION ||
      !take_number(text, ' ', INT64_MAX / 1000000, &at_s) || !take_number(text, ' ', PROBES_MAX, &probes) ||
      !take_number(text, ' ', RATE_MAX / UNIT_BYTES, &short_rate) ||
      !take_number(text, ' ', RATE_MAX / UNIT_BYTES, &long_rate) ||
      !take_number(text, ' ', 1000, &permille) || !take_number(text, ' ', RATE_MAX / UNIT_BYTES, &resident) ||
      probes == 0)
    return false;
  *profile = (MigProfile){
      .probes = (unsigned)probes,
      .at_usec = (int64_t)at_s * 1000000,
      .short_bytes_per_s = short_rate * UNIT_BYTES,
      .long_bytes_per_s = long_rate * UNIT_BYTES,
      .cpu_share = (double)permille / 1000,
      .resident_bytes = resident * UNIT_BYTES,
  };
  return true;
}

bool mig_profile_parse(const char *text, MigProfile *ret_profile) {
  MigProfile profile = {0};

  memset(ret_profile, 0, sizeof(*ret_profile));
  if (!take_head(&text, &profile))
    return false;
  while (*text)
    if (!take_hour(&text, &profile))
      return false;
  *ret_profile = profile;
  return true;
}
