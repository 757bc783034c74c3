/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The race of ours and the peers in the simulator: one JSON object a line for each run. */
#include "tests/bench/peers/peers.h"
#include "tests/zoo/sim-guest.h"

#include <getopt.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define LENGTH(table) (sizeof(table) / sizeof((table)[0]))

/* Longer than the last of the peers' timeouts (Nova's 1600 s); large guests have more. */
enum { GIVE_UP_MS = 1800000, MOST_GOALS = 1024, MOST_GUESTS = 65536 };

/* In the lab two seconds of the first burst have passed when the migration begins. Rounds begin elsewhere. */
enum { BURST_BEGIN_MS = 2000, BURST_STEP_MS = 1700 };

/* Short names for guests of the zoo; all others are called zoo:NAME. */
static const struct {
  const char *name, *guest;
} short_names[] = {
    {"idle", "idle"}, {"64/20", "calm"}, {"100/40", "near"}, {"100/200", "hopeless"}, {"bursty", "bursts"},
};

typedef struct Options {
  const char *guests, *policies, *only; /* lists with commas; NULL: all, of policies and strategies */
  char goals[MOST_GOALS];
  uint64_t link_bytes_per_s; /* 0: the guest's own */
  unsigned rounds;
  unsigned jitter_pct; /* some: else passes and a peer's polls may keep step for ever, as on no real link */
} Options;

static bool listed(const char *list, const char *name) {
  size_t length = strlen(name);
  if (!list)
    return true;
  for (const char *at = list; at; at = strchr(at, ',')) {
    at += *at == ',';
    if (strncmp(at, name, length) == 0 && (at[length] == '\0' || at[length] == ','))
      return true;
  }
  return false;
}

static void print_run(const char *guest, PeerClass kind, const Strategy *strategy, unsigned round,
                      const MigPolicy *policy, const SimResult *result) {
  printf("{\"where\":\"sim\",\"guest\":\"%s\",\"policy\":\"%s\",\"strategy\":\"%s\",\"round\":%u,"
         "\"success\":%s,\"end\":\"%s\",\"cause\":\"%s\",\"total_ms\":%" PRIu64 ",\"silence_ms\":%" PRIu64
         ",\"downtime_ms\":%" PRIu64 ",\"pause_ms\":%" PRIu64 ",\"lost_ms\":%" PRIu64 ",\"bytes\":%" PRIu64
         ",\"iterations\":%" PRIu64 ",\"throttle_pct\":%u,\"max_downtime_ms\":%" PRIu64
         ",\"max_pause_ms\":%" PRIu64 ",\"actions\":[",
         guest, peer_class_info(kind)->name, strategy->name, round,
         sim_end_is_success(result->end) ? "true" : "false", sim_end_name(result->end),
         mig_cause_name(result->cause), result->total_ms, result->longest_silence_ms, result->downtime_ms,
         result->pause_ms, result->lost_work_ms, result->wire_bytes, result->iterations,
         result->max_throttle_pct, mig_policy_get(policy, MIG_POLICY_MAX_DOWNTIME_MS),
         mig_policy_get(policy, MIG_POLICY_MAX_PAUSE_MS));
  for (unsigned i = 0; i < result->action_count && i < SIM_EVENTS; i++) {
    const SimEvent *event = &result->events[i];
    printf("%s{\"at_ms\":%" PRIu64 ",\"action\":\"%s\",\"downtime_ms\":%" PRIu64 ",\"done\":%s}",
           i ? "," : "", event->at_ms, mig_action_name(event->action.kind), event->action.downtime_ms,
           event->outcome == SIM_OUTCOME_DONE ? "true" : "false");
  }
  puts("]}");
}

static void run(const Options *options, const char *name, const ZooGuest *guest, PeerClass kind,
                const Strategy *strategy) {
  MigPolicy policy;
  char message[256];
  mig_policy_init(&policy);
  if (!peer_policy_add(&policy, peer_class_info(kind)->goals, message, sizeof(message)) ||
      !peer_policy_add(&policy, guest->disk_mib > 0 ? "copy_disks=all" : "", message, sizeof(message)) ||
      !peer_policy_add(&policy, options->goals, message, sizeof(message))) {
    fprintf(stderr, "bench-policies: %s\n", message);
    exit(2);
  }
  uint64_t link_bytes_per_s =
      options->link_bytes_per_s ? options->link_bytes_per_s : zoo_link_bytes_per_s(guest);
  uint64_t scan_bytes_per_s = sim_host_default.scan_bytes_per_s;
  uint64_t pace_bytes_per_s = link_bytes_per_s < scan_bytes_per_s ? link_bytes_per_s : scan_bytes_per_s;
  uint64_t first_pass_ms = guest->memory_mib * MIG_MIB_BYTES / (pace_bytes_per_s / 1000 + 1);
  for (unsigned round = 1; round <= options->rounds; round++) {
    SimScenario scenario = {
        .group = "race",
        .name = name,
        .link = {.bytes_per_s =
                     options->link_bytes_per_s ? options->link_bytes_per_s : zoo_link_bytes_per_s(guest),
                 .jitter_pct = options->jitter_pct},
        .policy = &policy,
        .seed = round,
        .give_up_ms = GIVE_UP_MS + 10 * first_pass_ms,
    };
    static SimResult result;
    zoo_sim_guest(guest, BURST_BEGIN_MS + (round - 1) * BURST_STEP_MS, &scenario.guest);
    sim_run(&scenario, strategy, &result);
    print_run(name, kind, strategy, round, &policy, &result);
  }
}

static void list_all(void) {
  size_t n;
  const Peer *peers = peers_list(&n);
  for (unsigned kind = 0; kind < PEER_CLASS_COUNT; kind++) {
    const PeerClassInfo *info = peer_class_info(kind);
    printf("policy\t%s\t%s\n", info->name, info->goals);
  }
  for (size_t i = 0; i < n; i++) {
    printf("peer\t%s\t%s\t%s\t", peers[i].strategy->name, peers[i].strategy->source, peers[i].defaults);
    for (unsigned kind = 0; kind < PEER_CLASS_COUNT; kind++)
      if (peers[i].classes & PEER_IN(kind))
        printf(" %s", peer_class_info(kind)->name);
    putchar('\n');
  }
}

static void race_guest(const Options *options, const char *name, const ZooGuest *guest) {
  size_t n;
  const Peer *peers = peers_list(&n);
  for (unsigned kind = 0; kind < PEER_CLASS_COUNT; kind++) {
    /* libvirt does not combine post-copy with disks that are copied */
    if (!listed(options->policies, peer_class_info(kind)->name) ||
        (guest->disk_mib > 0 && kind == PEER_CLASS_POST_COPY))
      continue;
    if (listed(options->only, strategy_handoffd.name))
      run(options, name, guest, kind, &strategy_handoffd);
    for (size_t i = 0; i < n; i++)
      if ((peers[i].classes & PEER_IN(kind)) && listed(options->only, peers[i].strategy->name))
        run(options, name, guest, kind, peers[i].strategy);
  }
}

static const char *zoo_name(const char *name) {
  for (size_t i = 0; i < LENGTH(short_names); i++)
    if (strcmp(short_names[i].name, name) == 0)
      return short_names[i].guest;
  return strncmp(name, "zoo:", 4) == 0 ? name + 4 : "";
}

static int race(const Options *options) {
  char list[MOST_GUESTS], *rest = list;
  ZooGuest guest;
  if (snprintf(list, sizeof(list), "%s", options->guests) >= (int)sizeof(list)) {
    fputs("bench-policies: too many guests\n", stderr);
    return 2;
  }
  for (char *name = strtok_r(list, ",", &rest); name; name = strtok_r(NULL, ",", &rest)) {
    if (!zoo_find(zoo_name(name), &guest)) {
      fprintf(stderr, "bench-policies: no guest '%s'\n", name);
      return 2;
    }
    race_guest(options, name, &guest);
  }
  return 0;
}

static int usage(FILE *out) {
  fputs("bench-policies [--guest LIST] [--policy LIST] [--only LIST] [--rounds N] [--set KEY=VALUE]...\n"
        "               [--link BYTES_PER_S] [--jitter PCT] | --list\n"
        "Prints one JSON object a line for each run. tests/bench/policies makes a table of them.\n",
        out);
  return out == stdout ? 0 : 2;
}

int main(int argc, char **argv) {
  static const struct option known[] = {{"guest", 1, NULL, 'g'},  {"policy", 1, NULL, 'p'},
                                        {"only", 1, NULL, 'o'},   {"rounds", 1, NULL, 'r'},
                                        {"set", 1, NULL, 's'},    {"link", 1, NULL, 'l'},
                                        {"jitter", 1, NULL, 'j'}, {"list", 0, NULL, 'L'},
                                        {"help", 0, NULL, 'h'},   {0}};
  Options options = {.guests = "idle,64/20,100/40,100/200,bursty", .rounds = 5, .jitter_pct = 3};
  for (int c; (c = getopt_long(argc, argv, "", known, NULL)) != -1;) {
    size_t used = strlen(options.goals);
    switch (c) {
    case 'g':
      options.guests = optarg;
      break;
    case 'p':
      options.policies = optarg;
      break;
    case 'o':
      options.only = optarg;
      break;
    case 'r':
      options.rounds = (unsigned)strtoul(optarg, NULL, 10);
      break;
    case 's':
      snprintf(options.goals + used, sizeof(options.goals) - used, " %s", optarg);
      break;
    case 'l':
      options.link_bytes_per_s = strtoull(optarg, NULL, 10);
      break;
    case 'j':
      options.jitter_pct = (unsigned)strtoul(optarg, NULL, 10);
      break;
    case 'L':
      list_all();
      return 0;
    case 'h':
      return usage(stdout);
    default:
      return usage(stderr);
    }
  }
  if (optind < argc || options.rounds == 0)
    return usage(stderr);
  return race(&options);
}
