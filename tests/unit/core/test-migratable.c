/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The report of the checks: its order, its cause, its words. tests/unit/virt/test-check.c walks the checks. */
#include "libmigrate/core/migratable.h"

#include "tests/unit/core/rows.h"

/* Two hosts that differ, and a running domain between them. */
typedef struct World {
  MigDomainFacts domain;
  MigHostFacts source;
  MigTargetFacts target;
  MigPolicy policy;
  MigCheckInput input;
  MigCheckReport report;
} World;

static World world;

static void setup(void) {
  memset(&world, 0, sizeof world);
  world.domain =
      (MigDomainFacts){.uuid = "d", .name = "web", .state = MIG_END_RUNNING, .memory_bytes = MIG_GIB_BYTES};
  world.source = (MigHostFacts){.uuid = "a", .hypervisor_version = 7002000, .libvirt_version = 9000000};
  world.target =
      (MigTargetFacts){.host = {.uuid = "b", .hypervisor_version = 7002000, .libvirt_version = 9000000},
                       .domain_state = MIG_END_ABSENT,
                       .emulator = MIG_SIGHT_PRESENT,
                       .virt_type = MIG_SIGHT_PRESENT,
                       .machine = MIG_SIGHT_PRESENT,
                       .free_bytes = UINT64_MAX};
  mig_policy_init(&world.policy);
  world.input = (MigCheckInput){.domain = &world.domain,
                                .source = &world.source,
                                .target = &world.target,
                                .target_uri = "qemu+tls://b/system",
                                .policy = &world.policy};
}

static const MigCheckReport *check(void) {
  mig_check(&world.input, &world.report);
  return &world.report;
}

static void nothing_is_found_where_nothing_is_known_to_be_wrong(void **state) {
  setup();
  assert_int_equal(check()->count, 0);
  assert_int_equal(mig_check_cause(&world.report), MIG_CAUSE_NONE);
  assert_false(mig_check_may_wait(&world.report));
}

static void blockers_come_before_warnings(void **state) {
  setup();
  world.domain.state = MIG_END_PAUSED;
  world.target.free_bytes = 1;
  assert_int_equal(check()->count, 2);
  assert_int_equal(world.report.blockers, 1);
  assert_string_equal(world.report.findings[0].code, "TARGET_MEMORY");
  assert_true(world.report.findings[0].blocks);
  assert_string_equal(world.report.findings[1].code, "DOMAIN_PAUSED");
  assert_false(world.report.findings[1].blocks);
}

static void waiting_helps_only_if_it_may_cure_all(void **state) {
  setup();
  world.target.free_bytes = 1;
  assert_true(mig_check_may_wait(check()));
  assert_int_equal(mig_check_cause(&world.report), MIG_CAUSE_REFUSED);
  world.domain.job = "backup";
  assert_true(mig_check_may_wait(check()));
  assert_int_equal(mig_check_cause(&world.report), MIG_CAUSE_DOMAIN_BUSY);
  world.domain.snapshots = 1;
  assert_false(mig_check_may_wait(check()));
}

static void the_cause_is_of_the_first_that_waiting_does_not_cure(void **state) {
  setup();
  world.input.target = NULL;
  world.input.target_error = "no route to host";
  world.input.target_away = true;
  check();
  assert_int_equal(mig_check_cause(&world.report), MIG_CAUSE_TARGET_UNREACHABLE);
  world.domain.state = MIG_END_CRASHED;
  check();
  assert_string_equal(world.report.findings[0].code, "TARGET_UNREACHABLE");
  assert_int_equal(mig_check_cause(&world.report), MIG_CAUSE_DOMAIN_NOT_RUNNING);
}

static void a_rule_of_the_policy_is_a_finding_in_whole_sentences(void **state) {
  setup();
  world.policy.values[MIG_POLICY_ALLOW_POST_COPY] = 1;
  world.policy.values[MIG_POLICY_TUNNELLED] = 1;
  assert_int_equal(check()->count, 1);
  assert_string_equal(world.report.findings[0].code, "POST_COPY_TUNNELLED");
  assert_string_equal(world.report.findings[0].seen,
                      "Post-copy requests pages over a return path, which a tunnelled stream does not have.");
  assert_string_equal(world.report.findings[0].remedy, "Set tunnelled=no or allow_post_copy=no.");
  assert_int_equal(world.report.findings[0].cause, MIG_CAUSE_POLICY_CONFLICT);
}

static void versions_that_are_not_known_yet_break_no_rule_of_the_policy(void **state) {
  setup();
  world.policy.values[MIG_POLICY_ALLOW_POST_COPY] = 1;
  world.policy.values[MIG_POLICY_PARALLEL_CONNECTIONS] = 2;
  assert_int_equal(check()->count, 1);
  world.input.target = NULL;
  assert_int_equal(check()->count, 0);
}

static void a_list_that_is_too_long_says_how_much_is_left_out(void **state) {
  MigTrait traits[200];
  const MigFinding *finding;

  setup();
  for (size_t i = 0; i < LENGTH(traits); i++)
    traits[i] = (MigTrait){MIG_TRAIT_HOSTDEV_PCI, "0000:65:00.0"};
  world.domain.traits = traits;
  world.domain.n_traits = LENGTH(traits);
  assert_int_equal(check()->count, 1);
  finding = &world.report.findings[0];
  assert_true(strlen(finding->seen) < MIG_FINDING_SEEN_SIZE);
  assert_non_null(strstr(finding->seen, " and 1"));
  assert_string_equal(finding->seen + strlen(finding->seen) - strlen(" more."), " more.");
}

static void all_blockers_are_told_in_one_text(void **state) {
  char text[2000], small[30];

  setup();
  world.domain.snapshots = 2;
  world.target.free_bytes = 1;
  world.domain.state = MIG_END_INACTIVE;
  check();
  mig_check_describe(&world.report, text, sizeof text);
  assert_non_null(strstr(text, "DOMAIN_STATE: The domain is inactive."));
  assert_non_null(strstr(text, " SNAPSHOTS: The domain has 2 snapshots"));
  assert_non_null(
      strstr(text, " TARGET_MEMORY: The guest has 1.0 GiB of memory, but the target has only 1 B free."));
  mig_check_describe(&world.report, small, sizeof small);
  assert_int_equal(strlen(small), sizeof small - 1);
  world.report.count = world.report.blockers = 0;
  mig_check_describe(&world.report, text, sizeof text);
  assert_string_equal(text, "");
}

/* The words of the table, which operators read and controllers compare. */
static void every_check_has_a_code_and_whole_sentences(void **state) {
  for (int i = 0; i < MIG_CHECK_COUNT; i++) {
    const MigCheckInfo *info = mig_check_info((MigCheck)i);

    assert_non_null(info->code);
    assert_true(strspn(info->code, "ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_") == strlen(info->code));
    assert_true(info->remedy[0] >= 'A' && info->remedy[0] <= 'Z');
    assert_int_equal(info->remedy[strlen(info->remedy) - 1], '.');
    assert_true(strlen(info->remedy) < MIG_FINDING_REMEDY_SIZE);
    assert_int_equal(info->blocks, info->cause != MIG_CAUSE_NONE);
    assert_false(info->transient && !info->blocks);
    if (info->blocks && !mig_cause_is_refusal(info->cause))
      fail_msg("%s ends a job with %s, which is no refusal", info->code, mig_cause_name(info->cause));
    for (int other = 0; other < i; other++)
      assert_string_not_equal(info->code, mig_check_info((MigCheck)other)->code);
  }
  assert_null(mig_check_info(MIG_CHECK_COUNT));
}

static void the_policys_rules_have_room_beside_all_checks(void **state) {
  const MigConflict *rules[64];

  assert_true(mig_policy_conflict_rules(rules, LENGTH(rules)) <= MIG_FINDINGS_MAX - MIG_CHECK_COUNT);
}

int main(void) {
  static const struct {
    const char *name;
    CMUnitTestFunction function;
  } list[] = {
      {"nothing is found where nothing is known to be wrong",
       nothing_is_found_where_nothing_is_known_to_be_wrong},
      {"blockers come before warnings", blockers_come_before_warnings},
      {"waiting helps only if it may cure all", waiting_helps_only_if_it_may_cure_all},
      {"the cause is of the first that waiting does not cure",
       the_cause_is_of_the_first_that_waiting_does_not_cure},
      {"a rule of the policy is a finding in whole sentences",
       a_rule_of_the_policy_is_a_finding_in_whole_sentences},
      {"versions that are not known yet break no rule of the policy",
       versions_that_are_not_known_yet_break_no_rule_of_the_policy},
      {"a list that is too long says how much is left out",
       a_list_that_is_too_long_says_how_much_is_left_out},
      {"all blockers are told in one text", all_blockers_are_told_in_one_text},
      {"every check has a code and whole sentences", every_check_has_a_code_and_whole_sentences},
      {"the policy's rules have room beside all checks", the_policys_rules_have_room_beside_all_checks},
  };
  Tests tests = {0};

  for (size_t i = 0; i < LENGTH(list); i++)
    tests_add(&tests, list[i].name, list[i].function, NULL);
  return tests_run(&tests, "migratable");
}
