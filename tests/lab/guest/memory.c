/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The lab's guest: its pages, and what stands in them. */
#include "guest.h"

enum {
  WORD_STEP = 16, /* work stores one word per 64 bytes */
};

struct arena arena;

u32 pattern(u32 page, u32 serial) {
  u32 x = page * 0x85ebca6bu ^ serial * 0xc2b2ae35u;

  x ^= x >> 15;
  x *= 0x2c1b3c6du;
  return x ^ (x >> 13);
}

static int is_hot(u32 page) {
  return page - arena.hot_first < arena.hot_pages;
}

int is_zero(u32 page) {
  switch (arena.zeros) {
  case 'f':
    return page < arena.hot_first;
  case 's':
    return !is_hot(page) && page * 2654435761u >> 22 < arena.zero_share;
  default:
    return page >= arena.fill_pages;
  }
}

u32 last_serial(u32 page) {
  return is_hot(page) ? arena.last[page - arena.hot_first] : 0;
}

void set_last(u32 page, u32 serial) {
  volatile u32 *last = &arena.last[page - arena.hot_first];

  invlpg((u32)last);
  *last = serial;
}

void fill_page(u32 page) {
  volatile u32 *w = page_words(page);
  u32 value = pattern(page, 0);

  invlpg((u32)w);
  for (u32 i = 0; i < PAGE_WORDS; i++, value += STRIDE)
    w[i] = value;
}

void store_work(u32 page, u32 serial) {
  volatile u32 *w = page_words(page);
  u32 value = pattern(page, serial);

  invlpg((u32)w);
  for (u32 i = 0; i < PAGE_WORDS; i += WORD_STEP, value += WORD_STEP * STRIDE)
    w[i] = value;
}

int work_is_good(u32 page, u32 serial) {
  volatile u32 *w = page_words(page);
  u32 value = pattern(page, serial), wrong = 0;

  for (u32 i = 0; i < PAGE_WORDS; i += WORD_STEP, value += WORD_STEP * STRIDE)
    wrong |= w[i] ^ value;
  return !wrong;
}

/* All of the page: work words by the last write, the others by the fill. */
int page_is_good(u32 page, u32 serial) {
  volatile u32 *w = page_words(page);
  u32 filled = pattern(page, 0), difference = pattern(page, serial) - filled, wrong = 0;

  for (u32 i = 0; i < PAGE_WORDS; i++, filled += STRIDE)
    wrong |= w[i] ^ (i % WORD_STEP ? filled : filled + difference);
  return !wrong;
}

int page_is_empty(u32 page) {
  volatile u32 *w = page_words(page);
  u32 wrong = 0;

  for (u32 i = 0; i < PAGE_WORDS; i++)
    wrong |= w[i];
  return !wrong;
}

void empty_page(u32 page) {
  volatile u32 *w = page_words(page);

  invlpg((u32)w);
  for (u32 i = 0; i < PAGE_WORDS; i++)
    w[i] = 0;
}
