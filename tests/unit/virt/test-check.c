/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Each check: a domain that trips it, and one that just does not. And all that a domain can have at once. */
#include "tests/unit/core/rows.h"
#include "tests/unit/virt/check-harness.h"

#include <glib.h>

/* A side of a row, as little as makes the difference: XML of the domain, and scripts as JSON with ' for ". */
typedef struct Side {
  const char *devices;
  const char *top; /* beside <devices> */
  const char *domain, *source, *target;
  const char *policy;
  const char *type; /* of the domain; kvm */
} Side;

typedef struct Row {
  const char *name; /* the code */
  Side trips, near;
} Row;

#define PCI     "<address type='pci' domain='0x0000' bus='0x3b' slot='0x00' function='0x1'/>"
#define HOSTDEV "<hostdev mode='subsystem' type='pci' managed='yes'><source>" PCI "</source></hostdev>"
#define DISK(type, attribute, rest)                                                                          \
  "<disk type='" type "' device='disk'><driver name='qemu' type='raw'/><source " attribute                   \
  "/><target dev='vda' bus='virtio'/>" rest "</disk>"
#define FILE_DISK   DISK("file", "file='/d/a.img'", "")
#define SHARED_DISK DISK("file", "file='/s/a.img'", "")
#define CACHED(cache)                                                                                        \
  "<disk type='file' device='disk'><driver name='qemu' cache='" cache "'/><source file='/s/a'/>"             \
  "<target dev='vda'/></disk>"
#define MEDIA(rest)                                                                                          \
  "<disk type='file' device='cdrom'><source file='/d/i.iso'" rest                                            \
  "/><target dev='sda' bus='sata'/><readonly/></disk>"
#define SHARES "{'shared_storage': ['/s/']}"
#define NIC(type, source)                                                                                    \
  "<interface type='" type "'><mac address='52:54:00:00:00:01'/><source " source "/></interface>"
#define MODEL(check) "<cpu mode='custom' check='" check "'><model>EPYC</model></cpu>"
#define LACKS        "{'cpu': {'match': 'incompatible', 'text': 'it lacks avx2'}}"
#define PASSTHROUGH  "<cpu mode='host-passthrough' check='none'/>"
#define HUGE         "<memoryBacking><hugepages><page size='2048' unit='KiB'/></hugepages></memoryBacking>"
#define PAGES(total, free)                                                                                   \
  "{'pages': {'4096': {'total': 1, 'free': 1}, '2097152': {'total': " total ", 'free': " free "}}}"
#define PIN "<cputune><vcpupin vcpu='0' cpuset='4-5'/></cputune>"
#define TPM "<tpm model='tpm-crb'><backend type='emulator'/></tpm>"
#define SECRET                                                                                               \
  "<disk type='network' device='disk'><source protocol='rbd' name='p/i'><auth username='u'>"                 \
  "<secret type='ceph' uuid='11111111-2222-4333-8444-555555555555'/></auth></source>"                        \
  "<target dev='vda'/></disk>"
#define FILTER     "<interface type='network'><source network='default'/><filterref filter='clean'/></interface>"
#define THREADS(n) "<cpu><topology sockets='1' cores='1' threads='" n "'/></cpu>"
#define KERNEL     "<os><kernel>/boot/guest</kernel></os>"

static const Row rows[] = {
    {"TARGET_UNREACHABLE",
     {.target = "{'unreachable': 'no route'}"},
     {.target = "{'refuses': 'no such user'}"}},
    {"TARGET_REFUSES", {.target = "{'refuses': 'no such user'}"}, {.target = "{'unreachable': 'no route'}"}},
    {"SAME_HOST",
     {.source = "{'uuid': 'cccccccc-0000-4000-8000-000000000001'}",
      .target = "{'uuid': 'cccccccc-0000-4000-8000-000000000001', 'domain_state': 'running'}"},
     {.source = "{'uuid': ''}", .target = "{'uuid': ''}"}},
    {"NODE_CORDONED", {.source = "{'cordon': ''}"}, {.source = "{}"}},
    {"DOMAIN_BUSY", {.source = "{'busy_job': '0123'}"}, {.source = "{}"}},
    {"DOMAIN_STATE", {.domain = "{'state': 'inactive'}"}, {.domain = "{'state': 'paused'}"}},
    {"DOMAIN_EXISTS", {.target = "{'domain_state': 'running'}"}, {.target = "{'domain_state': 'inactive'}"}},
    {"NAME_TAKEN",
     {.target = "{'names': {'web': '99999999-0000-4000-8000-000000000001'}}"},
     {.target = "{'names': {'web2': '99999999-0000-4000-8000-000000000001'}}"}},
    {"IO_ERROR", {.domain = "{'state': 'paused', 'io_error': true}"}, {.domain = "{'state': 'paused'}"}},
    {"DOMAIN_JOB", {.domain = "{'job': 'backup'}"}, {.domain = "{}"}},
    {"BLOCK_JOB",
     {FILE_DISK, .domain = "{'disks': {'vda': {'job': true}}}"},
     {FILE_DISK, .domain = "{'disks': {'vdb': {'job': true}}}"}},
    {"SNAPSHOTS", {.domain = "{'snapshots': 1}"}, {.domain = "{'snapshots': 0}"}},

    {"HOSTDEV_PCI",
     {HOSTDEV},
     {HOSTDEV, .source = "{'hypervisor_version': 8001000}", .target = "{'hypervisor_version': 8001000}"}},
    {"HOSTDEV_MDEV",
     {"<hostdev mode='subsystem' type='mdev' model='vfio-pci'><source><address "
      "uuid='4b20d080-1b54-4048-85b3-a6a62d165c01'/></source></hostdev>"},
     {"<video><model type='virtio'/></video>"}},
    {"HOSTDEV_USB",
     {"<hostdev mode='subsystem' type='usb'><source><vendor id='0x1234'/><product "
      "id='0xbeef'/></source></hostdev>"},
     {"<redirdev bus='usb' type='spicevmc'/>"}},
    {"HOSTDEV_SCSI",
     {"<hostdev mode='subsystem' type='scsi'><source><adapter name='scsi_host0'/></source></hostdev>"},
     {"<disk type='block' device='lun'><source dev='/dev/sda'/><target dev='sda' bus='scsi'/></disk>"}},
    {"HOSTDEV_OTHER",
     {"<hostdev mode='capabilities' type='misc'><source><char>/dev/input/event3</char></source></hostdev>"},
     {"<input type='tablet' bus='usb'/>"}},
    {"INTERFACE_VDPA", {NIC("vdpa", "dev='/dev/vhost-vdpa-0'")}, {NIC("bridge", "bridge='br0'")}},
    {"VIRTIOFS",
     {"<filesystem type='mount'><driver type='virtiofs'/><source dir='/srv'/><target "
      "dir='srv'/></filesystem>"},
     {"<filesystem type='mount'><driver type='path'/><source dir='/srv'/><target dir='srv'/></filesystem>"}},
    {"SHMEM",
     {"<shmem name='ring' role='peer'><model type='ivshmem-plain'/></shmem>"},
     {"<shmem name='ring' role='master'><model type='ivshmem-plain'/></shmem>"}},
    {"SGX",
     {"<memory model='sgx-epc'><target><size unit='KiB'>65536</size></target></memory>"},
     {"<memory model='dimm'><target><size unit='KiB'>65536</size></target></memory>"}},
    {"TPM_PASSTHROUGH",
     {"<tpm model='tpm-tis'><backend type='passthrough'><device path='/dev/tpm0'/></backend></tpm>"},
     {TPM}},
    {"LAUNCH_SECURITY",
     {.top = "<launchSecurity type='sev'/>"},
     {.top = "<features><smm state='on'/></features>"}},
    {"VIDEO_3D",
     {"<video><model type='virtio'><acceleration accel3d='yes'/></model></video>"},
     {"<video><model type='virtio'><acceleration accel3d='no'/></model></video>"}},

    {"DISK_TRANSIENT",
     {DISK("file", "file='/s/a.img'", "<transient/>")},
     {DISK("file", "file='/s/a.img'", "<shareable/>")}},
    {"DISK_NVME",
     {"<disk type='nvme' device='disk'><source type='pci' namespace='1'>" PCI
      "</source><target dev='vda'/></disk>"},
     {DISK("network", "protocol='nbd' name='x'", "")}},
    {"DISK_LOCAL", {FILE_DISK}, {FILE_DISK, .policy = "copy_disks=all"}},
    {"DISK_CACHE", {CACHED("unsafe"), .source = SHARES}, {CACHED("writeback"), .source = SHARES}},
    {"DISK_MISSING",
     {SHARED_DISK, .source = SHARES, .target = "{'pools': {'/s': 99999999999999}}"},
     {SHARED_DISK, .source = SHARES, .target = "{'pools': {'/s': 0}, 'volumes': {'/s/a.img': 10737418240}}"}},
    {"DISK_TOO_SMALL",
     {FILE_DISK, .target = "{'volumes': {'/d/a.img': 10737418239}}", .policy = "copy_disks=all"},
     {FILE_DISK, .target = "{'volumes': {'/d/a.img': 10737418240}}", .policy = "copy_disks=all"}},
    {"DISK_SIZE_DIFFERS",
     {FILE_DISK, .target = "{'volumes': {'/d/a.img': 10737418241}}", .policy = "copy_disks=incremental"},
     {FILE_DISK, .target = "{'volumes': {'/d/a.img': 10737418240}}", .policy = "copy_disks=incremental"}},
    {"POOL_SPACE",
     {FILE_DISK, .target = "{'pools': {'/d': 10737418239}}", .policy = "copy_disks=all"},
     {FILE_DISK, .target = "{'pools': {'/d': 10737418240}}", .policy = "copy_disks=all"}},
    {"HOST_DRIVE",
     {"<disk type='block' device='cdrom'><source dev='/dev/sr0'/><target dev='sda'/><readonly/></disk>"},
     {"<disk type='block' device='cdrom'><target dev='sda'/><readonly/></disk>"}},
    {"MEDIA_MISSING",
     {MEDIA(""), .target = "{'pools': {'/d': 1}}"},
     {MEDIA(" startupPolicy='optional'"), .target = "{'pools': {'/d': 1}}"}},

    {"CPU_INVTSC",
     {.top = "<cpu mode='host-passthrough' migratable='off'/>",
      .source = "{'capabilities': 'epyc.capabilities.xml'}"},
     {.top = "<cpu mode='host-passthrough' migratable='off'/><clock><timer name='tsc' "
             "frequency='2595000000'/></clock>",
      .source = "{'capabilities': 'epyc.capabilities.xml'}"}},
    {"CPU_INCOMPATIBLE",
     {.top = MODEL("none"),
      .target = LACKS,
      .source = "{'cpu': {'match': 'incompatible', 'text': 'it lacks hle'}}"},
     {.top = MODEL("none"), .target = LACKS, .source = LACKS}},
    {"CPU_OTHER_HOST",
     {.top = PASSTHROUGH, .target = "{'host_cpu': {'match': 'incompatible'}}"},
     {.top = PASSTHROUGH, .target = "{'host_cpu': {'match': 'superset'}}"}},
    {"TSC_FREQUENCY",
     {.top = "<clock><timer name='tsc' frequency='2597000000'/></clock>",
      .target = "{'capabilities': 'bullseye.capabilities.xml'}"},
     {.top = "<clock><timer name='tsc' frequency='2100100000'/></clock>",
      .target = "{'capabilities': 'bullseye.capabilities.xml'}"}},
    {"EMULATOR_MISSING",
     {.target = "{'capabilities': 'kubevirt.capabilities.xml'}"},
     {.target = "{'capabilities': 'epyc.capabilities.xml'}"}},
    {"VIRT_TYPE",
     {.target = "{'capabilities': 'lab.capabilities.xml'}"},
     {.target = "{'capabilities': 'lab.capabilities.xml'}", .type = "qemu"}},
    {"MACHINE_TYPE",
     {.target = "{'machines': ['pc-q35-6.2']}"},
     {.target = "{'machines': ['pc-q35-6.2', 'pc-q35-7.2']}"}},
    {"DEVICE_UNSUPPORTED",
     {TPM, .target = "{'domain_capabilities': 'lab.domcapabilities.xml'}"},
     {"<video><model type='qxl'/></video>", .target = "{'domain_capabilities': 'lab.domcapabilities.xml'}"}},
    {"SECURITY_MODEL",
     {.top = "<seclabel type='dynamic' model='selinux'/>",
      .target = "{'security_models': ['apparmor', 'dac']}"},
     {.top = "<seclabel type='dynamic' model='apparmor'/><seclabel type='dynamic' model='dac'/><seclabel "
             "type='none' model='selinux'/>",
      .target = "{'security_models': ['apparmor']}"}},

    {"TARGET_TOO_SMALL",
     {.target = "{'memory_bytes': 4294967295}"},
     {.target = "{'memory_bytes': 4294967296}"}},
    {"TARGET_MEMORY",
     {.target = "{'free_memory_bytes': 4294967295}"},
     {.target = "{'free_memory_bytes': 4294967296}"}},
    {"HUGEPAGES_MISSING",
     {.top = HUGE, .target = PAGES("2047", "2047")},
     {.top = HUGE, .target = PAGES("2048", "2048")}},
    {"HUGEPAGES_TAKEN",
     {.top = HUGE, .target = PAGES("4096", "2047")},
     {.top = HUGE, .target = PAGES("4096", "2048")}},
    {"VCPUS_MAX", {.target = "{'vcpus_max': 1}"}, {.target = "{'vcpus_max': 2}"}},
    {"PINNED_CPUS", {.top = PIN, .target = "{'cpus': 4}"}, {.top = PIN, .target = "{'cpus': 5}"}},
    {"NUMA_NODES",
     {.top = "<numatune><memory mode='preferred' nodeset='1'/></numatune>", .target = "{'numa_nodes': 1}"},
     {.top = "<numatune><memory mode='preferred' nodeset='1'/></numatune>", .target = "{'numa_nodes': 2}"}},

    {"NETWORK_MISSING",
     {NIC("network", "network='lan'"), .target = "{'networks': ['default']}"},
     {NIC("network", "network='lan'"), .target = "{'networks': ['lan'], 'inactive_networks': ['lan']}"}},
    {"NETWORK_INACTIVE",
     {NIC("network", "network='lan'"), .target = "{'inactive_networks': ['lan']}"},
     {NIC("network", "network='lan'"), .target = "{'inactive_networks': ['lan2']}"}},
    {"INTERFACE_MISSING",
     {NIC("bridge", "bridge='br7'"), .target = "{'interfaces': ['br0']}"},
     {NIC("bridge", "network='lan' bridge='br7'"), .target = "{'interfaces': ['br0'], 'networks': ['lan']}"}},
    {"FILTER_MISSING", {FILTER, .target = "{'filters': []}"}, {FILTER, .target = "{'filters': ['clean']}"}},
    {"SECRET_MISSING",
     {SECRET, .target = "{'secrets': ['ceph:p']}"},
     {SECRET, .target = "{'secrets': ['11111111-2222-4333-8444-555555555555']}"}},
    {"FILE_MISSING",
     {.top = KERNEL, .target = "{'files': []}"},
     {.top = KERNEL, .target = "{'files': ['/boot/guest']}"}},

    {"DOMAIN_PAUSED", {.domain = "{'state': 'paused'}"}, {.domain = "{'state': 'running'}"}},
    {"DEFINED_AT_TARGET",
     {.target = "{'domain_state': 'inactive'}"},
     {.target = "{'domain_state': 'absent'}"}},
    {"QEMU_OLDER",
     {.target = "{'hypervisor_version': 7001099}"},
     {.source = "{'hypervisor_version': 7002022}", .target = "{'hypervisor_version': 7002001}"}},
    {"LIBVIRT_OLDER", {.target = "{'libvirt_version': 8010000}"}, {.target = "{'libvirt_version': 9001000}"}},
    {"HOSTDEV_VFIO",
     {HOSTDEV, .source = "{'hypervisor_version': 8001000}", .target = "{'hypervisor_version': 8001000}"},
     {HOSTDEV, .source = "{'hypervisor_version': 8001000}", .target = "{'hypervisor_version': 8000000}"}},
    {"HOSTDEV_USB_DROPPED",
     {"<hostdev mode='subsystem' type='usb'><source startupPolicy='optional'><vendor id='0x1234'/><product "
      "id='0xbeef'/></source></hostdev>"},
     {"<hostdev mode='subsystem' type='usb'><source startupPolicy='mandatory'><vendor id='0x1234'/><product "
      "id='0xbeef'/></source></hostdev>"}},
    {"HOSTDEV_TEAMING",
     {"<interface type='hostdev'><source>" PCI
      "</source><teaming type='transient' persistent='ua-nic0'/></interface>"},
     {"<interface type='hostdev'><source>" PCI "</source></interface>"}},
    {"FILESYSTEM_9P",
     {"<filesystem type='mount'><source dir='/srv'/><target dir='srv'/></filesystem>"},
     {"<filesystem type='mount'><driver type='virtiofs'/><source dir='/srv'/><target "
      "dir='srv'/></filesystem>"}},
    {"HOST_CHARDEV",
     {"<serial type='dev'><source path='/dev/ttyS0'/></serial>"},
     {"<serial type='pty'><source path='/dev/pts/3'/></serial>"}},
    {"USER_NETWORK",
     {"<interface type='user'><mac address='52:54:00:00:00:01'/></interface>"},
     {NIC("network", "network='default'")}},
    {"GRAPHICS_LISTEN",
     {"<graphics type='vnc'><listen type='address' address='192.0.2.7'/></graphics>"},
     {"<graphics type='vnc'><listen type='address' address='0.0.0.0'/></graphics><graphics "
      "type='spice'><listen type='address' address='127.0.0.1'/></graphics>"}},
    {"COMMAND_LINE",
     {.top =
          "<commandline xmlns='http://libvirt.org/schemas/domain/qemu/1.0'><arg value='-s'/></commandline>"},
     {.top = "<commandline><arg value='-s'/></commandline>"}},
    {"STORAGE_UNKNOWN",
     {FILE_DISK, .source = "{'unknown_storage': ['/d/']}"},
     {FILE_DISK, .source = "{'shared_storage': ['/d/']}"}},
    {"DISK_UNSEEN",
     {SHARED_DISK, .source = SHARES, .target = "{'volumes': {}}"},
     {SHARED_DISK, .source = SHARES, .target = "{}"}},
    {"MEDIA_UNSEEN",
     {MEDIA(""), .target = "{'volumes': {}}"},
     {MEDIA(" startupPolicy='requisite'"), .target = "{'volumes': {}}"}},
    {"CPU_PASSTHROUGH",
     {.top = PASSTHROUGH, .target = "{'host_cpu': {'match': 'superset'}}"},
     {.top = PASSTHROUGH, .target = "{'host_cpu': {'match': 'identical'}}"}},
    {"CPU_UNCHECKED",
     {.top = MODEL("none"), .target = LACKS, .source = LACKS},
     {.top = MODEL("full"), .target = LACKS, .source = LACKS}},
    {"CPU_UNSEEN",
     {.top = MODEL("full"), .target = "{'cpu': {'match': 'unseen'}}"},
     {.target = "{'cpu': {'match': 'unseen'}}"}},
    {"MEMORY_TIGHT",
     {.target = "{'free_memory_bytes': 4563402751}"},
     {.target = "{'free_memory_bytes': 4563402752}"}},
    {"MEMORY_BALLOONED",
     {.top = "<currentMemory unit='GiB'>2</currentMemory>", .target = "{'free_memory_bytes': 4294967295}"},
     {.top = "<currentMemory unit='GiB'>2</currentMemory>", .target = "{'free_memory_bytes': 4294967296}"}},
    {"VCPUS_OVERCOMMITTED", {.target = "{'cpus': 1}"}, {.target = "{'cpus': 2}"}},
    {"PINNED_CPUS_FEWER", {.top = PIN, .target = "{'cpus': 5}"}, {.top = PIN, .target = "{'cpus': 6}"}},
    {"PINNED", {.top = PIN}, {.top = "<cputune><shares>512</shares></cputune>"}},
    {"NETWORK_UNSEEN",
     {NIC("network", "network='lan'"), .target = "{'networks': null}"},
     {NIC("network", "network='lan'"), .target = "{'networks': ['lan']}"}},
    {"INTERFACE_UNSEEN",
     {NIC("direct", "dev='eth1' mode='bridge'"), .target = "{'interfaces': null}"},
     {NIC("direct", "dev='eth1' mode='bridge'"), .target = "{'interfaces': ['eth1']}"}},
    {"FILTER_UNSEEN", {FILTER, .target = "{'filters': null}"}, {FILTER, .target = "{'filters': ['clean']}"}},
    {"SECRET_UNSEEN", {SECRET, .target = "{'secrets': null}"}, {SECRET, .target = "{}"}},
    {"FILE_UNSEEN",
     {.top = KERNEL, .target = "{'files': null}"},
     {.top = "<os><boot dev='hd'/></os>", .target = "{'files': null}"}},
    {"SOCKET_UNSEEN",
     {NIC("vhostuser", "type='unix' path='/run/vhost1' mode='client'")},
     {NIC("bridge", "bridge='br0'")}},
    {"DEVICE_UNSEEN",
     {"<graphics type='vnc'/>", .target = "{'devices': null}"},
     {"<graphics type='vnc'/>", .target = "{'devices': ['vnc']}"}},
    {"TLS_CERTIFICATES",
     {.source = "{'certificates': false}", .policy = "tls=require"},
     {.source = "{'certificates': true}", .policy = "tls=require"}},
    {"TLS_UNSEEN", {.policy = "tls=require"}, {.policy = "tls=yes"}},
    {"TLS_CONTROL", {.policy = "tls=require"}, {.policy = "tls=no"}},
    {"THREADS_REFUSED",
     {.top = THREADS("2"), .target = "{'hypervisor_version': 10000000, 'libvirt_version': 11009000}"},
     {.top = THREADS("2"), .target = "{'hypervisor_version': 10000000, 'libvirt_version': 11010000}"}},
    {"POST_COPY_UNRECOVERABLE",
     {.policy = "allow_post_copy=yes", .target = "{'libvirt_version': 11003000}"},
     {.policy = "allow_post_copy=yes", .target = "{'libvirt_version': 11004000}"}},
    {"EMULATOR_FORGETS",
     {.type = "qemu", .source = "{'hypervisor_version': 7002000}"},
     {.type = "qemu", .source = "{'hypervisor_version': 10000000}"}},
};

static json_t *json_of(const char *text) {
  g_autofree char *copy = g_strdelimit(g_strdup(text ? text : "{}"), "'", '"');
  json_error_t error;
  json_t *json = json_loads(copy, 0, &error);

  if (!json)
    fail_msg("%s: %s", error.text, copy);
  return json;
}

static void run_side(const Side *side, MigCheckReport *report) {
  g_autofree char *xml = g_strdup_printf(
      "<domain type='%s'><name>web</name><uuid>00000000-0000-4000-8000-00000000000a</uuid>"
      "<memory unit='GiB'>4</memory><vcpu>2</vcpu><os><type arch='x86_64' "
      "machine='pc-q35-7.2'>hvm</type></os>%s"
      "<devices><emulator>/usr/bin/qemu-system-x86_64</emulator>%s</devices></domain>",
      side->type ? side->type : "kvm", side->top ? side->top : "", side->devices ? side->devices : "");
  json_t *domain = json_of(side->domain), *source = json_of(side->source), *target = json_of(side->target);

  json_object_set_new(domain, "xml", json_string(xml));
  check_run(domain, source, target, side->policy, report);
  json_decref(domain);
  json_decref(source);
  json_decref(target);
}

static void trips(void **state) {
  const Row *row = *state;
  g_autofree MigCheckReport *report = g_new0(MigCheckReport, 1);
  const MigFinding *finding;

  run_side(&row->trips, report);
  finding = check_find(report, row->name);
  if (!finding) {
    g_autofree char *codes = check_codes(report);

    fail_msg("not found; only: %s", codes);
  }
  assert_true(finding->seen[0] >= 'A' && finding->seen[0] <= 'Z');
  assert_int_equal(finding->seen[strlen(finding->seen) - 1], '.');
  assert_null(strstr(finding->seen, "(null)"));

  run_side(&row->near, report);
  assert_null(check_find(report, row->name));
}

/* Each version of the ledger, and the one before. */
static const struct FaultRow {
  const char *name, *code;
  Side side;
  bool trips, avoids_post_copy;
} fault_rows[] = {
    {"post-copy to libvirt 11.2",
     "POST_COPY_UNRECOVERABLE",
     {.policy = "allow_post_copy=yes", .target = "{'libvirt_version': 11002000}"},
     true,
     true},
    {"post-copy to libvirt 11.1",
     "POST_COPY_UNRECOVERABLE",
     {.policy = "allow_post_copy=yes", .target = "{'libvirt_version': 11001000}"},
     false,
     false},
    {"post-copy from libvirt 11.3",
     "POST_COPY_UNRECOVERABLE",
     {.policy = "allow_post_copy=yes",
      .source = "{'libvirt_version': 11003000}",
      .target = "{'libvirt_version': 12008000}"},
     false,
     false},
    {"pre-copy to libvirt 11.3",
     "POST_COPY_UNRECOVERABLE",
     {.target = "{'libvirt_version': 11003000}"},
     false,
     false},
    {"post-copy to an unknown libvirt",
     "POST_COPY_UNRECOVERABLE",
     {.policy = "allow_post_copy=yes", .target = "{'libvirt_version': 0}"},
     false,
     false},
    {"one thread to QEMU 10.0",
     "THREADS_REFUSED",
     {.top = THREADS("1"), .target = "{'hypervisor_version': 10000000, 'libvirt_version': 11003000}"},
     false,
     false},
    {"two threads from QEMU 10.0",
     "THREADS_REFUSED",
     {.top = THREADS("2"),
      .source = "{'hypervisor_version': 10000000}",
      .target = "{'hypervisor_version': 10000000, 'libvirt_version': 11003000}"},
     false,
     false},
    {"two threads to QEMU 9.2",
     "THREADS_REFUSED",
     {.top = THREADS("2"), .target = "{'hypervisor_version': 9002000, 'libvirt_version': 11003000}"},
     false,
     false},
    {"KVM on QEMU 7.2", "EMULATOR_FORGETS", {.source = "{'hypervisor_version': 7002000}"}, false, false},
};

static void fault_strikes(void **state) {
  const struct FaultRow *row = *state;
  g_autofree MigCheckReport *report = g_new0(MigCheckReport, 1);

  run_side(&row->side, report);
  assert_int_equal(check_find(report, row->code) != NULL, row->trips);
  assert_int_equal(report->avoid_post_copy, row->avoids_post_copy);
}

static void every_check_has_a_row(void **state) {
  for (int check = 0; check < MIG_CHECK_COUNT; check++) {
    const MigCheckInfo *info = mig_check_info((MigCheck)check);
    size_t found = 0;

    for (size_t i = 0; i < LENGTH(rows); i++)
      found += strcmp(rows[i].name, info->code) == 0;
    if (found != 1)
      fail_msg("%zu rows for %s", found, info->code);
  }
  assert_int_equal(LENGTH(rows), MIG_CHECK_COUNT);
}

static void assert_is_in(const char *page, const char *code) {
  g_autofree char *pattern = g_strdup_printf("\\b%s\\b", code);

  if (!g_regex_match_simple(pattern, page, 0, 0))
    fail_msg("handoffctl(1) does not have %s", code);
}

static void every_code_is_in_the_manual(void **state) {
  const MigConflict *rules[64];
  g_autofree char *page = NULL;
  size_t n = mig_policy_conflict_rules(rules, LENGTH(rules));

  assert_true(g_file_get_contents(MANUAL_PAGE, &page, NULL, NULL));
  for (int check = 0; check < MIG_CHECK_COUNT; check++)
    assert_is_in(page, mig_check_info((MigCheck)check)->code);
  assert_true(n > 0 && n <= LENGTH(rules));
  for (size_t i = 0; i < n; i++)
    assert_is_in(page, rules[i]->code);
}

static void a_plain_guest_has_no_findings(void **state) {
  g_autofree MigCheckReport *report = g_new0(MigCheckReport, 1);
  const Side plain = {.devices =
                          "<disk type='network' device='disk'><source protocol='rbd' name='p/i'/>"
                          "<target dev='vda' bus='virtio'/></disk>" NIC("network", "network='default'"),
                      .top = MODEL("full")};

  run_side(&plain, report);
  assert_int_equal(report->count, 0);
}

static void six_blockers_are_six_codes_in_one_answer(void **state) {
  g_autofree MigCheckReport *report = g_new0(MigCheckReport, 1);
  g_autofree char *codes = NULL;
  const Side side = {.devices = HOSTDEV FILE_DISK NIC(
                         "bridge", "bridge='br7'") "<filesystem type='mount'><driver "
                                                   "type='virtiofs'/><source dir='/srv'/></filesystem>",
                     .domain = "{'snapshots': 2}",
                     .target = "{'interfaces': [], 'machines': [], 'free_memory_bytes': 1}"};

  run_side(&side, report);
  codes = check_codes(report);
  assert_string_equal(
      codes, "SNAPSHOTS HOSTDEV_PCI VIRTIOFS DISK_LOCAL MACHINE_TYPE TARGET_MEMORY INTERFACE_MISSING");
}

static void what_the_domain_is_by_itself_is_told_though_the_target_is_away(void **state) {
  g_autofree MigCheckReport *report = g_new0(MigCheckReport, 1);
  g_autofree char *codes = NULL;
  const Side side = {
      .devices = HOSTDEV, .target = "{'unreachable': 'no route'}", .policy = "allow_post_copy=yes"};

  run_side(&side, report);
  codes = check_codes(report);
  assert_string_equal(codes, "TARGET_UNREACHABLE HOSTDEV_PCI POST_COPY_PASSTHROUGH");
  assert_int_equal(mig_check_cause(report), MIG_CAUSE_REFUSED);
  assert_false(mig_check_may_wait(report));
}

int main(void) {
  Tests tests = {0};

  TESTS_ADD_ROWS(&tests, trips, rows);
  TESTS_ADD_ROWS(&tests, fault_strikes, fault_rows);
  tests_add(&tests, "every check has a row", every_check_has_a_row, NULL);
  tests_add(&tests, "every code is in the manual", every_code_is_in_the_manual, NULL);
  tests_add(&tests, "a plain guest has no findings", a_plain_guest_has_no_findings, NULL);
  tests_add(&tests, "six blockers are six codes in one answer", six_blockers_are_six_codes_in_one_answer,
            NULL);
  tests_add(&tests, "what the domain is by itself is told though the target is away",
            what_the_domain_is_by_itself_is_told_though_the_target_is_away, NULL);
  return tests_run(&tests, "check");
}
