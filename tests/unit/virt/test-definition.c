/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Pairs of definitions: what a domain runs with and what its next start would have, and what is said of the difference.
 *
 * definitions/BASE.live.xml and BASE.next.xml are what libvirt 9.0 says of a domain that was just started, as the driver reads
 * them. A row changes one of them, or both; definitions/expected has what comes of each row. REGEN=1 writes it anew, to be read
 * before it is committed. Runs in definitions/. */
#include "libmigrate/core/change-rules.h"
#include "libmigrate/virt/xml.h"
#include "tests/unit/core/rows.h"

#include <glib.h>
#include <string.h>

#define GOLDEN    "expected"
#define EDITS_MAX 4

typedef enum Side { NEXT, LIVE, BOTH } Side;

typedef struct Edit {
  Side side;
  const char *from; /* is there exactly once; NULL: no edit */
  const char *to;
} Edit;

typedef struct Pair {
  const char *name;
  const char *base;
  Edit edits[EDITS_MAX];
} Pair;

#define PLUG(xml)                                                                                            \
  { NEXT, "</devices>", xml "</devices>" }
#define UNPLUG(xml)                                                                                          \
  { LIVE, "</devices>", xml "</devices>" }
#define SET(from, to)                                                                                        \
  { NEXT, from, to }
#define IN_DOMAIN(xml)                                                                                       \
  { NEXT, "<devices>", xml "<devices>" }
#define IN_RUNNING(xml)                                                                                      \
  { LIVE, "<devices>", xml "<devices>" }

#define NIC(type, source)                                                                                    \
  "<interface type='" type "'><mac address='52:54:00:00:00:09'/>" source "<model "                           \
  "type='virtio'/></interface>"
#define BRIDGE1 "<source bridge='br0'/>"
#define OVS     "<virtualport type='openvswitch'/>"
#define VDA     "<source file='/var/lib/libvirt/images/d0.img'/>"
#define DISK(bus, dev)                                                                                       \
  "<disk type='file' device='disk'><source file='/x.img'/><target dev='" dev "' bus='" bus "'/></disk>"
#define USB_DEVICE                                                                                           \
  "<hostdev mode='subsystem' type='usb'><source><vendor id='0x1234'/><product "                              \
  "id='0xabcd'/></source></hostdev>"
#define DIMM(slot, mib)                                                                                      \
  "<memory model='dimm'><target><size unit='MiB'>" mib                                                       \
  "</size><node>0</node></target><address type='dimm' slot='" slot "'/></memory>"
#define FIRST_NIC  "<mac address='52:54:00:00:00:01'/>"
#define SECOND_NIC "<mac address='52:54:00:00:00:02'/>"
#define THIRD_NIC  "<mac address='52:54:00:00:00:03'/>"

static const Pair pairs[] = {
    {"just started: nothing has changed", "web3", {{0}}},
    {"just started with a CPU model by name: nothing has changed", "custom", {{0}}},

    {"an interface is added", "web3", {PLUG(NIC("bridge", "<source bridge='br7'/>"))}},
    {"an interface is taken out", "web3", {UNPLUG(NIC("bridge", "<source bridge='br7'/>"))}},
    {"an interface has another MAC address", "web3", {SET("52:54:00:00:00:01", "52:54:00:00:00:0a")}},
    {"an interface is moved to another bridge", "web3", {SET("bridge='br0'", "bridge='br1'")}},
    {"an interface is moved to another network", "web3", {SET("network='default'", "network='green'")}},
    {"an interface is moved to another port group",
     "web3",
     {SET("<source network='default'/>", "<source network='default' portgroup='slow'/>")}},
    {"an interface is moved from a bridge to a network",
     "web3",
     {SET("<interface type='bridge'>\n      " FIRST_NIC "\n      " BRIDGE1,
          "<interface type='network'>\n      " FIRST_NIC "\n      <source network='green'/>")}},
    {"an interface is moved to a virtual switch's port", "web3", {SET(BRIDGE1, BRIDGE1 OVS)}},
    {"an interface is moved between a virtual switch's bridges",
     "web3",
     {{BOTH, BRIDGE1, BRIDGE1 OVS}, SET("bridge='br0'", "bridge='br1'")}},
    {"an interface is moved from the user's network to a bridge",
     "web3",
     {SET("<interface type='user'>\n      " SECOND_NIC,
          "<interface type='bridge'>\n      " SECOND_NIC BRIDGE1)}},
    {"an interface's link is up again", "web3", {SET("link state='down'", "link state='up'")}},
    {"an interface's bandwidth is limited, and its VLAN another",
     "web3",
     {SET(BRIDGE1, BRIDGE1 "<bandwidth><inbound average='1000'/></bandwidth><vlan><tag id='7'/></vlan>")}},
    {"an interface's limit is taken away",
     "web3",
     {{LIVE, BRIDGE1, BRIDGE1 "<bandwidth><inbound average='1000'/></bandwidth>"}}},
    {"an interface has another filter",
     "web3",
     {{BOTH, BRIDGE1, BRIDGE1 "<filterref filter='clean-traffic'/>"},
      SET("clean-traffic", "no-ip-spoofing")}},
    {"an interface's tap device has another name", "web3", {SET("web3-lan", "web3-dmz")}},
    {"an interface's tap device had a name of its own", "web3", {SET("<target dev='web3-lan'/>", "")}},
    {"an interface has another model", "web3", {SET("e1000e", "virtio")}},
    {"an interface has another MTU and more queues",
     "web3",
     {SET(BRIDGE1, BRIDGE1 "<mtu size='9000'/><driver queues='4'/>")}},
    {"an interface has no MTU of its own any more", "web3", {{LIVE, BRIDGE1, BRIDGE1 "<mtu size='9000'/>"}}},
    {"an interface is to be booted from first", "web3", {SET(BRIDGE1, BRIDGE1 "<boot order='1'/>")}},

    {"a virtio disk is added", "web3", {PLUG(DISK("virtio", "vdb"))}},
    {"a virtio disk is taken out", "web3", {UNPLUG(DISK("virtio", "vdb"))}},
    {"a SATA disk is added", "web3", {PLUG(DISK("sata", "sdd"))}},
    {"a CD is put in",
     "web3",
     {SET("<target dev='sdb' bus='sata'/>",
          "<source file='/iso/debian.iso'/><target dev='sdb' bus='sata'/>")}},
    {"a CD is taken out",
     "web3",
     {{LIVE, "<target dev='sdb' bus='sata'/>",
       "<source file='/iso/debian.iso'/><target dev='sdb' bus='sata'/>"},
      {LIVE, "<driver name='qemu' type='raw'/>\n      <source file='/iso",
       "<driver name='qemu'/>\n      <source file='/iso"}}},
    {"a disk is another file", "web3", {SET("d0.img", "d7.img")}},
    {"a disk is of another format", "web3", {SET("type='qcow2'", "type='raw'")}},
    {"a disk's limit is another", "web3", {SET(">100<", ">200<")}},
    {"a disk's limits are taken away",
     "web3",
     {SET("<iotune>\n        <total_iops_sec>100</total_iops_sec>\n      </iotune>", "")}},
    {"a disk's cache and I/O thread are others",
     "web3",
     {SET("cache='none' iothread='1'", "cache='directsync'")}},
    {"a disk has a serial number", "web3", {SET(VDA, VDA "<serial>A1</serial>")}},

    {"more vCPUs, within the most", "web3", {SET("current='1'>2<", "current='2'>2<")}},
    {"more vCPUs, written without current", "web3", {SET(" current='1'>2<", ">2<")}},
    {"more vCPUs than the most of the running domain", "web3", {SET("current='1'>2<", "current='4'>4<")}},
    {"fewer vCPUs", "web3", {{LIVE, "current='1'>2<", "current='2'>2<"}}},
    {"more vCPUs where none can be plugged",
     "web3",
     {{BOTH, "arch='x86_64' machine='pc-q35-7.2'", "arch='aarch64' machine='virt-7.2'"},
      SET("current='1'>2<", "current='2'>2<")}},
    {"a vCPU is bound to other CPUs", "web3", {SET("cpuset='0-1'", "cpuset='2'")}},
    {"a vCPU is bound no more",
     "web3",
     {SET("<cputune>\n    <vcpupin vcpu='0' cpuset='0-1'/>\n  </cputune>", "")}},
    {"all vCPUs have a set of CPUs, and a scheduler",
     "web3",
     {SET("placement='static' current", "placement='static' cpuset='1' current"),
      SET("<vcpupin", "<vcpusched vcpus='0' scheduler='batch'/><vcpupin")}},
    {"CPU shares and a quota",
     "web3",
     {SET("<vcpupin", "<shares>2048</shares><quota>50000</quota><vcpupin")}},
    {"another CPU model", "custom", {SET(">EPYC<", ">Nehalem<")}},
    {"one more CPU feature",
     "custom",
     {SET("<feature policy='require' name='avx512f'/>",
          "<feature policy='require' name='avx512f'/><feature policy='require' name='aes'/>")}},
    {"one CPU feature that the start resolves",
     "custom",
     {SET("<feature policy='require' name='avx512f'/>", "<feature policy='optional' name='avx512f'/>")}},
    {"one CPU feature less", "custom", {SET("<feature policy='require' name='avx512f'/>", "")}},
    {"the host's CPU in place of a model",
     "custom",
     {SET("mode='custom' match='exact'", "mode='host-passthrough'")}},
    {"a model in place of the host's CPU",
     "web3",
     {SET("<cpu mode='host-model' check='partial'>",
          "<cpu mode='custom' match='exact'><model>Nehalem</model>")}},
    {"another CPU topology",
     "custom",
     {SET("<model fallback", "<topology sockets='1' dies='1' cores='1' threads='1'/><model fallback")}},
    {"one more I/O thread", "web3", {SET("<iothreads>1<", "<iothreads>2<")}},

    {"more memory",
     "web3",
     {SET("<memory unit='KiB'>524288<", "<memory unit='KiB'>786432<"),
      SET("memory='262144'", "memory='524288'"),
      SET("<currentMemory unit='KiB'>524288<", "<currentMemory unit='KiB'>786432<")}},
    {"less memory by the balloon",
     "web3",
     {SET("<currentMemory unit='KiB'>524288<", "<currentMemory unit='KiB'>262144<")}},
    {"memory by a balloon that is not there",
     "web3",
     {SET("<currentMemory unit='KiB'>524288<", "<currentMemory unit='KiB'>262144<"),
      {BOTH, "<memballoon model='virtio'>", "<memballoon model='none'>"}}},
    {"more slots for memory", "web3", {SET("slots='4'", "slots='8'")}},
    {"a DIMM is added, which libvirt adds to the memory too",
     "web3",
     {PLUG(DIMM("2", "256")), SET("<memory unit='KiB'>524288<", "<memory unit='KiB'>786432<")}},
    {"a DIMM is taken out",
     "web3",
     {UNPLUG(DIMM("2", "256")), {LIVE, "<memory unit='KiB'>524288<", "<memory unit='KiB'>786432<"}}},
    {"a DIMM is added to a machine without slots",
     "custom",
     {PLUG(DIMM("0", "256")), SET("<memory unit='KiB'>65536<", "<memory unit='KiB'>327680<")}},
    {"a limit on memory",
     "web3",
     {IN_DOMAIN("<memtune><hard_limit unit='KiB'>4000000</hard_limit></memtune>")}},
    {"hugepages", "web3", {IN_DOMAIN("<memoryBacking><hugepages/></memoryBacking>")}},
    {"memory from another NUMA node",
     "web3",
     {{BOTH, "<devices>", "<numatune><memory mode='strict' nodeset='0'/></numatune><devices>"},
      SET("nodeset='0'", "nodeset='1'")}},

    {"another title, and metadata", "web3", {SET(">Shop front<", ">Shop window<"), SET(">text<", ">other<")}},
    {"metadata that is only laid out otherwise",
     "web3",
     {SET("<x:b c=\"d\">text</x:b>\n", "<x:b c='d'> text </x:b>")}},
    {"what the agent noted itself",
     "web3",
     {{LIVE, "<metadata>",
       "<metadata><handoffd:profile xmlns:handoffd='https://handoffd.io/xmlns/profile/1'>1 2 "
       "3</handoffd:profile>"}}},
    {"what the agent noted itself, where there was nothing",
     "custom",
     {{LIVE, "<devices>",
       "<metadata> <handoffd:profile xmlns:handoffd='https://handoffd.io/xmlns/profile/1'>1 2 "
       "3</handoffd:profile> </metadata><devices>"}}},
    {"what happens at a crash", "web3", {SET("<on_crash>restart<", "<on_crash>destroy<")}},
    {"another emulator", "web3", {SET("/usr/bin/qemu-system-x86_64", "/opt/qemu-8/bin/qemu-system-x86_64")}},
    {"another machine type", "web3", {SET("pc-q35-7.2", "pc-q35-6.2")}},
    {"it boots from the network, with a menu",
     "web3",
     {SET("boot dev='hd'", "boot dev='network'"), SET("enable='no'", "enable='yes'")}},
    {"UEFI in place of the BIOS",
     "web3",
     {SET("<boot dev='hd'/>", "<loader readonly='yes' type='pflash'>/ovmf.fd</loader><boot dev='hd'/>")}},
    {"without an APIC", "web3", {SET("<apic/>", "")}},
    {"a clock by local time", "web3", {SET("offset='utc'", "offset='localtime'")}},
    {"weights of its disks", "web3", {IN_DOMAIN("<blkiotune><weight>500</weight></blkiotune>")}},
    {"an argument for QEMU",
     "web3",
     {IN_DOMAIN(
         "<qemu:commandline xmlns:qemu='http://libvirt.org/schemas/domain/qemu/1.0'><qemu:arg value='-d'/>"
         "</qemu:commandline>")}},

    {"the console listens elsewhere",
     "web3",
     {SET("<listen type='address'/>", "<listen type='address' address='0.0.0.0'/>")}},
    {"the console has a fixed port", "web3", {SET("port='-1' autoport='yes'", "port='5955' autoport='no'")}},
    {"the console's port that libvirt chose is no change", "web3", {{LIVE, "port='-1'", "port='5900'"}}},
    {"the console has another password, which is not shown", "web3", {SET("secret1", "secret2")}},
    {"SPICE in place of VNC", "web3", {SET("<graphics type='vnc'", "<graphics type='spice'")}},
    {"a first console, and the video card that comes with it",
     "custom",
     {PLUG("<graphics type='vnc'/><video><model type='cirrus'/></video>")}},
    {"a serial port goes to another file", "web3", {SET("serial1", "serial2")}},
    {"a serial port goes elsewhere, which is told once",
     "web3",
     {SET("<serial type='pty'>", "<serial type='null'>"),
      SET("<console type='pty'>", "<console type='null'>")}},
    {"another source of randomness", "web3", {SET("/dev/urandom", "/dev/random")}},
    {"what the watchdog does", "web3", {SET("action='reset'", "action='poweroff'")}},
    {"another watchdog", "web3", {SET("i6300esb", "ib700")}},
    {"how often the balloon's numbers are read", "web3", {SET("period='5'", "period='10'")}},
    {"a video card of more heads", "web3", {SET("heads='1'", "heads='2'")}},
    {"a second video card", "web3", {PLUG("<video><model type='qxl'/></video>")}},
    {"a USB device of the host is added", "web3", {PLUG(USB_DEVICE)}},
    {"a USB device of the host is taken out", "web3", {UNPLUG(USB_DEVICE)}},
    {"a second tablet", "web3", {PLUG("<input type='tablet' bus='usb'/>")}},
    {"a channel is added",
     "web3",
     {PLUG("<channel type='unix'><target type='virtio' name='org.x.0'/></channel>")}},
    {"a channel is taken out, and the other stays",
     "web3",
     {{LIVE, "<channel type='unix'>",
       "<channel type='unix'><target type='virtio' name='a.x.0'/></channel><channel type='unix'>"}}},
    {"a shared directory is added",
     "web3",
     {PLUG("<filesystem type='mount'><driver type='virtiofs'/><source dir='/srv'/><target "
           "dir='srv'/></filesystem>")}},
    {"a 9p directory is added",
     "web3",
     {PLUG("<filesystem type='mount'><source dir='/srv'/><target dir='srv'/></filesystem>")}},
    {"a TPM is added", "web3", {PLUG("<tpm model='tpm-crb'><backend type='emulator' version='2.0'/></tpm>")}},
    {"a device at another address", "web3", {SET("bus='0x0a'", "bus='0x0c'")}},

    {"five things at once",
     "web3",
     {SET("bridge='br0'", "bridge='br1'"), SET("e1000e", "virtio"), SET("current='1'>2<", "current='2'>2<"),
      SET("<graphics type='vnc' port='-1' autoport='yes' passwd='secret1'>",
          "<watchdog model='itco' action='none'/><graphics type='vnc' port='5955' autoport='no'>")}},
};

/* Of all rows, by name: as it is to be, and as it was. */
static GHashTable *wanted;
static GString *seen;

static char *edited(const Pair *pair, Side side) {
  g_autofree char *path = g_strdup_printf("%s.%s.xml", pair->base, side == LIVE ? "live" : "next");
  char *text = NULL;

  assert_true(g_file_get_contents(path, &text, NULL, NULL));
  for (size_t i = 0; i < EDITS_MAX && pair->edits[i].from; i++) {
    const Edit *edit = &pair->edits[i];
    g_auto(GStrv) parts = NULL;

    if (edit->side != side && edit->side != BOTH)
      continue;
    parts = g_strsplit(text, edit->from, -1);
    if (g_strv_length(parts) != 2)
      fail_msg("\"%s\" is %u times in %s", edit->from, g_strv_length(parts) - 1, path);
    g_free(text);
    text = g_strjoinv(edit->to, parts);
  }
  return text;
}

static void describe(const MigChange *changes, size_t n, GString *text) {
  for (size_t i = 0; i < n; i++) {
    const MigChange *change = &changes[i];

    g_string_append_printf(text, "%s of %s: %s%s\n  live: %s\n  next: %s\n  %s\n", change->code,
                           *change->item ? change->item : "the domain", mig_remedy_name(change->remedy),
                           change->by_migration ? ", or migration" : "", change->live, change->next,
                           change->message);
  }
  if (n == 0)
    g_string_append(text, "no change\n");
}

static void is_as_expected(void **state) {
  const Pair *pair = *state;
  g_autofree char *live_text = edited(pair, LIVE), *next_text = edited(pair, NEXT);
  g_auto(MigDefinition) live = {0}, next = {0};
  g_autoptr(GString) text = g_string_new(NULL);
  const char *expected = g_hash_table_lookup(wanted, pair->name);
  MigChange changes[20];
  size_t n;

  assert_true(mig_definition_parse(live_text, &live, NULL));
  assert_true(mig_definition_parse(next_text, &next, NULL));
  n = mig_changes(&live, &next, changes, G_N_ELEMENTS(changes));
  assert_true(n <= G_N_ELEMENTS(changes));
  describe(changes, n, text);
  g_string_append_printf(seen, "== %s\n%s\n", pair->name, text->str);
  if (g_getenv("REGEN"))
    return;
  if (!expected || strcmp(expected, text->str) != 0)
    print_error("# wanted:\n%s# got:\n%s", expected ? expected : "(nothing)\n", text->str);
  assert_non_null(expected);
  assert_string_equal(expected, text->str);
}

static void load(void) {
  g_autofree char *text = NULL;
  g_auto(GStrv) sections = NULL;

  wanted = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, g_free);
  seen = g_string_new(NULL);
  if (!g_file_get_contents(GOLDEN, &text, NULL, NULL))
    return;
  sections = g_strsplit(text, "== ", -1);
  for (char **section = sections; *section; section++) {
    char *end = strchr(*section, '\n');
    size_t length;

    if (!end)
      continue;
    length = strlen(end + 1);
    g_hash_table_insert(wanted, g_strndup(*section, (gsize)(end - *section)),
                        g_strndup(end + 1, length > 0 ? length - 1 : 0));
  }
}

/* --- by hand --- */

static void what_is_no_domain_is_refused(void **state) {
  static const char *const texts[] = {"", "<network/>", "<domain>", "not XML"};
  MigDefinition definition;

  for (size_t i = 0; i < G_N_ELEMENTS(texts); i++) {
    g_autoptr(GError) error = NULL;

    assert_false(mig_definition_parse(texts[i], &definition, &error));
    assert_true(g_error_matches(error, MIG_VIRT_ERROR, MIG_VIRT_ERROR_FAILED));
  }
}

static void entries_are_sorted_and_each_is_there_once(void **state) {
  g_autofree char *text = NULL;
  g_auto(MigDefinition) definition = {0};

  assert_true(g_file_get_contents("web3.live.xml", &text, NULL, NULL));
  assert_true(mig_definition_parse(text, &definition, NULL));
  assert_true(definition.n > 300);
  for (size_t i = 1; i < definition.n; i++) {
    const MigDefEntry *a = &definition.entries[i - 1], *b = a + 1;
    int items = strcmp(a->item, b->item);

    assert_true(items < 0 || (items == 0 && strcmp(a->path, b->path) < 0));
  }
}

static void metadata_without_end_has_one(void **state) {
  g_autoptr(GString) text = g_string_new("<domain><metadata>");
  g_auto(MigDefinition) definition = {0};

  for (int i = 0; i < 60000; i++)
    g_string_append(text, "<a/>");
  g_string_append(text, "</metadata></domain>");
  assert_true(mig_definition_parse(text->str, &definition, NULL));
  assert_int_equal(definition.n, 20000);
}

static void what_has_no_room_is_counted(void **state) {
  const Pair *pair = &pairs[G_N_ELEMENTS(pairs) - 1];
  g_autofree char *live_text = edited(pair, LIVE), *next_text = edited(pair, NEXT);
  g_auto(MigDefinition) live = {0}, next = {0};
  MigChange all[20], two[3] = {{.code = NULL}};
  size_t n;

  assert_true(mig_definition_parse(live_text, &live, NULL));
  assert_true(mig_definition_parse(next_text, &next, NULL));
  n = mig_changes(&live, &next, all, G_N_ELEMENTS(all));
  assert_true(n > 2);
  assert_int_equal(mig_changes(&live, &next, two, 2), n);
  assert_string_equal(two[1].message, all[1].message);
  assert_null(two[2].code);
  assert_int_equal(mig_changes(&live, &next, NULL, 0), n);
}

static void the_manual_page_has_every_code(void **state) {
  g_autofree char *page = NULL;
  const ChangeRow *row;

  assert_true(g_file_get_contents(MANUAL_PAGE, &page, NULL, NULL));
  for (size_t i = 0; (row = change_row(i)); i++) {
    g_autofree char *word = row->code ? g_strdup_printf("\\b%s\\b", row->code) : NULL;

    if (word && !g_regex_match_simple(word, page, 0, 0))
      fail_msg("%s is not in %s", row->code, MANUAL_PAGE);
  }
}

int main(void) {
  Tests tests = {0};
  int failed;

  load();
  TESTS_ADD_ROWS(&tests, is_as_expected, pairs);
  tests_add(&tests, "what is no domain is refused", what_is_no_domain_is_refused, NULL);
  tests_add(&tests, "entries are sorted, and each is there once", entries_are_sorted_and_each_is_there_once,
            NULL);
  tests_add(&tests, "metadata without end has one", metadata_without_end_has_one, NULL);
  tests_add(&tests, "what has no room is counted", what_has_no_room_is_counted, NULL);
  tests_add(&tests, "the manual page has every code", the_manual_page_has_every_code, NULL);
  failed = tests_run(&tests, "definition");
  if (g_getenv("REGEN"))
    g_file_set_contents(GOLDEN, seen->str, -1, NULL);
  g_string_free(seen, TRUE);
  g_hash_table_unref(wanted);
  return failed;
}
