/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The libvirt driver against libvirt's own test driver, and against servers that are not there or do not answer. */
#include "libmigrate/virt/libvirt.h"
#include "libmigrate/virt/xml.h"
#include "tests/unit/virt/cmocka-all.h"

#include <arpa/inet.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#define UUID "6695eb01-f6a4-8304-79aa-97f2502e193f" /* of domain "test" at test:///default */

static MigDriver *driver;
static gint events;

static int setup(void **state) {
  driver = mig_driver_libvirt_new(NULL);
  return driver ? 0 : -1;
}

static int teardown(void **state) {
  mig_driver_free(driver);
  return 0;
}

static void on_event(const MigVirtEvent *event, gpointer user_data) {
  if (event->kind == MIG_VIRT_EVENT_STATE)
    g_atomic_int_inc(&events);
}

static MigConn *open_test(void) {
  g_autoptr(GError) error = NULL;
  MigConn *conn = driver->ops->open(driver, "test:///default", 5000, on_event, NULL, &error);

  assert_non_null(conn);
  return conn;
}

static void a_host_lists_its_active_domains(void **state) {
  MigConn *conn = open_test();
  g_autoptr(GPtrArray) list = driver->ops->list_active(conn, NULL);

  assert_non_null(list);
  assert_int_equal(list->len, 1);
  assert_string_equal(((MigActiveDomain *)list->pdata[0])->uuid, UUID);
  assert_string_equal(((MigActiveDomain *)list->pdata[0])->name, "test");
  driver->ops->close(conn);
}

static size_t changes_of_test(MigConn *conn, MigChange *ret_changes, size_t max) {
  g_auto(MigDefinitions) definitions = {0};
  size_t n;

  assert_true(driver->ops->definitions(conn, "test", &definitions, NULL));
  assert_string_equal(definitions.uuid, UUID);
  assert_string_equal(definitions.name, "test");
  assert_true(definitions.running && definitions.persistent);
  n = mig_changes(&definitions.live, &definitions.next, ret_changes, max);
  for (size_t i = 0; i < MIN(n, max); i++)
    ret_changes[i].item = NULL; /* it goes with the definitions */
  return n;
}

static void a_definition_is_compared_with_the_next_start_s(void **state) {
  MigConn *conn = open_test();
  g_autoptr(virDomain) domain = virDomainLookupByName(conn->vir, "test");
  g_autoptr(GError) error = NULL;
  MigDefinitions none;
  MigChange changes[4];

  assert_int_equal(changes_of_test(conn, changes, 4), 0);
  assert_int_equal(virDomainSetVcpusFlags(domain, 4, VIR_DOMAIN_AFFECT_CONFIG | VIR_DOMAIN_VCPU_MAXIMUM), 0);
  assert_int_equal(
      virDomainSetMetadata(domain, VIR_DOMAIN_METADATA_TITLE, "new", NULL, NULL, VIR_DOMAIN_AFFECT_CONFIG),
      0);
  assert_int_equal(changes_of_test(conn, changes, 4), 2);
  assert_string_equal(changes[0].code, "METADATA");
  assert_string_equal(changes[1].code, "VCPUS");
  assert_false(driver->ops->definitions(conn, "nobody", &none, &error));
  assert_true(g_error_matches(error, MIG_VIRT_ERROR, MIG_VIRT_ERROR_NO_DOMAIN));
  driver->ops->close(conn);
}

static void a_host_tells_its_name_and_versions(void **state) {
  MigConn *conn = open_test();
  g_auto(MigHostFacts) facts = {0};

  assert_true(driver->ops->is_alive(conn));
  assert_true(driver->ops->host_facts(conn, &facts, NULL));
  assert_non_null(facts.hostname);
  assert_true(facts.libvirt_version >= 8005000);
  driver->ops->close(conn);
}

static const gint not_called_off;
static const gint called_off = 1;

static MigImageGuard guard_of(const MigImageStamp *stamp) {
  return (MigImageGuard){.stamp = *stamp,
                         .domain_uuid = "ffffffff-0000-4000-8000-000000000000",
                         .until_us = INT64_MAX,
                         .called_off = &not_called_off};
}

/* The test driver finds pools by name only, and does not tell when a volume was written: then nothing is removed. */
static void an_image_is_made_once_and_stays_if_nobody_knows_who_wrote_to_it(void **state) {
  MigImage image = {.path = "default-pool/a & b.img",
                    .pool = "default-pool",
                    .volume = "a & b.img",
                    .format = "qcow2",
                    .capacity_bytes = 4 * MIG_MIB_BYTES};
  MigImage other = image;
  MigImageStamp stamp = {.known = true};
  MigImageGuard guard;
  MigConn *conn = open_test();
  g_autoptr(GError) error = NULL;

  assert_true(driver->ops->make_image(conn, &image, &stamp, NULL));
  assert_false(stamp.known);
  guard = guard_of(&stamp);
  assert_false(driver->ops->make_image(conn, &image, &stamp, &error));
  assert_int_equal(error->code, MIG_VIRT_ERROR_EXISTS);
  g_clear_error(&error);
  other.capacity_bytes++;
  assert_false(driver->ops->remove_image(conn, &other, &guard, &error));
  assert_int_equal(error->code, MIG_VIRT_ERROR_INVALID);
  g_clear_error(&error);
  assert_false(driver->ops->remove_image(conn, &image, &guard, &error));
  assert_int_equal(error->code, MIG_VIRT_ERROR_INVALID);
  assert_non_null(strstr(error->message, "cannot tell whether anybody has written to it"));
  g_clear_error(&error);
  /* It is there still. */
  assert_false(driver->ops->make_image(conn, &image, &stamp, NULL));
  driver->ops->close(conn);
}

static void what_is_gone_already_needs_no_removal(void **state) {
  MigImage image = {.path = "default-pool/gone.img",
                    .pool = "default-pool",
                    .volume = "gone.img",
                    .format = "raw",
                    .capacity_bytes = 1};
  MigImageGuard guard = {.until_us = 0, .called_off = &called_off};
  MigConn *conn = open_test();

  assert_true(driver->ops->remove_image(conn, &image, &guard, NULL));
  driver->ops->close(conn);
}

/* As libvirt 9.0 has it. */
#define VOLUME(type, timestamps)                                                                             \
  "<volume type='" type "'><name>a.img</name><key>/d/a.img</key><capacity unit='bytes'>4194304</capacity>"   \
  "<allocation unit='bytes'>200704</allocation><physical unit='bytes'>196616</physical><target>"             \
  "<path>/d/a.img</path><format type='qcow2'/><permissions><mode>0600</mode></permissions>" timestamps       \
  "<compat>1.1</compat></target></volume>"
#define TIMESTAMPS                                                                                           \
  "<timestamps><atime>1763791442.127912312</atime><mtime>1763791442.128912310</mtime>"                       \
  "<ctime>1763791442.131912304</ctime><btime>0</btime></timestamps>"

static void when_a_volume_was_written_is_read(void **state) {
  static const struct {
    const char *text;
    bool known;
  } rows[] = {
      {VOLUME("file", TIMESTAMPS), true},
      {VOLUME("file", ""), false},
      {VOLUME("file", "<timestamps><mtime></mtime></timestamps>"), false},
      {VOLUME("file", "<timestamps><mtime>1234567890123456789012345678901234567890</mtime></timestamps>"),
       false},
      {VOLUME("block", TIMESTAMPS), false},
      {VOLUME("network", TIMESTAMPS), false},
      {"<domain/>", false},
      {"", false},
  };

  for (size_t i = 0; i < G_N_ELEMENTS(rows); i++) {
    MigImageStamp stamp;

    mig_volume_xml_stamp(rows[i].text, &stamp);
    assert_int_equal(stamp.known, rows[i].known);
    if (!stamp.known)
      continue;
    assert_int_equal(stamp.allocation_bytes, 200704);
    assert_int_equal(stamp.physical_bytes, 196616);
    assert_string_equal(stamp.mtime, "1763791442.128912310");
  }
}

static void no_image_is_made_where_no_pool_is(void **state) {
  MigImage image = {.path = "/nowhere/a.img", .format = "raw", .capacity_bytes = 1};
  MigImageStamp stamp = {0};
  MigImageGuard guard = guard_of(&stamp);
  MigConn *conn = open_test();
  g_autoptr(GError) error = NULL;

  assert_false(driver->ops->make_image(conn, &image, &stamp, &error));
  assert_non_null(strstr(error->message, "no active storage pool covers /nowhere/a.img"));
  g_clear_error(&error);
  assert_false(driver->ops->remove_image(conn, &image, &guard, &error));
  driver->ops->close(conn);
}

static void a_domain_is_found_by_name_and_by_uuid(void **state) {
  static const char *const names[] = {"test", UUID};
  MigConn *conn = open_test();

  for (size_t i = 0; i < G_N_ELEMENTS(names); i++) {
    g_auto(MigDomainFacts) facts = {0};

    assert_true(driver->ops->domain_facts(conn, names[i], &facts, NULL));
    assert_string_equal(facts.uuid, UUID);
    assert_string_equal(facts.name, "test");
    assert_int_equal(facts.state, MIG_END_RUNNING);
    assert_true(facts.persistent);
    assert_int_equal(facts.memory_bytes, 8 * MIG_GIB_BYTES);
  }
  driver->ops->close(conn);
}

static void a_domain_that_is_not_there_is_an_error_for_facts_and_an_answer_for_status(void **state) {
  static const char *const names[] = {"nobody", "00000000-0000-4000-8000-000000000000"};
  MigConn *conn = open_test();
  MigDomainStatus status;
  MigSample sample;

  for (size_t i = 0; i < G_N_ELEMENTS(names); i++) {
    g_auto(MigDomainFacts) facts = {0};
    g_autoptr(GError) error = NULL;

    assert_false(driver->ops->domain_facts(conn, names[i], &facts, &error));
    assert_int_equal(error->code, MIG_VIRT_ERROR_NO_DOMAIN);
  }
  assert_true(driver->ops->domain_status(conn, names[1], &status, NULL));
  assert_int_equal(status.state, MIG_END_ABSENT);
  assert_false(status.job_active);
  assert_true(driver->ops->job_stats(conn, names[1], NULL, &sample, NULL));
  assert_true(sample.valid);
  assert_false(sample.active);
  driver->ops->close(conn);
}

static void a_running_domain_without_a_job_says_so(void **state) {
  MigConn *conn = open_test();
  MigDomainStatus status;

  assert_true(driver->ops->domain_status(conn, UUID, &status, NULL));
  assert_int_equal(status.state, MIG_END_RUNNING);
  assert_false(status.job_active);
  driver->ops->close(conn);
}

static void events_come_until_close_and_not_after_it(void **state) {
  MigConn *conn = open_test(), *other = open_test();
  gint before;

  g_atomic_int_set(&events, 0);
  assert_true(driver->ops->suspend(conn, UUID, NULL, NULL));
  for (int i = 0; i < 500 && g_atomic_int_get(&events) < 2; i++)
    g_usleep(10000);
  assert_int_equal(g_atomic_int_get(&events), 2);

  driver->ops->close(other);
  driver->ops->close(open_test());
  assert_true(driver->ops->resume(conn, UUID, NULL, NULL));
  for (int i = 0; i < 500 && g_atomic_int_get(&events) < 3; i++)
    g_usleep(10000);
  driver->ops->close(conn);
  before = g_atomic_int_get(&events);
  assert_int_equal(before, 3);
}

static void a_definition_is_removed_from_an_inactive_domain_only(void **state) {
  MigConn *conn = open_test();
  MigDomainStatus status;
  g_autoptr(GError) error = NULL;

  assert_false(driver->ops->undefine(conn, UUID, NULL, &error));
  assert_int_equal(error->code, MIG_VIRT_ERROR_INVALID);
  assert_true(driver->ops->domain_status(conn, UUID, &status, NULL));
  assert_int_equal(status.state, MIG_END_RUNNING);
  assert_true(status.persistent);
  assert_false(status.start_failed);
  g_clear_error(&error);
  assert_false(driver->ops->undefine(conn, "00000000-0000-0000-0000-000000000000", NULL, &error));
  assert_int_equal(error->code, MIG_VIRT_ERROR_NO_DOMAIN);
  driver->ops->close(conn);
}

static void what_the_hypervisor_cannot_do_is_unsupported(void **state) {
  MigConn *conn = open_test();
  MigMigrateRequest request = {.uuid = UUID, .target_uri = "test:///default"};
  g_autoptr(GError) error = NULL;
  MigPolicy goals;

  mig_policy_init(&goals);
  request.policy = &goals;
  assert_false(driver->ops->migrate(conn, &request, &error));
  assert_int_equal(error->code, MIG_VIRT_ERROR_UNSUPPORTED);
  g_clear_error(&error);
  assert_false(driver->ops->start_post_copy(conn, UUID, NULL, &error));
  assert_int_equal(error->code, MIG_VIRT_ERROR_UNSUPPORTED);
  driver->ops->close(conn);
}

static void bad_uris_are_told_apart_with_clear_text(void **state) {
  static const struct {
    const char *uri;
    MigVirtError error;
    bool named; /* a name server says that; where there is none, it cannot be reached for now */
  } rows[] = {
      {"", MIG_VIRT_ERROR_INVALID},
      {"qemu+smoke://x/system", MIG_VIRT_ERROR_INVALID},
      {"qemu+tcp://[::bad/system", MIG_VIRT_ERROR_INVALID},
      {"not a uri at all", MIG_VIRT_ERROR_INVALID},
      {"qemu+tcp://127.0.0.1:1/system", MIG_VIRT_ERROR_UNREACHABLE},
      {"qemu+tcp://no-such-host.invalid/system", MIG_VIRT_ERROR_INVALID, true},
      {"qemu+unix:///system?socket=/nonexistent/sock", MIG_VIRT_ERROR_UNREACHABLE},
  };

  for (size_t i = 0; i < G_N_ELEMENTS(rows); i++) {
    g_autoptr(GError) error = NULL;

    assert_null(driver->ops->open(driver, rows[i].uri, 15000, NULL, NULL, &error));
    MigVirtError expected = rows[i].named && strstr(error->message, "Temporary failure")
                                ? MIG_VIRT_ERROR_UNREACHABLE
                                : rows[i].error;

    if (error->code != (int)expected)
      fail_msg("%s: %d: %s", rows[i].uri, error->code, error->message);
    assert_non_null(strstr(error->message, *rows[i].uri ? rows[i].uri : "URI"));
  }
}

/* A socket whose connections the kernel accepts and nobody ever answers: a libvirtd that is stopped. */
static int deaf_server(const char *path) {
  struct sockaddr_un address = {.sun_family = AF_UNIX};
  int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

  g_strlcpy(address.sun_path, path, sizeof address.sun_path);
  unlink(path);
  assert_int_equal(bind(fd, (struct sockaddr *)&address, sizeof address), 0);
  assert_int_equal(listen(fd, 64), 0);
  return fd;
}

/* How many connected; lets go of them. */
static unsigned waiting_clients(int fd) {
  unsigned n = 0;
  int client;

  while ((client = accept(fd, NULL, NULL)) >= 0) {
    close(client);
    n++;
  }
  return n;
}

static void a_server_that_does_not_answer_costs_the_time_asked_for_and_one_connection(void **state) {
  g_autofree char *path = g_strdup_printf("%s/virt-connect-%d.sock", g_get_tmp_dir(), (int)getpid());
  g_autofree char *uri = g_strdup_printf("qemu+unix:///system?socket=%s", path);
  int fd = deaf_server(path);

  for (int i = 0; i < 5; i++) {
    g_autoptr(GError) error = NULL;
    gint64 begin = g_get_monotonic_time(), took_ms;

    assert_null(driver->ops->open(driver, uri, 100, NULL, NULL, &error));
    took_ms = (g_get_monotonic_time() - begin) / 1000;
    assert_int_equal(error->code, MIG_VIRT_ERROR_TIMEOUT);
    assert_in_range(took_ms, 99, 2000);
  }

  /* Each new try took over the one before. Closing it ends the thread that hangs in it. */
  assert_int_equal(waiting_clients(fd), 1);
  close(fd);
  unlink(path);
}

static gpointer many_calls(gpointer data) {
  for (int i = 0; i < 50; i++) {
    MigDomainStatus status;

    assert_true(driver->ops->domain_status(data, UUID, &status, NULL));
  }
  return NULL;
}

static void threads_share_a_connection(void **state) {
  MigConn *conn = open_test();
  GThread *threads[8];

  for (size_t i = 0; i < G_N_ELEMENTS(threads); i++)
    threads[i] = g_thread_new("caller", many_calls, conn);
  for (size_t i = 0; i < G_N_ELEMENTS(threads); i++)
    g_thread_join(threads[i]);
  driver->ops->close(conn);
}

/* At a port of its own, for that many clients that nobody accepts. */
static int tcp_server(int backlog, unsigned *ret_port) {
  struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
  int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  socklen_t size = sizeof address;

  assert_true(fd >= 0);
  assert_int_equal(bind(fd, (struct sockaddr *)&address, sizeof address), 0);
  assert_int_equal(listen(fd, backlog), 0);
  assert_int_equal(getsockname(fd, (struct sockaddr *)&address, &size), 0);
  *ret_port = ntohs(address.sin_port);
  return fd;
}

static void the_way_to_a_host_is_seen_without_a_connection_of_libvirts(void **state) {
  g_autoptr(GError) error = NULL;
  g_autofree char *uri = NULL;
  unsigned port;
  int fd = tcp_server(4, &port);

  uri = g_strdup_printf("qemu+tcp://127.0.0.1:%u/system", port);
  assert_true(driver->ops->reachable(driver, uri, 1000, &error));
  assert_null(error);
  close(fd);
  assert_false(driver->ops->reachable(driver, uri, 1000, &error));
  assert_int_equal(error->code, MIG_VIRT_ERROR_UNREACHABLE);
  assert_non_null(strstr(error->message, "cannot reach 127.0.0.1"));
}

/* Its queue is full: the kernel drops what asks for more, as a link does that is cut. */
static void a_way_that_swallows_packets_costs_the_time_asked_for(void **state) {
  g_autoptr(GError) error = NULL;
  g_autofree char *uri = NULL;
  gint64 begin, took_ms;
  unsigned port;
  int fd = tcp_server(0, &port);

  uri = g_strdup_printf("qemu+tls://127.0.0.1:%u/system", port);
  for (int i = 0; i < 4; i++)
    if (!driver->ops->reachable(driver, uri, 200, NULL))
      break;
  begin = g_get_monotonic_time();
  assert_false(driver->ops->reachable(driver, uri, 300, &error));
  took_ms = (g_get_monotonic_time() - begin) / 1000;
  assert_int_equal(error->code, MIG_VIRT_ERROR_TIMEOUT);
  assert_in_range(took_ms, 295, 2000);
  close(fd);
}

static void where_only_a_connection_can_tell_the_way_counts_as_there(void **state) {
  static const char *const uris[] = {"test:///default", "qemu:///system",
                                     "qemu+unix:///system?socket=/nowhere", "qemu+ext://host/system",
                                     "not a uri"};

  for (size_t i = 0; i < G_N_ELEMENTS(uris); i++)
    assert_true(driver->ops->reachable(driver, uris[i], 100, NULL));
}

/* --- many that do not answer --- */

/* Nobody accepts, and the kernel says that they are connected to: so many as a hostile caller likes, at all addresses of
 * loopback. */
static int deaf_hosts(unsigned *ret_port) {
  struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_ANY)};
  int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  socklen_t size = sizeof address;

  assert_true(fd >= 0);
  assert_int_equal(bind(fd, (struct sockaddr *)&address, sizeof address), 0);
  assert_int_equal(listen(fd, 1024), 0);
  assert_int_equal(getsockname(fd, (struct sockaddr *)&address, &size), 0);
  *ret_port = ntohs(address.sin_port);
  return fd;
}

/* On host 127.1.x.y, at a path that makes it another URI. */
static char *deaf_uri(unsigned port, unsigned host, unsigned i) {
  return g_strdup_printf("qemu+tcp://127.1.%u.%u:%u/system?n=%u", host / 200, host % 200 + 1, port, i);
}

/* NULL: it was begun, and hangs. Else what was said instead. */
static char *open_in_vain(const char *uri) {
  g_autoptr(GError) error = NULL;

  assert_null(driver->ops->open(driver, uri, 20, NULL, NULL, &error));
  assert_int_equal(error->code, MIG_VIRT_ERROR_TIMEOUT);
  assert_non_null(strstr(error->message, uri));
  return strstr(error->message, "already hanging") ? g_strdup(error->message) : NULL;
}

typedef struct Flood {
  int fd;
  unsigned port, hanging;
} Flood;

#define ANSWERED_BEFORE "test:///default"

/* Until there is no place for another. */
static void flood_begin(Flood *flood, const char *own_uri, const char *const *configured) {
  char *said = NULL;
  MigConn *conn;

  flood->fd = deaf_hosts(&flood->port);
  driver->ops->prefer(driver, own_uri, configured);
  conn = driver->ops->open(driver, ANSWERED_BEFORE, 5000, NULL, NULL, NULL);
  assert_non_null(conn);
  driver->ops->close(conn);
  for (flood->hanging = 0; !said && flood->hanging < 200; flood->hanging++) {
    g_autofree char *uri = deaf_uri(flood->port, flood->hanging, 0);

    said = open_in_vain(uri);
  }
  if (!said)
    fail_msg("no limit was met with %u connections that hang", flood->hanging);
  g_free(said);
}

static void flood_end(Flood *flood) {
  close(flood->fd); /* which ends those that hang there */
  driver->ops->prefer(driver, NULL, NULL);
}

static void the_node_s_own_connection_opens_beside_any_number_that_hang(void **state) {
  g_autofree char *path = g_strdup_printf("%s/virt-connect-%d-own.xml", g_get_tmp_dir(), (int)getpid());
  g_autofree char *file = g_strconcat("test://", path, NULL);
  g_autoptr(GError) error = NULL;
  Flood flood;
  MigConn *conn;

  assert_true(g_file_set_contents(path, "<node/>", -1, NULL));
  flood_begin(&flood, file, NULL);
  conn = driver->ops->open(driver, file, 5000, NULL, NULL, &error);
  if (!conn)
    fail_msg("%s", error->message);
  driver->ops->close(conn);
  flood_end(&flood);
  unlink(path);
}

static void a_configured_target_and_one_that_answered_before_open_beside_them(void **state) {
  g_autofree char *path =
      g_strdup_printf("%s/virt-connect-%d-configured.xml", g_get_tmp_dir(), (int)getpid());
  g_autofree char *file = g_strconcat("test://", path, NULL);
  const char *const configured[] = {file, NULL};
  const char *const uris[] = {file, ANSWERED_BEFORE};
  Flood flood;

  assert_true(g_file_set_contents(path, "<node/>", -1, NULL));
  flood_begin(&flood, "test:///nowhere", configured);
  for (size_t i = 0; i < G_N_ELEMENTS(uris); i++) {
    g_autoptr(GError) error = NULL;
    MigConn *conn = driver->ops->open(driver, uris[i], 5000, NULL, NULL, &error);

    if (!conn)
      fail_msg("%s", error->message);
    driver->ops->close(conn);
  }
  flood_end(&flood);
  unlink(path);
}

static gpointer close_soon(gpointer fd) {
  g_usleep(200 * 1000);
  /* Whoever hung there is told that nobody is. */
  close(GPOINTER_TO_INT(fd));
  return NULL;
}

static void a_stranger_waits_for_a_place(void **state) {
  g_autofree char *path = g_strdup_printf("%s/virt-connect-%d-stranger.xml", g_get_tmp_dir(), (int)getpid());
  g_autofree char *file = g_strconcat("test://", path, NULL);
  g_autoptr(GError) error = NULL;
  GThread *closer;
  Flood flood;
  MigConn *conn;

  assert_true(g_file_set_contents(path, "<node/>", -1, NULL));
  flood_begin(&flood, "test:///nowhere", NULL);
  g_free(open_in_vain(file));
  closer = g_thread_new("closer", close_soon, GINT_TO_POINTER(flood.fd));
  conn = driver->ops->open(driver, file, 20000, NULL, NULL, &error);
  if (!conn)
    fail_msg("%s", error->message);
  driver->ops->close(conn);
  g_thread_join(closer);
  flood.fd = -1;
  flood_end(&flood);
  unlink(path);
}

static void one_host_cannot_take_all_places(void **state) {
  char *said = NULL;
  unsigned port, n = 0;
  int fd = deaf_hosts(&port);
  g_autofree char *other = deaf_uri(port, 1, 0);

  while (!said && n < 100) {
    g_autofree char *uri = deaf_uri(port, 0, n++);

    said = open_in_vain(uri);
  }
  assert_in_range(n, 2, 20);
  assert_non_null(said);
  assert_non_null(strstr(said, "127.1.0.1"));
  g_free(said);
  assert_null(open_in_vain(other)); /* there is a place for it */
  close(fd);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(a_host_lists_its_active_domains),
      cmocka_unit_test(a_definition_is_compared_with_the_next_start_s),
      cmocka_unit_test(a_host_tells_its_name_and_versions),
      cmocka_unit_test(an_image_is_made_once_and_stays_if_nobody_knows_who_wrote_to_it),
      cmocka_unit_test(what_is_gone_already_needs_no_removal),
      cmocka_unit_test(when_a_volume_was_written_is_read),
      cmocka_unit_test(no_image_is_made_where_no_pool_is),
      cmocka_unit_test(a_domain_is_found_by_name_and_by_uuid),
      cmocka_unit_test(a_domain_that_is_not_there_is_an_error_for_facts_and_an_answer_for_status),
      cmocka_unit_test(a_running_domain_without_a_job_says_so),
      cmocka_unit_test(events_come_until_close_and_not_after_it),
      cmocka_unit_test(a_definition_is_removed_from_an_inactive_domain_only),
      cmocka_unit_test(what_the_hypervisor_cannot_do_is_unsupported),
      cmocka_unit_test(bad_uris_are_told_apart_with_clear_text),
      cmocka_unit_test(threads_share_a_connection),
      cmocka_unit_test(the_way_to_a_host_is_seen_without_a_connection_of_libvirts),
      cmocka_unit_test(a_way_that_swallows_packets_costs_the_time_asked_for),
      cmocka_unit_test(where_only_a_connection_can_tell_the_way_counts_as_there),
      cmocka_unit_test(the_node_s_own_connection_opens_beside_any_number_that_hang),
      cmocka_unit_test(a_configured_target_and_one_that_answered_before_open_beside_them),
      cmocka_unit_test(a_stranger_waits_for_a_place),
      cmocka_unit_test(one_host_cannot_take_all_places),
      cmocka_unit_test(a_server_that_does_not_answer_costs_the_time_asked_for_and_one_connection),
  };

  return cmocka_run_group_tests(tests, setup, teardown);
}
