/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* What people and orchestrators have written on a domain: its title and its metadata, flattened. */
#pragma once

#include "libmigrate/core/match.h"

#include <glib.h>

void mig_domain_tags_clear(MigDomainTags *tags);
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC(MigDomainTags, mig_domain_tags_clear)

/* One more entry. Copies both. */
void mig_domain_tags_add(MigDomainTags *tags, const char *path, const char *value);

/* Reads the tags from a domain's XML; XML that cannot be read has none.
 *
 * Each element below <metadata> becomes an entry, and each of its attributes. The path of an element is that of its
 * parent, a slash, and its name; a name is {NAMESPACE}NAME, without the namespace where that is the parent's, or where it has
 * none. An attribute's is that of its element, an @ and its name. The value is the element's own text, without white space
 * about it. Beyond 2,000 entries, or of values longer than 1,000 bytes, nothing is read. */
void mig_domain_tags_parse(const char *xml, MigDomainTags *ret_tags);
