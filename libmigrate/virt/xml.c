/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Reads libvirt's XML by XPath. */
#include "libmigrate/virt/xml.h"

#include <libxml/parser.h>
#include <libxml/xpathInternals.h>
#include <string.h>

G_DEFINE_AUTOPTR_CLEANUP_FUNC(xmlXPathObject, xmlXPathFreeObject)

#define QEMU_NAMESPACE "http://libvirt.org/schemas/domain/qemu/1.0"

void mig_xml_clear(MigXml *xml) {
  g_clear_pointer(&xml->context, xmlXPathFreeContext);
  g_clear_pointer(&xml->doc, xmlFreeDoc);
}

/* By default libxml2 prints errors in expressions and documents to stderr. */
static void ignore_error(void *data, const xmlError *error) {
}

bool mig_xml_parse(const char *text, const char *root, MigXml *ret_xml) {
  g_auto(MigXml) xml = {0};
  xmlNode *element;

  xml.doc = xmlReadMemory(text, (int)strlen(text), NULL, NULL,
                          XML_PARSE_NONET | XML_PARSE_NOERROR | XML_PARSE_NOWARNING);
  element = xml.doc ? xmlDocGetRootElement(xml.doc) : NULL;
  if (!element || strcmp((const char *)element->name, root) != 0)
    return false;
  xml.context = xmlXPathNewContext(xml.doc);
  if (!xml.context)
    return false;
  xml.context->error = (xmlStructuredErrorFunc)ignore_error;
  xmlXPathRegisterNs(xml.context, BAD_CAST "qemu", BAD_CAST QEMU_NAMESPACE);
  *ret_xml = xml;
  xml = (MigXml){0};
  return true;
}

static xmlXPathObject *evaluate(const MigXml *xml, xmlNode *node, const char *path) {
  xml->context->node = node ? node : (xmlNode *)xml->doc;
  return xmlXPathEvalExpression(BAD_CAST path, xml->context);
}

char *mig_xml_string(const MigXml *xml, xmlNode *node, const char *path) {
  g_autoptr(xmlXPathObject) found = evaluate(xml, node, path);
  xmlChar *text = found ? xmlXPathCastToString(found) : NULL;
  char *copy = text && *text ? g_strdup((const char *)text) : NULL;

  xmlFree(text);
  return copy;
}

bool mig_xml_boolean(const MigXml *xml, xmlNode *node, const char *path) {
  g_autoptr(xmlXPathObject) found = evaluate(xml, node, path);

  return found && xmlXPathCastToBoolean(found) == 1;
}

uint64_t mig_xml_number(const MigXml *xml, xmlNode *node, const char *path) {
  g_autofree char *text = mig_xml_string(xml, node, path);

  return text ? g_ascii_strtoull(g_strstrip(text), NULL, 10) : 0;
}

/* The units of sizes in libvirt's schema. libvirt itself prints KiB, but some drivers keep what was written by hand. */
uint64_t mig_xml_unit_bytes(const char *unit) {
  static const struct {
    const char *name;
    uint64_t bytes;
  } units[] = {
      {"b", 1},
      {"bytes", 1},
      {"KB", 1000},
      {"k", 1024},
      {"KiB", 1024},
      {"MB", 1000 * 1000},
      {"M", MIG_MIB_BYTES},
      {"MiB", MIG_MIB_BYTES},
      {"GB", UINT64_C(1000) * 1000 * 1000},
      {"G", MIG_GIB_BYTES},
      {"GiB", MIG_GIB_BYTES},
      {"TB", UINT64_C(1000) * 1000 * 1000 * 1000},
      {"T", MIG_GIB_BYTES * 1024},
      {"TiB", MIG_GIB_BYTES * 1024},
  };

  for (size_t i = 0; unit && i < G_N_ELEMENTS(units); i++)
    if (strcmp(unit, units[i].name) == 0)
      return units[i].bytes;

  return 1024;
}

uint64_t mig_xml_size(const MigXml *xml, xmlNode *node, const char *path, const char *unit_path) {
  g_autofree char *unit = mig_xml_string(xml, node, unit_path);

  return mig_xml_number(xml, node, path) * mig_xml_unit_bytes(unit);
}

GPtrArray *mig_xml_nodes(const MigXml *xml, xmlNode *node, const char *path) {
  g_autoptr(xmlXPathObject) found = evaluate(xml, node, path);
  GPtrArray *nodes = g_ptr_array_new();

  if (!found || found->type != XPATH_NODESET || !found->nodesetval)
    return nodes;
  for (int i = 0; i < found->nodesetval->nodeNr; i++)
    g_ptr_array_add(nodes, found->nodesetval->nodeTab[i]);
  return nodes;
}

char *mig_xml_dump(const MigXml *xml, xmlNode *node) {
  xmlBuffer *buffer = xmlBufferCreate();
  char *text = NULL;

  if (buffer && xmlNodeDump(buffer, xml->doc, node, 0, 0) > 0)
    text = g_strdup((const char *)xmlBufferContent(buffer));
  xmlBufferFree(buffer);
  return text;
}

/* Parses one part of a set: "4", "0-3", "^2". False: malformed. */
static bool read_range(const char *text, bool *ret_excluded, unsigned *ret_first, unsigned *ret_last) {
  char *end;
  guint64 first, last;

  *ret_excluded = *text == '^';
  text += *ret_excluded;
  if (!g_ascii_isdigit(*text))
    return false;
  first = last = g_ascii_strtoull(text, &end, 10);
  if (*end == '-') {
    if (!g_ascii_isdigit(end[1]))
      return false;
    last = g_ascii_strtoull(end + 1, &end, 10);
  }
  *ret_first = (unsigned)MIN(first, MIG_SET_MAX);
  *ret_last = (unsigned)MIN(last, MIG_SET_MAX);
  return *end == '\0';
}

void mig_xml_add_set(const char *text, MigSet *set) {
  g_auto(GStrv) parts = g_strsplit(text ? text : "", ",", -1);

  for (char **part = parts; *part; part++) {
    unsigned first, last;
    bool excluded;

    if (!read_range(g_strstrip(*part), &excluded, &first, &last))
      continue;
    for (unsigned i = first; i <= last && i < MIG_SET_MAX; i++) {
      if (excluded)
        set->words[i / 64] &= ~(UINT64_C(1) << (i % 64));
      else
        mig_set_add(set, i);
    }
  }
}
