/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* libmigrate: the live migration of libvirt domains, as handoffd does it. This header includes the whole public API.
 *
 * core decides. It takes facts and returns decisions; it has no thread, clock, file, log or heap memory, and needs nothing but
 * libc and libm:
 *
 *   policy.h      the goals of a migration: downtime, pause, bandwidth, which ways are allowed
 *   migratable.h  what keeps a domain from moving to a target: mig_check()
 *   forecast.h    how a migration will go, and how to start it: mig_plan(), mig_forecast()
 *   profile.h     what a guest dirtied whenever it was measured: mig_profile_expect()
 *   monitor.h     steers a running migration: a reading in, at most one action out: mig_monitor_step()
 *   verdict.h     which end has the guest, from what both ends say: mig_verdict()
 *   settle.h      what to do while that is unknown, and the evidence that each action needs: mig_settle_step()
 *   changes.h     what the next start of a domain would change: mig_changes()
 *   facts.h, match.h, types.h   what the others work on
 *
 * virt acts. driver.h is a table of functions for everything that is asked of a hypervisor. mig_driver_libvirt_new() makes the
 * one that calls libvirt; a program may bring its own, and tests do.
 *
 * example.c, beside this file in the source tree, forecasts a migration and runs it.
 *
 * Units: in the name of each field and parameter (_ms, _s, _bytes, _bytes_per_s, _pct). Sizes and rates are in bytes, as libvirt
 * and QEMU count them; KiB, MiB and GiB are powers of 1024. Times of one object (a monitor, a settle) are of one monotonic clock,
 * which the caller reads; g_get_monotonic_time() / 1000 will do.
 *
 * Errors: functions of core cannot fail; an answer such as "no way ends this migration" or "no such key" is a value. Functions of
 * virt that can fail return false or NULL and set a GError, nearly always of the domain MIG_VIRT_ERROR, if `error` is not NULL.
 * Arguments named ret_* are written on success only, unless a comment says otherwise.
 *
 * Names: mig_..._name() returns a static string, or NULL for a value out of range. mig_..._from_name() returns the value, or
 * MIG_ENUM_UNKNOWN; NULL is unknown. The names are stable, and are what the varlink interface of handoffd uses; the numbers of
 * an enum are not. New values come, so treat those that you do not know as you would treat "unknown".
 *
 * Ownership: pointers in arguments are borrowed for the call, unless a comment says otherwise. Structs belong to the caller, who
 * may put them anywhere, and copy those of core with an assignment. Facts and definitions have a store, which owns the strings
 * and arrays in them: mig_..._clear() frees it, so a copy of such a struct is borrowed from the first. Strings in findings,
 * answers and steps are static where the comment says so.
 *
 * Threads: core has no global state. Any thread may call any function; one object (a monitor, a settle, a policy that changes)
 * must not be used by two threads at once. A MigDriver and a MigConn may be used by several threads at once.
 *
 * Versions: the structs of this API are plain, and their sizes are part of the ABI. As long as the major version is 0, a release
 * that breaks programs built before has a new minor version and a new version of its symbols (LIBMIGRATE_0.1 is the first), so
 * that the dynamic linker refuses such a program instead of running it. A new micro version only adds. */
#pragma once

#define MIG_VERSION_MAJOR 0
#define MIG_VERSION_MINOR 1
#define MIG_VERSION_MICRO 0

#include "libmigrate/core/changes.h"
#include "libmigrate/core/facts.h"
#include "libmigrate/core/forecast.h"
#include "libmigrate/core/match.h"
#include "libmigrate/core/migratable.h"
#include "libmigrate/core/monitor.h"
#include "libmigrate/core/policy.h"
#include "libmigrate/core/profile.h"
#include "libmigrate/core/settle.h"
#include "libmigrate/core/types.h"
#include "libmigrate/core/verdict.h"
#include "libmigrate/virt/driver.h"
#include "libmigrate/virt/tags.h"
