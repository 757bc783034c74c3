/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Internet addresses and networks as people write them. Nothing is looked up. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

typedef struct MigAddress {
  unsigned char bytes[16]; /* in the order of the network; an IPv4 address has four */
  unsigned bits;           /* 32 or 128; 0: no address */
} MigAddress;

/* "192.0.2.1" or "2001:db8::1": the whole of the text, and in no other way. What inet_aton() takes besides ("10.1", "0x7f.1",
 * "010.0.0.1") is no address here, nor is one with a zone ("fe80::1%eth0"). */
bool mig_address_parse(const char *text, size_t length, MigAddress *ret_address);

/* "10.0.0.0/8", or a lone address, which is a network of one. Bits behind the prefix must be zero: a network that says less
 * than it seems to is a mistake. */
bool mig_network_parse(const char *text, MigAddress *ret_network, unsigned *ret_prefix);

/* An IPv4 address is in no IPv6 network, and the other way round. */
bool mig_network_contains(const MigAddress *network, unsigned prefix, const MigAddress *address);
