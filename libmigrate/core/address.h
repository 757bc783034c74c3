/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Internet addresses and networks as people write them. Nothing is looked up. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

typedef struct MigAddress {
  unsigned char bytes[16]; /* in network order; an IPv4 address has four */
  unsigned bits;           /* 32 or 128; 0: no address */
} MigAddress;

/* "192.0.2.1" or "2001:db8::1": the whole text, and no other notation. What inet_aton() accepts beyond that ("10.1",
 * "0x7f.1", "010.0.0.1") is not an address here, nor is one with a zone ("fe80::1%eth0"). */
bool mig_address_parse(const char *text, size_t length, MigAddress *ret_address);

/* "10.0.0.0/8", or a single address, which is a network of one. Bits after the prefix must be zero: otherwise the
 * network is probably a typo. */
bool mig_network_parse(const char *text, MigAddress *ret_network, unsigned *ret_prefix);

/* An IPv4 address is in no IPv6 network, and vice versa. */
bool mig_network_contains(const MigAddress *network, unsigned prefix, const MigAddress *address);
