/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The URIs that a caller may name: what is taken, apart; what is not, whatever it tries; and what an owner allows of them. */
#include "libmigrate/core/uri.h"

#include "tests/unit/core/rows.h"

static const struct Good {
  const char *name;
  MigUriKind kind;
  const char *text;
  const char *scheme, *user, *host;
  unsigned port, bits;
} goods[] = {
    {"TLS", MIG_URI_LIBVIRT, "qemu+tls://node-b/system", "qemu+tls", "", "node-b", 0, 0},
    {"TCP", MIG_URI_LIBVIRT, "qemu+tcp://node-b/system", "qemu+tcp", "", "node-b", 0, 0},
    {"ssh", MIG_URI_LIBVIRT, "qemu+ssh://node-b/system", "qemu+ssh", "", "node-b", 0, 0},
    {"ssh with a user", MIG_URI_LIBVIRT, "qemu+ssh://root@node-b/system", "qemu+ssh", "root", "node-b", 0, 0},
    {"a user with all that one may have", MIG_URI_LIBVIRT, "qemu+ssh://_a-b_0@b:22/system", "qemu+ssh",
     "_a-b_0", "b", 22, 0},
    {"a whole DNS name", MIG_URI_LIBVIRT, "qemu+tls://Node-2.Rack7.example.ORG/system", "qemu+tls", "",
     "Node-2.Rack7.example.ORG", 0, 0},
    {"a name with an underscore", MIG_URI_LIBVIRT, "qemu+tls://node_b/system", "qemu+tls", "", "node_b", 0,
     0},
    {"a label of digits", MIG_URI_LIBVIRT, "qemu+tls://10.0.0.2.example.org/system", "qemu+tls", "",
     "10.0.0.2.example.org", 0, 0},
    {"an IPv4 address", MIG_URI_LIBVIRT, "qemu+tcp://10.77.0.2/system", "qemu+tcp", "", "10.77.0.2", 0, 32},
    {"an IPv6 address", MIG_URI_LIBVIRT, "qemu+tls://[2001:db8::1]/system", "qemu+tls", "", "2001:db8::1", 0,
     128},
    {"an IPv6 address with a port", MIG_URI_LIBVIRT, "qemu+tls://[::1]:16514/system", "qemu+tls", "", "::1",
     16514, 128},
    {"the greatest port", MIG_URI_LIBVIRT, "qemu+tcp://b:65535/system", "qemu+tcp", "", "b", 65535, 0},
    {"a migration by TCP", MIG_URI_MIGRATION, "tcp://10.0.0.2", "tcp", "", "10.0.0.2", 0, 32},
    {"a migration to a port", MIG_URI_MIGRATION, "tcp://node-b:49152", "tcp", "", "node-b", 49152, 0},
    {"a migration to IPv6", MIG_URI_MIGRATION, "tcp://[fd00::2]:49152", "tcp", "", "fd00::2", 49152, 128},
    {"a migration by RDMA", MIG_URI_MIGRATION, "rdma://node-b", "rdma", "", "node-b", 0, 0},
};

static void assert_part(MigUriPart part, const char *expected) {
  assert_int_equal(part.length, strlen(expected));
  if (part.length > 0)
    assert_memory_equal(part.text, expected, part.length);
}

static void is_taken_apart(void **state) {
  const struct Good *row = *state;
  MigUri uri;

  assert_null(mig_uri_parse(row->kind, row->text, &uri));
  assert_part(uri.scheme, row->scheme);
  assert_part(uri.user, row->user);
  assert_part(uri.host, row->host);
  assert_int_equal(uri.port, row->port);
  assert_int_equal(uri.address.bits, row->bits);
}

/* Each in the words of the fault, so that none is refused for another reason than it should be. */
#define SCHEME   "only; put any other URI into"
#define HOST     "host is neither"
#define PORT     "port is not a number"
#define USER     "user"
#define END      "must end with"
#define TOO_LONG "2048 bytes"

#define LABEL64 "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
#define LABEL63 "bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb"

static const struct Bad {
  const char *name;
  MigUriKind kind;
  const char *text;
  const char *fault;
} bads[] = {
    /* What libvirt would do of its own with them, on this host. */
    {"another URI within, which runs a program", MIG_URI_LIBVIRT,
     "qemu+unix:///system?name=qemu%2Bext%3A%2F%2Fx%2Fsystem%3Fcommand%3D%2Ftmp%2Fx", SCHEME},
    {"the same at a host", MIG_URI_LIBVIRT, "qemu+tcp://b/system?name=qemu%2Bext%3A%2F%2Fx%2Fsystem", END},
    {"QEMU's driver within the agent", MIG_URI_LIBVIRT, "qemu:///embed?root=/tmp/x", SCHEME},
    {"a file for a hypervisor", MIG_URI_LIBVIRT, "test:///etc/passwd", SCHEME},
    {"the test driver", MIG_URI_LIBVIRT, "test:///default", SCHEME},
    {"a program for a transport", MIG_URI_LIBVIRT, "qemu+ext://b/system?command=/tmp/x", SCHEME},
    {"a program, without saying which", MIG_URI_LIBVIRT, "qemu+ext://b/system", SCHEME},
    {"a socket of this host", MIG_URI_LIBVIRT, "qemu+unix:///system?socket=/tmp/x", SCHEME},
    {"this host", MIG_URI_LIBVIRT, "qemu:///system", SCHEME},
    {"this host's session", MIG_URI_LIBVIRT, "qemu:///session", SCHEME},
    {"another hypervisor", MIG_URI_LIBVIRT, "xen+tls://b/system", SCHEME},
    {"one that is no libvirt's", MIG_URI_LIBVIRT, "http://b/system", SCHEME},
    {"libssh, whose parameters name files", MIG_URI_LIBVIRT, "qemu+libssh://b/system", SCHEME},
    {"libssh2", MIG_URI_LIBVIRT, "qemu+libssh2://b/system", SCHEME},

    {"a program for ssh", MIG_URI_LIBVIRT, "qemu+ssh://b/system?command=/tmp/x", END},
    {"netcat", MIG_URI_LIBVIRT, "qemu+ssh://b/system?netcat=/tmp/x", END},
    {"a proxy", MIG_URI_LIBVIRT, "qemu+ssh://b/system?proxy=netcat", END},
    {"a socket there", MIG_URI_LIBVIRT, "qemu+ssh://b/system?socket=/tmp/x", END},
    {"a mode", MIG_URI_LIBVIRT, "qemu+tls://b/system?mode=direct", END},
    {"hosts that are known", MIG_URI_LIBVIRT, "qemu+ssh://b/system?known_hosts=/tmp/x", END},
    {"a key", MIG_URI_LIBVIRT, "qemu+ssh://b/system?keyfile=/etc/shadow", END},
    {"certificates", MIG_URI_LIBVIRT, "qemu+tls://b/system?pkipath=/tmp/x", END},
    {"no verification", MIG_URI_LIBVIRT, "qemu+tls://b/system?no_verify=1", END},
    {"a key, by an escape", MIG_URI_LIBVIRT, "qemu+ssh://b/system?%6beyfile=/tmp/x", END},
    {"a parameter that is none", MIG_URI_LIBVIRT, "qemu+tls://b/system?", END},
    {"a parameter behind a semicolon", MIG_URI_LIBVIRT, "qemu+tls://b/system;mode=direct", END},
    {"a fragment", MIG_URI_LIBVIRT, "qemu+tls://b/system#x", END},
    {"an empty fragment", MIG_URI_LIBVIRT, "qemu+tls://b/system#", END},

    {"a session", MIG_URI_LIBVIRT, "qemu+tls://b/session", END},
    {"a way up", MIG_URI_LIBVIRT, "qemu+tls://b/system/../embed", END},
    {"a way up at the beginning", MIG_URI_LIBVIRT, "qemu+tls://b/../system", END},
    {"embedded", MIG_URI_LIBVIRT, "qemu+tls://b/embed", END},
    {"a path in two ways", MIG_URI_LIBVIRT, "qemu+tls://b//system", END},
    {"a slash behind it", MIG_URI_LIBVIRT, "qemu+tls://b/system/", END},
    {"a path by an escape", MIG_URI_LIBVIRT, "qemu+tls://b/%73ystem", END},
    {"a path in capitals", MIG_URI_LIBVIRT, "qemu+tls://b/System", END},
    {"no path", MIG_URI_LIBVIRT, "qemu+tls://b", END},
    {"a lone slash", MIG_URI_LIBVIRT, "qemu+tls://b/", END},

    {"a scheme in capitals", MIG_URI_LIBVIRT, "QEMU+TCP://b/system", SCHEME},
    {"a scheme with one capital", MIG_URI_LIBVIRT, "qemu+Tcp://b/system", SCHEME},
    {"a scheme twice", MIG_URI_LIBVIRT, "qemu+tcp+ext://b/system", SCHEME},
    {"a blank before it", MIG_URI_LIBVIRT, " qemu+tcp://b/system", SCHEME},
    {"one slash", MIG_URI_LIBVIRT, "qemu+tcp:/b/system", SCHEME},
    {"no slash", MIG_URI_LIBVIRT, "qemu+tcp:b/system", SCHEME},
    {"a scheme alone", MIG_URI_LIBVIRT, "qemu+tcp", SCHEME},
    {"nothing", MIG_URI_LIBVIRT, "", SCHEME},

    {"an option of ssh for a host", MIG_URI_LIBVIRT, "qemu+ssh://-oProxyCommand=x/system", HOST},
    {"an option for a host by TCP", MIG_URI_LIBVIRT, "qemu+tcp://-oProxyCommand=x/system", HOST},
    {"a lone option", MIG_URI_LIBVIRT, "qemu+ssh://-v/system", HOST},
    {"an option for a user", MIG_URI_LIBVIRT, "qemu+ssh://-l@b/system", USER},
    {"no user", MIG_URI_LIBVIRT, "qemu+ssh://@b/system", USER},
    {"a password", MIG_URI_LIBVIRT, "qemu+ssh://root:secret@b/system", PORT},
    {"a user of TLS", MIG_URI_LIBVIRT, "qemu+tls://root@b/system", USER},
    {"a user with a blank", MIG_URI_LIBVIRT, "qemu+ssh://a b@b/system", END},
    {"a user by an escape", MIG_URI_LIBVIRT, "qemu+ssh://%2doProxyCommand=x@b/system", HOST},
    {"a user in capitals", MIG_URI_LIBVIRT, "qemu+ssh://Root@b/system", USER},
    {"a user that is too long", MIG_URI_LIBVIRT, "qemu+ssh://aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa@b/system",
     USER},
    {"two users", MIG_URI_LIBVIRT, "qemu+ssh://a@b@c/system", END},

    {"no host", MIG_URI_LIBVIRT, "qemu+tls:///system", HOST},
    {"no host, but a port", MIG_URI_LIBVIRT, "qemu+tls://:1/system", HOST},
    {"a newline", MIG_URI_LIBVIRT, "qemu+tls://b\n/system", END},
    {"a newline behind all of it", MIG_URI_LIBVIRT, "qemu+tls://b/system\n", END},
    {"a newline by an escape", MIG_URI_LIBVIRT, "qemu+tls://b%0a/system", END},
    {"a NUL by an escape", MIG_URI_LIBVIRT, "qemu+tls://b%00/system", END},
    {"a tab", MIG_URI_LIBVIRT, "qemu+tls://\tb/system", HOST},
    {"an escape of a terminal", MIG_URI_LIBVIRT, "qemu+tls://\033[2J/system", HOST},
    {"a host by an escape", MIG_URI_LIBVIRT, "qemu+tls://%62/system", HOST},
    {"a host with a semicolon", MIG_URI_LIBVIRT, "qemu+ssh://b;id/system", END},
    {"a host with a dollar", MIG_URI_LIBVIRT, "qemu+ssh://$(id)/system", HOST},
    {"a host with a backquote", MIG_URI_LIBVIRT, "qemu+ssh://`id`/system", HOST},
    {"a host with a backslash", MIG_URI_LIBVIRT, "qemu+tls://b\\c/system", END},
    {"a host in other letters", MIG_URI_LIBVIRT, "qemu+tls://\xd0\xb0.org/system", HOST},
    {"an underscore before it", MIG_URI_LIBVIRT, "qemu+tls://_b/system", HOST},
    {"a dash at the end", MIG_URI_LIBVIRT, "qemu+tls://b-/system", HOST},
    {"a dash at the end of a label", MIG_URI_LIBVIRT, "qemu+tls://b-.org/system", HOST},
    {"a dash before a label", MIG_URI_LIBVIRT, "qemu+tls://b.-org/system", HOST},
    {"a dot before it", MIG_URI_LIBVIRT, "qemu+tls://.b/system", HOST},
    {"a dot behind it", MIG_URI_LIBVIRT, "qemu+tls://b./system", HOST},
    {"two dots", MIG_URI_LIBVIRT, "qemu+tls://a..b/system", HOST},
    {"a label that is too long", MIG_URI_LIBVIRT, "qemu+tls://" LABEL64 "/system", HOST},
    {"a host that is too long", MIG_URI_LIBVIRT,
     "qemu+tls://" LABEL63 "." LABEL63 "." LABEL63 "." LABEL63 "/system", HOST},

    {"an address in three parts", MIG_URI_LIBVIRT, "qemu+tls://10.0.2/system", HOST},
    {"an address in five parts", MIG_URI_LIBVIRT, "qemu+tls://10.0.0.0.2/system", HOST},
    {"an address in one part", MIG_URI_LIBVIRT, "qemu+tls://167772162/system", HOST},
    {"an address in octal", MIG_URI_LIBVIRT, "qemu+tls://010.0.0.2/system", HOST},
    {"an address in hexadecimal", MIG_URI_LIBVIRT, "qemu+tls://0x0a000002/system", HOST},
    {"an address, half of it", MIG_URI_LIBVIRT, "qemu+tls://10.0x2/system", HOST},
    {"an address beyond all", MIG_URI_LIBVIRT, "qemu+tls://10.0.0.256/system", HOST},
    {"an IPv6 address without brackets", MIG_URI_LIBVIRT, "qemu+tls://2001:db8::1/system", HOST},
    {"an IPv6 address with a zone", MIG_URI_LIBVIRT, "qemu+tls://[fe80::1%25eth0]/system", HOST},
    {"a zone in the old way", MIG_URI_LIBVIRT, "qemu+tls://[fe80::1%eth0]/system", HOST},
    {"an IPv4 address in brackets", MIG_URI_LIBVIRT, "qemu+tls://[10.0.0.2]/system", HOST},
    {"a name in brackets", MIG_URI_LIBVIRT, "qemu+tls://[abc]/system", HOST},
    {"a later kind of address", MIG_URI_LIBVIRT, "qemu+tls://[v1.x]/system", HOST},
    {"an open bracket", MIG_URI_LIBVIRT, "qemu+tls://[::1/system", HOST},
    {"two gaps", MIG_URI_LIBVIRT, "qemu+tls://[1::2::3]/system", HOST},
    {"nine words", MIG_URI_LIBVIRT, "qemu+tls://[1:2:3:4:5:6:7:8:9]/system", HOST},
    {"seven words", MIG_URI_LIBVIRT, "qemu+tls://[1:2:3:4:5:6:7]/system", HOST},
    {"a colon at the end", MIG_URI_LIBVIRT, "qemu+tls://[1:2:3:4:5:6:7:]/system", HOST},
    {"a word of five digits", MIG_URI_LIBVIRT, "qemu+tls://[::12345]/system", HOST},

    {"no port", MIG_URI_LIBVIRT, "qemu+tls://b:/system", PORT},
    {"the port 0", MIG_URI_LIBVIRT, "qemu+tls://b:0/system", PORT},
    {"a port beyond all", MIG_URI_LIBVIRT, "qemu+tls://b:65536/system", PORT},
    {"a port in two ways", MIG_URI_LIBVIRT, "qemu+tls://b:022/system", PORT},
    {"a port with a sign", MIG_URI_LIBVIRT, "qemu+tls://b:+22/system", PORT},
    {"a port by name", MIG_URI_LIBVIRT, "qemu+tls://b:ssh/system", PORT},

    {"a socket for a migration", MIG_URI_MIGRATION, "unix:///tmp/x", SCHEME},
    {"a program for a migration", MIG_URI_MIGRATION, "exec:/tmp/x", SCHEME},
    {"a descriptor for a migration", MIG_URI_MIGRATION, "fd:3", SCHEME},
    {"a libvirt URI for a migration", MIG_URI_MIGRATION, "qemu+tls://b/system", SCHEME},
    {"a migration URI for libvirt", MIG_URI_LIBVIRT, "tcp://b/system", SCHEME},
    {"a migration without slashes", MIG_URI_MIGRATION, "tcp:b:49152", SCHEME},
    {"a migration in capitals", MIG_URI_MIGRATION, "TCP://b", SCHEME},
    {"a migration with a path", MIG_URI_MIGRATION, "tcp://b/x", END},
    {"a migration with a slash", MIG_URI_MIGRATION, "tcp://b/", END},
    {"a migration with a parameter", MIG_URI_MIGRATION, "tcp://b?x=y", END},
    {"a migration with an option of QEMU's", MIG_URI_MIGRATION, "tcp://b:49152,ipv6=on", END},
    {"a migration with a user", MIG_URI_MIGRATION, "tcp://root@b", USER},
    {"a migration to an option", MIG_URI_MIGRATION, "tcp://-x", HOST},
    {"a migration with a newline", MIG_URI_MIGRATION, "tcp://b\n", END},
    {"a migration to nobody", MIG_URI_MIGRATION, "tcp://", HOST},
};

static void is_refused(void **state) {
  const struct Bad *row = *state;
  MigUri uri = {.port = 4711};
  const char *fault = mig_uri_parse(row->kind, row->text, &uri);

  assert_non_null(fault);
  if (!strstr(fault, row->fault))
    fail_msg("expected '%s', it says: %s", row->fault, fault);
  assert_int_equal(uri.port, 4711);
}

static void what_is_too_long_is_refused_for_that(void **state) {
  char text[MIG_URI_BYTES_MAX + 2];

  memset(text, 'a', sizeof text);
  memcpy(text, "qemu+tls://", strlen("qemu+tls://"));
  text[MIG_URI_BYTES_MAX + 1] = '\0';
  assert_non_null(strstr(mig_uri_parse(MIG_URI_LIBVIRT, text, NULL), TOO_LONG));
  text[MIG_URI_BYTES_MAX] = '\0';
  assert_non_null(strstr(mig_uri_parse(MIG_URI_LIBVIRT, text, NULL), HOST));
}

/* Every byte in every place of a good one: what is taken then has nothing but the few characters of hosts and users. */
static void no_byte_gets_in_anywhere(void **state) {
  static const char good[] = "qemu+ssh://root@node-b.org:22/system";
  unsigned taken = 0;

  for (size_t at = 0; at < sizeof good - 1; at++)
    for (int byte = 1; byte < 256; byte++) {
      char text[sizeof good];

      memcpy(text, good, sizeof good);
      text[at] = (char)byte;
      if (mig_uri_parse(MIG_URI_LIBVIRT, text, NULL))
        continue;
      taken++;
      if (!memchr("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789+-._:@/", byte, 69))
        fail_msg("taken with byte %d at %zu", byte, at);
    }
  assert_true(taken > sizeof good);
}

static const struct Address {
  const char *name;
  const char *text;
  const char *bytes; /* NULL: it is none */
  unsigned bits;
} addresses[] = {
    {"nothing set", "0.0.0.0", "\0\0\0\0", 32},
    {"all set", "255.255.255.255", "\xff\xff\xff\xff", 32},
    {"zeros", "::", "\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0", 128},
    {"itself", "::1", "\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\1", 128},
    {"a gap at the end", "fd00::", "\xfd\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0", 128},
    {"a gap in the middle", "1:2::A:b", "\0\1\0\2\0\0\0\0\0\0\0\0\0\x0a\0\x0b", 128},
    {"a gap of one word", "1:2:3::5:6:7:8", "\0\1\0\2\0\3\0\0\0\5\0\6\0\7\0\x08", 128},
    {"no gap", "1:2:3:4:5:6:7:8", "\0\1\0\2\0\3\0\4\0\5\0\6\0\7\0\x08", 128},
    {"IPv4 within", "::ffff:192.0.2.1", "\0\0\0\0\0\0\0\0\0\0\xff\xff\xc0\0\2\1", 128},
    {"IPv4 within, without a gap", "1:2:3:4:5:6:192.0.2.1", "\0\1\0\2\0\3\0\4\0\5\0\6\xc0\0\2\1", 128},
    {"a gap of no word", "1:2:3:4::5:6:7:8", NULL, 0},
    {"IPv4 within, too far behind", "1:2:3:4:5:6:7:192.0.2.1", NULL, 0},
    {"IPv4 before words", "192.0.2.1::", NULL, 0},
    {"a lone colon", ":", NULL, 0},
    {"three colons", ":::", NULL, 0},
    {"a colon before words", ":1:2:3:4:5:6:7", NULL, 0},
    {"a dot behind it", "10.0.0.1.", NULL, 0},
    {"a blank behind it", "10.0.0.1 ", NULL, 0},
    {"a sign", "10.0.0.-1", NULL, 0},
    {"nothing", "", NULL, 0},
};

static void is_read_as_an_address(void **state) {
  const struct Address *row = *state;
  MigAddress address = {.bits = 7};

  assert_int_equal(mig_address_parse(row->text, strlen(row->text), &address), row->bytes != NULL);
  assert_int_equal(address.bits, row->bytes ? row->bits : 7);
  if (row->bytes)
    assert_memory_equal(address.bytes, row->bytes, row->bits / 8);
}

static const struct Allowed {
  const char *name;
  const char *pattern;
  MigUriKind kind;
  const char *text;
  bool expected;
} alloweds[] = {
    {"the same URI", "qemu+tls://b/system", MIG_URI_LIBVIRT, "qemu+tls://b/system", true},
    {"other capitals of a host", "qemu+tls://b.Example.org/system", MIG_URI_LIBVIRT,
     "qemu+tls://B.example.ORG/system", true},
    {"another scheme", "qemu+tls://b/system", MIG_URI_LIBVIRT, "qemu+tcp://b/system", false},
    {"any host of a domain", "qemu+tls://*.example.org/system", MIG_URI_LIBVIRT,
     "qemu+tls://b.rack2.example.org/system", true},
    {"a host of another domain", "qemu+tls://*.example.org/system", MIG_URI_LIBVIRT,
     "qemu+tls://b.example.org.evil.net/system", false},
    {"the domain itself", "qemu+tls://*.example.org/system", MIG_URI_LIBVIRT, "qemu+tls://example.org/system",
     false},
    {"a port that was not allowed", "qemu+tls://*/system", MIG_URI_LIBVIRT, "qemu+tls://b:22/system", false},
    {"any port", "qemu+tls://*:*/system", MIG_URI_LIBVIRT, "qemu+tls://b:22/system", true},
    {"a user who was not allowed", "qemu+ssh://*/system", MIG_URI_LIBVIRT, "qemu+ssh://root@b/system", false},
    {"a user who was", "qemu+ssh://root@*/system", MIG_URI_LIBVIRT, "qemu+ssh://root@b/system", true},
    {"a user for a host", "qemu+ssh://*.org/system", MIG_URI_LIBVIRT, "qemu+ssh://x@evil.org/system", false},
    {"one character", "qemu+tls://b?/system", MIG_URI_LIBVIRT, "qemu+tls://b1/system", true},
    {"one character that parts", "qemu+tls://b?2/system", MIG_URI_LIBVIRT, "qemu+tls://b:2/system", false},
    {"all by TLS, but IPv6", "qemu+tls://*/system", MIG_URI_LIBVIRT, "qemu+tls://[::1]/system", false},
    {"an IPv6 address", "qemu+tls://[fd00::1]/system", MIG_URI_LIBVIRT, "qemu+tls://[fd00::1]/system", true},
    {"a migration", "tcp://*.example.org", MIG_URI_MIGRATION, "tcp://b.example.org", true},
    {"a migration by the pattern of another kind", "qemu+tls://b/system", MIG_URI_MIGRATION, "tcp://b",
     false},
    {"an address of a network", "10.0.0.0/8", MIG_URI_LIBVIRT, "qemu+tcp://10.77.0.2/system", true},
    {"an address of another", "10.0.0.0/8", MIG_URI_LIBVIRT, "qemu+tcp://11.0.0.1/system", false},
    {"the last one of a network", "10.0.0.128/25", MIG_URI_LIBVIRT, "qemu+tcp://10.0.0.255/system", true},
    {"the one before a network", "10.0.0.128/25", MIG_URI_LIBVIRT, "qemu+tcp://10.0.0.127/system", false},
    {"all of IPv4", "0.0.0.0/0", MIG_URI_LIBVIRT, "qemu+tcp://10.0.0.127/system", true},
    {"all of IPv4 is not IPv6", "0.0.0.0/0", MIG_URI_LIBVIRT, "qemu+tcp://[::1]/system", false},
    {"all of IPv6 is not IPv4", "::/0", MIG_URI_LIBVIRT, "qemu+tcp://10.0.0.1/system", false},
    {"IPv4 in the clothes of IPv6", "10.0.0.0/8", MIG_URI_LIBVIRT, "qemu+tcp://[::ffff:10.0.0.1]/system",
     false},
    {"a network of IPv6", "2001:db8::/33", MIG_URI_LIBVIRT, "qemu+tls://[2001:db8:7fff::1]/system", true},
    {"beyond a network of IPv6", "2001:db8::/33", MIG_URI_LIBVIRT, "qemu+tls://[2001:db8:8000::1]/system",
     false},
    {"a lone address", "10.0.0.2", MIG_URI_LIBVIRT, "qemu+tcp://10.0.0.2/system", true},
    {"an address in another form", "fd00:0::2", MIG_URI_MIGRATION, "tcp://[FD00::0:2]:49152", true},
    {"a name is in no network", "0.0.0.0/0", MIG_URI_LIBVIRT, "qemu+tcp://b/system", false},
    {"a name of a target is no URI", "*", MIG_URI_LIBVIRT, "qemu+tcp://b/system", false},
};

static void is_allowed(void **state) {
  const struct Allowed *row = *state;
  MigAllow allow;
  MigUri uri;

  assert_true(mig_allow_parse(row->pattern, &allow));
  assert_null(mig_uri_parse(row->kind, row->text, &uri));
  assert_int_equal(mig_allow_uri(&allow, row->text, &uri), row->expected);
}

static const struct Pattern {
  const char *name;
  const char *text;
  bool expected;
} patterns[] = {
    {"a name", "node-b", true},
    {"any name", "*", true},
    {"a name that looks like a host", "kvm2.example.org", true},
    {"nothing", "", false},
    {"bits behind the prefix", "10.0.0.1/8", false},
    {"a prefix beyond all", "10.0.0.0/33", false},
    {"a prefix of IPv6 beyond all", "::/129", false},
    {"no prefix", "10.0.0.0/", false},
    {"a prefix with more behind it", "10.0.0.0/8x", false},
    {"half a network", "10.0/16", false},
    {"a scheme that no caller may name", "qemu+ext://*/system", false},
    {"a scheme by a star", "*://b/system", false},
    {"a scheme in capitals", "QEMU+TLS://b/system", false},
};

static void is_a_pattern(void **state) {
  const struct Pattern *row = *state;
  MigAllow allow;

  assert_int_equal(mig_allow_parse(row->text, &allow), row->expected);
}

static void names_fit_by_their_own_letters(void **state) {
  MigAllow allow;

  assert_true(mig_allow_parse("rack2-*", &allow));
  assert_true(mig_allow_name(&allow, "rack2-b"));
  assert_false(mig_allow_name(&allow, "Rack2-b"));
  assert_false(mig_allow_name(&allow, "rack3-b"));
  assert_true(mig_allow_parse("10.0.0.0/8", &allow));
  assert_false(mig_allow_name(&allow, "10.0.0.0/8"));
}

static const struct Same {
  const char *name;
  const char *a, *b;
  bool expected;
} sames[] = {
    {"the same name", "qemu+tls://b/system", "tcp://b:49152", true},
    {"other capitals", "qemu+tls://b.org/system", "tcp://B.ORG", true},
    {"a longer name", "qemu+tls://b/system", "tcp://b.org", false},
    {"the same address", "qemu+tls://[fd00::1]/system", "tcp://[fd00:0:0::1]", true},
    {"another address", "qemu+tls://10.0.0.1/system", "tcp://10.0.0.2", false},
    {"an address and a name", "qemu+tls://10.0.0.1/system", "tcp://b", false},
};

static void is_the_same_host(void **state) {
  const struct Same *row = *state;
  MigUri a, b;

  assert_null(mig_uri_parse(MIG_URI_LIBVIRT, row->a, &a));
  assert_null(mig_uri_parse(MIG_URI_MIGRATION, row->b, &b));
  assert_int_equal(mig_uri_same_host(&a, &b), row->expected);
  assert_int_equal(mig_uri_same_host(&b, &a), row->expected);
}

int main(void) {
  Tests tests = {0};

  TESTS_ADD_ROWS(&tests, is_taken_apart, goods);
  TESTS_ADD_ROWS(&tests, is_refused, bads);
  TESTS_ADD_ROWS(&tests, is_read_as_an_address, addresses);
  TESTS_ADD_ROWS(&tests, is_allowed, alloweds);
  TESTS_ADD_ROWS(&tests, is_a_pattern, patterns);
  TESTS_ADD_ROWS(&tests, is_the_same_host, sames);
  tests_add(&tests, "what is too long", what_is_too_long_is_refused_for_that, NULL);
  tests_add(&tests, "no byte gets in anywhere", no_byte_gets_in_anywhere, NULL);
  tests_add(&tests, "names fit by their own letters", names_fit_by_their_own_letters, NULL);
  return tests_run(&tests, "uri");
}
