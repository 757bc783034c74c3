/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Prints guests of the zoo. */
#include "tests/zoo/zoo.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void show(const ZooGuest *guest) {
  char phases[512];
  zoo_phases_text(guest, phases, sizeof(phases));
  printf("name=%s\nmemory_mib=%" PRIu64 "\nvcpus=%u\nbusy_vcpus=%u\nbusy_pct=%u\nphases=%s\nzero_pct=%u\n"
         "zero_where=%s\nhuge_pages=%s\ndisk_mib=%" PRIu64 "\ndisk_write_kib_per_s=%" PRIu64
         "\nlink_mbit=%" PRIu64 "\nlab=%s\n",
         guest->name, guest->memory_mib, guest->vcpus, guest->busy_vcpus, guest->busy_pct, phases,
         guest->zero_pct, zoo_where_name(guest->zero_where), guest->huge_pages ? "yes" : "no",
         guest->disk_mib, guest->disk_write_kib_per_s, guest->link_mbit,
         zoo_lab_problem(guest) ? "no" : "yes");
}

static int list(void) {
  size_t n;
  const ZooGuest *guests = zoo_list(&n);
  for (size_t i = 0; i < n; i++)
    printf("%-16s %-4s %s\n", guests[i].name, zoo_lab_problem(&guests[i]) ? "" : "lab", guests[i].what);
  return 0;
}

/* A range's name, a seed and a number make the name of a guest. */
static int draw(const char *range, const char *seed, const char *n) {
  uint64_t count = strtoull(n, NULL, 10);
  for (uint64_t i = 0; i < count; i++) {
    ZooGuest guest;
    char name[96];
    snprintf(name, sizeof(name), "%s-%s-%" PRIu64, range, seed, i);
    if (!zoo_find(name, &guest)) {
      fprintf(stderr, "zoo: no such range or seed: %s %s\n", range, seed);
      return 1;
    }
    printf("%s", i > 0 ? "\n" : "");
    show(&guest);
  }
  return 0;
}

int main(int argc, char **argv) {
  ZooGuest guest;
  if (argc == 2 && strcmp(argv[1], "list") == 0)
    return list();
  if (argc == 3 && strcmp(argv[1], "show") == 0) {
    if (zoo_find(argv[2], &guest)) {
      show(&guest);
      return 0;
    }
    fprintf(stderr, "zoo: no guest '%s'; zoo list has the names\n", argv[2]);
    return 1;
  }
  if ((argc == 4 || argc == 5) && strcmp(argv[1], "draw") == 0)
    return draw(argc == 5 ? argv[4] : "any", argv[2], argv[3]);
  fputs("usage: zoo list | show NAME | draw SEED N [any|lab|quick]\n"
        "A guest is printed as lines of key=value. draw prints N guests, with an empty line between two; "
        "their names\n"
        "are RANGE-SEED-0 and so on, and show knows them too.\n",
        stderr);
  return 2;
}
