/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* A target: disk images that are created for domains to come, and removed with their leases. */
#include "tests/blackbox/lease.h"

#include <signal.h>

#define DISK                                                                                                 \
  "<domain type='kvm'><name>vm9</name><memory unit='MiB'>16</memory><vcpu>1</vcpu><devices>"                 \
  "<disk type='file' device='disk'><driver name='qemu' type='qcow2'/><source file='/d/root.img'/>"           \
  "<target dev='vda'/></disk></devices></domain>"

static json_t *copying(json_t *parameters) {
  return with(with(parameters, "policy", json_pack("{ss}", "copy_disks", "all")), "make_disks", json_true());
}

static void start_with_disk(Bb *bb) {
  bb_add_domain(bb, "vm9");
  bb_set_domain(bb, "vm9", "host", json_string("b"));
  bb_set_domain(bb, "vm9", "xml", json_string(DISK));
  bb_set_domain(bb, "vm9", "disks", json_pack("{s{si}}", "vda", "capacity_bytes", 4 * MIB));
  bb_set_host(bb, "a", "pools", json_pack("{si}", "/d", 1 << 30));
  bb_start(bb);
}

static json_t *images(Bb *bb) {
  g_autofree char *path = g_strconcat(bb->control, ".state", NULL);
  json_t *root = bb_keep(bb, json_load_file(path, 0, NULL));

  return json_object_get(json_object_get(root, "images"), "a");
}

static json_int_t image_bytes(Bb *bb) {
  return json_integer_value(json_object_get(images(bb), "/d/root.img"));
}

static bool is_over(json_t *job, gconstpointer data) {
  const char *phase = text_of(job, "phase");

  return strcmp(phase, "succeeded") == 0 || strcmp(phase, "failed") == 0 || strcmp(phase, "aborted") == 0;
}

static void a_missing_disk_is_created_on_request(void **state) {
  Bb *bb = *state;
  json_t *job;
  Client *client;

  start_with_disk(bb);
  client = bb_connect(bb);
  finding(client_refused(client, "Prepare", prepare_parameters(bb, "vm9"), "Refused"), "DISK_MISSING");
  job = json_object_get(client_call(client, "Prepare", copying(prepare_parameters(bb, "vm9"))), "job");
  assert_text(job, "phase", "pending");
  assert_text(json_array_get(member_of(job, "lease.images"), 0), "path", "/d/root.img");
  assert_int_equal(image_bytes(bb), 4 * MIB);
  migrate(bb, "vm9");
  bb_await_phase(bb, text_of(job, "id"), "succeeded");
  /* Now it is the guest's. */
  assert_int_equal(image_bytes(bb), 4 * MIB);
}

static void images_are_removed_if_the_domain_does_not_come(void **state) {
  static const char *const ways[] = {"released", "expired", "cancelled"};
  Bb *bb = *state;
  Client *client;

  start_with_disk(bb);
  bb_link_slow(bb);
  client = bb_connect(bb);
  for (size_t i = 0; i < LENGTH(ways); i++) {
    json_t *parameters = with(copying(prepare_parameters(bb, "vm9")), "timeout_s",
                              json_integer(strcmp(ways[i], "expired") == 0 ? 1 : 100));
    json_t *job = json_object_get(client_call(client, "Prepare", parameters), "job");
    const char *id = text_of(job, "id");

    assert_int_equal(image_bytes(bb), 4 * MIB);
    if (strcmp(ways[i], "released") == 0)
      client_call(client, "Release", json_pack("{ss}", "lease", id));
    if (strcmp(ways[i], "cancelled") == 0) {
      migrate(bb, "vm9");
      bb_await_phase(bb, id, "migrating");
      cancel(bb, "vm9");
      job = bb_await_phase(bb, id, "failed");
    } else {
      job = bb_await_phase(bb, id, "aborted");
    }
    assert_non_null(find_event(job, "action", "removed /d/root.img"));
    assert_int_equal(image_bytes(bb), 0);
  }
}

/* A lease for 100 s, with its image created. Returns its id. */
static const char *made_for_vm9(Bb *bb) {
  const char *id;

  start_with_disk(bb);
  id = text_of(client_call(bb_connect(bb), "Prepare", copying(prepare_parameters(bb, "vm9"))), "job.id");
  assert_int_equal(image_bytes(bb), 4 * MIB);
  return id;
}

static json_t *release(Bb *bb, const char *id) {
  client_call(bb_connect(bb), "Release", json_pack("{ss}", "lease", id));
  return bb_await_phase(bb, id, "aborted");
}

static void assert_left(Bb *bb, json_t *job, const char *why) {
  json_t *event = find_event(job, "warning", "left /d/root.img (vda) in place");

  assert_int_equal(image_bytes(bb), 4 * MIB);
  assert_null(find_event(job, "action", "removed /d/root.img"));
  assert_non_null(event);
  if (!strstr(text_of(event, "message"), why))
    fail_msg("%s", text_of(event, "message"));
  /* It says what an operator can do. */
  assert_non_null(strstr(text_of(event, "message"), "virsh vol-delete /d/root.img"));
}

/* --- what may hide that the guest arrived, ran and was shut down --- */

static void kill_and_start(Bb *bb) {
  bb_stop(bb, SIGKILL);
  bb_start(bb);
}

static void cut_off_from_libvirtd(Bb *bb) {
  bb_set_host(bb, "a", "reachable", json_false());
  bb_await_event(bb, "vm9", "warning", "there was a gap in watching it");
  bb_set_host(bb, "a", "reachable", json_true());
}

static const struct Gap {
  const char *name;
  void (*happen)(Bb *bb);
} gaps[] = {
    {"the agent was killed meanwhile", kill_and_start},
    {"the connection to libvirtd broke meanwhile", cut_off_from_libvirtd},
};

static void images_stay_after_a_gap(void **state) {
  Bb *bb = *state;
  const struct Gap *row = bb->row;
  const char *id = made_for_vm9(bb);

  row->happen(bb);
  assert_left(bb, release(bb, id), "the agent or its connection to libvirtd was down for a time");
}

static void a_written_image_stays(void **state) {
  Bb *bb = *state;
  const char *id = made_for_vm9(bb);

  bb_set_host(bb, "a", "written", json_pack("{si}", "/d/root.img", 4096));
  assert_left(bb, release(bb, id), "it has been written to since it was created");
}

/* An unfinished copy: the next lease uses the image as it is. */
static void an_image_of_a_cancelled_migration_stays_and_is_used_again(void **state) {
  Bb *bb = *state;
  json_t *job;
  const char *id = made_for_vm9(bb);

  bb_link_slow(bb);
  migrate(bb, "vm9");
  bb_await_phase(bb, id, "migrating");
  bb_set_host(bb, "a", "written", json_pack("{si}", "/d/root.img", 4096));
  cancel(bb, "vm9");
  job = bb_await_phase(bb, id, "failed");
  assert_text(job, "failure.cause", "CANCELLED_ELSEWHERE");
  assert_non_null(strstr(text_of(job, "failure.message"), "never ran"));
  assert_left(bb, job, "it has been written to since it was created");
  job =
      json_object_get(client_call(bb_connect(bb), "Prepare", copying(prepare_parameters(bb, "vm9"))), "job");
  assert_text(job, "phase", "pending");
  assert_int_equal(json_array_size(member_of(job, "lease.images")), 0);
}

static void a_definition_prevents_removal(void **state) {
  Bb *bb = *state;
  const char *id = made_for_vm9(bb);

  bb_set_domain(bb, "vm9", "defined", json_pack("[s]", "a"));
  assert_left(bb, release(bb, id), "the domain is or was defined or running at the target");
}

/* It arrives, runs and ends between two looks: the events report it. */
static void a_run_between_two_looks_counts(void **state) {
  Bb *bb = *state;
  json_t *job;
  const char *id;

  start_with_disk(bb);
  bb_set_domain(bb, "vm9", "persistent", json_false());
  bb_link_slow(bb);
  id = text_of(client_call(bb_connect(bb), "Prepare", copying(prepare_parameters(bb, "vm9"))), "job.id");
  migrate(bb, "vm9");
  bb_await_phase(bb, id, "migrating");
  bb_set_call(bb, "a.domain_status", json_pack("{si}", "delay_ms", 1000));
  bb_link_fast(bb);
  while (strcmp(text_of(bb_truth(bb, "vm9"), "host"), "a") != 0)
    client_call(bb_connect(bb), "GetNode", NULL);
  bb_set_domain(bb, "vm9", "state", json_string("inactive"));
  job = bb_await(bb, id, is_over, NULL);
  assert_text(job, "failure.cause", "GUEST_STOPPED");
  assert_left(bb, job, "the guest was at the target");
}

/* Only its owner knows that it ran here: the agent was down when it arrived and when it was shut down. */
static const struct Unseen {
  const char *name;
  bool away_all_along;
  bool persistent; /* its definition stays */
} unseen[] = {
    {"down since the middle of the migration", false, true},
    {"down since the middle of the migration, transient domain", false, false},
    {"down until the lease expired", true, true},
    {"down until the lease expired, transient domain", true, false},
};

static void the_only_disk_stays(void **state) {
  Bb *bb = *state;
  const struct Unseen *row = bb->row;
  json_t *job;
  const char *id;

  start_with_disk(bb);
  bb_set_domain(bb, "vm9", "persistent", json_boolean(row->persistent));
  job =
      json_object_get(client_call(bb_connect(bb), "Prepare",
                                  with(copying(prepare_parameters(bb, "vm9")), "timeout_s", json_integer(1))),
                      "job");
  id = text_of(job, "id");
  if (!row->away_all_along) {
    bb_link_slow(bb);
    migrate(bb, "vm9");
    bb_await_phase(bb, id, "migrating");
  }
  bb_stop(bb, SIGKILL);
  bb_set_domain(bb, "vm9", "migrate_to", NULL);
  bb_set_domain(bb, "vm9", "host", json_string("a"));
  bb_set_domain(bb, "vm9", "state", json_string("inactive"));
  bb_start(bb);
  job = bb_await(bb, id, is_over, NULL);
  assert_left(bb, job, "was down for a time");
  assert_null(strstr(text_of(job, "failure.message"), "never ran"));
  assert_null(strstr(text_of(job, "failure.message"), "nothing arrived"));
}

static void a_changed_image_stays(void **state) {
  Bb *bb = *state;
  json_t *job;
  Client *client;

  start_with_disk(bb);
  client = bb_connect(bb);
  job = json_object_get(client_call(client, "Prepare", copying(prepare_parameters(bb, "vm9"))), "job");
  bb_set_call(bb, "remove_image", json_pack("{ss ss}", "fail", "INVALID", "message", "it has another size"));
  client_call(client, "Release", json_pack("{ss}", "lease", text_of(job, "id")));
  job = bb_await_phase(bb, text_of(job, "id"), "aborted");
  assert_non_null(find_event(job, "warning", "in place: it has another size"));
  assert_int_equal(image_bytes(bb), 4 * MIB);
}

static void if_an_image_cannot_be_created_the_lease_is_refused(void **state) {
  Bb *bb = *state;
  json_t *error;
  Client *client;

  start_with_disk(bb);
  bb_set_call(bb, "make_image", json_pack("{ss ss}", "fail", "FAILED", "message", "the pool is read-only"));
  client = bb_connect(bb);
  error = client_refused(client, "Prepare",
                         with(copying(prepare_parameters(bb, "vm9")), "request_key", json_string("k")),
                         "Refused");
  assert_non_null(strstr(text_of(finding(error, "IMAGE_NOT_MADE"), "seen"), "the pool is read-only"));
  assert_text(bb_await_phase(bb, "vm9", "failed"), "failure.cause", "LIBVIRT_ERROR");
  assert_no_leases(client);
}

/* The record says what should be created, and nobody knows whether it was. */
static void killed_while_creating_images_it_claims_none_that_it_did_not_watch(void **state) {
  Bb *bb = *state;
  json_t *parameters, *job;
  Client *client;

  start_with_disk(bb);
  bb_set_call(bb, "make_image", json_pack("{sb}", "hang", 1));
  client = bb_connect(bb);
  parameters = with(copying(prepare_parameters(bb, "vm9")), "request_key", json_string("k"));
  client_send(client, "Prepare", json_incref(parameters), 0);
  bb_await_phase(bb, text_of(await_job(bb_connect(bb)), "id"), "preparing");
  bb_stop(bb, SIGKILL);
  /* As if the agent had been killed just then. */
  bb_set_call(bb, "make_image", NULL);
  bb_set_host(bb, "a", "volumes", json_pack("{si}", "/d/root.img", 4 * MIB));
  bb_start(bb);
  client = bb_connect(bb);
  job = json_object_get(client_call(client, "Prepare", parameters), "job");
  assert_text(job, "phase", "pending");
  assert_int_equal(json_array_size(member_of(job, "lease.images")), 0);
  assert_non_null(find_event(job, "warning", "it already existed and is used as it is"));
  client_call(client, "Release", json_pack("{ss}", "lease", text_of(job, "id")));
  bb_await_phase(bb, text_of(job, "id"), "aborted");
}

int main(void) {
  Tests tests = {0};

  TESTS_ADD(&tests, a_missing_disk_is_created_on_request);
  TESTS_ADD(&tests, images_are_removed_if_the_domain_does_not_come);
  TESTS_ADD_ROWS(&tests, images_stay_after_a_gap, gaps);
  TESTS_ADD(&tests, a_written_image_stays);
  TESTS_ADD(&tests, an_image_of_a_cancelled_migration_stays_and_is_used_again);
  TESTS_ADD(&tests, a_definition_prevents_removal);
  TESTS_ADD(&tests, a_run_between_two_looks_counts);
  TESTS_ADD_ROWS(&tests, the_only_disk_stays, unseen);
  TESTS_ADD(&tests, a_changed_image_stays);
  TESTS_ADD(&tests, if_an_image_cannot_be_created_the_lease_is_refused);
  TESTS_ADD(&tests, killed_while_creating_images_it_claims_none_that_it_did_not_watch);
  return bb_run(&tests, "lease-images");
}
