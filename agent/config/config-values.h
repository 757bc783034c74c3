/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The values of settings: from text to a field, with the range of each. Private to the configuration. */
#pragma once

#include "agent/config/config.h"

#define CONFIG_SECOND_MS UINT64_C(1000)
#define CONFIG_MINUTE_MS (60 * CONFIG_SECOND_MS)
#define CONFIG_HOUR_MS   (60 * CONFIG_MINUTE_MS)
#define CONFIG_DAY_MS    (24 * CONFIG_HOUR_MS)

/* The accepted range: inclusive, in the unit of the field. */
typedef struct ConfigRange {
  uint64_t min, max;
  uint64_t unit_ms; /* for a time without a unit */
} ConfigRange;

/* Parses `text` into `field`, of the type in the function's comment. Returns NULL; or, leaving the field unchanged, what would be
 * accepted, for a warning. */
typedef char *(*ConfigParseFunc)(const char *text, const ConfigRange *range, void *field);

char *config_parse_count(const char *text, const ConfigRange *range, void *field); /* unsigned */
char *config_parse_ms(const char *text, const ConfigRange *range, void *field);    /* unsigned, ms */
char *config_parse_s(const char *text, const ConfigRange *range, void *field);     /* uint64_t, s */
char *config_parse_rate(const char *text, const ConfigRange *range, void *field);  /* uint64_t, bytes/s */
char *config_parse_public_read(const char *text, const ConfigRange *range,
                               void *field); /* ConfigPublicRead */
char *config_parse_libvirt_uri(const char *text, const ConfigRange *range,
                               void *field); /* char *, NULL for "" */
char *config_parse_migrate_uri(const char *text, const ConfigRange *range, void *field); /* likewise */
char *config_parse_path(const char *text, const ConfigRange *range, void *field); /* char *, NULL for "" */
char *config_parse_allow_targets(const char *text, const ConfigRange *range,
                                 void *field);                                     /* char **, NULL for "" */
char *config_parse_group(const char *text, const ConfigRange *range, void *field); /* char *, replaced */
