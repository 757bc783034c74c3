/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The store that owns the strings and arrays of facts. */
#include "libmigrate/virt/xml.h"

#include <string.h>

struct MigStore {
  GPtrArray *blocks;
};

MigStore *mig_store_new(void) {
  MigStore *store = g_new0(MigStore, 1);

  store->blocks = g_ptr_array_new_with_free_func(g_free);
  return store;
}

void mig_store_free(MigStore *store) {
  if (!store)
    return;
  g_ptr_array_unref(store->blocks);
  g_free(store);
}

char *mig_store_take(MigStore *store, char *text) {
  if (text)
    g_ptr_array_add(store->blocks, text);
  return text;
}

char *mig_store_string(MigStore *store, const char *text) {
  return mig_store_take(store, g_strdup(text));
}

gpointer mig_store_take_array(MigStore *store, GArray *array, size_t *ret_n) {
  gpointer data;

  *ret_n = array->len;
  data = g_array_free(array, FALSE);
  if (data)
    g_ptr_array_add(store->blocks, data);
  return data;
}

void mig_target_facts_init(MigTargetFacts *facts, const MigDomainFacts *domain) {
  GArray *disks = g_array_new(FALSE, TRUE, sizeof(MigTargetDisk));
  GArray *needs = g_array_new(FALSE, TRUE, sizeof(MigSight));

  *facts = (MigTargetFacts){.store = mig_store_new(), .free_bytes = UINT64_MAX};
  g_array_set_size(disks, (guint)domain->n_disks);
  g_array_set_size(needs, (guint)domain->n_needs);
  facts->disks = mig_store_take_array(facts->store, disks, &facts->n_disks);
  facts->needs = mig_store_take_array(facts->store, needs, &facts->n_needs);
}

void mig_host_facts_clear(MigHostFacts *facts) {
  mig_store_free(facts->store);
  memset(facts, 0, sizeof *facts);
}

void mig_domain_facts_clear(MigDomainFacts *facts) {
  mig_domain_tags_clear(&facts->tags);
  mig_store_free(facts->store);
  memset(facts, 0, sizeof *facts);
}

void mig_active_domain_free(gpointer data) {
  MigActiveDomain *domain = data;

  g_free(domain->name);
  g_free(domain);
}

void mig_target_facts_clear(MigTargetFacts *facts) {
  mig_host_facts_clear(&facts->host);
  mig_store_free(facts->store);
  memset(facts, 0, sizeof *facts);
}

void mig_definition_clear(MigDefinition *definition) {
  mig_store_free(definition->store);
  memset(definition, 0, sizeof *definition);
}

void mig_definitions_clear(MigDefinitions *definitions) {
  mig_definition_clear(&definitions->live);
  mig_definition_clear(&definitions->next);
  g_free(definitions->name);
  memset(definitions, 0, sizeof *definitions);
}
