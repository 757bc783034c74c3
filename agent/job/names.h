/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The journal's vocabulary: the MESSAGE_ID of each lifecycle event, and the field names. */
#pragma once

/* Never reuse an id for another meaning: alerts match on it. Each has an entry in systemd/handoffd.catalog;
 * tests/systemd/run compares the two. Send the fields that an entry's text shows (@JOB_ID@…) with the message. */

/* the agent serves its socket and has resumed the jobs that it found */
#define NAMES_MESSAGE_AGENT_STARTED "c945a21f0d1149d6907d0de9932e00f2"

/* the agent stops; running migrations continue */
#define NAMES_MESSAGE_AGENT_STOPPED "aea4fd21c87f44e6acb1a7b7b3c5a251"

/* a line of the configuration was not understood and has no effect */
#define NAMES_MESSAGE_CONFIG_WARNING "15fd88f01378488282c1fa9d9df3bbb7"

/* the configuration was reloaded and is in force */
#define NAMES_MESSAGE_CONFIG_RELOADED "4f5ac3726489406ab05ef7ea9cf00ed5"

/* the reloaded configuration was rejected; the old one stays in force */
#define NAMES_MESSAGE_CONFIG_KEPT "5329550bf3c84be7aad46073a5bbe8a9"

/* this node's libvirtd does not answer */
#define NAMES_MESSAGE_LIBVIRT_LOST "002b1125c3f340b591ccef078edecffd"

/* it answers again */
#define NAMES_MESSAGE_LIBVIRT_BACK "fcd75f6a246c4009ab2ed5c33fefdb7d"

/* this host is shutting down, or the shutdown was cancelled */
#define NAMES_MESSAGE_HOST_SHUTDOWN "e24aaec8e87b4912b483437459764ff6"

/* the node was cordoned */
#define NAMES_MESSAGE_CORDONED "20a2306e945545bba2c310dfe02cdf69"

/* the node was uncordoned */
#define NAMES_MESSAGE_UNCORDONED "d2dabd699c57419a87d0af059c5e6351"

/* a drain started: all domains migrate away */
#define NAMES_MESSAGE_DRAIN_STARTED "f05a219fc31f4b20a00eb115aefd29ee"

/* a drain continues after a restart of the agent */
#define NAMES_MESSAGE_DRAIN_RESUMED "69b15a9264544922bc95f5474f508ac4"

/* a domain stays on the node being drained: it cannot migrate, or its migration did not succeed */
#define NAMES_MESSAGE_DRAIN_GUEST_STAYS "97387c5ea8ad4243a65f1e15cd78659b"

/* a drain is being aborted; migrations in progress continue */
#define NAMES_MESSAGE_DRAIN_STOPPING "3f64c31af15c4b2d83437d8990e600e0"

/* the drain has ended, complete or aborted */
#define NAMES_MESSAGE_DRAIN_ENDED "a7e37a8835b54898a59d056dd28c8b9f"

/* a migration was accepted, and is on stable storage */
#define NAMES_MESSAGE_JOB_ACCEPTED "e9750b7ee37d47faa81bc4bf8cfbcf90"

/* a condition that may resolve itself holds a job or its target; the agent checks again */
#define NAMES_MESSAGE_JOB_HELD "e845c7d1bf40425483440dc6177b9dff"

/* the migration of a job started */
#define NAMES_MESSAGE_JOB_STARTED "f934e7abbcac43bd9cda63028349ced6"

/* its stage changed: pre_copy, auto_converge, stop_and_copy, post_copy */
#define NAMES_MESSAGE_JOB_STAGE "9b1833f1d6da49649cb1fcbd7598e80e"

/* the monitor changed its strategy, with its numbers */
#define NAMES_MESSAGE_JOB_DECISION "0063f0f7e83f49039545ad85bd4413b4"

/* the agent aborts a migration on its own: deadline, no progress, link stalled, not converging */
#define NAMES_MESSAGE_JOB_GUARD "cab38085997342dcb4e1274a3eb0074b"

/* the goals of a job were changed */
#define NAMES_MESSAGE_JOB_TUNED "00c5f4015de141d4aecd099c99be4feb"

/* a caller requested an abort */
#define NAMES_MESSAGE_JOB_ABORT_REQUESTED "3dee0ccaeeae4e1b95e2ef35742efcec"

/* the domain runs at the target, and only there */
#define NAMES_MESSAGE_JOB_SUCCEEDED "cef20be7cd654e129f0e1ad0f4fd5da1"

/* the domain was not migrated; CAUSE says why */
#define NAMES_MESSAGE_JOB_FAILED "51ba5b5a1bd847689ce82b1dd4a46f48"

/* aborted on request or by a guard; the domain runs at the source */
#define NAMES_MESSAGE_JOB_ABORTED "99a8b8228b0740fba67e260a6345a645"

/* the link was lost in post-copy, or the outcome is being determined */
#define NAMES_MESSAGE_JOB_RECOVERING "51311b89215c4579b1420823b7604c80"

/* a job was resumed after a restart of the agent */
#define NAMES_MESSAGE_JOB_ADOPTED "b0446c7a01b34c77a967d36db5cee94e"

/* one end does not answer, so it is unknown where the domain runs */
#define NAMES_MESSAGE_JOB_OUTCOME_UNKNOWN "bae32e7919fa41128b8effa8b9e9bef2"

/* only an operator can find out where the domain runs; the message says what to do */
#define NAMES_MESSAGE_JOB_NEEDS_OPERATOR "fda8d1034f404bee873b8806475dfdf3"

/* the agent resumed or undefined a domain after a migration, with the evidence */
#define NAMES_MESSAGE_JOB_DOMAIN_TOUCHED "1ccc74de9e494ff68f1b11d4caf25c8a"

/* a migration has ended and left something behind that the agent does not remove */
#define NAMES_MESSAGE_JOB_LEFTOVER "ee9ff3a4c7c049a281395875e786d28f"

/* both ends report that the domain runs: an operator must look now */
#define NAMES_MESSAGE_JOB_SPLIT "635b2229ec8b4b21a1c1f1dba7d13116"

/* a libvirtd has not answered a call for a long time; only the thread in it waits */
#define NAMES_MESSAGE_CALL_HANGS "e8997d279e1042ac8e770a70ec120e70"

/* a job record could not be written or synced */
#define NAMES_MESSAGE_STORE_FAILED "f419416186ce4896896839bb55012774"

/* a job record found at the start is unreadable and was set aside */
#define NAMES_MESSAGE_STORE_DAMAGED "87c3b226680f4074ae7446ca90b37865"

/* a migration's history cannot be read or written: the report will be incomplete, the job is not affected */
#define NAMES_MESSAGE_HISTORY_LOST "589cafe77d2d40a38e0ecdd4686ce4cd"

/* the metrics file could not be written */
#define NAMES_MESSAGE_METRICS_FAILED "8d5439d04fae42a6bf327b1ab1dbdaa9"

/* clients reached a limit: connections, or unfinished jobs */
#define NAMES_MESSAGE_LIMIT_REACHED "737a9c0598e545a9ba350907ca6a3b13"

/* a caller is not allowed to do what it requested */
#define NAMES_MESSAGE_ACCESS_DENIED "e18ea6a3bedb4f39a941ed5ae7c5efca"

/* room is reserved for an incoming domain */
#define NAMES_MESSAGE_LEASE_GRANTED "44b4399f815a40ea83ab56246d39682e"

/* an image made for a domain that did not come was removed */
#define NAMES_MESSAGE_IMAGE_REMOVED "01ee8a68a24942509dfb741ab2f84929"

/* Fields, in addition to the journal's own MESSAGE, MESSAGE_ID, PRIORITY and ERRNO. Names include the units. */
#define NAMES_FIELD_JOB_ID            "JOB_ID"
#define NAMES_FIELD_DRAIN_ID          "DRAIN_ID"
#define NAMES_FIELD_REQUEST_KEY       "REQUEST_KEY"
#define NAMES_FIELD_DOMAIN_NAME       "DOMAIN_NAME"
#define NAMES_FIELD_DOMAIN_UUID       "DOMAIN_UUID"
#define NAMES_FIELD_TARGET            "TARGET"     /* as requested: a name or a URI */
#define NAMES_FIELD_TARGET_URI        "TARGET_URI" /* its libvirt URI */
#define NAMES_FIELD_PHASE             "PHASE"
#define NAMES_FIELD_STAGE             "STAGE"
#define NAMES_FIELD_CAUSE             "CAUSE"    /* as in the interface: DEADLINE */
#define NAMES_FIELD_EVIDENCE          "EVIDENCE" /* the numbers of a decision, or the answers of both ends */
#define NAMES_FIELD_RUNNING_AT        "RUNNING_AT" /* source, target, none, unknown */
#define NAMES_FIELD_TOTAL_TIME_MS     "TOTAL_TIME_MS"
#define NAMES_FIELD_TIME_PARTS        "TIME_PARTS"
#define NAMES_FIELD_DOWNTIME_MS       "DOWNTIME_MS"
#define NAMES_FIELD_TRANSFERRED_BYTES "TRANSFERRED_BYTES"
#define NAMES_FIELD_LIBVIRT_URI       "LIBVIRT_URI"
#define NAMES_FIELD_LIBVIRT_CALL      "LIBVIRT_CALL" /* the call, in words */
#define NAMES_FIELD_SINCE_USEC        "SINCE_USEC"   /* realtime */
#define NAMES_FIELD_LIBVIRT_CODE      "LIBVIRT_CODE"
#define NAMES_FIELD_LIBVIRT_MESSAGE   "LIBVIRT_MESSAGE"
#define NAMES_FIELD_METHOD            "METHOD" /* that the client called */
#define NAMES_FIELD_PEER_UID          "PEER_UID"
#define NAMES_FIELD_PEER_PID          "PEER_PID"
#define NAMES_FIELD_CALLER_UID        "CALLER_UID" /* who requested it, according to the kernel */
#define NAMES_FIELD_CALLER_GID        "CALLER_GID"
#define NAMES_FIELD_CALLER_PID        "CALLER_PID"
#define NAMES_FIELD_CALLER_UNIT       "CALLER_UNIT" /* these two looked up by pid: a hint */
#define NAMES_FIELD_CALLER_COMM       "CALLER_COMM"
#define NAMES_FIELD_REASON            "REASON" /* why the node is cordoned */
#define NAMES_FIELD_LIMIT             "LIMIT"
#define NAMES_FIELD_PATH              "PATH" /* of a configuration file or a record */
#define NAMES_FIELD_LINE              "LINE"
