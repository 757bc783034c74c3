/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* A domain's title and metadata, as the orchestrators write them. */
#include "libmigrate/virt/tags.h"

#include "tests/unit/core/rows.h"

static const struct Xml {
  const char *name;
  const char *xml;
  const char *title;
  struct {
    const char *path, *value;
  } entries[8];
} xmls[] = {
    {"no title, no metadata", "<domain><name>a</name></domain>", NULL, {{0}}},
    {"a title", "<domain><name>a</name><title> Shop front\n</title></domain>", "Shop front", {{0}}},
    {"an element with text",
     "<domain><metadata><x:tier xmlns:x='urn:x'> gold </x:tier></metadata></domain>",
     NULL,
     {{"{urn:x}tier", "gold"}}},
    {"as OpenStack's Nova",
     "<domain><metadata><nova:instance xmlns:nova='http://openstack.org/xmlns/libvirt/nova/1.1'>"
     "<nova:flavor name='m1.tiny'><nova:memory>512</nova:memory></nova:flavor>"
     "<nova:owner><nova:project uuid='7'>shop</nova:project></nova:owner>"
     "</nova:instance></metadata></domain>",
     NULL,
     {{"{http://openstack.org/xmlns/libvirt/nova/1.1}instance", ""},
      {"{http://openstack.org/xmlns/libvirt/nova/1.1}instance/flavor", ""},
      {"{http://openstack.org/xmlns/libvirt/nova/1.1}instance/flavor@name", "m1.tiny"},
      {"{http://openstack.org/xmlns/libvirt/nova/1.1}instance/flavor/memory", "512"},
      {"{http://openstack.org/xmlns/libvirt/nova/1.1}instance/owner", ""},
      {"{http://openstack.org/xmlns/libvirt/nova/1.1}instance/owner/project", "shop"},
      {"{http://openstack.org/xmlns/libvirt/nova/1.1}instance/owner/project@uuid", "7"}}},
    {"as KubeVirt, by a default namespace",
     "<domain><metadata><kubevirt xmlns='http://kubevirt.io'><uid>1-2</uid></kubevirt></metadata></domain>",
     NULL,
     {{"{http://kubevirt.io}kubevirt", ""}, {"{http://kubevirt.io}kubevirt/uid", "1-2"}}},
    {"one namespace in another, and two of a kind",
     "<domain><metadata><a:a xmlns:a='urn:a' xmlns:b='urn:b'><b:b b:k='1' "
     "l='2'/><a:c>x</a:c><a:c>y</a:c></a:a>"
     "</metadata></domain>",
     NULL,
     {{"{urn:a}a", ""},
      {"{urn:a}a/{urn:b}b", ""},
      {"{urn:a}a/{urn:b}b@k", "1"},
      {"{urn:a}a/{urn:b}b@l", "2"},
      {"{urn:a}a/c", "x"},
      {"{urn:a}a/c", "y"}}},
    {"text about children, and entities",
     "<domain><metadata><x:a xmlns:x='urn:x'>one<x:b/> &amp; two<![CDATA[ <3]]></x:a></metadata></domain>",
     NULL,
     {{"{urn:x}a", "one & two <3"}, {"{urn:x}a/b", ""}}},
    {"what is not XML", "<domain><title>a", NULL, {{0}}},
    {"a title elsewhere is none", "<domain><os><title>x</title></os></domain>", NULL, {{0}}},
};

static void xml(void **state) {
  const struct Xml *row = *state;
  g_auto(MigDomainTags) tags = {0};
  size_t n = 0;

  mig_domain_tags_parse(row->xml, &tags);
  if (row->title)
    assert_string_equal(tags.title, row->title);
  else
    assert_null(tags.title);
  for (; n < LENGTH(row->entries) && row->entries[n].path; n++) {
    assert_true(n < tags.n_metadata);
    assert_string_equal(tags.metadata[n].path, row->entries[n].path);
    assert_string_equal(tags.metadata[n].value, row->entries[n].value);
  }
  assert_int_equal(tags.n_metadata, n);
}

static void a_flood_is_cut(void **state) {
  g_autoptr(GString) text = g_string_new("<domain><metadata>");
  g_autofree char *longest = g_strnfill(2000, 'x');
  g_auto(MigDomainTags) tags = {0};

  g_string_append_printf(text, "<x:long xmlns:x='urn:x'>%s</x:long>", longest);
  for (int i = 0; i < 5000; i++)
    g_string_append_printf(text, "<x:n xmlns:x='urn:x'>%d</x:n>", i);
  for (int i = 0; i < 200; i++)
    g_string_append(text, "<d>");
  for (int i = 0; i < 200; i++)
    g_string_append(text, "</d>");
  g_string_append(text, "</metadata></domain>");
  mig_domain_tags_parse(text->str, &tags);
  assert_int_equal(tags.n_metadata, 2000);
  assert_string_equal(tags.metadata[0].value, "0");
}

int main(void) {
  Tests tests = {0};

  TESTS_ADD_ROWS(&tests, xml, xmls);
  tests_add(&tests, "a flood is cut", a_flood_is_cut, NULL);
  return tests_run(&tests, "tags");
}
