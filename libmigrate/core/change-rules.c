/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The table that classifies a difference between the running definition and the one for the next start, and says how
 * to apply it.
 *
 * A migration with a new definition for the target can change whatever libvirt does not count as guest ABI
 * (virDomainDefCheckABIStability()) and QEMU takes up when it starts there. Every such row was tried with libvirt 9.0
 * and QEMU 7.2, except that cgroup limits then apply, which was read in the source. A running guest can be changed
 * wherever libvirt 9.0's QEMU driver has code for it. When in doubt a row says restart: that always works. */
#include "libmigrate/core/change-rules.h"

#include "libmigrate/core/table.h"

#include <stdlib.h>
#include <string.h>

/* --- conditions --- */

/* NULL: no such value. */
static const char *value_of(ChangeSlice slice, const char *path) {
  for (size_t i = 0; i < slice.n; i++)
    if (strcmp(slice.entries[i].path, path) == 0)
      return slice.entries[i].value;
  return NULL;
}

static bool is(ChangeSlice slice, const char *path, const char *patterns) {
  const char *value = value_of(slice, path);
  return value && change_fits(patterns, value);
}

/* For a whole item: whichever side has it. */
static ChangeSlice either(const ChangeContext *context) {
  return context->live.n > 0 ? context->live : context->next;
}

static uint64_t number(ChangeSlice slice, const char *path) {
  const char *value = value_of(slice, path);
  return value ? strtoull(value, NULL, 10) : 0;
}

static bool cpu_is_resolved_at_start(const ChangeContext *context) {
  return is(context->live_domain, "cpu@mode", "custom|host-model") &&
         (is(context->next_domain, "cpu@mode", "host-model") ||
          is(context->next_domain, "cpu@match", "minimum"));
}

/* At a start libvirt disables by name what it could not enable, and turns optional into require or disable. */
static bool feature_is_resolved_at_start(const ChangeContext *context) {
  const char *live = context->live_entry ? context->live_entry->value : "";
  const char *next = context->next_entry ? context->next_entry->value : "";
  return strcmp(next, "optional") == 0 || (!*next && !change_fits("require|force", live));
}

static bool vcpus_fit(const ChangeContext *context) {
  return is(context->live_domain, "os/type@arch", "x86_64|i686|ppc64|ppc64le|s390x") &&
         number(context->next_domain, "vcpu@current") <= number(context->live_domain, "vcpu");
}

static bool memory_fits(const ChangeContext *context) {
  return number(context->next_domain, "currentMemory") <= number(context->live_domain, "memory@total");
}

/* Along with the first graphics console, libvirt adds a video card, which a running guest cannot get. */
static bool has_video(const ChangeContext *context) {
  for (size_t i = 0; context->whole_live && i < context->whole_live->n; i++)
    if (change_fits("video *", context->whole_live->entries[i].item))
      return true;
  return false;
}

/* Without a balloon the guest has all of its memory. */
static bool has_no_balloon(const ChangeContext *context) {
  return is(context->live_domain, "devices/memballoon@model", "none") &&
         is(context->next_domain, "devices/memballoon@model", "none");
}

static bool autoport(const ChangeContext *context) {
  return is(context->next, "@autoport", "yes");
}

static bool has_no_medium(const ChangeContext *context) {
  return is(context->live, "@device", "cdrom|floppy");
}

static bool disk_plugs(const ChangeContext *context) {
  return is(either(context), "target@bus", "virtio|scsi|usb") && is(either(context), "@device", "disk|lun");
}

static bool memory_plugs(const ChangeContext *context) {
  return number(context->live_domain, "maxMemory@slots") > 0;
}

static bool input_plugs(const ChangeContext *context) {
  return is(either(context), "@bus", "usb|virtio");
}

static bool channel_plugs(const ChangeContext *context) {
  return is(either(context), "target@type", "virtio|usb-serial|pci-serial");
}

static bool is_virtiofs(const ChangeContext *context) {
  return is(either(context), "driver@type", "virtiofs");
}

/* libvirt can move a port from bridge to bridge, but not between virtual switches with port profiles. */
static bool both_on_bridges(const ChangeContext *context) {
  return is(context->live, "@type", "bridge|network") && is(context->next, "@type", "bridge|network") &&
         !value_of(context->live, "virtualport@type") && !value_of(context->next, "virtualport@type");
}

/* For QEMU all of these are tap devices. If a back end with virtio-net headers is replaced by one without, the
 * device's state cannot be loaded. */
static bool both_on_taps(const ChangeContext *context) {
  return is(context->live, "@type", "bridge|network|ethernet") &&
         is(context->next, "@type", "bridge|network|ethernet");
}

/* --- the table --- */

#define VALUE     CHANGE_VALUE
#define EITHER    (CHANGE_VALUE | CHANGE_GONE)
#define ADDED     CHANGE_ADDED
#define REMOVED   CHANGE_REMOVED
#define WHOLE     (CHANGE_ADDED | CHANGE_REMOVED)
#define HOTPLUG   MIG_REMEDY_HOTPLUG
#define MIGRATION MIG_REMEDY_MIGRATION
#define RESTART   MIG_REMEDY_RESTART

#define IGNORE(kinds, items, paths, when)                                                                    \
  { NULL, kinds, items, paths, when, RESTART, false, NULL }

#define PLUG_IN "virsh attach-device --live plugs it in, if the machine has a free slot."
#define TAKE_OUT                                                                                             \
  "virsh detach-device --live unplugs it, if the guest releases it; or attach-device --config keeps it."

#define REPLUG                                                                                               \
  "This needs a shutdown and a start; or virsh detach-device and attach-device --live, which the guest "     \
  "sees as "                                                                                                 \
  "an unplug and a replug."

static const ChangeRow rows[] = {
    /* Not changes: what libvirt itself does at a start, and what follows from another change that is reported. */
    IGNORE(EITHER, "", "@id|name|uuid|genid|memory@total|resource/*", NULL),
    IGNORE(EITHER, "", "cpu|cpu@*|cpu/model*|cpu/vendor*|cpu/feature*|cpu/maxphysaddr*|cpu/cache*",
           cpu_is_resolved_at_start),
    IGNORE(EITHER, "", "cpu@check|cpu/model@fallback|cpu/vendor", NULL),
    IGNORE(EITHER, "", "cpu/feature[*", feature_is_resolved_at_start),
    IGNORE(EITHER, "", "currentMemory", has_no_balloon),
    IGNORE(EITHER, "graphics *", "@port|@tlsPort|@websocket|@listen", autoport),
    IGNORE(EITHER, "graphics *", "@listen", NULL), /* repeats listen@address */
    IGNORE(EITHER, "disk *", "driver@*", has_no_medium),

    /* Whole devices. */
    {"INTERFACE_ADDED", ADDED, "interface *", NULL, NULL, HOTPLUG, false, PLUG_IN},
    {"INTERFACE_REMOVED", REMOVED, "interface *", NULL, NULL, HOTPLUG, false, TAKE_OUT},
    {"DISK_ADDED", ADDED, "disk *", NULL, disk_plugs, HOTPLUG, false, PLUG_IN},
    {"DISK_REMOVED", REMOVED, "disk *", NULL, disk_plugs, HOTPLUG, false, TAKE_OUT},
    {"DISK_ADDED", ADDED, "disk *", NULL, NULL, RESTART, false, NULL},
    {"DISK_REMOVED", REMOVED, "disk *", NULL, NULL, RESTART, false, NULL},
    {"MEMORY_ADDED", ADDED, "memory *", NULL, memory_plugs, HOTPLUG, false,
     "virsh attach-device --live plugs it in, if a memory slot is free."},
    {"MEMORY_ADDED", ADDED, "memory *", NULL, NULL, RESTART, false,
     "This needs a shutdown and a start: the running domain has no memory slots (maxMemory)."},
    {"MEMORY_REMOVED", REMOVED, "memory *", NULL, NULL, HOTPLUG, false, TAKE_OUT},
    {"GRAPHICS", WHOLE, "graphics *", NULL, has_video, MIGRATION, false, NULL},
    {"GRAPHICS", WHOLE, "graphics *", NULL, NULL, RESTART, false, NULL},
    {"DEVICE_BACKEND", WHOLE, "audio *", NULL, NULL, MIGRATION, false, NULL},
    {"DEVICE_ADDED", ADDED, "hostdev *|redirdev *|rng *|watchdog *|shmem *|vsock *|controller scsi *", NULL,
     NULL, HOTPLUG, false, PLUG_IN},
    {"DEVICE_REMOVED", REMOVED, "hostdev *|redirdev *|rng *|watchdog *|shmem *|vsock *|controller scsi *",
     NULL, NULL, HOTPLUG, false, TAKE_OUT},
    {"DEVICE_ADDED", ADDED, "input *", NULL, input_plugs, HOTPLUG, false,
     "virsh attach-device --live plugs it in."},
    {"DEVICE_REMOVED", REMOVED, "input *", NULL, input_plugs, HOTPLUG, false, TAKE_OUT},
    {"DEVICE_ADDED", ADDED, "channel *|serial *", NULL, channel_plugs, HOTPLUG, false,
     "virsh attach-device --live plugs it in."},
    {"DEVICE_REMOVED", REMOVED, "channel *|serial *", NULL, channel_plugs, HOTPLUG, false, TAKE_OUT},
    {"DEVICE_ADDED", ADDED, "filesystem *", NULL, is_virtiofs, HOTPLUG, false,
     "virsh attach-device --live plugs it in."},
    {"DEVICE_REMOVED", REMOVED, "filesystem *", NULL, is_virtiofs, HOTPLUG, false, TAKE_OUT},
    {"DEVICE_ADDED", ADDED, "*", NULL, NULL, RESTART, false, NULL},
    {"DEVICE_REMOVED", REMOVED, "*", NULL, NULL, RESTART, false, NULL},

    /* Interfaces. */
    {"INTERFACE_MOVED", EITHER, "interface *", "@type|source@*|source/*|virtualport*", both_on_bridges,
     HOTPLUG, true, NULL},
    {"INTERFACE_MOVED", EITHER, "interface *", "@type|source@*|source/*|virtualport*", both_on_taps,
     MIGRATION, false, NULL},
    {"INTERFACE_MOVED", EITHER, "interface *", "@type|source@*|source/*|virtualport*", NULL, RESTART, false,
     REPLUG},
    {"INTERFACE_SETTINGS", EITHER, "interface *", "bandwidth*|filterref*|vlan*|link*|port*|coalesce*", NULL,
     HOTPLUG, true, NULL},
    {"INTERFACE_NAME", VALUE, "interface *", "target@dev", NULL, MIGRATION, false, NULL},
    {"BOOT_ORDER", EITHER, "interface *|disk *|hostdev *|redirdev *", "boot*", NULL, RESTART, false, NULL},
    {"INTERFACE_HARDWARE", VALUE, "interface *", "*", NULL, RESTART, false, REPLUG},
    {"INTERFACE_HARDWARE", CHANGE_GONE, "interface *", "mtu*|driver*|rom*|acpi*|teaming*", NULL, RESTART,
     false, REPLUG},

    /* Disks. */
    {"DISK_MEDIUM", EITHER, "disk *", "@type|source*", has_no_medium, HOTPLUG, true, NULL},
    {"DISK_SOURCE", VALUE, "disk *", "@type|source*|driver@type", NULL, RESTART, false,
     "This needs a shutdown and a start. A migration with the new definition would switch to it without a "
     "check: do that only if it is another path to the very same data."},
    {"DISK_LIMITS", EITHER, "disk *", "iotune*", NULL, HOTPLUG, true,
     "virsh blkdeviotune --live sets it while the guest runs."},
    {"DISK_DRIVER", EITHER, "disk *",
     "driver@cache|driver@io|driver@discard|driver@error_policy|driver@rerror_policy|driver@iothread|@"
     "snapshot",
     NULL, MIGRATION, false, NULL},
    {"DISK_HARDWARE", VALUE, "disk *", "*", NULL, RESTART, false, NULL},
    {"DISK_HARDWARE", CHANGE_GONE, "disk *",
     "serial|wwn|vendor|product|readonly|shareable|transient|driver@*", NULL, RESTART, false, NULL},

    /* Processors. */
    {"VCPUS", EITHER, "", "vcpu@current|vcpus/*", vcpus_fit, HOTPLUG, false,
     "virsh setvcpus --live sets it while the guest runs; to unplug one, the guest must release it."},
    {"VCPUS", VALUE, "", "vcpu|vcpu@current|vcpus/*", NULL, RESTART, false, NULL},
    {"CPU_PINNING", EITHER, "", "cputune/vcpupin*|cputune/emulatorpin*|cputune/iothreadpin*", NULL, HOTPLUG,
     true, "virsh vcpupin, emulatorpin and iothreadpin --live set it while the guest runs."},
    {"CPU_PINNING", EITHER, "",
     "vcpu@cpuset|vcpu@placement|cputune/vcpusched*|cputune/iothreadsched*|cputune/emulatorsched*", NULL,
     MIGRATION, false, NULL},
    {"CPU_LIMITS", EITHER, "", "cputune/*", NULL, HOTPLUG, true,
     "virsh schedinfo --live sets it while the guest runs."},
    {"CPU_TOPOLOGY", EITHER, "", "cpu/topology*", NULL, RESTART, false, NULL},
    {"MEMORY", VALUE, "", "cpu/numa/cell*@memory", NULL, RESTART, false, NULL},
    {"CPU_TOPOLOGY", VALUE, "", "cpu/numa/*", NULL, RESTART, false, NULL},
    {"CPU_MODEL", VALUE, "", "cpu|cpu@*|cpu/*", NULL, RESTART, false, NULL},
    {"CPU_MODEL", CHANGE_GONE, "", "cpu/feature[*", NULL, RESTART, false, NULL},
    {"IOTHREADS", VALUE, "", "iothreads|iothreadids/*|defaultiothread*", NULL, HOTPLUG, true,
     "virsh iothreadadd, iothreaddel and iothreadset --live set it while the guest runs."},

    /* Memory. */
    {"MEMORY", VALUE, "", "memory|maxMemory*", NULL, RESTART, false, NULL},
    {"MEMORY", CHANGE_GONE, "", "maxMemory*", NULL, RESTART, false, NULL},
    {"MEMORY_CURRENT", VALUE, "", "currentMemory", memory_fits, HOTPLUG, false,
     "virsh setmem --live sets it while the guest runs, if the guest has a balloon driver."},
    {"MEMORY_CURRENT", VALUE, "", "currentMemory", NULL, RESTART, false, NULL},
    {"MEMORY_LIMITS", EITHER, "", "memtune/*", NULL, HOTPLUG, true,
     "virsh memtune --live sets it while the guest runs."},
    {"MEMORY_BACKING", EITHER, "", "memoryBacking*", NULL, RESTART, false, NULL},
    {"NUMA_PLACEMENT", EITHER, "", "numatune*", NULL, MIGRATION, false, NULL},
    {"MEMORY_CURRENT", VALUE, "memory *", "target/requested", NULL, HOTPLUG, false,
     "virsh update-memory-device --live sets it while the guest runs, as far as the guest cooperates."},

    /* The rest of the domain. */
    {"METADATA", EITHER, "", "title|description|metadata*", NULL, HOTPLUG, true,
     "virsh desc and virsh metadata --live set it while the guest runs."},
    {"LIFECYCLE_ACTION", VALUE, "", "on_poweroff|on_reboot|on_crash", NULL, HOTPLUG, true,
     "virsh set-lifecycle-action --live sets it while the guest runs."},
    {"BLOCK_LIMITS", EITHER, "", "blkiotune*", NULL, HOTPLUG, true,
     "virsh blkiotune --live sets it while the guest runs."},
    {"EMULATOR", VALUE, "", "devices/emulator", NULL, MIGRATION, false, NULL},
    {"MACHINE", VALUE, "", "@type|os/type*", NULL, RESTART, false, NULL},
    {"BOOT_ORDER", EITHER, "", "os/boot*|os/bios*|os/bootmenu*", NULL, RESTART, false, NULL},
    {"FIRMWARE", VALUE, "", "os*", NULL, RESTART, false, NULL},
    {"FEATURES", EITHER, "", "features*", NULL, RESTART, false, NULL},
    {"CLOCK", VALUE, "", "clock*", NULL, RESTART, false, NULL},
    {"COMMAND_LINE", EITHER, "", "commandline*|override*", NULL, RESTART, false, NULL},

    /* The host's side of other devices. */
    {"GRAPHICS", EITHER, "graphics *", "@passwd*", NULL, HOTPLUG, true, NULL},
    {"GRAPHICS", EITHER, "graphics *", "*", NULL, MIGRATION, false, NULL},
    {"CHARACTER_DEVICE", VALUE, "serial *|parallel *|console *|channel *", "@type|source*|log*|protocol*",
     NULL, MIGRATION, false, NULL},
    {"DEVICE_BACKEND", VALUE, "rng *", "backend*|rate*", NULL, MIGRATION, false, NULL},
    {"DEVICE_BACKEND", VALUE, "watchdog *", "@action", NULL, MIGRATION, false, NULL},
    {"DEVICE_BACKEND", EITHER, "audio *", "*", NULL, MIGRATION, false, NULL},
    {"DEVICE_BACKEND", EITHER, "", "devices/memballoon/stats*", NULL, HOTPLUG, true,
     "virsh dommemstat --period --live sets it while the guest runs."},

    {"DEFINITION", VALUE, "", "*", NULL, RESTART, false, NULL},
    {"DEVICE_CHANGED", VALUE, "*", "*", NULL, RESTART, false, NULL},
};

const ChangeRow *change_row(size_t i) {
  return i < TABLE_LENGTH(rows) ? &rows[i] : NULL;
}

/* One pattern, up to `end`: only '*' is special. */
static bool fits_one(const char *pattern, const char *end, const char *text) {
  const char *star = NULL, *again = NULL;
  while (*text) {
    if (pattern < end && *pattern == '*') {
      star = ++pattern;
      again = text;
    } else if (pattern < end && *pattern == *text) {
      pattern++;
      text++;
    } else if (star) {
      pattern = star;
      text = ++again;
    } else {
      return false;
    }
  }
  while (pattern < end && *pattern == '*')
    pattern++;
  return pattern == end;
}

bool change_fits(const char *patterns, const char *text) {
  for (const char *end; *patterns || !*text; patterns = end + 1) {
    end = strchr(patterns, '|');
    if (!end)
      end = patterns + strlen(patterns);
    if (fits_one(patterns, end, text))
      return true;
    if (!*end)
      break;
  }
  return false;
}

const ChangeRow *change_find(ChangeKind kind, const char *item, const char *path,
                             const ChangeContext *context) {
  for (size_t i = 0; i < TABLE_LENGTH(rows); i++) {
    const ChangeRow *row = &rows[i];
    if ((row->kinds & kind) && change_fits(row->items, item) &&
        (!path || (row->paths && change_fits(row->paths, path))) && (!row->when || row->when(context)))
      return row;
  }
  return NULL;
}
