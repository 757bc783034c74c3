/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The lab's guest: what its files share. guest.c is the theory of operation. */
#pragma once

typedef unsigned char u8;
typedef unsigned short u16;
typedef unsigned int u32;
typedef unsigned long long u64;

enum {
  PAGE_BYTES = 4096,
  PAGE_WORDS = PAGE_BYTES / 4,
  PAGES_PER_MIB = 256,
  TIMER_HZ = 1000,
  MAX_HEAPS = 4,
  MAX_CPUS = 4, /* that are busy */
};

/* A CPU's share of a heap, and how far it has come with it. */
struct lane {
  u32 first; /* page of the arena */
  u32 pages, rate_pages_per_s;
  char writer;      /* 0: in turn, r(andom), z(ipf) */
  u32 serial;       /* of its last write */
  u32 phase_serial; /* serial at the begin of the phase */
  u32 position;     /* next page, in turn */
  u32 random;
  u32 due;
  u64 remainder; /* cycles x pages/s; tsc_hz is a page */
};

struct range {
  u32 first, pages;
};

/* All that a CPU stores to, but for pages of the arena: its variables, and the stack. */
struct cpu {
  u32 number; /* 0: the one that booted. It has the serial port, the disk and the pages that nobody writes. */
  u32 phase;
  struct lane lanes[MAX_HEAPS];
  u32 owed, lost, bad, backwards, sum;
  struct range ranges[MAX_HEAPS + 2]; /* what it sweeps */
  u32 n_ranges, sweep_range, sweep_position, swept, sweeps, sweep_due, sweep_rate_pages_per_s;
  u64 sweep_remainder;
  u64 last_tsc, up_tsc, phase_tsc, heartbeat_tsc, status_tsc;
  u32 trouble_lines;
  u32 disk_serial, disk_done, disk_kib_due;
  u64 disk_remainder;
  u8 stack[PAGE_BYTES] __attribute__((aligned(PAGE_BYTES)));
} __attribute__((aligned(PAGE_BYTES)));
_Static_assert(sizeof(struct cpu) == 2 * PAGE_BYTES,
               "start finds the stack of a CPU two pages behind its begin");

extern struct cpu cpus[MAX_CPUS];

/* ---- machine.c ---- */

static inline void outb(u16 port, u8 value) {
  __asm__ volatile("outb %0, %1" : : "a"(value), "Nd"(port));
}

static inline void outw(u16 port, u16 value) {
  __asm__ volatile("outw %0, %1" : : "a"(value), "Nd"(port));
}

static inline void outl(u16 port, u32 value) {
  __asm__ volatile("outl %0, %1" : : "a"(value), "Nd"(port));
}

static inline u8 inb(u16 port) {
  u8 value;

  __asm__ volatile("inb %1, %0" : "=a"(value) : "Nd"(port));
  return value;
}

static inline u16 inw(u16 port) {
  u16 value;

  __asm__ volatile("inw %1, %0" : "=a"(value) : "Nd"(port));
  return value;
}

static inline u32 inl(u16 port) {
  u32 value;

  __asm__ volatile("inl %1, %0" : "=a"(value) : "Nd"(port));
  return value;
}

static inline u64 rdtsc(void) {
  u64 t;

  __asm__ volatile("rdtsc" : "=A"(t));
  return t;
}

static inline void invlpg(u32 address) {
  __asm__ volatile("invlpg (%0)" : : "r"(address) : "memory");
}

static inline void drop_state_pages(struct cpu *cpu) {
  invlpg((u32)cpu);
  invlpg((u32)cpu->stack);
}

void load_tables(void);

/* Starts all other CPUs. The first `busy` of all enter run_cpu(); the others halt for good. */
void start_cpus(u32 all, u32 busy, u32 tsc_khz);
void run_cpu(struct cpu *cpu);

/* Until the next timer tick of this CPU: interrupts are open here only. */
void doze(struct cpu *cpu);
__attribute__((noreturn)) void halt(void);

void put_text(const char *s);
void put_char(char c);
void put_field(const char *key, u32 value);

/* The quotient has to fit 32 bits; there is no libgcc for 64-bit division. */
u32 divide(u64 n, u32 d);

/* ---- memory.c ---- */

/* Set before the work begins, and only read from then on. */
extern struct arena {
  u32 begin; /* address of page 0 */
  u32 pages, fill_pages;
  char zeros;               /* f(irst), l(ast), s(cattered) */
  u32 hot_first, hot_pages; /* all heaps */
  u32 zero_share;           /* of the pages outside of heaps, in 1024ths, if scattered */
  volatile u32 *last;       /* per page of the heaps: serial of its last write */
} arena;

static inline volatile u32 *page_words(u32 page) {
  return (volatile u32 *)(arena.begin + page * PAGE_BYTES);
}

/* Word i of a page is pattern + i * STRIDE: distinct in the page, and each
 * (page, serial) has its own. Serial 0 is the first fill. */
#define STRIDE 0x9e3779b1u
u32 pattern(u32 page, u32 serial);

int is_zero(u32 page); /* supposed to be */
u32 last_serial(u32 page);
void set_last(u32 page, u32 serial);

void fill_page(u32 page);
void empty_page(u32 page);
void store_work(u32 page, u32 serial);

int work_is_good(u32 page, u32 serial);
int page_is_good(u32 page, u32 serial);
int page_is_empty(u32 page);

/* ---- guest.c ---- */

/* Units that became due in `elapsed` cycles, at a rate; the rest is kept. */
u32 units_due(u64 elapsed, u32 rate_per_s, u64 *remainder);

/* ---- disk.c ---- */

void disk_set_up(u32 rate_kib_per_s);
void disk_account(struct cpu *cpu, u64 elapsed);
void disk_step(struct cpu *cpu);
