/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Compares two definitions.
 *
 * Both are sorted, so a single walk over both finds the differences. A whole item that only one side has is one
 * change. In an item that both have, all differing values with the same code and remedy form one change. */
#include "libmigrate/core/changes.h"

#include "libmigrate/core/change-rules.h"
#include "libmigrate/core/table.h"
#include "libmigrate/core/text.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Changes of one item. The table has fewer codes than this for any kind of item. */
#define GROUPS_MAX 64
/* How many values of a change are shown; the rest are counted. */
#define SHOWN_MAX 4

static const char *const remedy_names[] = {
    [MIG_REMEDY_HOTPLUG] = "hotplug",
    [MIG_REMEDY_MIGRATION] = "migration",
    [MIG_REMEDY_RESTART] = "restart",
};
TABLE_COVERS(remedy_names, MIG_REMEDY_COUNT);

const char *mig_remedy_name(MigRemedy remedy) {
  return table_name(remedy_names, MIG_REMEDY_COUNT, (int)remedy);
}

int mig_remedy_from_name(const char *name) {
  return table_find(remedy_names, MIG_REMEDY_COUNT, name);
}

/* --- words --- */

/* Exact, unlike other sizes in messages: two that differ must look different. */
static void add_size(Text *text, const char *digits) {
  static const char *const units[] = {"B", "KiB", "MiB", "GiB", "TiB"};
  uint64_t value = strtoull(digits, NULL, 10);
  size_t unit = 0;
  while (value > 0 && value % 1024 == 0 && unit < TABLE_LENGTH(units) - 1) {
    value /= 1024;
    unit++;
  }
  text_add(text, "%" PRIu64 " %s", value, units[unit]);
}

/* "source bridge='br0'" of source@bridge */
static void add_value(Text *text, const MigDefEntry *entry) {
  const char *at = strrchr(entry->path, '@');
  int before = at ? (int)(at - entry->path) : 0;
  if (text->items++ >= SHOWN_MAX) {
    text->dropped++;
    return;
  }
  text_add(text, "%s%.*s%s%s", text->used > 0 ? ", " : "", before, entry->path, before > 0 ? " " : "",
           at ? at + 1 : entry->path);
  if (!*entry->value)
    return;
  text_add(text, "='");
  if (entry->is_secret)
    text_add(text, "(not shown)");
  else if (entry->is_size)
    add_size(text, entry->value);
  else
    text_add(text, "%.80s", entry->value);
  text_add(text, "'");
}

static void end_values(Text *text) {
  if (text->dropped > 0)
    text_add(text, ", and %u more", text->dropped);
}

/* A whole item in its most telling values. */
static void add_summary(Text *text, ChangeSlice item) {
  static const char *const telling[] = {"@type",       "@model",     "@mode",       "source@*",
                                        "source/*",    "backend*",   "model@type",  "target@bus",
                                        "target@type", "target@dev", "target/size", "driver@type"};
  for (size_t i = 0; i < TABLE_LENGTH(telling); i++)
    for (size_t j = 0; j < item.n; j++)
      if (change_fits(telling[i], item.entries[j].path))
        add_value(text, &item.entries[j]);
  /* The others are not news. */
  text->dropped = 0;
  if (text->used == 0)
    text_add(text, "present");
}

static const char *remedy_sentence(const ChangeRow *row) {
  static const char *const sentences[] = {
      [MIG_REMEDY_HOTPLUG] = "virsh update-device --live sets it while the guest runs.",
      [MIG_REMEDY_MIGRATION] = "A migration with the new definition applies it (virsh migrate --xml).",
      [MIG_REMEDY_RESTART] = "This needs a shutdown and a start; a reboot inside the guest is not enough.",
  };
  return row->how ? row->how : sentences[row->remedy];
}

static void add_message(const ChangeRow *row, ChangeKind kind, const MigChange *change, Text *message) {
  const char *live = change->live, *next = change->next;
  if (kind == CHANGE_ADDED)
    text_add(message, "The next start would add it (%s); the running domain does not have it.", next);
  else if (kind == CHANGE_REMOVED)
    text_add(message, "The running domain has it (%s); the next start would remove it.", live);
  else if (!*live)
    text_add(message, "The running domain does not have %s; the next start would add it.", next);
  else if (!*next)
    text_add(message, "The running domain has %s; the next start would remove it.", live);
  else
    text_add(message, "The running domain has %s; the next start would have %s.", live, next);
  text_add(message, " %s", remedy_sentence(row));
  if (row->by_migration && row->remedy == MIG_REMEDY_HOTPLUG)
    text_add(message, " A migration with the new definition applies it, too.");
}

/* --- the walk --- */

/* A change in the making. */
typedef struct Group {
  const ChangeRow *row;
  ChangeKind kind;   /* ADDED, REMOVED, or VALUE for both others */
  MigChange *change; /* NULL: no room for it, only counted */
  Text live, next;
} Group;

typedef struct Walk {
  ChangeContext context;
  MigChange *changes;
  size_t max, count;
  Group groups[GROUPS_MAX]; /* of the item */
  size_t n_groups;
} Walk;

static bool same_group(const ChangeRow *a, const ChangeRow *b) {
  return a == b || (strcmp(a->code, b->code) == 0 && a->remedy == b->remedy);
}

static Group *group_of(Walk *walk, const ChangeRow *row, ChangeKind kind, const char *item) {
  Group *group;
  for (size_t i = 0; i < walk->n_groups; i++)
    if (same_group(walk->groups[i].row, row))
      return &walk->groups[i];
  if (walk->n_groups == GROUPS_MAX)
    return NULL;
  group = &walk->groups[walk->n_groups++];
  *group = (Group){.row = row, .kind = kind};
  if (walk->count < walk->max) {
    group->change = &walk->changes[walk->count];
    *group->change = (MigChange){
        .code = row->code, .item = item, .remedy = row->remedy, .by_migration = row->by_migration};
    group->live = (Text){.text = group->change->live, .size = sizeof group->change->live};
    group->next = (Text){.text = group->change->next, .size = sizeof group->change->next};
  }
  walk->count++;
  return group;
}

static void end_item(Walk *walk) {
  for (size_t i = 0; i < walk->n_groups; i++) {
    Group *group = &walk->groups[i];
    MigChange *change = group->change;
    Text message;
    if (!change)
      continue;
    end_values(&group->live);
    end_values(&group->next);
    message = (Text){.text = change->message, .size = sizeof change->message};
    add_message(group->row, group->kind, change, &message);
  }
  walk->n_groups = 0;
}

/* One of them may be NULL. */
static void add_difference(Walk *walk, const MigDefEntry *live, const MigDefEntry *next) {
  const MigDefEntry *one = live ? live : next;
  const ChangeRow *row;
  Group *group;
  walk->context.live_entry = live;
  walk->context.next_entry = next;
  row = change_find(next ? CHANGE_VALUE : CHANGE_GONE, one->item, one->path, &walk->context);
  if (!row || !row->code || !(group = group_of(walk, row, CHANGE_VALUE, one->item)) || !group->change)
    return;
  if (live)
    add_value(&group->live, live);
  if (next)
    add_value(&group->next, next);
}

static void add_item(Walk *walk, ChangeKind kind, ChangeSlice item) {
  const ChangeRow *row = change_find(kind, item.entries->item, NULL, &walk->context);
  Group *group;
  if (!row || !row->code || !(group = group_of(walk, row, kind, item.entries->item)) || !group->change)
    return;
  add_summary(kind == CHANGE_ADDED ? &group->next : &group->live, item);
}

static void compare_item(Walk *walk, ChangeSlice live, ChangeSlice next) {
  size_t i = 0, j = 0;
  while (i < live.n || j < next.n) {
    int order = i == live.n ? 1 : j == next.n ? -1 : strcmp(live.entries[i].path, next.entries[j].path);
    if (order < 0)
      add_difference(walk, &live.entries[i++], NULL);
    else if (order > 0)
      add_difference(walk, NULL, &next.entries[j++]);
    else {
      if (strcmp(live.entries[i].value, next.entries[j].value) != 0)
        add_difference(walk, &live.entries[i], &next.entries[j]);
      i++;
      j++;
    }
  }
}

/* The item that begins at `start`. */
static ChangeSlice slice_at(const MigDefinition *definition, size_t start) {
  ChangeSlice slice = {.entries = definition->entries + start};
  while (start + slice.n < definition->n && strcmp(slice.entries[slice.n].item, slice.entries->item) == 0)
    slice.n++;
  return slice;
}

/* It sorts first. */
static ChangeSlice domain_of(const MigDefinition *definition) {
  return definition->n > 0 && !*definition->entries->item ? slice_at(definition, 0) : (ChangeSlice){0};
}

size_t mig_changes(const MigDefinition *live, const MigDefinition *next, MigChange *ret_changes, size_t max) {
  Walk walk = {
      .changes = ret_changes,
      .max = max,
      .context = {.whole_live = live, .live_domain = domain_of(live), .next_domain = domain_of(next)}};
  size_t i = 0, j = 0;
  while (i < live->n || j < next->n) {
    ChangeSlice a = slice_at(live, i), b = slice_at(next, j);
    int order = a.n == 0 ? 1 : b.n == 0 ? -1 : strcmp(a.entries->item, b.entries->item);
    walk.context.live = order <= 0 ? a : (ChangeSlice){0};
    walk.context.next = order >= 0 ? b : (ChangeSlice){0};
    i += walk.context.live.n;
    j += walk.context.next.n;
    if (order < 0)
      add_item(&walk, CHANGE_REMOVED, a);
    else if (order > 0)
      add_item(&walk, CHANGE_ADDED, b);
    else
      compare_item(&walk, a, b);
    end_item(&walk);
  }
  return walk.count;
}
