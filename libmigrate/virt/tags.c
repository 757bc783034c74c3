/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* A domain's title and metadata, flattened. */
#include "libmigrate/virt/tags.h"

#include <libxml/parser.h>
#include <libxml/tree.h>
#include <string.h>

#define ENTRIES_MAX 2000
#define VALUE_MAX   1000
/* libxml2's own limit is 256. This also keeps paths short. */
#define DEPTH_MAX 16

G_DEFINE_AUTOPTR_CLEANUP_FUNC(xmlDoc, xmlFreeDoc)

void mig_domain_tags_clear(MigDomainTags *tags) {
  g_free(tags->title);
  for (size_t i = 0; i < tags->n_metadata; i++) {
    g_free((char *)tags->metadata[i].path);
    g_free((char *)tags->metadata[i].value);
  }
  g_free(tags->metadata);
  memset(tags, 0, sizeof *tags);
}

void mig_domain_tags_add(MigDomainTags *tags, const char *path, const char *value) {
  if (tags->n_metadata >= ENTRIES_MAX || strlen(value) > VALUE_MAX)
    return;
  /* Grows in steps, so that entries are not copied each time. */
  if (tags->n_metadata % 16 == 0)
    tags->metadata = g_renew(MigMatchEntry, tags->metadata, tags->n_metadata + 16);
  tags->metadata[tags->n_metadata++] = (MigMatchEntry){g_strdup(path), g_strdup(value)};
}

/* An element's own text, without that of its child elements. */
static char *own_text(const xmlNode *node) {
  g_autoptr(GString) text = g_string_new(NULL);

  for (const xmlNode *child = node->children; child; child = child->next)
    if ((child->type == XML_TEXT_NODE || child->type == XML_CDATA_SECTION_NODE) && child->content)
      g_string_append(text, (const char *)child->content);
  return g_strstrip(g_string_free(g_steal_pointer(&text), FALSE));
}

static void append_name(GString *path, const xmlNs *ns, const xmlNs *parent, const xmlChar *name) {
  const char *href = ns && ns->href ? (const char *)ns->href : NULL;
  const char *parent_href = parent && parent->href ? (const char *)parent->href : NULL;

  if (href && g_strcmp0(href, parent_href) != 0)
    g_string_append_printf(path, "{%s}", href);
  g_string_append(path, (const char *)name);
}

static void add_attributes(MigDomainTags *tags, const xmlNode *node, GString *path) {
  gsize length = path->len;

  for (const xmlAttr *attribute = node->properties; attribute; attribute = attribute->next) {
    xmlChar *value = xmlNodeGetContent((const xmlNode *)attribute);

    g_string_append_c(path, '@');
    append_name(path, attribute->ns, node->ns, attribute->name);
    mig_domain_tags_add(tags, path->str, value ? (const char *)value : "");
    g_string_truncate(path, length);
    xmlFree(value);
  }
}

static void add_element(MigDomainTags *tags, const xmlNode *node, const xmlNs *parent, GString *path,
                        unsigned depth) {
  gsize length = path->len;
  g_autofree char *text = own_text(node);

  if (depth > DEPTH_MAX)
    return;
  if (length > 0)
    g_string_append_c(path, '/');
  append_name(path, node->ns, parent, node->name);
  mig_domain_tags_add(tags, path->str, text);
  add_attributes(tags, node, path);
  for (const xmlNode *child = node->children; child; child = child->next)
    if (child->type == XML_ELEMENT_NODE)
      add_element(tags, child, node->ns, path, depth + 1);
  g_string_truncate(path, length);
}

static bool is_named(const xmlNode *node, const char *name) {
  return node->type == XML_ELEMENT_NODE && strcmp((const char *)node->name, name) == 0;
}

void mig_domain_tags_parse(const char *xml, MigDomainTags *ret_tags) {
  g_autoptr(xmlDoc) doc = xmlReadMemory(xml, (int)strlen(xml), NULL, NULL,
                                        XML_PARSE_NONET | XML_PARSE_NOERROR | XML_PARSE_NOWARNING);
  const xmlNode *root = doc ? xmlDocGetRootElement(doc) : NULL;
  MigDomainTags tags = {0};

  for (const xmlNode *node = root ? root->children : NULL; node; node = node->next) {
    if (is_named(node, "title") && !tags.title)
      tags.title = own_text(node);
    for (const xmlNode *entry = is_named(node, "metadata") ? node->children : NULL; entry;
         entry = entry->next) {
      g_autoptr(GString) path = g_string_new(NULL);

      if (entry->type == XML_ELEMENT_NODE)
        add_element(&tags, entry, NULL, path, 0);
    }
  }
  *ret_tags = tags;
}
