/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The table of checks. For each: does it block, can waiting help, which cause does it give a failed job, what is the
 * remedy, and the test behind it. */
#include "libmigrate/core/rules.h"
#include "libmigrate/core/table.h"

#define BLOCKER   true, false
#define TRANSIENT true, true
#define WARNING   false, false

/* Something that the target must have under the same name. How it stands there decides whether it blocks. */
#define NEED(kind, sight) rule_need, RULE_NEED(MIG_NEED_##kind, MIG_SIGHT_##sight)
#define TRAIT(kind)       rule_trait, MIG_TRAIT_##kind

static const RuleRow rows[] = {
    [MIG_CHECK_TARGET_UNREACHABLE] =
        {{"TARGET_UNREACHABLE", TRANSIENT, MIG_CAUSE_TARGET_UNREACHABLE,
          "Check its libvirtd and the network in between: virsh -c URI version."},
         rule_target_unreachable},
    [MIG_CHECK_TARGET_REFUSES] =
        {{"TARGET_REFUSES", BLOCKER, MIG_CAUSE_TARGET_UNREACHABLE,
          "Try the target's URI on the source, as the agent's user: virsh -c URI version."},
         rule_target_refuses},
    [MIG_CHECK_SAME_HOST] =
        {{"SAME_HOST", BLOCKER, MIG_CAUSE_SAME_HOST,
          "Name another host. If these are two hosts, give each its own host_uuid in libvirtd.conf."},
         rule_same_host,
         .of_target = true},
    [MIG_CHECK_NODE_CORDONED] =
        {{"NODE_CORDONED", TRANSIENT, MIG_CAUSE_REFUSED,
          "Wait until it is uncordoned, or use --even-if-cordoned to migrate guests off it."},
         rule_node_cordoned},
    [MIG_CHECK_DOMAIN_BUSY] = {{"DOMAIN_BUSY", TRANSIENT, MIG_CAUSE_DOMAIN_BUSY,
                                "Wait for it or abort it: handoffctl watch, handoffctl abort."},
                               rule_domain_busy},
    [MIG_CHECK_DOMAIN_STATE] = {{"DOMAIN_STATE", BLOCKER, MIG_CAUSE_DOMAIN_NOT_RUNNING,
                                 "Only a running or paused domain can be migrated live: virsh list --all."},
                                rule_domain_state},
    [MIG_CHECK_DOMAIN_EXISTS] = {{"DOMAIN_EXISTS", BLOCKER, MIG_CAUSE_DOMAIN_EXISTS_AT_TARGET,
                                  "First find out which copy is the real guest; nothing was touched."},
                                 rule_domain_exists,
                                 .of_target = true},
    [MIG_CHECK_NAME_TAKEN] =
        {{"NAME_TAKEN", BLOCKER, MIG_CAUSE_DOMAIN_EXISTS_AT_TARGET,
          "Undefine or rename the one at the target if it is not needed (virsh undefine, virsh domrename)."},
         rule_name_taken,
         .of_target = true},
    [MIG_CHECK_IO_ERROR] =
        {{"IO_ERROR", BLOCKER, MIG_CAUSE_REFUSED,
          "Fix the disk on this host, where the evidence is, then resume the guest: virsh resume."},
         rule_io_error},
    [MIG_CHECK_DOMAIN_JOB] = {{"DOMAIN_JOB", TRANSIENT, MIG_CAUSE_DOMAIN_BUSY,
                               "Wait for it or abort it: virsh domjobinfo, virsh domjobabort."},
                              rule_domain_job},
    [MIG_CHECK_BLOCK_JOB] =
        {{"BLOCK_JOB", TRANSIENT, MIG_CAUSE_DOMAIN_BUSY,
          "Wait for it or end it: virsh blockjob DOMAIN DISK, with --info, --pivot or --abort."},
         rule_block_job,
         .lead = "A block job is running on"},
    [MIG_CHECK_SNAPSHOTS] =
        {{"SNAPSHOTS", BLOCKER, MIG_CAUSE_REFUSED,
          "Delete them, or just libvirt's metadata about them: virsh snapshot-delete --metadata."},
         rule_snapshots},

    [MIG_CHECK_HOSTDEV_PCI] =
        {{"HOSTDEV_PCI", BLOCKER, MIG_CAUSE_REFUSED,
          "Detach them first (virsh detach-device), or pair each with a virtual interface using <teaming>."},
         rule_hostdev,
         MIG_TRAIT_HOSTDEV_PCI,
         "PCI devices of the source host are assigned:"},
    [MIG_CHECK_HOSTDEV_MDEV] = {{"HOSTDEV_MDEV", BLOCKER, MIG_CAUSE_REFUSED,
                                 "Detach them first: virsh detach-device."},
                                rule_hostdev,
                                MIG_TRAIT_HOSTDEV_MDEV,
                                "Mediated devices (vGPUs) of the source host are assigned:"},
    [MIG_CHECK_HOSTDEV_USB] =
        {{"HOSTDEV_USB", BLOCKER, MIG_CAUSE_REFUSED,
          "Detach them first (virsh detach-device), or let libvirt drop them with startupPolicy='optional'."},
         TRAIT(HOSTDEV_USB),
         "USB devices of the source host are assigned:"},
    [MIG_CHECK_HOSTDEV_SCSI] =
        {{"HOSTDEV_SCSI", BLOCKER, MIG_CAUSE_REFUSED,
          "Detach them first (virsh detach-device); a LUN can migrate as a disk with device='lun'."},
         TRAIT(HOSTDEV_SCSI),
         "SCSI devices of the source host are assigned:"},
    [MIG_CHECK_HOSTDEV_OTHER] = {{"HOSTDEV_OTHER", BLOCKER, MIG_CAUSE_REFUSED,
                                  "Detach them first: virsh detach-device."},
                                 TRAIT(HOSTDEV_OTHER),
                                 "Devices of the source host are assigned:"},
    [MIG_CHECK_INTERFACE_VDPA] = {{"INTERFACE_VDPA", BLOCKER, MIG_CAUSE_REFUSED,
                                   "Detach them first: virsh detach-interface."},
                                  TRAIT(INTERFACE_VDPA),
                                  "Assigned vDPA devices of the source host:"},
    [MIG_CHECK_VIRTIOFS] = {{"VIRTIOFS", BLOCKER, MIG_CAUSE_REFUSED,
                             "Unmount them in the guest and detach them: virsh detach-device."},
                            TRAIT(VIRTIOFS),
                            "The guest shares directories of the source host over virtiofs:"},
    [MIG_CHECK_SHMEM] =
        {{"SHMEM", BLOCKER, MIG_CAUSE_REFUSED,
          "Detach it first (virsh detach-device); with role='master' the memory would migrate too."},
         TRAIT(SHMEM),
         "The guest shares memory with other guests on the source host:"},
    [MIG_CHECK_SGX] = {{"SGX", BLOCKER, MIG_CAUSE_REFUSED,
                        "Shut the guest down and start it at the target: enclaves cannot be migrated."},
                       TRAIT(SGX),
                       "The guest has SGX enclave memory on the source host:"},
    [MIG_CHECK_TPM_PASSTHROUGH] =
        {{"TPM_PASSTHROUGH", BLOCKER, MIG_CAUSE_REFUSED,
          "Give the guest an emulated TPM or none; this needs a restart of the guest."},
         TRAIT(TPM_PASSTHROUGH),
         "The guest uses the source host's TPM:"},
    [MIG_CHECK_LAUNCH_SECURITY] =
        {{"LAUNCH_SECURITY", BLOCKER, MIG_CAUSE_REFUSED,
          "Shut the guest down and start it at the target: encrypted memory cannot be migrated."},
         TRAIT(LAUNCH_SECURITY),
         "The guest's memory is encrypted by the source host's CPU:"},
    [MIG_CHECK_VIDEO_3D] = {{"VIDEO_3D", BLOCKER, MIG_CAUSE_REFUSED,
                             "Turn off acceleration on its video device; this needs a restart of the guest."},
                            TRAIT(VIDEO_3D),
                            "The guest renders on the source host's GPU:"},

    [MIG_CHECK_DISK_TRANSIENT] = {{"DISK_TRANSIENT", BLOCKER, MIG_CAUSE_REFUSED,
                                   "Detach them first (virsh detach-disk): libvirt does not migrate disks "
                                   "whose changes are discarded."},
                                  rule_disk_transient,
                                  .lead = "Transient disks:"},
    [MIG_CHECK_DISK_NVME] = {{"DISK_NVME", BLOCKER, MIG_CAUSE_REFUSED,
                              "Detach them first: virsh detach-disk."},
                             rule_disk_nvme,
                             .lead = "NVMe devices of the source host are assigned as disks:"},
    [MIG_CHECK_DISK_LOCAL] = {{"DISK_LOCAL", BLOCKER, MIG_CAUSE_REFUSED,
                               "Set copy_disks=all, or first move them to storage that both hosts share."},
                              rule_disk_local,
                              .lead = "On storage that only the source host can see:"},
    [MIG_CHECK_DISK_CACHE] =
        {{"DISK_CACHE", BLOCKER, MIG_CAUSE_REFUSED,
          "Set cache='none' (this needs a restart of the guest), or copy the disks: copy_disks."},
         rule_disk_cache,
         .lead = "Writes may still sit in the source host's memory, because of the cache mode of"},
    [MIG_CHECK_DISK_MISSING] =
        {{"DISK_MISSING", BLOCKER, MIG_CAUSE_REFUSED,
          "Mount or create it at the target under the same name, or set copy_disks=all for local disks."},
         rule_disk_missing,
         .lead = "The target has no",
         .of_target = true},
    [MIG_CHECK_DISK_TOO_SMALL] =
        {{"DISK_TOO_SMALL", BLOCKER, MIG_CAUSE_REFUSED,
          "Make it exactly as large as at the source, to the byte: qemu-img resize or virsh vol-resize."},
         rule_disk_too_small,
         .lead = "Too small at the target:",
         .of_target = true},
    [MIG_CHECK_DISK_SIZE_DIFFERS] = {{"DISK_SIZE_DIFFERS", BLOCKER, MIG_CAUSE_REFUSED,
                                      "Find out whether it really is the guest's disk; a copy needs a "
                                      "destination of the same size, to the byte."},
                                     rule_disk_size_differs,
                                     .lead = "Different size at the target:",
                                     .of_target = true},
    [MIG_CHECK_POOL_SPACE] = {{"POOL_SPACE", TRANSIENT, MIG_CAUSE_REFUSED,
                               "Free or add space in that pool: virsh pool-info POOL."},
                              rule_pool_space,
                              .lead =
                                  "Not enough room at the target for the disks that libvirt would create:",
                              .of_target = true},
    [MIG_CHECK_HOST_DRIVE] =
        {{"HOST_DRIVE", BLOCKER, MIG_CAUSE_REFUSED,
          "Eject it (virsh change-media DOMAIN DISK --eject), or insert an image instead."},
         rule_host_drive,
         .lead = "The guest uses a drive of the source host:"},
    [MIG_CHECK_MEDIA_MISSING] = {{"MEDIA_MISSING", BLOCKER, MIG_CAUSE_REFUSED,
                                  "Eject it (virsh change-media DOMAIN DISK --eject), or put the image at "
                                  "the target under the same name."},
                                 rule_media,
                                 MIG_SIGHT_ABSENT,
                                 "The target has no",
                                 true},

    [MIG_CHECK_CPU_INVTSC] = {{"CPU_INVTSC", BLOCKER, MIG_CAUSE_REFUSED,
                               "Fix the frequency with <timer name='tsc' frequency='HZ'/>, or turn the "
                               "feature off; this needs a restart of the guest."},
                              rule_cpu_invtsc},
    [MIG_CHECK_CPU_INCOMPATIBLE] = {{"CPU_INCOMPATIBLE", BLOCKER, MIG_CAUSE_REFUSED,
                                     "Migrate to a host that can, or restart the guest with a CPU model that "
                                     "both hosts support: virsh hypervisor-cpu-baseline."},
                                    rule_cpu_incompatible,
                                    .of_target = true},
    [MIG_CHECK_CPU_OTHER_HOST] = {{"CPU_OTHER_HOST", BLOCKER, MIG_CAUSE_REFUSED,
                                   "Migrate to a host with the same CPU, or restart the guest with a CPU "
                                   "model that both hosts support."},
                                  rule_cpu_other_host,
                                  .of_target = true},
    [MIG_CHECK_TSC_FREQUENCY] =
        {{"TSC_FREQUENCY", BLOCKER, MIG_CAUSE_REFUSED,
          "Migrate to a host with the same TSC frequency, or to one that can scale its TSC."},
         rule_tsc_frequency,
         .of_target = true},
    [MIG_CHECK_EMULATOR_MISSING] =
        {{"EMULATOR_MISSING", BLOCKER, MIG_CAUSE_REFUSED,
          "Install it at the target; the path is <emulator> in the domain's definition."},
         rule_emulator_missing,
         .of_target = true},
    [MIG_CHECK_VIRT_TYPE] =
        {{"VIRT_TYPE", BLOCKER, MIG_CAUSE_REFUSED,
          "Make sure that the target has /dev/kvm and that libvirt may use it: virt-host-validate."},
         rule_virt_type,
         .of_target = true},
    [MIG_CHECK_MACHINE_TYPE] = {{"MACHINE_TYPE", BLOCKER, MIG_CAUSE_REFUSED,
                                 "Install a newer QEMU at the target, or restart the guest with a machine "
                                 "type that both hosts support."},
                                rule_machine_type,
                                .of_target = true},
    [MIG_CHECK_DEVICE_UNSUPPORTED] =
        {{"DEVICE_UNSUPPORTED", BLOCKER, MIG_CAUSE_REFUSED,
          "Install what it needs at the target (QEMU modules, swtpm), or restart the guest without it."},
         NEED(DEVICE, ABSENT),
         "The target's QEMU does not support",
         true},
    [MIG_CHECK_SECURITY_MODEL] = {{"SECURITY_MODEL", BLOCKER, MIG_CAUSE_REFUSED,
                                   "Enable the same security driver at the target, or restart the guest "
                                   "without it (<seclabel type='none'/>)."},
                                  NEED(SECURITY_MODEL, ABSENT),
                                  "The target has no security model",
                                  true},

    [MIG_CHECK_TLS_CERTIFICATES] =
        {{"TLS_CERTIFICATES", BLOCKER, MIG_CAUSE_REFUSED,
          "Install them in /etc/pki/qemu on both hosts (see migrate_tls_x509_cert_dir in libvirt's "
          "qemu.conf), or drop tls=require."},
         rule_tls_certificates},

    [MIG_CHECK_TARGET_TOO_SMALL] = {{"TARGET_TOO_SMALL", BLOCKER, MIG_CAUSE_REFUSED,
                                     "Migrate to a larger host."},
                                    rule_target_too_small,
                                    .of_target = true},
    [MIG_CHECK_TARGET_MEMORY] = {{"TARGET_MEMORY", TRANSIENT, MIG_CAUSE_REFUSED,
                                  "Wait until guests have left the target, or migrate elsewhere."},
                                 rule_target_memory,
                                 .of_target = true},
    [MIG_CHECK_HUGEPAGES_MISSING] =
        {{"HUGEPAGES_MISSING", BLOCKER, MIG_CAUSE_REFUSED,
          "Allocate more of them at the target (virsh allocpages), or migrate elsewhere."},
         rule_hugepages_missing,
         .lead = "The target has too few huge pages:",
         .of_target = true},
    [MIG_CHECK_HUGEPAGES_TAKEN] =
        {{"HUGEPAGES_TAKEN", TRANSIENT, MIG_CAUSE_REFUSED,
          "Wait until guests have left the target, or allocate more there: virsh allocpages."},
         rule_hugepages_taken,
         .lead = "Too few of the target's huge pages are free:",
         .of_target = true},
    [MIG_CHECK_VCPUS_MAX] = {{"VCPUS_MAX", BLOCKER, MIG_CAUSE_REFUSED,
                              "Restart the guest with fewer vCPUs, or with a machine type that allows more."},
                             rule_vcpus_max,
                             .of_target = true},
    [MIG_CHECK_PINNED_CPUS] =
        {{"PINNED_CPUS", BLOCKER, MIG_CAUSE_REFUSED,
          "Pin them to CPUs that exist on both hosts: virsh vcpupin, emulatorpin, iothreadpin."},
         rule_pinned_cpus,
         .lead = "The target has none of the CPUs that these are pinned to:",
         .of_target = true},
    [MIG_CHECK_NUMA_NODES] = {{"NUMA_NODES", BLOCKER, MIG_CAUSE_REFUSED,
                               "Bind the memory to nodes that both hosts have (virsh numatune), or to none."},
                              rule_numa_nodes,
                              .lead = "Memory is bound to NUMA nodes that the target does not have:",
                              .of_target = true},

    [MIG_CHECK_NETWORK_MISSING] = {{"NETWORK_MISSING", BLOCKER, MIG_CAUSE_REFUSED,
                                    "Define and start it at the target: virsh net-define, virsh net-start."},
                                   NEED(NETWORK, ABSENT),
                                   "The target has no network",
                                   true},
    [MIG_CHECK_NETWORK_INACTIVE] = {{"NETWORK_INACTIVE", TRANSIENT, MIG_CAUSE_REFUSED,
                                     "Start it at the target: virsh net-start, virsh net-autostart."},
                                    NEED(NETWORK, INACTIVE),
                                    "Not active at the target: network",
                                    true},
    [MIG_CHECK_INTERFACE_MISSING] = {{"INTERFACE_MISSING", BLOCKER, MIG_CAUSE_REFUSED,
                                      "Create a bridge or device of that name at the target, or attach the "
                                      "guest to a libvirt network that both hosts have."},
                                     NEED(HOST_INTERFACE, ABSENT),
                                     "The target has no bridge or interface",
                                     true},
    [MIG_CHECK_FILTER_MISSING] = {{"FILTER_MISSING", BLOCKER, MIG_CAUSE_REFUSED,
                                   "Define it at the target: virsh nwfilter-define."},
                                  NEED(FILTER, ABSENT),
                                  "The target has no network filter",
                                  true},
    [MIG_CHECK_SECRET_MISSING] =
        {{"SECRET_MISSING", BLOCKER, MIG_CAUSE_REFUSED,
          "Define it at the target and set its value: virsh secret-define, virsh secret-set-value."},
         NEED(SECRET, ABSENT),
         "The target has no secret",
         true},
    [MIG_CHECK_FILE_MISSING] = {{"FILE_MISSING", BLOCKER, MIG_CAUSE_REFUSED,
                                 "Put it at the target under the same name."},
                                NEED(FILE, ABSENT),
                                "The target has no file",
                                true},

    [MIG_CHECK_DOMAIN_PAUSED] = {{"DOMAIN_PAUSED", WARNING, MIG_CAUSE_NONE, "It stays paused at the target."},
                                 rule_domain_paused},
    [MIG_CHECK_DEFINED_AT_TARGET] =
        {{"DEFINED_AT_TARGET", WARNING, MIG_CAUSE_NONE,
          "With persist_target=yes, the running domain's definition replaces it."},
         rule_defined_at_target,
         .of_target = true},
    [MIG_CHECK_QEMU_OLDER] = {{"QEMU_OLDER", WARNING, MIG_CAUSE_NONE,
                               "It may work if the machine type is the same, but this is rarely tested: "
                               "prefer a target with the same or a newer QEMU."},
                              rule_qemu_older,
                              .of_target = true},
    [MIG_CHECK_LIBVIRT_OLDER] =
        {{"LIBVIRT_OLDER", WARNING, MIG_CAUSE_NONE,
          "It may not understand all of the domain's definition; if so, it refuses before any data is sent."},
         rule_libvirt_older,
         .of_target = true},
    [MIG_CHECK_HOSTDEV_VFIO] = {{"HOSTDEV_VFIO", WARNING, MIG_CAUSE_NONE,
                                 "Only QEMU knows whether their drivers support migration; the target needs "
                                 "the same devices at the same addresses."},
                                rule_hostdev_vfio,
                                .lead = "Devices of the source host are assigned:"},
    [MIG_CHECK_HOSTDEV_USB_DROPPED] =
        {{"HOSTDEV_USB_DROPPED", WARNING, MIG_CAUSE_NONE,
          "Because of their startupPolicy, the guest loses those that the target does not have."},
         TRAIT(HOSTDEV_USB_OPTIONAL),
         "USB devices of the source host are assigned:"},
    [MIG_CHECK_HOSTDEV_TEAMING] = {{"HOSTDEV_TEAMING", WARNING, MIG_CAUSE_NONE,
                                    "The guest must release them and continue on the team's virtual "
                                    "interface; otherwise it cannot migrate."},
                                   TRAIT(HOSTDEV_TEAMING),
                                   "Will be unplugged for the migration:"},
    [MIG_CHECK_FILESYSTEM_9P] =
        {{"FILESYSTEM_9P", WARNING, MIG_CAUSE_NONE,
          "Unmount them in the guest: QEMU refuses to migrate while they are mounted."},
         TRAIT(FILESYSTEM_9P),
         "The guest shares directories of the source host over 9p:"},
    [MIG_CHECK_HOST_CHARDEV] =
        {{"HOST_CHARDEV", WARNING, MIG_CAUSE_NONE,
          "The guest gets the target's ports of the same name, with whatever is connected to them."},
         TRAIT(HOST_CHARDEV),
         "The guest uses ports of the source host:"},
    [MIG_CHECK_USER_NETWORK] = {{"USER_NETWORK", WARNING, MIG_CAUSE_NONE,
                                 "The guest's connections over this network break at the switchover."},
                                TRAIT(INTERFACE_USER),
                                "Interfaces connected through a process on the source host:"},
    [MIG_CHECK_GRAPHICS_LISTEN] =
        {{"GRAPHICS_LISTEN", WARNING, MIG_CAUSE_NONE,
          "The target must have this address too, or QEMU does not start there; 0.0.0.0 works on any host."},
         TRAIT(GRAPHICS_LISTEN),
         "The console listens on a fixed address:"},
    [MIG_CHECK_COMMAND_LINE] =
        {{"COMMAND_LINE", WARNING, MIG_CAUSE_NONE,
          "The target's QEMU gets the same arguments; make sure that they work there."},
         TRAIT(COMMAND_LINE),
         "QEMU was started with arguments that libvirt does not understand:"},
    [MIG_CHECK_STORAGE_UNKNOWN] =
        {{"STORAGE_UNKNOWN", WARNING, MIG_CAUSE_NONE,
          "It is not copied, and libvirt refuses if it knows the storage to be local. Let the agent see the "
          "file: set ProtectHome=read-only in a drop-in, or move the file elsewhere."},
         rule_storage_unknown,
         .lead = "Cannot tell whether the storage is shared or local:"},
    [MIG_CHECK_DISK_UNSEEN] = {{"DISK_UNSEEN", WARNING, MIG_CAUSE_NONE,
                                "No storage pool of the target covers it: check there yourself, or define a "
                                "pool for its directory."},
                               rule_disk_unseen,
                               .lead = "Cannot tell whether the target has",
                               .of_target = true},
    [MIG_CHECK_MEDIA_UNSEEN] =
        {{"MEDIA_UNSEEN", WARNING, MIG_CAUSE_NONE,
          "Eject it if it is no longer needed: virsh change-media DOMAIN DISK --eject."},
         rule_media,
         MIG_SIGHT_UNSEEN,
         "Cannot tell whether the target has",
         true},
    [MIG_CHECK_CPU_PASSTHROUGH] = {{"CPU_PASSTHROUGH", WARNING, MIG_CAUSE_NONE,
                                    "A guest with the host's own CPU is only safe on an identical host: same "
                                    "model, microcode and kernel."},
                                   rule_cpu_passthrough,
                                   .of_target = true},
    [MIG_CHECK_CPU_UNCHECKED] =
        {{"CPU_UNCHECKED", WARNING, MIG_CAUSE_NONE,
          "The guest already runs without these features at the source, because of check='none'."},
         rule_cpu_unchecked,
         .of_target = true},
    [MIG_CHECK_CPU_UNSEEN] = {{"CPU_UNSEEN", WARNING, MIG_CAUSE_NONE,
                               "The CPU is compared again at the start, before any data is sent."},
                              rule_cpu_unseen,
                              .of_target = true},
    [MIG_CHECK_MEMORY_TIGHT] =
        {{"MEMORY_TIGHT", WARNING, MIG_CAUSE_NONE,
          "QEMU needs somewhat more than the guest's memory; the target may start to swap."},
         rule_memory_tight,
         .of_target = true},
    [MIG_CHECK_MEMORY_BALLOONED] = {{"MEMORY_BALLOONED", WARNING, MIG_CAUSE_NONE,
                                     "It fits as long as the balloon does not deflate."},
                                    rule_memory_ballooned,
                                    .of_target = true},
    [MIG_CHECK_VCPUS_OVERCOMMITTED] = {{"VCPUS_OVERCOMMITTED", WARNING, MIG_CAUSE_NONE,
                                        "It runs, but more slowly when all vCPUs are busy."},
                                       rule_vcpus_overcommitted,
                                       .of_target = true},
    [MIG_CHECK_PINNED_CPUS_FEWER] = {{"PINNED_CPUS_FEWER", WARNING, MIG_CAUSE_NONE,
                                      "They run on the CPUs that are left."},
                                     rule_pinned_cpus_fewer,
                                     .lead = "The target has only some of the CPUs that these are pinned to:",
                                     .of_target = true},
    [MIG_CHECK_PINNED] =
        {{"PINNED", WARNING, MIG_CAUSE_NONE,
          "They are pinned to the same CPU numbers at the target, whatever else is pinned to those."},
         rule_pinned,
         .lead = "Pinned to host CPUs:"},
    [MIG_CHECK_NETWORK_UNSEEN] = {{"NETWORK_UNSEEN", WARNING, MIG_CAUSE_NONE,
                                   "The target's libvirt does not list its networks: check there yourself."},
                                  NEED(NETWORK, UNSEEN),
                                  "Cannot tell whether the target has network",
                                  true},
    [MIG_CHECK_INTERFACE_UNSEEN] = {{"INTERFACE_UNSEEN", WARNING, MIG_CAUSE_NONE,
                                     "The target's libvirt does not list its interfaces (the interface "
                                     "driver is missing): check there yourself."},
                                    NEED(HOST_INTERFACE, UNSEEN),
                                    "Cannot tell whether the target has bridge or interface",
                                    true},
    [MIG_CHECK_FILTER_UNSEEN] = {{"FILTER_UNSEEN", WARNING, MIG_CAUSE_NONE,
                                  "The target's libvirt does not list its filters: check there yourself."},
                                 NEED(FILTER, UNSEEN),
                                 "Cannot tell whether the target has network filter",
                                 true},
    [MIG_CHECK_SECRET_UNSEEN] = {{"SECRET_UNSEEN", WARNING, MIG_CAUSE_NONE,
                                  "The target's libvirt does not list its secrets: check there yourself."},
                                 NEED(SECRET, UNSEEN),
                                 "Cannot tell whether the target has secret",
                                 true},
    [MIG_CHECK_FILE_UNSEEN] = {{"FILE_UNSEEN", WARNING, MIG_CAUSE_NONE,
                                "Check there yourself: QEMU does not start without it."},
                               NEED(FILE, UNSEEN),
                               "Cannot tell whether the target has file",
                               true},
    [MIG_CHECK_SOCKET_UNSEEN] =
        {{"SOCKET_UNSEEN", WARNING, MIG_CAUSE_NONE,
          "The process behind it must be running at the target and able to migrate its state."},
         NEED(SOCKET, UNSEEN),
         "Cannot tell whether the target has socket",
         true},
    [MIG_CHECK_DEVICE_UNSEEN] =
        {{"DEVICE_UNSEEN", WARNING, MIG_CAUSE_NONE,
          "The target's libvirt is too old to tell; without support QEMU does not start there."},
         NEED(DEVICE, UNSEEN),
         "Cannot tell whether the target's QEMU supports",
         true},
    [MIG_CHECK_TLS_UNSEEN] = {{"TLS_UNSEEN", WARNING, MIG_CAUSE_NONE,
                               "Without them libvirt refuses at the start, before any data is sent."},
                              rule_tls_unseen},
    [MIG_CHECK_TLS_CONTROL] = {{"TLS_CONTROL", WARNING, MIG_CAUSE_NONE,
                                "Only the guest's memory is encrypted; to encrypt the rest, use qemu+tls:// "
                                "or qemu+ssh:// for the target."},
                               rule_tls_control},
    [MIG_CHECK_THREADS_REFUSED] = {{"THREADS_REFUSED", WARNING, MIG_CAUSE_NONE,
                                    "Nothing is sent then, and the guest stays. Upgrade the target's libvirt "
                                    "to 11.10 or later, or restart the guest with one thread per core."},
                                   rule_fault,
                                   RULE_FAULT_THREADS,
                                   .of_target = true},
    [MIG_CHECK_POST_COPY_UNRECOVERABLE] = {{"POST_COPY_UNRECOVERABLE", WARNING, MIG_CAUSE_NONE,
                                            "Post-copy is not used, although it is permitted. Upgrade the "
                                            "target's libvirt to 11.4 or later; until then, permit a "
                                            "pause or auto-converge."},
                                           rule_fault,
                                           RULE_FAULT_RESUME,
                                           .of_target = true},
    [MIG_CHECK_EMULATOR_FORGETS] = {{"EMULATOR_FORGETS", WARNING, MIG_CAUSE_NONE,
                                     "Its memory at the target may be out of date in places. Prefer KVM, a "
                                     "newer QEMU, or a migration while it is shut off."},
                                    rule_fault,
                                    RULE_FAULT_EMULATOR,
                                    .of_target = true},
};
TABLE_COVERS(rows, MIG_CHECK_COUNT);

const RuleRow *rules_row(MigCheck check) {
  return &rows[check];
}

const MigCheckInfo *mig_check_info(MigCheck check) {
  return (unsigned)check < MIG_CHECK_COUNT ? &rows[check].info : NULL;
}
