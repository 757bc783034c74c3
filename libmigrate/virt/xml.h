/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Private to libmigrate/virt: reads libvirt's XML by XPath, and owns the strings that come out of it. */
#pragma once

#include "libmigrate/virt/driver.h"

#include <libxml/xpath.h>

/* --- store.c --- */

MigStore *mig_store_new(void);
void mig_store_free(MigStore *store); /* NULL is fine */
G_DEFINE_AUTOPTR_CLEANUP_FUNC(MigStore, mig_store_free)

/* Takes ownership of memory allocated by GLib and returns it. NULL is fine. */
char *mig_store_take(MigStore *store, char *text);
char *mig_store_string(MigStore *store, const char *text);
/* Takes the array. Its data lives as long as the store. */
gpointer mig_store_take_array(MigStore *store, GArray *array, size_t *ret_n);

/* Gives the facts a store of their own, and room for one answer per disk and need. */
void mig_target_facts_init(MigTargetFacts *facts, const MigDomainFacts *domain);

/* --- xml.c --- */

typedef struct MigXml {
  xmlDoc *doc;
  xmlXPathContext *context;
} MigXml;

/* False: not XML, or the root element is another one. Never loads external entities. */
bool mig_xml_parse(const char *text, const char *root, MigXml *ret_xml);
void mig_xml_clear(MigXml *xml);
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC(MigXml, mig_xml_clear)

/* Paths start at `node`, or at the document if it is NULL. Missing or empty values yield NULL, false or 0. */
char *mig_xml_string(const MigXml *xml, xmlNode *node, const char *path);
bool mig_xml_boolean(const MigXml *xml, xmlNode *node, const char *path);
uint64_t mig_xml_number(const MigXml *xml, xmlNode *node, const char *path);
/* A size in bytes, from a number and its unit: "memory" and "memory/@unit". */
uint64_t mig_xml_size(const MigXml *xml, xmlNode *node, const char *path, const char *unit_path);
/* Bytes per unit of a size; 1024 for NULL and for units that libvirt's schema does not have. */
uint64_t mig_xml_unit_bytes(const char *unit);
/* An array of xmlNode *. Free it with g_ptr_array_unref(). */
GPtrArray *mig_xml_nodes(const MigXml *xml, xmlNode *node, const char *path);
/* Serializes the node. */
char *mig_xml_dump(const MigXml *xml, xmlNode *node);

/* Adds a set of CPUs or NUMA nodes in libvirt's notation: "0-3,^2,8". NULL is fine. */
void mig_xml_add_set(const char *text, MigSet *set);

/* --- domain-xml.c, devices-xml.c --- */

/* Reads the facts from a domain's XML. Disks count as local if their storage may be; see mig_storage_classify(). */
bool mig_domain_xml_parse(const char *text, MigDomainFacts *ret_facts, GError **error);

/* Add to facts that have their store: traits, which matter to a migration by themselves, and needs, which the target must
 * meet. */
void mig_domain_xml_add_traits(const MigXml *xml, MigDomainFacts *facts);
void mig_domain_xml_add_needs(const MigXml *xml, MigDomainFacts *facts);

/* Target names of the disks that may have to be copied, NULL-terminated; owned by the store. */
char **mig_domain_local_disks(const MigDomainFacts *facts);

/* --- definition-xml.c --- */

/* Flattens a domain's XML. The definition gets a store of its own. */
bool mig_definition_parse(const char *text, MigDefinition *ret_definition, GError **error);
void mig_definition_clear(MigDefinition *definition);
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC(MigDefinition, mig_definition_clear)

/* --- storage.c --- */

/* The storage of the file that a guest has open under this path, as this process sees it. */
MigStorage mig_storage_look(const char *path);

/* The same, from a mount table (mountinfo of proc(5)). `magic` is the type of the path's file system once links are resolved;
 * NULL: this process does not see the file. */
MigStorage mig_storage_judge(const char *table, const char *path, const uint32_t *magic);

/* May the systemd unit of this process hide what is at the path? The second reads the mount table that it is given. */
bool mig_storage_may_be_hidden(const char *path);
bool mig_storage_hides(const char *table, const char *path);

/* The storage of a pool's devices, from the pool's XML. */
MigStorage mig_pool_xml_storage(const char *text);

typedef MigStorage (*MigStorageFunc)(const char *path, gpointer user_data);

/* Calls `look` for each disk that has a path, and counts the local disks. */
void mig_storage_classify(MigDomainFacts *facts, MigStorageFunc look, gpointer user_data);

/* --- images.c --- */

/* Reads a volume's stamp from its XML. `known` is false if the volume is not a regular file: nothing then tells when it was
 * last written. */
void mig_volume_xml_stamp(const char *text, MigImageStamp *ret_stamp);

/* --- host-xml.c --- */

/* Reads the host's facts from its capabilities, except names and versions. The facts get a store of their own. */
bool mig_capabilities_parse(const char *text, MigHostFacts *ret_facts, GError **error);

/* Names the newest machine type of the same kind, in words: "pc-q35-7.2 is the newest of the kind"; or NULL. */
char *mig_capabilities_describe_machines(const char *text, const char *arch, const char *machine);

/* Records which of the domain's needs the domain capabilities meet. */
void mig_domain_capabilities_apply(const char *text, const MigDomainFacts *domain, MigTargetFacts *facts);
