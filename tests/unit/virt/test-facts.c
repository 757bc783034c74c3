/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* What a domain's XML says. */
#include "libmigrate/virt/libvirt.h"
#include "tests/unit/virt/cmocka-all.h"

#define DOMAIN(devices)                                                                                      \
  "<domain type='kvm' id='1'><name>web</name><uuid>f761a9f4-98cd-4d3c-81fc-b8aa43e75202</uuid>"              \
  "<memory unit='KiB'>262144</memory><currentMemory unit='KiB'>131072</currentMemory>"                       \
  "<os><type arch='x86_64' machine='pc-q35-7.2'>hvm</type></os>"                                             \
  "<devices><emulator>/usr/bin/qemu-system-x86_64</emulator>" devices "</devices></domain>"

static MigDomainXml parse(const char *text) {
  MigDomainXml xml = {0};

  assert_true(mig_domain_xml_parse(text, &xml, NULL));
  return xml;
}

static void the_basics_are_read(void **state) {
  g_auto(MigDomainXml) xml = parse(DOMAIN(""));

  assert_string_equal(xml.name, "web");
  assert_int_equal(xml.memory_bytes, 256 * MIG_MIB_BYTES);
  assert_string_equal(xml.emulator, "/usr/bin/qemu-system-x86_64");
  assert_string_equal(xml.machine, "pc-q35-7.2");
  assert_string_equal(xml.arch, "x86_64");
  assert_string_equal(xml.virt_type, "kvm");
  assert_false(xml.passthrough);
  assert_null(xml.local_disks[0]);
}

static void memory_is_all_that_the_guest_may_use_and_not_what_the_balloon_left(void **state) {
  static const struct {
    const char *memory;
    uint64_t bytes;
  } rows[] = {
      {"<memory unit='KiB'>1048576</memory><currentMemory unit='KiB'>4</currentMemory>", MIG_GIB_BYTES},
      {"<memory>2048</memory>", 2 * MIG_MIB_BYTES},
      {"<memory unit='GiB'> 3 </memory>", 3 * MIG_GIB_BYTES},
      {"<memory unit='MB'>5</memory>", 5000000},
      {"<memory unit='bytes'>77</memory>", 77},
      {"<maxMemory slots='16' unit='KiB'>99999999</maxMemory><memory unit='MiB'>1</memory>", MIG_MIB_BYTES},
      {"", 0},
  };

  for (size_t i = 0; i < G_N_ELEMENTS(rows); i++) {
    g_autofree char *text = g_strdup_printf("<domain type='qemu'><name>x</name>%s</domain>", rows[i].memory);
    g_auto(MigDomainXml) xml = parse(text);

    assert_int_equal(xml.memory_bytes, rows[i].bytes);
  }
}

static void devices_of_the_host_are_passthrough(void **state) {
  static const struct {
    const char *devices;
    bool passthrough;
  } rows[] = {
      {"<hostdev mode='subsystem' type='pci' managed='yes'/>", true},
      {"<hostdev mode='subsystem' type='mdev'/>", true},
      {"<hostdev mode='subsystem' type='usb'/>", true},
      {"<interface type='hostdev'/>", true},
      {"<interface type='vdpa'/>", true},
      {"<interface type='bridge'/><interface type='network'/>", false},
      {"<redirdev bus='usb' type='spicevmc'/>", false},
  };

  for (size_t i = 0; i < G_N_ELEMENTS(rows); i++) {
    g_autofree char *text = g_strdup_printf("<domain><devices>%s</devices></domain>", rows[i].devices);
    g_auto(MigDomainXml) xml = parse(text);

    assert_int_equal(xml.passthrough, rows[i].passthrough);
  }
}

static void only_disks_that_are_written_and_that_no_other_host_sees_are_local(void **state) {
  g_auto(MigDomainXml) xml = parse(DOMAIN(
      "<disk type='file' device='disk'><source file='/nowhere/a.qcow2'/><target dev='vda'/></disk>"
      "<disk type='block'><source dev='/dev/mapper/x'/><target dev='vdb'/></disk>"
      "<disk type='file' device='cdrom'><source file='/i.iso'/><target dev='sda'/><readonly/></disk>"
      "<disk type='file' device='cdrom'><target dev='sdb'/></disk>"
      "<disk type='file' device='disk'><source file='/r.img'/><target dev='vdc'/><readonly/></disk>"
      "<disk type='file' device='disk'><source file='/s.img'/><target dev='vdd'/><shareable/></disk>"
      "<disk type='file' device='disk'><source file='/t.img'/><target dev='vde'/><transient/></disk>"
      "<disk type='network' device='disk'><source protocol='rbd' name='p/i'/><target dev='vdf'/></disk>"
      "<disk type='vhostuser' device='disk'><source type='unix' path='/s'/><target dev='vdg'/></disk>"
      "<disk type='volume' device='disk'><source pool='p' volume='v'/><target dev='vdh'/></disk>"));

  assert_string_equal(xml.local_disks[0], "vda");
  assert_string_equal(xml.local_disks[1], "vdb");
  assert_string_equal(xml.local_disks[2], "vdh");
  assert_null(xml.local_disks[3]);
}

static void what_is_no_domain_is_an_error(void **state) {
  static const char *const texts[] = {"", "x", "<domain", "<network/>",
                                      "<!DOCTYPE a [<!ENTITY b SYSTEM 'file:///etc/passwd'>]><c>&b;</c>"};

  for (size_t i = 0; i < G_N_ELEMENTS(texts); i++) {
    MigDomainXml xml = {0};
    g_autoptr(GError) error = NULL;

    assert_false(mig_domain_xml_parse(texts[i], &xml, &error));
    assert_int_equal(error->code, MIG_VIRT_ERROR_FAILED);
    assert_null(xml.name);
  }
}

static void an_empty_domain_has_no_facts_and_does_no_harm(void **state) {
  g_auto(MigDomainXml) xml = parse("<domain/>");

  assert_null(xml.name);
  assert_null(xml.emulator);
  assert_int_equal(xml.memory_bytes, 0);
}

static void the_hosts_uuid_is_read_from_its_capabilities(void **state) {
  g_autofree char *uuid = mig_capabilities_host_uuid(
      "<capabilities><host><uuid>8825bbb6-3369-4112-8fef-29d584216c8a</uuid></host></capabilities>");

  assert_string_equal(uuid, "8825bbb6-3369-4112-8fef-29d584216c8a");
  assert_null(mig_capabilities_host_uuid("<capabilities><host/></capabilities>"));
  assert_null(mig_capabilities_host_uuid("nonsense"));
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(the_basics_are_read),
      cmocka_unit_test(memory_is_all_that_the_guest_may_use_and_not_what_the_balloon_left),
      cmocka_unit_test(devices_of_the_host_are_passthrough),
      cmocka_unit_test(only_disks_that_are_written_and_that_no_other_host_sees_are_local),
      cmocka_unit_test(what_is_no_domain_is_an_error),
      cmocka_unit_test(an_empty_domain_has_no_facts_and_does_no_harm),
      cmocka_unit_test(the_hosts_uuid_is_read_from_its_capabilities),
  };

  return cmocka_run_group_tests(tests, NULL, NULL);
}
