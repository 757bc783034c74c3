/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* A scripted hypervisor behind driver.h: hosts, domains and a link in a JSON file, which a test may edit in
 * flight.
 *
 * A connection's URI is  fake:///path/to/control.json?host=NAME  (a target URI of a migration likewise). The
 * control file is looked at again at every call and every 10 ms, and read when its inode, size or mtime
 * changed; a file that does not parse is ignored until it does, but write-and-rename is the better manner.
 * All fields are optional:
 *
 *   {
 *     "hosts": {                      a host not listed here cannot be reached
 *       "a": {"uuid": "…", "hostname": "node-a", "libvirt_version": 9000000, "hypervisor_version": 7002000,
 *             "reachable": true,      false: opens are refused, connections break (CLOSED event); jobs go on
 *             "hung": false}          true: every call on it blocks, no event comes; the model goes on
 *     },
 *     "domains": {
 *       "vm1": {"uuid": "…",          default: made from the name, always the same
 *               "host": "a", "state": "running",   where it is at first. Applied again when the test changes
 * them: "state": "inactive" is a crash of QEMU, "paused" a guest paused by its owner "persistent": true,
 * "memory_bytes": 268435456, "dirty_bytes_per_s": 20971520, "working_set_bytes": 67108864,
 * "local_disk_bytes": 0, "local_disks": 0, "passthrough": false, "states": {"b": "unknown"},   what an end
 * says instead of the truth: names of MigEndState, or "error" for a failing domain_status "defined": ["b"]}
 * also defined there, in addition to its own host
 *     },
 *     "link": {"bytes_per_s": 104857600,
 *              "cut": false,          no byte moves; after keepalive_ms the migration breaks as libvirt's
 * does "setup_ms": 0,         from migrate() to the first byte "switch_ms": 20},      fixed part of the
 * switchover "keepalive_ms": 30000,          how long a hung call or a cut link is borne "calls": { by the
 * name in MigDriverOps, or HOST.NAME, which goes first "job_stats": {"hang": true},            blocks until
 * the knob changes, or keepalive_ms: then UNREACHABLE "a.host_facts": {"delay_ms": 200}, "open": {"fail":
 * "DENIED", "message": "…", "times": 2},  times: only so many calls, counted anew when the file changes
 *       "migrate": {"fail_after": "UNREACHABLE"},      does it to the end, then reports failure all the same
 *       "migrate": {"detach_after_ms": 500},           returns UNREACHABLE after that time; the migration
 * goes on "events": {"drop": true}                       no events
 *     }
 *   }
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
