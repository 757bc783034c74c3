/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Internet addresses and networks as people write them. */
#include "libmigrate/core/address.h"

#include <string.h>

#define WORDS 8 /* of an IPv6 address */

static bool is_digit(char c) {
  return c >= '0' && c <= '9';
}

static int hex_value(char c) {
  if (is_digit(c))
    return c - '0';
  if (c >= 'a' && c <= 'f')
    return c - 'a' + 10;
  return c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

/* A decimal of at most three digits without leading zeros. Returns the number of digits; 0: not valid. */
static size_t parse_decimal(const char *text, size_t length, unsigned max, unsigned *ret_value) {
  unsigned value = 0;
  size_t n = 0;

  while (n < length && n < 3 && is_digit(text[n]))
    value = value * 10 + (unsigned)(text[n++] - '0');
  if (n == 0 || (n > 1 && text[0] == '0') || (n < length && is_digit(text[n])) || value > max)
    return 0;
  *ret_value = value;
  return n;
}

static bool parse_ipv4(const char *text, size_t length, unsigned char bytes[4]) {
  for (int i = 0; i < 4; i++) {
    unsigned value;
    size_t n = parse_decimal(text, length, 255, &value);

    if (n == 0)
      return false;
    bytes[i] = (unsigned char)value;
    text += n;
    length -= n;
    if (i == 3)
      return length == 0;
    if (length == 0 || *text != '.')
      return false;
    text++;
    length--;
  }
  return false;
}

/* One to four hexadecimal digits. */
static size_t parse_word(const char *text, size_t length, unsigned *ret_word) {
  unsigned word = 0;
  size_t n = 0;

  while (n < length && n < 4 && hex_value(text[n]) >= 0)
    word = word * 16 + (unsigned)hex_value(text[n++]);
  *ret_word = word;
  return n;
}

typedef struct Ipv6 {
  unsigned words[WORDS];
  int n;
  int gap; /* position of "::" in words; -1: none */
} Ipv6;

/* The last 32 bits may be written as an IPv4 address. */
static bool take_ipv4(Ipv6 *ipv6, const char *text, size_t length) {
  unsigned char bytes[4];

  if (ipv6->n > WORDS - 2 || !parse_ipv4(text, length, bytes))
    return false;
  ipv6->words[ipv6->n++] = (unsigned)bytes[0] << 8 | bytes[1];
  ipv6->words[ipv6->n++] = (unsigned)bytes[2] << 8 | bytes[3];
  return true;
}

static bool split_ipv6(Ipv6 *ipv6, const char *text, size_t length) {
  size_t at = 0;

  if (length >= 2 && text[0] == ':' && text[1] == ':') {
    ipv6->gap = 0;
    at = 2;
  }
  while (at < length) {
    unsigned word;
    size_t n = parse_word(text + at, length - at, &word);

    if (n == 0 || ipv6->n >= WORDS)
      return false;
    if (at + n < length && text[at + n] == '.')
      return take_ipv4(ipv6, text + at, length - at);
    ipv6->words[ipv6->n++] = word;
    at += n;
    if (at == length)
      return true;
    if (text[at++] != ':')
      return false;
    if (at < length && text[at] == ':') {
      if (ipv6->gap >= 0)
        return false;
      ipv6->gap = ipv6->n;
      at++;
    } else if (at == length) {
      return false;
    }
  }
  return true;
}

static bool parse_ipv6(const char *text, size_t length, unsigned char bytes[16]) {
  Ipv6 ipv6 = {.gap = -1};
  int zeros;

  if (!split_ipv6(&ipv6, text, length))
    return false;
  zeros = WORDS - ipv6.n;
  if (ipv6.gap < 0 ? zeros != 0 : zeros < 1)
    return false;
  memset(bytes, 0, 16);
  for (int i = 0; i < ipv6.n; i++) {
    int to = ipv6.gap >= 0 && i >= ipv6.gap ? i + zeros : i;

    bytes[2 * to] = (unsigned char)(ipv6.words[i] >> 8);
    bytes[2 * to + 1] = (unsigned char)(ipv6.words[i] & 0xff);
  }
  return true;
}

bool mig_address_parse(const char *text, size_t length, MigAddress *ret_address) {
  MigAddress address = {.bits = 0};

  if (parse_ipv4(text, length, address.bytes))
    address.bits = 32;
  else if (parse_ipv6(text, length, address.bytes))
    address.bits = 128;
  if (address.bits == 0)
    return false;
  *ret_address = address;
  return true;
}

static bool bit_of(const MigAddress *address, unsigned bit) {
  return address->bytes[bit / 8] >> (7 - bit % 8) & 1;
}

bool mig_network_parse(const char *text, MigAddress *ret_network, unsigned *ret_prefix) {
  const char *slash = strchr(text, '/');
  size_t length = slash ? (size_t)(slash - text) : strlen(text);
  MigAddress network;
  unsigned prefix;

  if (!mig_address_parse(text, length, &network))
    return false;
  prefix = network.bits;
  if (slash) {
    size_t n = parse_decimal(slash + 1, strlen(slash + 1), network.bits, &prefix);

    if (n == 0 || slash[1 + n])
      return false;
  }
  for (unsigned bit = prefix; bit < network.bits; bit++)
    if (bit_of(&network, bit))
      return false;
  *ret_network = network;
  *ret_prefix = prefix;
  return true;
}

bool mig_network_contains(const MigAddress *network, unsigned prefix, const MigAddress *address) {
  if (address->bits == 0 || network->bits != address->bits)
    return false;
  for (unsigned bit = 0; bit < prefix; bit++)
    if (bit_of(network, bit) != bit_of(address, bit))
      return false;
  return true;
}
