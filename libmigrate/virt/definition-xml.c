/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* A domain's XML as a sorted list of values, so that two definitions can be compared.
 *
 * Each device is an item, named by what identifies it among its kind, so that removing one does not make all later ones look
 * changed. Within an item, elements with the same name are told apart by a key if they have one, else by number. Values that
 * can be written in several ways are normalized: sizes are in bytes, white space around text is stripped, and "memory"
 * excludes the memory devices, which libvirt includes. */
#include "libmigrate/virt/xml.h"

#include <string.h>

/* A definition by libvirt has at most a thousand; metadata may be anything. */
#define ENTRIES_MAX 20000

typedef struct Flat {
  const MigXml *xml;
  MigStore *store;
  GArray *entries;
  const char *item; /* owned by the store */
} Flat;

typedef struct Key {
  const char *element;
  const char *key;
} Key;

/* `text` if `is_there` holds, else the empty string. */
#define WHERE(is_there, text) "substring(" text ", 1 div boolean(" is_there "))"

/* XPaths that identify a device among its kind; the first that is not empty counts. Devices without one are numbered. */
static const Key device_keys[] = {
    {"interface", "mac/@address"},
    {"disk", "target/@dev"},
    {"controller", "concat(@type, ' ', @index)"},
    {"hostdev", WHERE("source/address/@slot",
                      "concat(@type, ' ', substring(source/address/@domain, 3), ':', "
                      "substring(source/address/@bus, 3), ':', substring(source/address/@slot, 3), "
                      "'.', substring(source/address/@function, 3))")},
    {"hostdev", WHERE("source/vendor/@id", "concat(@type, ' ', substring(source/vendor/@id, 3), ':', "
                                           "substring(source/product/@id, 3))")},
    {"hostdev", "concat(@type, ' ', source/address/@uuid, source/adapter/@name, source/@wwpn)"},
    {"filesystem", "target/@dir"},
    {"channel", "target/@name"},
    {"serial", "target/@port"},
    {"parallel", "target/@port"},
    {"graphics", "@type"},
    {"input", "concat(@type, ' ', @bus)"},
    {"memory", "address/@slot"},
    {"shmem", "@name"},
    {"audio", "@id"},
    {"watchdog", "@model"},
};

/* The same for elements within an item: the attribute that identifies them. */
static const Key element_keys[] = {
    {"vcpupin", "vcpu"},    {"iothreadpin", "iothread"},
    {"vcpusched", "vcpus"}, {"iothreadsched", "iothreads"},
    {"feature", "name"},    {"cell", "id"},
    {"timer", "name"},      {"memnode", "cellid"},
    {"vcpu", "id"},         {"iothread", "id"},
    {"seclabel", "model"},  {"parameter", "name"},
    {"tag", "id"},          {"event", "name"},
    {"entry", "name"},      {"sibling", "id"},
};

static const char *element_key(const char *element) {
  for (size_t i = 0; i < G_N_ELEMENTS(element_keys); i++)
    if (strcmp(element_keys[i].element, element) == 0)
      return element_keys[i].key;
  return NULL;
}

/* What exists only while the domain runs: names that libvirt assigns, backing files as they are open now. */
static bool is_of_this_run(const char *element) {
  static const char *const names[] = {"alias", "backingStore", "mirror", "privateData"};

  for (size_t i = 0; i < G_N_ELEMENTS(names); i++)
    if (strcmp(element, names[i]) == 0)
      return true;
  return false;
}

static bool is_profile(const xmlNode *node) {
  return node->ns && g_strcmp0((const char *)node->ns->href, MIG_PROFILE_NAMESPACE) == 0;
}

/* The agent's own note does not count as a change; nor does <metadata> that holds nothing else. */
static bool is_note(const xmlNode *node) {
  const xmlNode *child = node->children;

  if (strcmp((const char *)node->name, "metadata") != 0)
    return is_profile(node);
  while (child && (child->type != XML_ELEMENT_NODE || is_profile(child)))
    child = child->next;
  return !child;
}

/* --- entries --- */

/* Takes ownership of path and value. */
static void add(Flat *flat, char *path, char *value, bool is_size) {
  MigDefEntry entry = {
      .item = flat->item, .is_size = is_size, .is_secret = g_str_has_suffix(path, "@passwd")};

  entry.path = mig_store_take(flat->store, path);
  entry.value = mig_store_take(flat->store, value);
  if (flat->entries->len < ENTRIES_MAX)
    g_array_append_val(flat->entries, entry);
}

static char *attribute(xmlNode *node, const char *name) {
  xmlChar *text = xmlGetNoNsProp(node, BAD_CAST name);
  char *copy = g_strdup((const char *)text);

  xmlFree(text);
  return copy;
}

/* The element's own text; NULL if there is none but white space. */
static char *own_text(xmlNode *node) {
  g_autoptr(GString) text = g_string_new(NULL);

  for (xmlNode *child = node->children; child; child = child->next)
    if ((child->type == XML_TEXT_NODE || child->type == XML_CDATA_SECTION_NODE) && child->content)
      g_string_append(text, (const char *)child->content);
  g_strstrip(text->str);
  return *text->str ? g_strdup(text->str) : NULL;
}

static bool is_number(const char *text) {
  return *text && strspn(text, "0123456789") == strlen(text);
}

static char *in_bytes(const char *text, const char *unit) {
  return g_strdup_printf("%" G_GUINT64_FORMAT, g_ascii_strtoull(text, NULL, 10) * mig_xml_unit_bytes(unit));
}

static void add_text(Flat *flat, const char *path, const char *text, const char *unit) {
  bool is_size = unit && is_number(text);

  add(flat, g_strdup(path), is_size ? in_bytes(text, unit) : g_strdup(text), is_size);
}

/* The attributes to which an element's unit applies. */
static bool has_unit(const char *attribute_name) {
  return strcmp(attribute_name, "memory") == 0 || strcmp(attribute_name, "size") == 0;
}

static void add_attributes(Flat *flat, xmlNode *node, const char *path, const char *key, const char *unit) {
  for (xmlAttr *one = node->properties; one; one = one->next) {
    const char *name = (const char *)one->name;
    g_autofree char *value = attribute(node, name), *full = g_strconcat(path, "@", name, NULL);

    if (!value || g_strcmp0(name, key) == 0 || (unit && strcmp(name, "unit") == 0))
      continue;
    add_text(flat, full, value, has_unit(name) ? unit : NULL);
  }
}

/* --- the walk --- */

static void add_element(Flat *flat, xmlNode *node, const char *path, const char *key);

/* "vcpupin[0]", "boot" or, for a second one without a key, "boot[1]" */
static char *name_of(xmlNode *node, GHashTable *seen, const char **ret_key) {
  const char *name = (const char *)node->name, *key = element_key(name);
  g_autofree char *value = key ? attribute(node, key) : NULL;
  g_autofree char *full = value ? g_strdup_printf("%s[%s]", name, value) : g_strdup(name);
  guint before = GPOINTER_TO_UINT(g_hash_table_lookup(seen, full));

  *ret_key = value ? key : NULL;
  g_hash_table_insert(seen, g_strdup(full), GUINT_TO_POINTER(before + 1));
  return before > 0 ? g_strdup_printf("%s[%u]", full, before) : g_steal_pointer(&full);
}

static void add_children(Flat *flat, xmlNode *node, const char *path, bool (*wanted)(xmlNode *)) {
  g_autoptr(GHashTable) seen = NULL;

  for (xmlNode *child = node->children; child; child = child->next) {
    g_autofree char *name = NULL, *full = NULL;
    const char *key;

    if (child->type != XML_ELEMENT_NODE || is_of_this_run((const char *)child->name) || is_note(child) ||
        (wanted && !wanted(child)))
      continue;
    if (!seen)
      seen = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, NULL);
    name = name_of(child, seen, &key);
    full = *path ? g_strconcat(path, "/", name, NULL) : g_strdup(name);
    add_element(flat, child, full, key);
  }
}

static void add_element(Flat *flat, xmlNode *node, const char *path, const char *key) {
  g_autofree char *unit = attribute(node, "unit"), *text = own_text(node);
  guint before = flat->entries->len;

  if (text)
    add_text(flat, path, text, unit);
  add_attributes(flat, node, path, key, unit);
  add_children(flat, node, path, NULL);
  if (flat->entries->len == before)
    add(flat, g_strdup(path), g_strdup(""), false);
}

/* --- the domain itself --- */

/* Devices are items of their own, except those of which there is only one: see is_single(). Memory and vCPUs are added in
 * normalized form. */
static bool is_of_domain(xmlNode *node) {
  static const char *const apart[] = {"devices", "memory", "vcpu"};

  for (size_t i = 0; i < G_N_ELEMENTS(apart); i++)
    if (strcmp((const char *)node->name, apart[i]) == 0)
      return false;
  return true;
}

static bool is_single(xmlNode *node) {
  const char *name = (const char *)node->name;

  return strcmp(name, "emulator") == 0 || strcmp(name, "memballoon") == 0;
}

static void add_size(Flat *flat, const char *path, uint64_t bytes) {
  add(flat, g_strdup(path), g_strdup_printf("%" G_GUINT64_FORMAT, bytes), true);
}

static void add_memory(Flat *flat) {
  g_autoptr(GPtrArray) devices = mig_xml_nodes(flat->xml, NULL, "/domain/devices/memory/target");
  uint64_t total = mig_xml_size(flat->xml, NULL, "/domain/memory", "/domain/memory/@unit"), plugged = 0;

  for (guint i = 0; i < devices->len; i++)
    plugged += mig_xml_size(flat->xml, devices->pdata[i], "size", "size/@unit");
  add_size(flat, "memory@total", total);
  add_size(flat, "memory", total - MIN(plugged, total));
}

/* Without the attribute "current", all vCPUs are online. */
static void add_vcpus(Flat *flat) {
  g_autoptr(GPtrArray) found = mig_xml_nodes(flat->xml, NULL, "/domain/vcpu");
  g_autofree char *all = NULL;

  if (found->len == 0)
    return;
  add_element(flat, found->pdata[0], "vcpu", NULL);
  all = own_text(found->pdata[0]);
  if (all && !mig_xml_boolean(flat->xml, found->pdata[0], "@current"))
    add(flat, g_strdup("vcpu@current"), g_steal_pointer(&all), false);
}

static void add_domain(Flat *flat, xmlNode *root) {
  g_autoptr(GPtrArray) devices = mig_xml_nodes(flat->xml, NULL, "/domain/devices");

  flat->item = "";
  add_attributes(flat, root, "", NULL, NULL);
  add_children(flat, root, "", is_of_domain);
  add_memory(flat);
  add_vcpus(flat);
  for (guint i = 0; i < devices->len; i++)
    add_children(flat, devices->pdata[i], "devices", is_single);
}

/* --- devices --- */

/* libvirt lists the first serial port again, as a console. */
static bool is_told_twice(const Flat *flat, xmlNode *node) {
  return strcmp((const char *)node->name, "console") == 0 &&
         mig_xml_boolean(flat->xml, node, "target/@type='serial' and @type=../serial[1]/@type");
}

static char *key_of_device(const Flat *flat, xmlNode *node) {
  char *value = NULL;

  for (size_t i = 0; !value && i < G_N_ELEMENTS(device_keys); i++)
    if (strcmp((const char *)node->name, device_keys[i].element) == 0)
      value = mig_xml_string(flat->xml, node, device_keys[i].key);
  return value;
}

static char *item_of(const Flat *flat, xmlNode *node, GHashTable *seen) {
  const char *name = (const char *)node->name;
  g_autofree char *value = key_of_device(flat, node);
  g_autofree char *full = value ? g_strdup_printf("%s %s", name, g_strstrip(value)) : g_strdup(name);
  guint before = GPOINTER_TO_UINT(g_hash_table_lookup(seen, full));

  g_hash_table_insert(seen, g_strdup(full), GUINT_TO_POINTER(before + 1));
  return !value || before > 0 ? g_strdup_printf("%s %u", full, before) : g_steal_pointer(&full);
}

static void add_device(Flat *flat, xmlNode *node, GHashTable *seen) {
  if (is_single(node) || is_told_twice(flat, node))
    return;
  flat->item = mig_store_take(flat->store, item_of(flat, node, seen));
  add_attributes(flat, node, "", NULL, NULL);
  add_children(flat, node, "", NULL);
}

static void add_devices(Flat *flat) {
  g_autoptr(GPtrArray) nodes = mig_xml_nodes(flat->xml, NULL, "/domain/devices/*");
  g_autoptr(GHashTable) seen = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, NULL);

  for (guint i = 0; i < nodes->len; i++)
    add_device(flat, nodes->pdata[i], seen);
}

static gint compare(gconstpointer a, gconstpointer b) {
  const MigDefEntry *one = a, *other = b;
  int order = strcmp(one->item, other->item);

  return order != 0 ? order : strcmp(one->path, other->path);
}

bool mig_definition_parse(const char *text, MigDefinition *ret_definition, GError **error) {
  g_auto(MigXml) xml = {0};
  Flat flat = {.xml = &xml};

  if (!mig_xml_parse(text, "domain", &xml)) {
    g_set_error_literal(error, MIG_VIRT_ERROR, MIG_VIRT_ERROR_FAILED,
                        "cannot parse libvirt's XML of the domain");
    return false;
  }
  flat.store = mig_store_new();
  flat.entries = g_array_new(FALSE, TRUE, sizeof(MigDefEntry));
  add_domain(&flat, xmlDocGetRootElement(xml.doc));
  add_devices(&flat);
  g_array_sort(flat.entries, compare);
  *ret_definition = (MigDefinition){.store = flat.store};
  ret_definition->entries = mig_store_take_array(flat.store, flat.entries, &ret_definition->n);
  return true;
}
