/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* libvirt's errors as ours. */
#include "libmigrate/virt/libvirt.h"
#include "tests/unit/virt/cmocka-all.h"

#include <string.h>

static void every_row_of_the_table_is_reached(void **state) {
  size_t n;
  const MigVirtErrorRow *rows = mig_virt_error_rows(&n);

  for (size_t i = 0; i < n; i++) {
    int domain = rows[i].domain == MIG_ANY ? VIR_FROM_NONE : rows[i].domain;
    int code = rows[i].code == MIG_ANY ? VIR_ERR_OPERATION_FAILED : rows[i].code;

    assert_int_equal(mig_virt_error_classify(domain, code, rows[i].text ? rows[i].text : "?"), rows[i].error);
    /* A row after one that takes everything of it would be dead. */
    for (size_t earlier = 0; earlier < i; earlier++) {
      const MigVirtErrorRow *other = &rows[earlier];

      assert_false((other->domain == MIG_ANY || other->domain == rows[i].domain) &&
                   (other->code == MIG_ANY || other->code == rows[i].code) &&
                   (!other->text || (rows[i].text && strstr(rows[i].text, other->text))));
    }
  }
}

static void every_error_has_a_name_and_what_a_text_tells_a_row(void **state) {
  size_t n;
  const MigVirtErrorRow *rows = mig_virt_error_rows(&n);

  for (int error = 0; error < MIG_VIRT_ERROR_COUNT; error++) {
    /* The one is what is left, the other is told by the connection that is still there. */
    bool found = error == MIG_VIRT_ERROR_FAILED || error == MIG_VIRT_ERROR_PEER_LOST ||
                 error == MIG_VIRT_ERROR_STALE; /* the agent's own */

    for (size_t i = 0; i < n; i++)
      found = found || rows[i].error == (MigVirtError)error;
    assert_true(found);
    assert_non_null(mig_virt_error_name((MigVirtError)error));
  }
  assert_null(mig_virt_error_name(MIG_VIRT_ERROR_COUNT));
}

/* As libvirt 9.0 and QEMU 7.2 say them. */
static void what_libvirt_was_heard_to_say_is_understood(void **state) {
  static const struct {
    int domain, code;
    const char *text;
    MigVirtError error;
  } heard[] = {
      {VIR_FROM_QEMU, 1, "internal error: Attempt to migrate guest to the same host 8825bbb6-3369",
       MIG_VIRT_ERROR_SAME_HOST},
      {VIR_FROM_RPC, 38, "unable to connect to server at '10.77.0.2:1': Connection refused",
       MIG_VIRT_ERROR_UNREACHABLE},
      {VIR_FROM_RPC, 38, "Failed to connect socket to '/run/x': No such file or directory",
       MIG_VIRT_ERROR_UNREACHABLE},
      {VIR_FROM_RPC, 38, "Failed to connect socket to '/run/x': Permission denied", MIG_VIRT_ERROR_DENIED},
      {VIR_FROM_RPC, 38, "Unable to resolve address 'x' service '16509': Name or service not known",
       MIG_VIRT_ERROR_INVALID},
      {VIR_FROM_RPC, 38,
       "Unable to resolve address 'x' service '16509': Temporary failure in name resolution",
       MIG_VIRT_ERROR_UNREACHABLE},
      {VIR_FROM_RPC, 38, "Cannot read CA certificate '/etc/pki/CA/cacert.pem': No such file or directory",
       MIG_VIRT_ERROR_DENIED},
      {VIR_FROM_RPC, 1, "internal error: client socket is closed", MIG_VIRT_ERROR_UNREACHABLE},
      {VIR_FROM_QEMU, 9, "Failed to connect to remote libvirt URI qemu+tcp://x/system: no route to host",
       MIG_VIRT_ERROR_UNREACHABLE},
      {VIR_FROM_QEMU, 78, "operation aborted: job 'migration out' canceled by client",
       MIG_VIRT_ERROR_ABORTED},
      {VIR_FROM_QEMU, 55, "Requested operation is not valid: cannot abort migration in post-copy mode",
       MIG_VIRT_ERROR_UNSUPPORTED},
      {VIR_FROM_QEMU, 55, "Requested operation is not valid: no job is active on the domain",
       MIG_VIRT_ERROR_NOT_RUNNING},
      {VIR_FROM_QEMU, 55, "Requested operation is not valid: domain is not running",
       MIG_VIRT_ERROR_NOT_RUNNING},
      {VIR_FROM_QEMU, 84,
       "Operation not supported: migration statistics are available only on the source host",
       MIG_VIRT_ERROR_UNSUPPORTED},
      {VIR_FROM_QEMU, 55, "Requested operation is not valid: QEMU reports migration is still running",
       MIG_VIRT_ERROR_STILL_RUNNING},
      {VIR_FROM_QEMU, 68,
       "Timed out during operation: cannot acquire state change lock (held by monitor=remoteDispatchDomain)",
       MIG_VIRT_ERROR_BUSY},
      {VIR_FROM_QEMU, 68, "Timed out during operation: something else", MIG_VIRT_ERROR_TIMEOUT},
      {VIR_FROM_QEMU, 9, "operation failed: domain 'web' already exists with uuid 1b2c",
       MIG_VIRT_ERROR_EXISTS},
      {VIR_FROM_QEMU, 55, "Requested operation is not valid: domain 'web' is already active",
       MIG_VIRT_ERROR_EXISTS},
      {VIR_FROM_QEMU, 42, "Domain not found: no domain with matching uuid", MIG_VIRT_ERROR_NO_DOMAIN},
      {VIR_FROM_QEMU, 1,
       "internal error: unable to execute QEMU command 'object-add': Unable to access credentials "
       "/etc/pki/qemu",
       MIG_VIRT_ERROR_NO_TLS},
      {VIR_FROM_QEMU, 9,
       "operation failed: job 'migration out' failed: The certificate hasn't got a known issuer",
       MIG_VIRT_ERROR_DENIED},
      {VIR_FROM_NONE, 38, "cannot limit locked memory of process 126 to 201326592: Operation not permitted",
       MIG_VIRT_ERROR_DENIED},
      {VIR_FROM_QEMU, 81, "Unsafe migration: Migration without shared storage is unsafe",
       MIG_VIRT_ERROR_UNSUPPORTED},
      {VIR_FROM_NONE, 5, "no connection driver available for bogus:///", MIG_VIRT_ERROR_INVALID},
      {VIR_FROM_QEMU, 9, "operation failed: job 'migration out' unexpectedly failed", MIG_VIRT_ERROR_FAILED},
  };

  for (size_t i = 0; i < G_N_ELEMENTS(heard); i++)
    assert_int_equal(mig_virt_error_classify(heard[i].domain, heard[i].code, heard[i].text), heard[i].error);
}

static void libvirts_code_and_text_stay_with_the_error(void **state) {
  g_autoptr(GError) error = NULL, copy = NULL;
  const char *text;
  int code;

  virSetErrorFunc(NULL, NULL);
  assert_null(virDomainLookupByName(NULL, "x"));
  assert_false(mig_virt_error_take(&error, "cannot look up %s", "x"));
  copy = g_error_copy(error);
  g_clear_error(&error);

  assert_true(mig_virt_error_get_libvirt(copy, &code, &text));
  assert_int_equal(code, VIR_ERR_INVALID_CONN);
  assert_non_null(strstr(text, "invalid connection"));
  assert_true(g_str_has_prefix(copy->message, "cannot look up x: libvirt error 6: "));
  assert_int_equal(copy->code, MIG_VIRT_ERROR_UNREACHABLE);
}

static void an_error_of_ours_has_no_libvirt_part(void **state) {
  g_autoptr(GError) error = g_error_new(MIG_VIRT_ERROR, MIG_VIRT_ERROR_INVALID, "x");
  g_autoptr(GError) other = g_error_new(G_FILE_ERROR, G_FILE_ERROR_NOENT, "x");
  const char *text;
  int code;

  assert_false(mig_virt_error_get_libvirt(error, &code, &text));
  assert_false(mig_virt_error_get_libvirt(other, &code, &text));
  assert_false(mig_virt_error_get_libvirt(NULL, &code, &text));
}

static void no_error_of_libvirt_is_a_failure_without_reason(void **state) {
  g_autoptr(GError) error = NULL;

  virResetLastError();
  assert_false(mig_virt_error_take(&error, "x"));
  assert_int_equal(error->code, MIG_VIRT_ERROR_FAILED);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(every_row_of_the_table_is_reached),
      cmocka_unit_test(every_error_has_a_name_and_what_a_text_tells_a_row),
      cmocka_unit_test(what_libvirt_was_heard_to_say_is_understood),
      cmocka_unit_test(libvirts_code_and_text_stay_with_the_error),
      cmocka_unit_test(an_error_of_ours_has_no_libvirt_part),
      cmocka_unit_test(no_error_of_libvirt_is_a_failure_without_reason),
  };

  /* Before any other call of libvirt: its errors are kept by thread. */
  if (virInitialize() < 0)
    return 1;
  return cmocka_run_group_tests(tests, NULL, NULL);
}
