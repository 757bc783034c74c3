/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Private to libmigrate/virt: reading libvirt's XML by XPath, and what owns the strings that come out of it. */
#pragma once

#include "libmigrate/virt/driver.h"

#include <libxml/xpath.h>

/* --- store.c --- */

MigStore *mig_store_new(void);
void mig_store_free(MigStore *store); /* NULL is fine */
G_DEFINE_AUTOPTR_CLEANUP_FUNC(MigStore, mig_store_free)

/* Takes memory of GLib's; returns it. NULL is fine. */
char *mig_store_take(MigStore *store, char *text);
char *mig_store_string(MigStore *store, const char *text);
/* Takes the array; what it holds is valid as long as the store. */
gpointer mig_store_take_array(MigStore *store, GArray *array, size_t *ret_n);

/* A store of its own, and room for an answer to each disk and need. */
void mig_target_facts_init(MigTargetFacts *facts, const MigDomainFacts *domain);

/* --- xml.c --- */

typedef struct MigXml {
  xmlDoc *doc;
  xmlXPathContext *context;
} MigXml;

/* False: it is no XML, or has another root element. Nothing is ever loaded from elsewhere. */
bool mig_xml_parse(const char *text, const char *root, MigXml *ret_xml);
void mig_xml_clear(MigXml *xml);
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC(MigXml, mig_xml_clear)

/* All paths begin at `node`, or at the document with NULL. What is not there, or empty, is NULL or 0. */
char *mig_xml_string(const MigXml *xml, xmlNode *node, const char *path);
bool mig_xml_boolean(const MigXml *xml, xmlNode *node, const char *path);
uint64_t mig_xml_number(const MigXml *xml, xmlNode *node, const char *path);
/* A size with its unit beside it: "memory", with "memory/@unit". */
uint64_t mig_xml_size(const MigXml *xml, xmlNode *node, const char *path, const char *unit_path);
/* What a size's unit is worth; 1024 for NULL and what is none of libvirt's schema. */
uint64_t mig_xml_unit_bytes(const char *unit);
/* Of xmlNode *, free with g_ptr_array_unref(). */
GPtrArray *mig_xml_nodes(const MigXml *xml, xmlNode *node, const char *path);
/* The node as text. */
char *mig_xml_dump(const MigXml *xml, xmlNode *node);

/* "0-3,^2,8" as libvirt writes sets of CPUs and nodes. NULL is fine. */
void mig_xml_add_set(const char *text, MigSet *set);

/* --- domain-xml.c, devices-xml.c --- */

/* What a domain's XML says. Disks count as local where their storage could be; see mig_storage_classify(). */
bool mig_domain_xml_parse(const char *text, MigDomainFacts *ret_facts, GError **error);

/* Adds what bears on a move by itself, and what has to be at the target, to facts that have their store. */
void mig_domain_xml_add_traits(const MigXml *xml, MigDomainFacts *facts);
void mig_domain_xml_add_needs(const MigXml *xml, MigDomainFacts *facts);

/* Names of the disks that the policy may have to copy, NULL-terminated; of the store. */
char **mig_domain_local_disks(const MigDomainFacts *facts);

/* --- definition-xml.c --- */

/* A domain's XML, flattened, with a store of its own. */
bool mig_definition_parse(const char *text, MigDefinition *ret_definition, GError **error);
void mig_definition_clear(MigDefinition *definition);
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC(MigDefinition, mig_definition_clear)

/* --- storage.c --- */

/* Where the file is that a guest has open under the path, as this process sees it. */
MigStorage mig_storage_look(const char *path);

/* The same, by a table of mounts (proc(5), mountinfo). `magic` is the file system of the path, without links; NULL: this
 * process does not see the file. */
MigStorage mig_storage_judge(const char *table, const char *path, const uint32_t *magic);

/* Something may be there that this process does not see, for its unit hides it. The second by a table of mounts. */
bool mig_storage_may_be_hidden(const char *path);
bool mig_storage_hides(const char *table, const char *path);

/* Where the devices of a pool are, by its XML. */
MigStorage mig_pool_xml_storage(const char *text);

typedef MigStorage (*MigStorageFunc)(const char *path, gpointer user_data);

/* Asks for every disk that has a path, and counts the local ones. */
void mig_storage_classify(MigDomainFacts *facts, MigStorageFunc look, gpointer user_data);

/* --- images.c --- */

/* How a volume is, by its XML. `known` is false for what is no regular file: nothing tells when it was written. */
void mig_volume_xml_stamp(const char *text, MigImageStamp *ret_stamp);

/* --- host-xml.c --- */

/* What the capabilities say of the host, with a store of its own: all but names and versions. */
bool mig_capabilities_parse(const char *text, MigHostFacts *ret_facts, GError **error);

/* The newest machine type of the same kind, in words, or NULL: "pc-q35-7.2 is the newest of the kind". */
char *mig_capabilities_describe_machines(const char *text, const char *arch, const char *machine);

/* What the domain capabilities say of what the domain needs. */
void mig_domain_capabilities_apply(const char *text, const MigDomainFacts *domain, MigTargetFacts *facts);
