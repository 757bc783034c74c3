/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* A scripted hypervisor behind driver.h: hosts, domains and a link in a JSON file, which a test may edit in
 * flight.
 *
 * A connection's URI is  fake:///path/to/control.json?host=NAME  (a target URI of a migration likewise). Where the environment
 * has FAKE_CONTROL=/path/to/control.json, a qemu+tcp://NAME/system is that as well, which a caller of the agent may name; and
 * each URI that is to be opened or reached, good or bad, is a line of /path/to/control.json.opened. The control file is looked at again at every call and every 10 ms, and read when its inode, size or mtime
 * changed; a file that does not parse is ignored until it does, but write-and-rename is the better manner.
 * All fields are optional:
 *
 *   {
 *     "hosts": {
 *       "a": {"uuid": "…", "hostname": "node-a", "libvirt_version": 9000000, "hypervisor_version": 7002000,
 *             "reachable": true,
 *             "hung": false,
 *             "free_memory_bytes": 8589934592, "networks": ["default"], "volumes": {"/x/a.img": 1073741824}}
 *     },
 *     "domains": {
 *       "vm1": {"uuid": "…", "host": "a", "state": "running", "persistent": true,
 *               "memory_bytes": 268435456, "dirty_bytes_per_s": 20971520, "working_set_bytes": 67108864,
 *               "local_disk_bytes": 0, "local_disks": 0, "passthrough": false,
 *               "title": "…", "metadata": {"{urn:x}tier": "gold"},
 *               "xml": "<domain>…", "next_xml": "<domain>…", "job": "backup", "snapshots": 1, "io_error": true,
 *               "disks": {"vda": {"capacity_bytes": 1073741824, "allocation_bytes": 4096, "job": true}},
 *               "states": {"b": "unknown"},
 *               "leftovers": false, "start_failed": false, "migrate_to": "b", "post_copy": false,
 *               "defined": ["b"], "booted": true}
 *     },
 *     "link": {"bytes_per_s": 104857600, "cut": false, "setup_ms": 0, "switch_ms": 20},
 *     "keepalive_ms": 30000,
 *     "calls": {
 *       "job_stats": {"hang": true},
 *       "a.host_facts": {"delay_ms": 200},
 *       "open": {"fail": "DENIED", "message": "…", "times": 2},
 *       "migrate": {"fail_after": "UNREACHABLE", "detach_after_ms": 500},
 *       "events": {"drop": true}
 *     }
 *   }
 *
 *   hosts         one that is not listed cannot be reached. Not reachable: opens are refused and connections break
 *                 (CLOSED event), while jobs go on. Hung: every call on it blocks and no event comes; the model goes on.
 *   domains       uuid: by default made from the name, always the same. host and state: where and how it is at first; applied
 *                 again when the test changes them ("inactive" is a crash of QEMU, "paused" a guest paused by its
 *                 owner). states: what an end says instead of the truth, by the names of MigEndState, or "error" for a
 *                 failing domain_status. leftovers: a migration that fails leaves its definition at the target, one
 *                 that succeeds leaves it at the source. start_failed: shut off where it is not at home, it says that
 *                 its start failed. defined: where it is defined as well, beside its own host. booted: where it
 *                 runs it was started, and did not come. migrate_to: somebody else
 *                 migrates it there, begun when the test sets this, and cancelled when it takes it away; with post_copy
 *                 set later than that, goes over to it.
 *                 next_xml: the definition of its next start, where that is another than xml.
 *                 xml: what libvirt says of it, as a survey reads it; job, snapshots, io_error and disks go with it.
 *   hosts again   as a target of a survey; of what is not mentioned everything is there. memory_bytes, cpus, numa_nodes,
 *                 pages {"2097152": {"total": 8, "free": 4}}, vcpus_max; capabilities and domain_capabilities: paths of
 *                 files of libvirt's XML; machines; cpu and host_cpu {"match": "incompatible", "text": "…"}, cpu_lacks;
 *                 networks, inactive_networks, interfaces, filters, secrets, files, devices, security_models: names,
 *                 null: it cannot tell; names {"vm1": UUID} of other domains; volumes, and pools {"/dir": bytes left}, to which
 *                 images that were made belong; written {"/dir/a.img": bytes}: what somebody wrote to one of these;
 *                 as a source: shared_storage and unknown_storage, prefixes of paths; certificates: true or false;
 *                 as a target: certificates: false, TLS is refused.
 *   link          cut: no byte moves, and after keepalive_ms the migration breaks as libvirt's does. setup_ms: from
 *                 migrate() to the first byte. switch_ms: the fixed part of the switchover.
 *   keepalive_ms  how long a hung call or a cut link is borne.
 *   calls         by the name in MigDriverOps, or HOST.NAME, which goes first. hang: blocks until the knob changes, or
 *                 keepalive_ms, then UNREACHABLE. times: only so many calls, counted anew when the file changes.
 *                 fail_after: does it to the end, then reports failure all the same. detach_after_ms: returns
 *                 UNREACHABLE after that time, and the migration goes on.
 *
 * The model: a pass over memory takes bytes / rate; what the guest dirties in a pass of t seconds is W (1 -
 * exp(-d t / W)); when that fits into the downtime limit, the last of it is copied with the guest stopped.
 * Auto-converge takes 20 % and then 10 % more of the guest's time after each second pass that did not shrink.
 * Post-copy moves the guest at once. Copied disks go before memory.
 *
 * Where each domain is, and its running job, is kept in PATH.state beside the control file, so it survives
 * the process; a job goes on while nobody runs, on CLOCK_MONOTONIC. Remove it to begin anew. One process at a
 * time. */
#pragma once

#include "libmigrate/virt/driver.h"

MigDriver *fake_driver_new(void);
