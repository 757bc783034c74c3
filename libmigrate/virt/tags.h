/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* What people and orchestrators have noted on a domain: its title and its metadata, flattened. */
#pragma once

#include "libmigrate/core/match.h"

#include <glib.h>

void mig_domain_tags_clear(MigDomainTags *tags);
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC(MigDomainTags, mig_domain_tags_clear)

/* Adds an entry. Copies both strings. */
void mig_domain_tags_add(MigDomainTags *tags, const char *path, const char *value);

/* Reads the tags from a domain's XML. Malformed XML yields no tags.
 *
 * Each element below <metadata>, and each of its attributes, becomes an entry. An element's path is its parent's path, a slash
 * and its name. A name is {NAMESPACE}NAME, or just NAME if it has no namespace or the same as its parent. An attribute's path
 * is its element's path, an @ and its name. The value is the element's own text, stripped of surrounding white space. Entries
 * past the first 2,000, and values longer than 1,000 bytes, are skipped. */
void mig_domain_tags_parse(const char *xml, MigDomainTags *ret_tags);
