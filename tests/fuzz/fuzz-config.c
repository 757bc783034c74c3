/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Fuzzes configuration files: handoffd.conf and its drop-ins, which a byte 0xff parts (text has none). What is not understood is a
 * warning, of which there are not too many; what is taken is within its range, and whole. */
#include "fuzz.h"

#include "agent/config/config.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#define FILES_MAX 4

static void must(bool condition) {
  if (!condition)
    abort();
}

static void must_be_ranged(const Config *config) {
  must(config->max_outgoing >= 1 && config->max_outgoing <= 1000);
  must(config->max_incoming >= 1 && config->max_incoming <= 1000);
  must(config->max_jobs >= 1 && config->max_jobs <= 1000000);
  must(config->poll_interval_ms >= 50 && config->poll_interval_ms <= 10000);
  must(config->connect_timeout_ms >= 100 && config->prepare_timeout_ms >= 1000);
  must(config->watch_interval_ms >= 10 && config->metrics_interval_ms >= 1000);
  must(config->public_read <= CONFIG_PUBLIC_READ_ALL && config->group && *config->group);
  must(!config->metrics_file || *config->metrics_file == '/');
}

static void must_be_policy(const MigPolicy *policy) {
  for (int key = 0; key < MIG_POLICY_KEY_COUNT; key++) {
    const MigPolicyKeyInfo *info = mig_policy_key_info((MigPolicyKey)key);
    MigPolicy copy = *policy;
    char message[200];

    must(!(policy->set & (UINT32_C(1) << key)) ||
         mig_policy_set(&copy, (MigPolicyKey)key, policy->values[key], message, sizeof message) ==
             MIG_POLICY_OK ||
         info->type == MIG_POLICY_TYPE_ENUM);
  }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  char *texts[FILES_MAX];
  size_t sizes[FILES_MAX], n = 0, at = 0;
  g_autoptr(Config) config = NULL;

  while (n < FILES_MAX && at <= size) {
    const uint8_t *end = memchr(data + at, 0xff, size - at);
    size_t length = end && n + 1 < FILES_MAX ? (size_t)(end - data) - at : size - at;

    texts[n] = g_malloc(length + 1);
    memcpy(texts[n], data + at, length);
    texts[n][length] = '\0';
    sizes[n++] = length;
    at += length + 1;
  }
  config = config_from_texts(texts, sizes, n);
  must(config->warnings->len <= CONFIG_WARNINGS_MAX + 1);
  for (guint i = 0; i < config->warnings->len; i++)
    must(g_utf8_validate(config->warnings->pdata[i], -1, NULL));
  must_be_ranged(config);
  must_be_policy(&config->node_policy.policy);
  for (guint i = 0; i < config->policies->len; i++)
    must_be_policy(&((const ConfigPolicy *)config->policies->pdata[i])->policy);
  for (guint i = 0; i < config->targets->len; i++) {
    const ConfigTarget *target = config->targets->pdata[i];

    must(target->libvirt_uri && config_find_target(config, target->name) == target);
  }
  for (size_t i = 0; i < n; i++)
    g_free(texts[i]);
  return 0;
}
