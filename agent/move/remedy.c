/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The commands that settle a migration whose outcome only an operator can know.
 *
 * A row is a state of the source and of the target. Its text says what to find out, and gives a command for each answer. %S and
 * %T stand for virsh at the source and at the target, %D for the domain, %J for the job. The first row that matches applies.
 * Once both ends agree the job ends by itself. */
#include "agent/move/remedy.h"

#include <glib.h>
#include <string.h>

#define BIT(state) (1u << MIG_END_##state)

#define NOTHING  (BIT(ABSENT) | BIT(INACTIVE))
#define STOPPED  (BIT(PAUSED) | BIT(PAUSED_MIGRATION))
#define LIVE     (BIT(RUNNING) | BIT(PAUSED))
#define POSTCOPY (BIT(RUNNING_POSTCOPY) | BIT(PAUSED_POSTCOPY))
#define CUT      (BIT(RUNNING_POSTCOPY_FAILED) | BIT(PAUSED_POSTCOPY_FAILED))
#define ANY      (~0u)

static const struct {
  unsigned source, target;
  bool seen_there;
  const char *text;
} rows[] = {
    {STOPPED | BIT(PAUSED_POSTCOPY), NOTHING, true,
     "The guest ran at the target, so the source's copy is out of date. Remove that copy: `%S destroy %D`."},
    {BIT(PAUSED_MIGRATION) | BIT(PAUSED_POSTCOPY) | BIT(PAUSED_POSTCOPY_FAILED), BIT(RUNNING), false,
     "The guest is at the target. Remove the source's copy: `%S destroy %D`."},
    {STOPPED, NOTHING, false,
     "Find out whether the guest ran at the target, or anywhere else since: check the target's "
     "/var/log/libvirt/qemu/%D.log, or ask the target's agent (handoffctl list there). If it never ran: `%S "
     "resume %D`. If it did: `%S destroy %D`. After `handoffctl settle %J --never-ran` the agent resumes the "
     "guest for you; after `handoffctl settle %J --ran` it closes the job."},
    {BIT(PAUSED_POSTCOPY), NOTHING, false,
     "The source's copy cannot continue. Find out whether the guest ran at the target, or anywhere else "
     "since, and remove the source's copy: `%S destroy %D`. If the guest runs nowhere, start it again where "
     "its disks are: `%S start %D`."},
    {BIT(PAUSED), LIVE, false,
     "If the target's copy is the right one: `%S destroy %D`. If the source's copy is: `%T destroy %D`, then "
     "`%S resume %D`."},
    {BIT(PAUSED), ANY, false,
     "If the target's copy is the right one, let its post-copy finish, or find out why it crashed, and then "
     "`%S destroy %D`. If the source's copy is: `%T destroy %D`, then `%S resume %D`."},
    {BIT(PAUSED_MIGRATION), BIT(PAUSED), false,
     "If the guest had arrived at the target: `%T resume %D`. If it had not: `%T destroy %D`, then `%S "
     "resume %D`."},
    {STOPPED | BIT(CRASHED), BIT(CRASHED), false,
     "Once you have looked at both copies: `%S destroy %D` and `%T destroy %D`."},
    {NOTHING, POSTCOPY | CUT, false,
     "The guest at the target lacks memory that no longer exists anywhere. Once you have looked at it: `%T "
     "destroy %D`, and start the guest again."},
    {ANY, BIT(PAUSED_MIGRATION), true,
     "The guest ran at the target, and a later migration stopped it there. Find out where that migration "
     "took it: check the target's /var/log/libvirt/qemu/%D.log, or ask the target's agent (handoffctl list "
     "there). Once the guest runs elsewhere, remove the stopped copies: `%T destroy %D`, and `%S destroy %D` "
     "if the source has one. Never resume them."},
    {NOTHING, BIT(PAUSED_MIGRATION), false,
     "Find out whether the guest ever ran at the target: check the target's /var/log/libvirt/qemu/%D.log, or "
     "ask the target's agent (handoffctl list there). If it never ran there, or runs elsewhere by now, the "
     "target's copy is useless: `%T destroy %D`. If that times out, libvirt keeps a domain whose QEMU is "
     "gone: stop libvirtd at the target, remove /run/libvirt/qemu/%D.xml there, and start libvirtd again."},
    {BIT(PAUSED_MIGRATION), BIT(PAUSED_MIGRATION), false,
     "Find out whether the guest ever ran at the target: check the target's /var/log/libvirt/qemu/%D.log, or "
     "ask the target's agent (handoffctl list there). If it never ran there: `%T destroy %D`, then `%S "
     "resume %D`. If it did, and runs elsewhere by now: `%S destroy %D` and `%T destroy %D`."},
    {BIT(RUNNING) | BIT(PAUSED), BIT(PAUSED_MIGRATION), false,
     "The guest is at the source; the target's copy is useless. If the target's copy does not go away: `%T "
     "destroy %D`. If that times out, libvirt keeps a domain whose QEMU is gone: stop libvirtd at the "
     "target, remove /run/libvirt/qemu/%D.xml there, and start libvirtd again."},
    {BIT(CRASHED), LIVE, false,
     "If the target's copy is the right one: `%S destroy %D`. If it is not: `%T destroy %D`, and start the "
     "guest again."},
    {BIT(PAUSED_MIGRATION), POSTCOPY | CUT, false,
     "If the target's copy does not continue: `%T destroy %D` and `%S destroy %D`, and start the guest "
     "again."},
    {ANY, ANY, false, "Check both: `%S domstate %D --reason` and `%T domstate %D --reason`."},
};

/* For a shell: a name may contain any character. */
static char *quote(const char *text) {
  for (const char *c = text; *c; c++)
    if (!g_ascii_isalnum(*c) && !strchr("-_.:/@+=,%", *c))
      return g_shell_quote(text);
  return g_strdup(text);
}

static char *virsh(const char *uri) {
  g_autofree char *quoted = quote(uri);

  return g_strdup_printf("virsh -c %s", quoted);
}

static char *fill(const char *text, const RemedyPlaces *places) {
  g_autofree char *source = virsh(places->source_uri), *target = virsh(places->target_uri);
  g_autofree char *domain = quote(places->domain);
  GString *out = g_string_new(NULL);

  for (; *text; text++) {
    const char *word = NULL;

    if (*text == '%')
      word = text[1] == 'S'   ? source
             : text[1] == 'T' ? target
             : text[1] == 'D' ? domain
             : text[1] == 'J' ? places->job
                              : NULL;
    if (!word) {
      g_string_append_c(out, *text);
      continue;
    }
    g_string_append(out, word);
    text++;
  }
  return g_string_free(out, FALSE);
}

char *remedy_describe(MigEndState source, MigEndState target, const RemedyPlaces *places) {
  /* The agent waits for an end that does not answer. */
  if (source == MIG_END_UNKNOWN || target == MIG_END_UNKNOWN)
    return NULL;
  for (size_t i = 0; i < G_N_ELEMENTS(rows); i++)
    if ((rows[i].source & (1u << source)) && (rows[i].target & (1u << target)) &&
        (!rows[i].seen_there || places->seen_there))
      return fill(rows[i].text, places);
  return NULL;
}
