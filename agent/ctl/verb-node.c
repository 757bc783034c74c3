/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* handoffctl node: the state of this node. */
#include "agent/ctl/call.h"
#include "agent/ctl/drainview.h"
#include "agent/ctl/format.h"
#include "agent/ctl/jobview.h"
#include "agent/ctl/print.h"

static void print_targets(Term *term, json_t *targets) {
  json_t *target;
  size_t i;

  json_array_foreach (targets, i, target) {
    const char *name = json_string_of(target, "name"), *uri = json_string_of(target, "libvirt_uri");
    const char *migrate_uri = json_string_of(target, "migrate_uri");

    print_field(term, i == 0 ? "targets" : "", "%s  %s%s%s", or_dash(name), or_dash(uri),
                migrate_uri ? "  stream to " : "", migrate_uri ? migrate_uri : "");
  }
}

static void print_learned(Term *term, json_t *links) {
  json_t *link;
  size_t i;

  json_array_foreach (links, i, link) {
    int64_t bytes_per_s = json_int_of(link, "bandwidth_bytes_per_s"),
            switch_ms = json_int_of(link, "switch_ms");
    g_autofree char *rate = bytes_per_s > 0 ? g_strdup_printf("%s/s", format_bytes(bytes_per_s).text) : NULL;
    g_autofree char *pause =
        switch_ms > 0 ? g_strdup_printf("a switch takes %" G_GINT64_FORMAT " ms", switch_ms) : NULL;

    print_field(term, i == 0 ? "links" : "", "%s  %s%s%s", or_dash(json_string_of(link, "target")),
                rate ? rate : "", rate && pause ? ", " : "", pause ? pause : "");
  }
}

static void print_profiling(Term *term, json_t *profiling) {
  int64_t measured = json_int_of(profiling, "measured"), failed = json_int_of(profiling, "failed");

  if (measured + failed > 0)
    print_field(term, "profiles",
                "%" G_GINT64_FORMAT " measurements of running guests, %s in all; %" G_GINT64_FORMAT " failed",
                measured, format_duration_ms(json_int_of(profiling, "took_ms")).text, failed);
}

static void print_strings(Term *term, const char *label, json_t *strings) {
  json_t *text;
  size_t i;

  json_array_foreach (strings, i, text)
    print_field(term, i == 0 ? label : "", "%s", or_dash(json_string_value(text)));
}

static void print_libvirt(Term *term, json_t *node) {
  const char *uri = json_string_of(node, "libvirt_uri"), *version = json_string_of(node, "libvirt_version");
  const char *hypervisor = json_string_of(node, "hypervisor_version");

  print_field(term, "libvirt", "%s  %s%s%s%s", uri ? uri : "?", version ? version : "",
              hypervisor ? ", hypervisor " : "", hypervisor ? hypervisor : "",
              json_bool_of(node, "libvirt_reachable") ? "" : "not responding");
}

static void print_cordon(Term *term, json_t *cordon) {
  const char *reason = json_string_of(cordon, "reason");

  if (cordon)
    print_field(term, "cordoned", "since %s, by %s%s%s: accepts no new work",
                format_time(json_int_of(cordon, "since_usec_realtime")).text,
                or_dash(json_string_of(cordon, "by")), reason && *reason ? ", " : "", reason ? reason : "");
}

static void print_drain(Term *term, json_t *drain) {
  g_autoptr(DrainView) view = drain_view_new();
  json_t *parameters = drain ? json_pack("{s:O, s:[]}", "drain", drain, "guests") : NULL;
  g_autofree char *progress = NULL;

  if (parameters && drain_view_take(view, parameters, NULL)) {
    progress = drain_view_progress(view, 0);
    print_field(term, drain_view_is_over(view) ? "last drain" : "drain", "since %s, by %s: %s",
                format_time(json_int_of(drain, "started_usec_realtime")).text,
                or_dash(json_string_of(drain, "by")), progress);
  }
  json_decref(parameters);
}

static void print_pending_changes(Term *term, json_t *pending) {
  static const struct {
    const char *key, *words;
  } rows[] = {
      {"hotplug", "with changes that can be applied now"},
      {"migration", "with changes that need a migration"},
      {"restart", "with changes that need a restart"},
      {"unread", "could not be evaluated"},
  };
  g_autoptr(GString) text = g_string_new(NULL);

  if (!pending)
    return;
  for (size_t i = 0; i < G_N_ELEMENTS(rows); i++) {
    int64_t n = json_int_of(pending, rows[i].key);

    if (n > 0)
      g_string_append_printf(text, "%s%" G_GINT64_FORMAT " %s", text->len > 0 ? ", " : ": ", n,
                             rows[i].words);
  }
  print_field(term, "changes", "%" G_GINT64_FORMAT " running domains%s%s", json_int_of(pending, "domains"),
              text->len > 0 ? text->str : ": none pending", text->len > 0 ? "; see handoffctl evaluate" : "");
}

static void print_damaged(Term *term, json_t *records) {
  json_t *record;
  size_t i;

  json_array_foreach (records, i, record)
    print_field(term, i == 0 ? "damaged" : "",
                "%s (%s), domain %s: check on both ends whether the domain is being migrated, then move the "
                "file away",
                or_dash(json_string_of(record, "path")), or_dash(json_string_of(record, "message")),
                or_dash(json_string_of(record, "domain_uuid")));
}

static ExitStatus print_node(Ctl *ctl, json_t *node) {
  Term *term = &ctl->term;

  if (ctl_print_json(ctl, node))
    return EXIT_DONE;
  print_field(term, "node", "%s", or_dash(json_string_of(node, "hostname")));
  print_field(term, "agent", "%s, up since %s", or_dash(json_string_of(node, "agent_version")),
              format_time(json_int_of(node, "started_usec_realtime")).text);
  print_libvirt(term, node);
  print_field(term, "jobs",
              "%" G_GINT64_FORMAT " running (limit %" G_GINT64_FORMAT "), %" G_GINT64_FORMAT
              " waiting, %" G_GINT64_FORMAT " finished",
              json_int_of(node, "outgoing_running"), json_int_of(node, "max_outgoing"),
              json_int_of(node, "pending"), json_int_of(node, "finished_kept"));
  print_field(term, "incoming",
              "%" G_GINT64_FORMAT " expected or arriving (limit %" G_GINT64_FORMAT "), %s reserved; URI %s",
              json_int_of(node, "incoming"), json_int_of(node, "max_incoming"),
              format_bytes(json_int_of(node, "reserved_bytes")).text,
              or_dash(json_string_of(node, "incoming_uri")));
  if (json_int_of(node, "max_bandwidth_bytes_per_s") > 0)
    print_field(term, "bandwidth", "limited to %s/s for all migrations together",
                format_bytes(json_int_of(node, "max_bandwidth_bytes_per_s")).text);
  print_cordon(term, json_object_get(node, "cordon"));
  print_drain(term, json_object_get(node, "drain"));
  print_hanging(term, json_object_get(node, "hanging"));
  print_damaged(term, json_object_get(node, "damaged_records"));
  print_pending_changes(term, json_object_get(node, "pending_changes"));
  print_profiling(term, json_object_get(node, "profiling"));
  print_targets(term, json_object_get(node, "targets"));
  print_learned(term, json_object_get(node, "learned"));
  print_strings(term, "policies", json_object_get(node, "policies"));
  print_policy(term, json_object_get(node, "policy"));
  print_strings(term, "warning", json_object_get(node, "warnings"));
  return EXIT_DONE;
}

ExitStatus verb_node(Ctl *ctl) {
  return ctl_ask(ctl, ctl_call, "io.handoffd.Agent.GetNode", json_object(), print_node);
}
