/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* A domain's XML: devices that matter by themselves, and what the target must have by name. Two tables of XPaths. */
#include "libmigrate/virt/xml.h"

#define DEVICES "/domain/devices/"

/* "0000:3b:00.0" from an <address>. */
#define PCI_ADDRESS(address)                                                                                 \
  "concat(substring(" address "/@domain, 3), ':', substring(" address "/@bus, 3), ':', substring(" address   \
  "/@slot, 3), '.', substring(" address "/@function, 3))"

/* The first text that is not empty names the device. */
#define TEXTS_MAX 3

typedef struct TraitRow {
  MigTraitKind kind;
  const char *nodes;
  const char *texts[TEXTS_MAX]; /* for each node */
} TraitRow;

static const TraitRow trait_rows[] = {
    {MIG_TRAIT_HOSTDEV_PCI,
     DEVICES "hostdev[@type='pci' and not(teaming)] | " DEVICES "interface[@type='hostdev' and not(teaming)]",
     {PCI_ADDRESS("source/address")}},
    {MIG_TRAIT_HOSTDEV_MDEV, DEVICES "hostdev[@type='mdev']", {"source/address/@uuid"}},
    {MIG_TRAIT_HOSTDEV_USB,
     DEVICES "hostdev[@type='usb' and not(source[@startupPolicy='optional' or @startupPolicy='requisite'])]",
     {"concat(substring(source/vendor/@id, 3), substring(':', 1 div boolean(source/vendor)), "
      "substring(source/product/@id, 3))",
      "concat('bus ', source/address/@bus, ' device ', source/address/@device)"}},
    {MIG_TRAIT_HOSTDEV_USB_OPTIONAL,
     DEVICES "hostdev[@type='usb' and source[@startupPolicy='optional' or @startupPolicy='requisite']]",
     {"concat(substring(source/vendor/@id, 3), substring(':', 1 div boolean(source/vendor)), "
      "substring(source/product/@id, 3))",
      "concat('bus ', source/address/@bus, ' device ', source/address/@device)"}},
    {MIG_TRAIT_HOSTDEV_SCSI,
     DEVICES "hostdev[@type='scsi' or @type='scsi_host']",
     {"source/@wwpn", "source/adapter/@name", "source/@name"}},
    {MIG_TRAIT_HOSTDEV_OTHER,
     DEVICES "hostdev[not(@type='pci' or @type='mdev' or @type='usb' or @type='scsi' or @type='scsi_host')]",
     {"source/*[1]", "@type", "@mode"}},
    {MIG_TRAIT_HOSTDEV_TEAMING,
     DEVICES "hostdev[@type='pci' and teaming] | " DEVICES "interface[@type='hostdev' and teaming]",
     {PCI_ADDRESS("source/address")}},
    {MIG_TRAIT_INTERFACE_VDPA, DEVICES "interface[@type='vdpa']", {"source/@dev", "mac/@address"}},
    {MIG_TRAIT_INTERFACE_USER, DEVICES "interface[@type='user']", {"mac/@address"}},
    {MIG_TRAIT_VIRTIOFS,
     DEVICES "filesystem[driver/@type='virtiofs']",
     {"source/@dir", "source/@socket", "target/@dir"}},
    {MIG_TRAIT_FILESYSTEM_9P,
     DEVICES "filesystem[not(driver/@type='virtiofs')]",
     {"source/@dir", "target/@dir"}},
    {MIG_TRAIT_SHMEM, DEVICES "shmem[not(@role='master')]", {"@name"}},
    {MIG_TRAIT_SGX, DEVICES "memory[@model='sgx-epc']", {"concat(target/size, ' ', target/size/@unit)"}},
    {MIG_TRAIT_TPM_PASSTHROUGH,
     DEVICES "tpm[backend/@type='passthrough']",
     {"backend/device/@path", "'/dev/tpm0'"}},
    {MIG_TRAIT_LAUNCH_SECURITY, "/domain/launchSecurity", {"@type"}},
    {MIG_TRAIT_VIDEO_3D,
     DEVICES "video[model/acceleration/@accel3d='yes' or driver/@name='vhostuser']",
     {"model/@type"}},
    {MIG_TRAIT_HOST_CHARDEV,
     DEVICES "serial[@type='dev'] | " DEVICES "parallel[@type='dev'] | " DEVICES "channel[@type='dev']",
     {"source/@path"}},
    {MIG_TRAIT_GRAPHICS_LISTEN,
     DEVICES "graphics[listen[@type='address' and @address and @address!='0.0.0.0' and @address!='::' and "
             "@address!='::1' and @address!='localhost' and not(starts-with(@address, '127.'))]]",
     {"concat(@type, ' on ', listen[@type='address']/@address)"}},
    {MIG_TRAIT_COMMAND_LINE,
     "/domain/qemu:commandline/qemu:arg | /domain/qemu:commandline/qemu:env",
     {"concat(@name, substring('=', 1 div boolean(@name)), @value)"}},
};

static char *first_text(const MigXml *xml, xmlNode *node, const char *const *texts) {
  char *text = NULL;

  for (size_t i = 0; !text && i < TEXTS_MAX && texts[i]; i++)
    text = mig_xml_string(xml, node, texts[i]);
  return text;
}

/* The order of traits in the facts does not matter: core groups them. */
void mig_domain_xml_add_traits(const MigXml *xml, MigDomainFacts *facts) {
  GArray *traits = g_array_new(FALSE, TRUE, sizeof(MigTrait));

  for (size_t row = 0; row < G_N_ELEMENTS(trait_rows); row++) {
    g_autoptr(GPtrArray) nodes = mig_xml_nodes(xml, NULL, trait_rows[row].nodes);

    for (guint i = 0; i < nodes->len; i++) {
      MigTrait trait = {.kind = trait_rows[row].kind};

      trait.text = mig_store_take(facts->store, first_text(xml, nodes->pdata[i], trait_rows[row].texts));
      if (!trait.text)
        trait.text = "unnamed";
      g_array_append_val(traits, trait);
    }
  }
  facts->traits = mig_store_take_array(facts->store, traits, &facts->n_traits);
}

typedef struct NeedRow {
  MigNeedKind kind;
  const char *nodes;
  const char *name; /* for each node */
  const char *users[TEXTS_MAX];
  const char *where; /* of a DEVICE: the enum in the domain capabilities */
} NeedRow;

#define NIC_USERS                                                                                            \
  { "target/@dev", "mac/@address" }
#define SECRET_NAME "concat(@uuid, substring(concat(@type, ':', @usage), 1 div not(@uuid)))"

static const NeedRow need_rows[] = {
    /* A running domain's XML has both the name of a network and its bridge. The target looks up the name. */
    {MIG_NEED_NETWORK, DEVICES "interface[source/@network]", "source/@network", NIC_USERS},
    {MIG_NEED_HOST_INTERFACE, DEVICES "interface[@type='bridge' and source/@bridge and not(source/@network)]",
     "source/@bridge", NIC_USERS},
    {MIG_NEED_HOST_INTERFACE, DEVICES "interface[@type='direct' and source/@dev and not(source/@network)]",
     "source/@dev", NIC_USERS},
    /* libvirt does not create it: it must exist before the domain starts. */
    {MIG_NEED_HOST_INTERFACE,
     DEVICES "interface[@type='ethernet' and target[@dev and @managed='no']]",
     "target/@dev",
     {"mac/@address"}},
    {MIG_NEED_FILTER, DEVICES "interface[filterref/@filter]", "filterref/@filter", NIC_USERS},
    {MIG_NEED_SECRET,
     DEVICES "disk//auth/secret | " DEVICES "disk//encryption/secret",
     SECRET_NAME,
     {"ancestor::disk/target/@dev"}},
    {MIG_NEED_SECRET, DEVICES "tpm/backend/encryption[@secret]", "@secret", {"'TPM'"}},
    {MIG_NEED_SECRET, DEVICES "hostdev/source/auth/secret", SECRET_NAME, {"'hostdev'"}},
    {MIG_NEED_FILE, "/domain/os/kernel", ".", {"'kernel'"}},
    {MIG_NEED_FILE, "/domain/os/initrd", ".", {"'initrd'"}},
    {MIG_NEED_FILE, "/domain/os/dtb", ".", {"'dtb'"}},
    {MIG_NEED_FILE, "/domain/os/loader[text()]", ".", {"'firmware'"}},
    {MIG_NEED_FILE, "/domain/os/acpi/table", ".", {"'ACPI table'"}},
    {MIG_NEED_FILE, DEVICES "memory[@model='nvdimm' or @model='virtio-pmem']/source/path", ".", {"'NVDIMM'"}},
    {MIG_NEED_SOCKET,
     DEVICES "interface[@type='vhostuser']/source[@path]",
     "@path",
     {"../target/@dev", "../mac/@address"}},
    {MIG_NEED_SOCKET, DEVICES "disk[@type='vhostuser']/source[@path]", "@path", {"../target/@dev"}},
    {MIG_NEED_SOCKET, DEVICES "tpm/backend[@type='external']/source[@path]", "@path", {"'TPM'"}},
    /* From each list only those values that libvirt 9.0 reports wherever they are available. */
    {MIG_NEED_DEVICE,
     DEVICES
     "disk/target[@bus='ide' or @bus='fdc' or @bus='scsi' or @bus='virtio' or @bus='usb' or @bus='sata']",
     "@bus",
     {"'disk bus'"},
     "disk/bus"},
    {MIG_NEED_DEVICE, DEVICES "graphics[@type]", "@type", {"'graphics'"}, "graphics/type"},
    {MIG_NEED_DEVICE, DEVICES "video/model[@type]", "@type", {"'video'"}, "video/modelType"},
    {MIG_NEED_DEVICE, DEVICES "tpm[@model]", "@model", {"'TPM'"}, "tpm/model"},
    {MIG_NEED_DEVICE, DEVICES "tpm/backend[@type='emulator']", "@type", {"'TPM'"}, "tpm/backendModel"},
    {MIG_NEED_DEVICE, DEVICES "rng[@model]", "@model", {"'RNG'"}, "rng/model"},
    {MIG_NEED_DEVICE, DEVICES "rng/backend[@model]", "@model", {"'RNG backend'"}, "rng/backendModel"},
    {MIG_NEED_DEVICE, DEVICES "redirdev[@bus]", "@bus", {"'redirection'"}, "redirdev/bus"},
    {MIG_NEED_DEVICE,
     DEVICES "channel[@type='spicevmc' or @type='qemu-vdagent' or @type='dbus']",
     "@type",
     {"'channel'"},
     "channel/type"},
    {MIG_NEED_SECURITY_MODEL,
     "/domain/seclabel[@model and @model!='none' and @model!='dac' and not(@type='none')]",
     "@model",
     {NULL}},
};

static bool is_known(GArray *needs, const MigNeed *need) {
  for (guint i = 0; i < needs->len; i++) {
    const MigNeed *other = &g_array_index(needs, MigNeed, i);

    if (other->kind == need->kind && g_strcmp0(other->name, need->name) == 0 &&
        g_strcmp0(other->user, need->user) == 0)
      return true;
  }
  return false;
}

void mig_domain_xml_add_needs(const MigXml *xml, MigDomainFacts *facts) {
  GArray *needs = g_array_new(FALSE, TRUE, sizeof(MigNeed));

  for (size_t row = 0; row < G_N_ELEMENTS(need_rows); row++) {
    g_autoptr(GPtrArray) nodes = mig_xml_nodes(xml, NULL, need_rows[row].nodes);

    for (guint i = 0; i < nodes->len; i++) {
      xmlNode *node = nodes->pdata[i];
      MigNeed need = {.kind = need_rows[row].kind, .where = need_rows[row].where};
      g_autofree char *name = mig_xml_string(xml, node, need_rows[row].name);

      if (!name || !*g_strstrip(name))
        continue;
      need.name = mig_store_string(facts->store, name);
      need.user = mig_store_take(facts->store, first_text(xml, node, need_rows[row].users));
      if (!is_known(needs, &need))
        g_array_append_val(needs, need);
    }
  }
  facts->needs = mig_store_take_array(facts->store, needs, &facts->n_needs);
}
