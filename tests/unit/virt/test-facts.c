/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* What the XML of a domain and of a host says. */
#include "libmigrate/virt/xml.h"
#include "tests/unit/virt/cmocka-all.h"

#define DOMAIN(devices)                                                                                      \
  "<domain type='kvm' id='1'><name>web</name><uuid>f761a9f4-98cd-4d3c-81fc-b8aa43e75202</uuid>"              \
  "<memory unit='KiB'>262144</memory><currentMemory unit='KiB'>131072</currentMemory>"                       \
  "<os><type arch='x86_64' machine='pc-q35-7.2'>hvm</type></os>"                                             \
  "<devices><emulator>/usr/bin/qemu-system-x86_64</emulator>" devices "</devices></domain>"

static MigDomainFacts parse(const char *text) {
  MigDomainFacts xml = {0};

  assert_true(mig_domain_xml_parse(text, &xml, NULL));
  return xml;
}

static void the_basics_are_read(void **state) {
  g_auto(MigDomainFacts) xml = parse(DOMAIN(""));

  assert_string_equal(xml.name, "web");
  assert_int_equal(xml.memory_bytes, 256 * MIG_MIB_BYTES);
  assert_string_equal(xml.emulator, "/usr/bin/qemu-system-x86_64");
  assert_string_equal(xml.machine, "pc-q35-7.2");
  assert_string_equal(xml.arch, "x86_64");
  assert_string_equal(xml.virt_type, "kvm");
  assert_false(xml.passthrough);
  assert_int_equal(xml.n_disks, 0);
}

static void a_profile_is_read_from_the_metadata(void **state) {
  static const struct {
    const char *element;
    unsigned probes;
  } rows[] = {
      {"<h:profile xmlns:h='https://handoffd.io/xmlns/profile/1'>1 1700000000 7 2048 0 350 9</h:profile>", 7},
      {"<h:profile xmlns:h='https://handoffd.io/xmlns/profile/1'>what?</h:profile>", 0},
      {"<h:profile xmlns:h='urn:x'>1 1700000000 7 2048 0 350 9</h:profile>", 0},
      {"", 0},
  };

  for (size_t i = 0; i < G_N_ELEMENTS(rows); i++) {
    g_autofree char *text = g_strdup_printf(
        "<domain type='qemu'><name>x</name><metadata>%s</metadata></domain>", rows[i].element);
    g_auto(MigDomainFacts) xml = parse(text);

    assert_int_equal(xml.profile.probes, rows[i].probes);
  }
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
    g_auto(MigDomainFacts) xml = parse(text);

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
    g_auto(MigDomainFacts) xml = parse(text);

    assert_int_equal(xml.passthrough, rows[i].passthrough);
  }
}

static void only_disks_that_are_written_and_that_no_other_host_sees_are_local(void **state) {
  g_auto(MigDomainFacts) xml = parse(DOMAIN(
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

  char **names = mig_domain_local_disks(&xml);

  assert_string_equal(names[0], "vda");
  assert_string_equal(names[1], "vdb");
  assert_string_equal(names[2], "vdh");
  assert_null(names[3]);
  assert_int_equal(xml.local_disks, 3);
}

static void what_is_no_domain_is_an_error(void **state) {
  static const char *const texts[] = {"", "x", "<domain", "<network/>",
                                      "<!DOCTYPE a [<!ENTITY b SYSTEM 'file:///etc/passwd'>]><c>&b;</c>"};

  for (size_t i = 0; i < G_N_ELEMENTS(texts); i++) {
    MigDomainFacts xml = {0};
    g_autoptr(GError) error = NULL;

    assert_false(mig_domain_xml_parse(texts[i], &xml, &error));
    assert_int_equal(error->code, MIG_VIRT_ERROR_FAILED);
    assert_null(xml.name);
  }
}

static void an_empty_domain_has_no_facts_and_does_no_harm(void **state) {
  g_auto(MigDomainFacts) xml = parse("<domain/>");

  assert_null(xml.name);
  assert_null(xml.emulator);
  assert_int_equal(xml.memory_bytes, 0);
}

/* /s is shared, /u cannot be told. */
static MigStorage look(const char *path, gpointer user_data) {
  return g_str_has_prefix(path, "/s/")   ? MIG_STORAGE_SHARED
         : g_str_has_prefix(path, "/u/") ? MIG_STORAGE_UNKNOWN
                                         : MIG_STORAGE_LOCAL;
}

static void what_is_shared_or_cannot_be_told_is_not_local(void **state) {
  g_auto(MigDomainFacts) xml =
      parse(DOMAIN("<disk type='file' device='disk'><source file='/s/a'/><target dev='vda'/></disk>"
                   "<disk type='file' device='disk'><source file='/u/b'/><target dev='vdb'/></disk>"
                   "<disk type='file' device='disk'><source file='/l/c'/><target dev='vdc'/></disk>"));

  mig_storage_classify(&xml, look, NULL);
  assert_int_equal(xml.local_disks, 1);
  assert_string_equal(mig_domain_local_disks(&xml)[0], "vdc");
}

static void a_path_is_looked_at_where_it_is(void **state) {
  /* This very program is seen; of a path that is none nothing is known. */
  assert_int_equal(mig_storage_look("/proc/self/exe"), MIG_STORAGE_LOCAL);
  assert_int_equal(mig_storage_look("/there/is/no/such/path"), MIG_STORAGE_UNKNOWN);
  assert_int_equal(mig_storage_look("rbd:pool/image"), MIG_STORAGE_UNKNOWN);
  assert_int_equal(mig_storage_look(NULL), MIG_STORAGE_UNKNOWN);
}

static void the_cpu_is_read(void **state) {
  static const struct {
    const char *cpu;
    MigCpuMode mode;
    const char *model;
    bool unchecked, invtsc;
  } rows[] = {
      {"", MIG_CPU_NONE, NULL, false, false},
      {"<cpu><topology sockets='1' cores='2' threads='1'/></cpu>", MIG_CPU_NONE, NULL, false, false},
      {"<cpu match='exact'><model>EPYC</model></cpu>", MIG_CPU_CUSTOM, "EPYC", false, false},
      {"<cpu mode='custom' match='exact' check='none'><model fallback='forbid'> qemu64 </model></cpu>",
       MIG_CPU_CUSTOM, "qemu64", true, false},
      {"<cpu mode='host-model' check='partial'/>", MIG_CPU_HOST_MODEL, NULL, false, false},
      {"<cpu mode='host-passthrough' check='none'><feature policy='require' name='invtsc'/></cpu>",
       MIG_CPU_HOST_PASSTHROUGH, NULL, true, true},
      {"<cpu mode='maximum'><feature policy='disable' name='invtsc'/></cpu>", MIG_CPU_MAXIMUM, NULL, false,
       false},
  };

  for (size_t i = 0; i < G_N_ELEMENTS(rows); i++) {
    g_autofree char *text = g_strdup_printf("<domain type='kvm'>%s</domain>", rows[i].cpu);
    g_auto(MigDomainFacts) facts = parse(text);

    assert_int_equal(facts.cpu_mode, rows[i].mode);
    assert_int_equal(g_strcmp0(facts.cpu_model, rows[i].model), 0);
    assert_int_equal(facts.cpu_unchecked, rows[i].unchecked);
    assert_int_equal(facts.cpu_invtsc, rows[i].invtsc);
    assert_int_equal(facts.cpu_xml != NULL, rows[i].mode != MIG_CPU_NONE);
  }
}

static void huge_pages_are_counted_by_size(void **state) {
  static const struct {
    const char *backing;
    size_t n;
    MigHugepages first;
  } rows[] = {
      {"", 0, {0}},
      {"<hugepages/>", 1, {0, 4 * MIG_GIB_BYTES}},
      {"<hugepages><page size='2048' unit='KiB'/></hugepages>", 1, {2 * MIG_MIB_BYTES, 4 * MIG_GIB_BYTES}},
      {"<hugepages><page size='1' unit='GiB' nodeset='1'/></hugepages>",
       1,
       {MIG_GIB_BYTES, 3 * MIG_GIB_BYTES}},
      {"<hugepages><page size='1' unit='GiB' nodeset='0'/><page size='2' unit='MiB'/></hugepages>",
       2,
       {MIG_GIB_BYTES, 1 * MIG_GIB_BYTES}},
  };

  for (size_t i = 0; i < G_N_ELEMENTS(rows); i++) {
    g_autofree char *text =
        g_strdup_printf("<domain><memory unit='GiB'>4</memory><memoryBacking>%s</memoryBacking><cpu><numa>"
                        "<cell id='0' cpus='0' memory='1048576' unit='KiB'/>"
                        "<cell id='1' cpus='1' memory='3145728' unit='KiB'/></numa></cpu></domain>",
                        rows[i].backing);
    g_auto(MigDomainFacts) facts = parse(text);

    assert_int_equal(facts.n_hugepages, rows[i].n);
    if (rows[i].n > 0) {
      assert_int_equal(facts.hugepages[0].page_bytes, rows[i].first.page_bytes);
      assert_int_equal(facts.hugepages[0].bytes, rows[i].first.bytes);
    }
  }
}

static void sets_of_cpus_are_read_as_libvirt_writes_them(void **state) {
  static const struct {
    const char *text;
    unsigned count, has, has_not;
  } rows[] = {
      {"0-3", 4, 3, 4},
      {"0-3,^2", 3, 3, 2},
      {"1,5, 7-8", 4, 8, 6},
      {"4095-9999", 1, 4095, 0},
      {"x", 0, 9999, 0},
      {"", 0, 9999, 0},
      {"3-99999999999999999999", MIG_SET_MAX - 3, 3, 2},
  };

  for (size_t i = 0; i < G_N_ELEMENTS(rows); i++) {
    MigSet set = {0};

    mig_xml_add_set(rows[i].text, &set);
    assert_int_equal(mig_set_count(&set), rows[i].count);
    assert_int_equal(mig_set_has(&set, rows[i].has), rows[i].count > 0);
    assert_false(mig_set_has(&set, rows[i].has_not));
  }
}

static void pins_and_nodes_are_read(void **state) {
  g_auto(MigDomainFacts) facts = parse("<domain><vcpu placement='static' cpuset='0-1'>2</vcpu><cputune>"
                                       "<vcpupin vcpu='1' cpuset='4'/><emulatorpin cpuset='0-3'/>"
                                       "<iothreadpin iothread='1' cpuset='6'/></cputune>"
                                       "<numatune><memory mode='strict' nodeset='1'/>"
                                       "<memnode cellid='0' mode='strict' nodeset='2'/></numatune></domain>");

  assert_int_equal(facts.vcpus, 2);
  assert_int_equal(facts.n_pins, 4);
  assert_string_equal(facts.pins[0].who, "all vCPUs");
  assert_string_equal(facts.pins[1].who, "vCPU 1");
  assert_true(mig_set_has(&facts.pins[1].cpus, 4));
  assert_string_equal(facts.pins[2].who, "the emulator");
  assert_string_equal(facts.pins[3].who, "I/O thread 1");
  assert_int_equal(mig_set_count(&facts.numa_nodes), 2);
}

static void a_thing_that_is_needed_twice_by_one_is_listed_once(void **state) {
  g_auto(MigDomainFacts) facts = parse(
      DOMAIN("<interface type='bridge'><mac address='52:54:00:00:00:01'/><source bridge='br0'/></interface>"
             "<interface type='bridge'><mac address='52:54:00:00:00:02'/><source bridge='br0'/></interface>"
             "<video><model type='virtio'/></video><video><model type='virtio'/></video>"));

  assert_int_equal(facts.n_needs, 3);
  assert_string_equal(facts.needs[0].name, "br0");
  assert_string_equal(facts.needs[1].user, "52:54:00:00:00:02");
  assert_string_equal(facts.needs[2].where, "video/modelType");
}

#define CAPABILITIES                                                                                         \
  "<capabilities><host><uuid>8825bbb6-3369-4112-8fef-29d584216c8a</uuid>"                                    \
  "<cpu><arch>x86_64</arch><model>EPYC</model><counter name='tsc' frequency='2596000000' scaling='yes'/>"    \
  "<feature name='invtsc'/></cpu><topology><cells num='2'>"                                                  \
  "<cell id='0'><memory unit='KiB'>1048576</memory><pages unit='KiB' size='4'>100</pages>"                   \
  "<pages unit='KiB' size='2048'>8</pages><cpus num='1'><cpu id='0'/></cpus></cell>"                         \
  "<cell id='3'><memory unit='KiB'>1048576</memory><pages unit='KiB' size='2048'>4</pages>"                  \
  "<cpus num='1'><cpu id='9'/></cpus></cell></cells></topology>"                                             \
  "<secmodel><model>apparmor</model></secmodel><secmodel><model>dac</model></secmodel></host>"               \
  "<guest><arch name='x86_64'><machine>pc-q35-7.2</machine><machine>pc-q35-10.0</machine>"                   \
  "<machine>pc-q35-9.2</machine><machine>pc-i440fx-11.0</machine><machine>q35</machine></arch></guest>"      \
  "</capabilities>"

static void a_hosts_capabilities_are_read(void **state) {
  g_auto(MigHostFacts) facts = {0};

  assert_true(mig_capabilities_parse(CAPABILITIES, &facts, NULL));
  assert_string_equal(facts.uuid, "8825bbb6-3369-4112-8fef-29d584216c8a");
  assert_string_equal(facts.cpu_model, "EPYC");
  assert_true(facts.cpu_invtsc);
  assert_true(facts.tsc_scaling);
  assert_int_equal(facts.tsc_frequency_hz, 2596000000);
  assert_int_equal(facts.memory_bytes, 2 * MIG_GIB_BYTES);
  assert_int_equal(mig_set_count(&facts.cpus), 2);
  assert_true(mig_set_has(&facts.cpus, 9));
  assert_true(mig_set_has(&facts.numa_nodes, 3));
  assert_int_equal(facts.n_pages, 2);
  assert_int_equal(facts.pages[1].total, 12);
  assert_string_equal(facts.security_models[0], "apparmor");
  assert_string_equal(facts.security_models[1], "dac");
  assert_null(facts.security_models[2]);
}

static void a_host_of_which_little_is_said_has_few_facts(void **state) {
  g_auto(MigHostFacts) facts = {0};
  g_auto(MigHostFacts) none = {0};

  assert_true(mig_capabilities_parse("<capabilities><host/></capabilities>", &facts, NULL));
  assert_string_equal(facts.uuid, "");
  assert_null(facts.cpu_xml);
  assert_int_equal(facts.n_pages, 0);
  assert_false(mig_capabilities_parse("nonsense", &none, NULL));
}

static void the_newest_machine_of_a_kind_is_the_one_with_the_highest_number(void **state) {
  g_autofree char *q35 = mig_capabilities_describe_machines(CAPABILITIES, "x86_64", "pc-q35-11.1");

  assert_string_equal(q35, "pc-q35-10.0 is the newest of the kind");
  assert_null(mig_capabilities_describe_machines(CAPABILITIES, "x86_64", "virt-7.2"));
  assert_null(mig_capabilities_describe_machines(CAPABILITIES, "aarch64", "pc-q35-7.2"));
  assert_null(mig_capabilities_describe_machines(CAPABILITIES, "x86_64", NULL));
}

static void domain_capabilities_tell_which_devices_there_are(void **state) {
  g_auto(MigDomainFacts) domain =
      parse(DOMAIN("<video><model type='qxl'/></video><video><model type='vga'/></video><tpm model='tpm-crb'>"
                   "<backend type='emulator'/></tpm><redirdev bus='usb'/>"));
  g_auto(MigTargetFacts) facts = {0};

  mig_target_facts_init(&facts, &domain);
  mig_domain_capabilities_apply("<domainCapabilities><vcpu max='288'/><devices><video supported='yes'>"
                                "<enum name='modelType'><value>vga</value></enum></video>"
                                "<tpm supported='no'/></devices></domainCapabilities>",
                                &domain, &facts);
  assert_int_equal(facts.vcpus_max, 288);
  assert_int_equal(domain.n_needs, 5);
  assert_int_equal(facts.needs[0], MIG_SIGHT_ABSENT);  /* qxl */
  assert_int_equal(facts.needs[1], MIG_SIGHT_PRESENT); /* vga */
  assert_int_equal(facts.needs[2], MIG_SIGHT_ABSENT);  /* no TPM at all */
  assert_int_equal(facts.needs[3], MIG_SIGHT_ABSENT);
  assert_int_equal(facts.needs[4], MIG_SIGHT_UNSEEN); /* of redirection it does not speak */
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(the_basics_are_read),
      cmocka_unit_test(a_profile_is_read_from_the_metadata),
      cmocka_unit_test(memory_is_all_that_the_guest_may_use_and_not_what_the_balloon_left),
      cmocka_unit_test(devices_of_the_host_are_passthrough),
      cmocka_unit_test(only_disks_that_are_written_and_that_no_other_host_sees_are_local),
      cmocka_unit_test(what_is_no_domain_is_an_error),
      cmocka_unit_test(an_empty_domain_has_no_facts_and_does_no_harm),
      cmocka_unit_test(what_is_shared_or_cannot_be_told_is_not_local),
      cmocka_unit_test(a_path_is_looked_at_where_it_is),
      cmocka_unit_test(the_cpu_is_read),
      cmocka_unit_test(huge_pages_are_counted_by_size),
      cmocka_unit_test(sets_of_cpus_are_read_as_libvirt_writes_them),
      cmocka_unit_test(pins_and_nodes_are_read),
      cmocka_unit_test(a_thing_that_is_needed_twice_by_one_is_listed_once),
      cmocka_unit_test(a_hosts_capabilities_are_read),
      cmocka_unit_test(a_host_of_which_little_is_said_has_few_facts),
      cmocka_unit_test(the_newest_machine_of_a_kind_is_the_one_with_the_highest_number),
      cmocka_unit_test(domain_capabilities_tell_which_devices_there_are),
  };

  return cmocka_run_group_tests(tests, NULL, NULL);
}
