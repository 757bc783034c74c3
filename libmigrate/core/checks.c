/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The table of checks: whether each blocks, whether waiting can help, which cause a job gets that ends for it, what would do,
 * and the test behind it. */
#include "libmigrate/core/rules.h"
#include "libmigrate/core/table.h"

#define BLOCKER   true, false
#define TRANSIENT true, true
#define WARNING   false, false

/* What is to be there by name: whether it blocks follows from how it stands at the target. */
#define NEED(kind, sight) rule_need, RULE_NEED(MIG_NEED_##kind, MIG_SIGHT_##sight)
#define TRAIT(kind)       rule_trait, MIG_TRAIT_##kind

static const RuleRow rows[] = {
    [MIG_CHECK_TARGET_UNREACHABLE] = {{"TARGET_UNREACHABLE", TRANSIENT, MIG_CAUSE_TARGET_UNREACHABLE,
                                       "See to its libvirtd and to the way there: virsh -c URI version."},
                                      rule_target_unreachable},
    [MIG_CHECK_TARGET_REFUSES] =
        {{"TARGET_REFUSES", BLOCKER, MIG_CAUSE_TARGET_UNREACHABLE,
          "Try the target's URI on this node, as the agent's user: virsh -c URI version."},
         rule_target_refuses},
    [MIG_CHECK_SAME_HOST] = {{"SAME_HOST", BLOCKER, MIG_CAUSE_SAME_HOST,
                              "Name another one. If it is another one, give it a host_uuid of its own in "
                              "libvirtd.conf."},
                             rule_same_host,
                             .of_target = true},
    [MIG_CHECK_NODE_CORDONED] = {{"NODE_CORDONED", TRANSIENT, MIG_CAUSE_REFUSED,
                                  "Wait until it is uncordoned, or say --even-if-cordoned to empty it."},
                                 rule_node_cordoned},
    [MIG_CHECK_DOMAIN_BUSY] = {{"DOMAIN_BUSY", TRANSIENT, MIG_CAUSE_DOMAIN_BUSY,
                                "Wait for it, or end it: handoffctl watch, handoffctl abort."},
                               rule_domain_busy},
    [MIG_CHECK_DOMAIN_STATE] = {{"DOMAIN_STATE", BLOCKER, MIG_CAUSE_DOMAIN_NOT_RUNNING,
                                 "Only a running or paused domain can be moved live: virsh list --all."},
                                rule_domain_state},
    [MIG_CHECK_DOMAIN_EXISTS] =
        {{"DOMAIN_EXISTS", BLOCKER, MIG_CAUSE_DOMAIN_EXISTS_AT_TARGET,
          "Find out which copy is the guest before anything else; nothing was touched."},
         rule_domain_exists,
         .of_target = true},
    [MIG_CHECK_NAME_TAKEN] = {{"NAME_TAKEN", BLOCKER, MIG_CAUSE_DOMAIN_EXISTS_AT_TARGET,
                               "Undefine or rename the one that is not needed there (virsh undefine, virsh "
                               "domrename)."},
                              rule_name_taken,
                              .of_target = true},
    [MIG_CHECK_IO_ERROR] = {{"IO_ERROR", BLOCKER, MIG_CAUSE_REFUSED,
                             "See to its disk where the evidence is, then resume it: virsh resume."},
                            rule_io_error},
    [MIG_CHECK_DOMAIN_JOB] = {{"DOMAIN_JOB", TRANSIENT, MIG_CAUSE_DOMAIN_BUSY,
                               "Wait for it, or end it: virsh domjobinfo, virsh domjobabort."},
                              rule_domain_job},
    [MIG_CHECK_BLOCK_JOB] = {{"BLOCK_JOB", TRANSIENT, MIG_CAUSE_DOMAIN_BUSY,
                              "Wait for it, or end it: virsh blockjob DOMAIN DISK, with --info, --pivot or "
                              "--abort."},
                             rule_block_job,
                             .lead = "A block job runs on"},
    [MIG_CHECK_SNAPSHOTS] =
        {{"SNAPSHOTS", BLOCKER, MIG_CAUSE_REFUSED,
          "Delete them, or only what libvirt keeps of them: virsh snapshot-delete --metadata."},
         rule_snapshots},

    [MIG_CHECK_HOSTDEV_PCI] =
        {{"HOSTDEV_PCI", BLOCKER, MIG_CAUSE_REFUSED,
          "Detach them first (virsh detach-device), or pair each with a virtual interface "
          "by <teaming>."},
         rule_hostdev,
         MIG_TRAIT_HOSTDEV_PCI,
         "PCI devices of this host are assigned:"},
    [MIG_CHECK_HOSTDEV_MDEV] = {{"HOSTDEV_MDEV", BLOCKER, MIG_CAUSE_REFUSED,
                                 "Detach them first: virsh detach-device."},
                                rule_hostdev,
                                MIG_TRAIT_HOSTDEV_MDEV,
                                "Mediated devices (vGPUs) of this host are assigned:"},
    [MIG_CHECK_HOSTDEV_USB] = {{"HOSTDEV_USB", BLOCKER, MIG_CAUSE_REFUSED,
                                "Detach them first (virsh detach-device), or let libvirt leave them out by "
                                "startupPolicy='optional'."},
                               TRAIT(HOSTDEV_USB),
                               "USB devices of this host are assigned:"},
    [MIG_CHECK_HOSTDEV_SCSI] = {{"HOSTDEV_SCSI", BLOCKER, MIG_CAUSE_REFUSED,
                                 "Detach them first (virsh detach-device); a LUN moves as a disk with "
                                 "device='lun'."},
                                TRAIT(HOSTDEV_SCSI),
                                "SCSI devices of this host are assigned:"},
    [MIG_CHECK_HOSTDEV_OTHER] = {{"HOSTDEV_OTHER", BLOCKER, MIG_CAUSE_REFUSED,
                                  "Detach them first: virsh detach-device."},
                                 TRAIT(HOSTDEV_OTHER),
                                 "Devices of this host are assigned:"},
    [MIG_CHECK_INTERFACE_VDPA] = {{"INTERFACE_VDPA", BLOCKER, MIG_CAUSE_REFUSED,
                                   "Detach them first: virsh detach-interface."},
                                  TRAIT(INTERFACE_VDPA),
                                  "Devices of this host are assigned by vDPA:"},
    [MIG_CHECK_VIRTIOFS] = {{"VIRTIOFS", BLOCKER, MIG_CAUSE_REFUSED,
                             "Unmount them in the guest and detach them: virsh detach-device."},
                            TRAIT(VIRTIOFS),
                            "Directories of this host are shared with the guest by virtiofs:"},
    [MIG_CHECK_SHMEM] =
        {{"SHMEM", BLOCKER, MIG_CAUSE_REFUSED,
          "Detach them first (virsh detach-device); with role='master' the memory would move."},
         TRAIT(SHMEM),
         "Memory is shared with other guests of this host:"},
    [MIG_CHECK_SGX] = {{"SGX", BLOCKER, MIG_CAUSE_REFUSED,
                        "Shut the guest down and start it at the target: enclaves cannot be moved."},
                       TRAIT(SGX),
                       "The guest has enclave memory of this host's CPU:"},
    [MIG_CHECK_TPM_PASSTHROUGH] = {{"TPM_PASSTHROUGH", BLOCKER, MIG_CAUSE_REFUSED,
                                    "Give the guest an emulated TPM, or none; it takes a restart."},
                                   TRAIT(TPM_PASSTHROUGH),
                                   "The guest has the TPM of this host:"},
    [MIG_CHECK_LAUNCH_SECURITY] =
        {{"LAUNCH_SECURITY", BLOCKER, MIG_CAUSE_REFUSED,
          "Shut the guest down and start it at the target: encrypted memory cannot be "
          "moved."},
         TRAIT(LAUNCH_SECURITY),
         "The guest's memory is encrypted by this host's CPU:"},
    [MIG_CHECK_VIDEO_3D] = {{"VIDEO_3D", BLOCKER, MIG_CAUSE_REFUSED,
                             "Take the acceleration off its video device; it takes a restart."},
                            TRAIT(VIDEO_3D),
                            "This host's GPU draws for the guest:"},

    [MIG_CHECK_DISK_TRANSIENT] =
        {{"DISK_TRANSIENT", BLOCKER, MIG_CAUSE_REFUSED,
          "Detach them first (virsh detach-disk): libvirt moves no disk whose changes are "
          "to be forgotten."},
         rule_disk_transient,
         .lead = "Transient disks:"},
    [MIG_CHECK_DISK_NVME] = {{"DISK_NVME", BLOCKER, MIG_CAUSE_REFUSED,
                              "Detach them first: virsh detach-disk."},
                             rule_disk_nvme,
                             .lead = "NVMe devices of this host are assigned as disks:"},
    [MIG_CHECK_DISK_LOCAL] = {{"DISK_LOCAL", BLOCKER, MIG_CAUSE_REFUSED,
                               "Set copy_disks=all, or move them to storage that both hosts have first."},
                              rule_disk_local,
                              .lead = "On storage that only this host sees:"},
    [MIG_CHECK_DISK_CACHE] =
        {{"DISK_CACHE", BLOCKER, MIG_CAUSE_REFUSED,
          "Set cache='none' (it takes a restart of the guest), or have them copied: copy_disks."},
         rule_disk_cache,
         .lead = "What was written may be in this host's memory only, by the cache mode of"},
    [MIG_CHECK_DISK_MISSING] =
        {{"DISK_MISSING", BLOCKER, MIG_CAUSE_REFUSED,
          "Mount or make it there under the same name, or set copy_disks=all for local "
          "disks."},
         rule_disk_missing,
         .lead = "The target has no",
         .of_target = true},
    [MIG_CHECK_DISK_TOO_SMALL] =
        {{"DISK_TOO_SMALL", BLOCKER, MIG_CAUSE_REFUSED,
          "Make it as large as here, to the byte: qemu-img resize, or virsh vol-resize."},
         rule_disk_too_small,
         .lead = "Too small at the target:",
         .of_target = true},
    [MIG_CHECK_DISK_SIZE_DIFFERS] =
        {{"DISK_SIZE_DIFFERS", BLOCKER, MIG_CAUSE_REFUSED,
          "Find out whether it is the guest's disk at all; one to be copied to must have "
          "the same size, to the byte."},
         rule_disk_size_differs,
         .lead = "Of another size at the target:",
         .of_target = true},
    [MIG_CHECK_POOL_SPACE] = {{"POOL_SPACE", TRANSIENT, MIG_CAUSE_REFUSED,
                               "Free or add space there: virsh pool-info POOL."},
                              rule_pool_space,
                              .lead = "No room for the disks to be made at the target:",
                              .of_target = true},
    [MIG_CHECK_HOST_DRIVE] = {{"HOST_DRIVE", BLOCKER, MIG_CAUSE_REFUSED,
                               "Eject it (virsh change-media DOMAIN DISK --eject), or put an image in."},
                              rule_host_drive,
                              .lead = "The guest uses a drive of this host:"},
    [MIG_CHECK_MEDIA_MISSING] =
        {{"MEDIA_MISSING", BLOCKER, MIG_CAUSE_REFUSED,
          "Eject it (virsh change-media DOMAIN DISK --eject), or put the image there under "
          "the same name."},
         rule_media,
         MIG_SIGHT_ABSENT,
         "The target has no",
         true},

    [MIG_CHECK_CPU_INVTSC] =
        {{"CPU_INVTSC", BLOCKER, MIG_CAUSE_REFUSED,
          "Fix it by <timer name='tsc' frequency='HZ'/>, or take the feature off; it takes a "
          "restart."},
         rule_cpu_invtsc},
    [MIG_CHECK_CPU_INCOMPATIBLE] =
        {{"CPU_INCOMPATIBLE", BLOCKER, MIG_CAUSE_REFUSED,
          "Move it to a host that can, or restart it with a model that both hosts have: "
          "virsh hypervisor-cpu-baseline."},
         rule_cpu_incompatible,
         .of_target = true},
    [MIG_CHECK_CPU_OTHER_HOST] =
        {{"CPU_OTHER_HOST", BLOCKER, MIG_CAUSE_REFUSED,
          "Move it to a host with the same CPU, or restart it with a CPU model that both "
          "hosts have."},
         rule_cpu_other_host,
         .of_target = true},
    [MIG_CHECK_TSC_FREQUENCY] = {{"TSC_FREQUENCY", BLOCKER, MIG_CAUSE_REFUSED,
                                  "Move it to a host that ticks alike, or that can scale its TSC."},
                                 rule_tsc_frequency,
                                 .of_target = true},
    [MIG_CHECK_EMULATOR_MISSING] = {{"EMULATOR_MISSING", BLOCKER, MIG_CAUSE_REFUSED,
                                     "Install it there; the path is that of <emulator> in the domain."},
                                    rule_emulator_missing,
                                    .of_target = true},
    [MIG_CHECK_VIRT_TYPE] =
        {{"VIRT_TYPE", BLOCKER, MIG_CAUSE_REFUSED,
          "See that the target has /dev/kvm, and that libvirt may use it: virt-host-validate."},
         rule_virt_type,
         .of_target = true},
    [MIG_CHECK_MACHINE_TYPE] =
        {{"MACHINE_TYPE", BLOCKER, MIG_CAUSE_REFUSED,
          "Install the newer QEMU there, or restart the guest with a machine type that both "
          "have."},
         rule_machine_type,
         .of_target = true},
    [MIG_CHECK_DEVICE_UNSUPPORTED] =
        {{"DEVICE_UNSUPPORTED", BLOCKER, MIG_CAUSE_REFUSED,
          "Install what it takes there (QEMU's modules, swtpm), or restart the guest "
          "without."},
         NEED(DEVICE, ABSENT),
         "The target's QEMU cannot do",
         true},
    [MIG_CHECK_SECURITY_MODEL] = {{"SECURITY_MODEL", BLOCKER, MIG_CAUSE_REFUSED,
                                   "Enable the same security driver there, or restart the guest without it "
                                   "(<seclabel type='none'/>)."},
                                  NEED(SECURITY_MODEL, ABSENT),
                                  "The target has no security model",
                                  true},

    [MIG_CHECK_TLS_CERTIFICATES] = {{"TLS_CERTIFICATES", BLOCKER, MIG_CAUSE_REFUSED,
                                     "Put them into /etc/pki/qemu at both ends (see "
                                     "migrate_tls_x509_cert_dir in libvirt's qemu.conf), or "
                                     "do without tls=require."},
                                    rule_tls_certificates},

    [MIG_CHECK_TARGET_TOO_SMALL] = {{"TARGET_TOO_SMALL", BLOCKER, MIG_CAUSE_REFUSED,
                                     "Move it to a larger host."},
                                    rule_target_too_small,
                                    .of_target = true},
    [MIG_CHECK_TARGET_MEMORY] = {{"TARGET_MEMORY", TRANSIENT, MIG_CAUSE_REFUSED,
                                  "Wait until guests have left the target, or move it elsewhere."},
                                 rule_target_memory,
                                 .of_target = true},
    [MIG_CHECK_HUGEPAGES_MISSING] = {{"HUGEPAGES_MISSING", BLOCKER, MIG_CAUSE_REFUSED,
                                      "Set up more of them there (virsh allocpages), or move it elsewhere."},
                                     rule_hugepages_missing,
                                     .lead = "The target has too few huge pages:",
                                     .of_target = true},
    [MIG_CHECK_HUGEPAGES_TAKEN] = {{"HUGEPAGES_TAKEN", TRANSIENT, MIG_CAUSE_REFUSED,
                                    "Wait until guests have left the target, or set up more there: virsh "
                                    "allocpages."},
                                   rule_hugepages_taken,
                                   .lead = "Too few of the target's huge pages are free:",
                                   .of_target = true},
    [MIG_CHECK_VCPUS_MAX] =
        {{"VCPUS_MAX", BLOCKER, MIG_CAUSE_REFUSED,
          "Restart the guest with fewer vCPUs, or with a machine type that can have more."},
         rule_vcpus_max,
         .of_target = true},
    [MIG_CHECK_PINNED_CPUS] =
        {{"PINNED_CPUS", BLOCKER, MIG_CAUSE_REFUSED,
          "Pin them to CPUs that the target has too: virsh vcpupin, emulatorpin, iothreadpin."},
         rule_pinned_cpus,
         .lead = "The target has none of the CPUs of",
         .of_target = true},
    [MIG_CHECK_NUMA_NODES] = {{"NUMA_NODES", BLOCKER, MIG_CAUSE_REFUSED,
                               "Bind it to nodes that both hosts have (virsh numatune), or to none."},
                              rule_numa_nodes,
                              .lead = "Memory is bound to NUMA nodes that the target has not:",
                              .of_target = true},

    [MIG_CHECK_NETWORK_MISSING] = {{"NETWORK_MISSING", BLOCKER, MIG_CAUSE_REFUSED,
                                    "Define and start it there: virsh net-define, virsh net-start."},
                                   NEED(NETWORK, ABSENT),
                                   "The target has no network",
                                   true},
    [MIG_CHECK_NETWORK_INACTIVE] = {{"NETWORK_INACTIVE", TRANSIENT, MIG_CAUSE_REFUSED,
                                     "Start it there: virsh net-start, virsh net-autostart."},
                                    NEED(NETWORK, INACTIVE),
                                    "Not started at the target: network",
                                    true},
    [MIG_CHECK_INTERFACE_MISSING] =
        {{"INTERFACE_MISSING", BLOCKER, MIG_CAUSE_REFUSED,
          "Make a bridge or device of that name there, or attach the guest to a libvirt "
          "network that both hosts have."},
         NEED(HOST_INTERFACE, ABSENT),
         "The target has no bridge or interface",
         true},
    [MIG_CHECK_FILTER_MISSING] = {{"FILTER_MISSING", BLOCKER, MIG_CAUSE_REFUSED,
                                   "Define it there: virsh nwfilter-define."},
                                  NEED(FILTER, ABSENT),
                                  "The target has no network filter",
                                  true},
    [MIG_CHECK_SECRET_MISSING] = {{"SECRET_MISSING", BLOCKER, MIG_CAUSE_REFUSED,
                                   "Define it there and set its value: virsh secret-define, virsh "
                                   "secret-set-value."},
                                  NEED(SECRET, ABSENT),
                                  "The target has no secret",
                                  true},
    [MIG_CHECK_FILE_MISSING] = {{"FILE_MISSING", BLOCKER, MIG_CAUSE_REFUSED,
                                 "Put it there under the same name."},
                                NEED(FILE, ABSENT),
                                "The target has no file",
                                true},

    [MIG_CHECK_DOMAIN_PAUSED] = {{"DOMAIN_PAUSED", WARNING, MIG_CAUSE_NONE,
                                  "It moves, and is paused at the target as well."},
                                 rule_domain_paused},
    [MIG_CHECK_DEFINED_AT_TARGET] = {{"DEFINED_AT_TARGET", WARNING, MIG_CAUSE_NONE,
                                      "The running domain's takes its place, if persist_target says so."},
                                     rule_defined_at_target,
                                     .of_target = true},
    [MIG_CHECK_QEMU_OLDER] =
        {{"QEMU_OLDER", WARNING, MIG_CAUSE_NONE,
          "It may work by the same machine type, and is rarely tested: rather move to an equal "
          "or newer one."},
         rule_qemu_older,
         .of_target = true},
    [MIG_CHECK_LIBVIRT_OLDER] =
        {{"LIBVIRT_OLDER", WARNING, MIG_CAUSE_NONE,
          "It may not understand all of the domain's definition, and says so before anything "
          "moves."},
         rule_libvirt_older,
         .of_target = true},
    [MIG_CHECK_HOSTDEV_VFIO] =
        {{"HOSTDEV_VFIO", WARNING, MIG_CAUSE_NONE,
          "Whether their drivers can move is known to QEMU only; the target needs the same "
          "devices at the same addresses."},
         rule_hostdev_vfio,
         .lead = "Devices of this host are assigned:"},
    [MIG_CHECK_HOSTDEV_USB_DROPPED] = {{"HOSTDEV_USB_DROPPED", WARNING, MIG_CAUSE_NONE,
                                        "The guest loses what the target has not, by their startupPolicy."},
                                       TRAIT(HOSTDEV_USB_OPTIONAL),
                                       "USB devices of this host are assigned:"},
    [MIG_CHECK_HOSTDEV_TEAMING] =
        {{"HOSTDEV_TEAMING", WARNING, MIG_CAUSE_NONE,
          "The guest has to let go of them, and goes on over the virtual interface of the "
          "team; else it cannot move."},
         TRAIT(HOSTDEV_TEAMING),
         "To be unplugged for the move:"},
    [MIG_CHECK_FILESYSTEM_9P] = {{"FILESYSTEM_9P", WARNING, MIG_CAUSE_NONE,
                                  "Unmount them in the guest: QEMU refuses to move while they are mounted."},
                                 TRAIT(FILESYSTEM_9P),
                                 "Directories of this host are shared with the guest by 9p:"},
    [MIG_CHECK_HOST_CHARDEV] =
        {{"HOST_CHARDEV", WARNING, MIG_CAUSE_NONE,
          "The guest gets the target's of the same name, with whatever is on its cable."},
         TRAIT(HOST_CHARDEV),
         "The guest uses ports of this host:"},
    [MIG_CHECK_USER_NETWORK] = {{"USER_NETWORK", WARNING, MIG_CAUSE_NONE,
                                 "The guest's connections over them break at the switchover."},
                                TRAIT(INTERFACE_USER),
                                "Networked by a process of this host:"},
    [MIG_CHECK_GRAPHICS_LISTEN] =
        {{"GRAPHICS_LISTEN", WARNING, MIG_CAUSE_NONE,
          "The target must have the address too, or QEMU does not start there; 0.0.0.0 "
          "would fit any host."},
         TRAIT(GRAPHICS_LISTEN),
         "The console listens on one address:"},
    [MIG_CHECK_COMMAND_LINE] = {{"COMMAND_LINE", WARNING, MIG_CAUSE_NONE,
                                 "The target's QEMU is given the same; see that they suit it."},
                                TRAIT(COMMAND_LINE),
                                "QEMU has arguments that libvirt does not understand:"},
    [MIG_CHECK_STORAGE_UNKNOWN] =
        {{"STORAGE_UNKNOWN", WARNING, MIG_CAUSE_NONE,
          "It is not copied, and libvirt refuses if it knows it for local. The agent must see the "
          "file: show it with ProtectHome=read-only in a drop-in, or keep it elsewhere."},
         rule_storage_unknown,
         .lead = "Shared or local, that cannot be told, are"},
    [MIG_CHECK_DISK_UNSEEN] =
        {{"DISK_UNSEEN", WARNING, MIG_CAUSE_NONE,
          "No storage pool of the target covers it: look there yourself, or define a pool at its "
          "directory."},
         rule_disk_unseen,
         .lead = "It cannot be seen whether the target has",
         .of_target = true},
    [MIG_CHECK_MEDIA_UNSEEN] =
        {{"MEDIA_UNSEEN", WARNING, MIG_CAUSE_NONE,
          "Eject it if it is no longer needed: virsh change-media DOMAIN DISK --eject."},
         rule_media,
         MIG_SIGHT_UNSEEN,
         "It cannot be seen whether the target has",
         true},
    [MIG_CHECK_CPU_PASSTHROUGH] =
        {{"CPU_PASSTHROUGH", WARNING, MIG_CAUSE_NONE,
          "A guest with the host's own CPU is safe on a twin only: same model, microcode, "
          "kernel."},
         rule_cpu_passthrough,
         .of_target = true},
    [MIG_CHECK_CPU_UNCHECKED] = {{"CPU_UNCHECKED", WARNING, MIG_CAUSE_NONE,
                                  "The guest does without that here as well, by check='none'."},
                                 rule_cpu_unchecked,
                                 .of_target = true},
    [MIG_CHECK_CPU_UNSEEN] = {{"CPU_UNSEEN", WARNING, MIG_CAUSE_NONE,
                               "It is compared again at the start, before anything moves."},
                              rule_cpu_unseen,
                              .of_target = true},
    [MIG_CHECK_MEMORY_TIGHT] =
        {{"MEMORY_TIGHT", WARNING, MIG_CAUSE_NONE,
          "QEMU takes some more than the guest's memory; the target may begin to swap."},
         rule_memory_tight,
         .of_target = true},
    [MIG_CHECK_MEMORY_BALLOONED] = {{"MEMORY_BALLOONED", WARNING, MIG_CAUSE_NONE,
                                     "It fits as long as its balloon stays as it is."},
                                    rule_memory_ballooned,
                                    .of_target = true},
    [MIG_CHECK_VCPUS_OVERCOMMITTED] = {{"VCPUS_OVERCOMMITTED", WARNING, MIG_CAUSE_NONE,
                                        "It runs, and more slowly when all are busy."},
                                       rule_vcpus_overcommitted,
                                       .of_target = true},
    [MIG_CHECK_PINNED_CPUS_FEWER] = {{"PINNED_CPUS_FEWER", WARNING, MIG_CAUSE_NONE,
                                      "It runs on those that are left."},
                                     rule_pinned_cpus_fewer,
                                     .lead = "The target has only some of the CPUs of",
                                     .of_target = true},
    [MIG_CHECK_PINNED] =
        {{"PINNED", WARNING, MIG_CAUSE_NONE,
          "It takes the CPUs of the same numbers at the target, whoever else is pinned there."},
         rule_pinned,
         .lead = "Pinned are"},
    [MIG_CHECK_NETWORK_UNSEEN] =
        {{"NETWORK_UNSEEN", WARNING, MIG_CAUSE_NONE,
          "The target's libvirt does not say what networks it has: look there yourself."},
         NEED(NETWORK, UNSEEN),
         "It cannot be seen whether the target has network",
         true},
    [MIG_CHECK_INTERFACE_UNSEEN] =
        {{"INTERFACE_UNSEEN", WARNING, MIG_CAUSE_NONE,
          "The target's libvirt does not say what interfaces it has (its interface driver "
          "is missing): look there yourself."},
         NEED(HOST_INTERFACE, UNSEEN),
         "It cannot be seen whether the target has bridge or interface",
         true},
    [MIG_CHECK_FILTER_UNSEEN] =
        {{"FILTER_UNSEEN", WARNING, MIG_CAUSE_NONE,
          "The target's libvirt does not say what filters it has: look there yourself."},
         NEED(FILTER, UNSEEN),
         "It cannot be seen whether the target has network filter",
         true},
    [MIG_CHECK_SECRET_UNSEEN] =
        {{"SECRET_UNSEEN", WARNING, MIG_CAUSE_NONE,
          "The target's libvirt does not say what secrets it has: look there yourself."},
         NEED(SECRET, UNSEEN),
         "It cannot be seen whether the target has secret",
         true},
    [MIG_CHECK_FILE_UNSEEN] = {{"FILE_UNSEEN", WARNING, MIG_CAUSE_NONE,
                                "Look there yourself: QEMU does not start without."},
                               NEED(FILE, UNSEEN),
                               "It cannot be seen whether the target has file",
                               true},
    [MIG_CHECK_SOCKET_UNSEEN] = {{"SOCKET_UNSEEN", WARNING, MIG_CAUSE_NONE,
                                  "The process behind it has to be ready there, and able to move its state."},
                                 NEED(SOCKET, UNSEEN),
                                 "It cannot be seen whether the target has socket",
                                 true},
    [MIG_CHECK_DEVICE_UNSEEN] = {{"DEVICE_UNSEEN", WARNING, MIG_CAUSE_NONE,
                                  "Its libvirt is too old to tell; QEMU does not start there without."},
                                 NEED(DEVICE, UNSEEN),
                                 "It cannot be seen whether the target's QEMU can do",
                                 true},
    [MIG_CHECK_TLS_UNSEEN] = {{"TLS_UNSEEN", WARNING, MIG_CAUSE_NONE,
                               "Without them libvirt refuses at the start, before anything moves."},
                              rule_tls_unseen},
    [MIG_CHECK_TLS_CONTROL] =
        {{"TLS_CONTROL", WARNING, MIG_CAUSE_NONE,
          "Only the guest's memory is encrypted; reach the target by qemu+tls:// or qemu+ssh:// "
          "for the rest."},
         rule_tls_control},
};
TABLE_COVERS(rows, MIG_CHECK_COUNT);

const RuleRow *rules_row(MigCheck check) {
  return &rows[check];
}

const MigCheckInfo *mig_check_info(MigCheck check) {
  return (unsigned)check < MIG_CHECK_COUNT ? &rows[check].info : NULL;
}
