/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The lab's guest: bare metal, no operating system, no C library.
 *
 * Theory of operation
 *
 * Memory above the image is an arena of 4 KiB pages. All pages below
 * `fill` hold a pattern of their own. The first `ws` MiB are the working set:
 * written over and over, in order, at `rate` MiB/s. Each write has a serial
 * number, and what stands in a page is a function of (page, serial). Before a
 * page is written anew it is checked for what must be there; a slow sweep
 * checks every word of the whole arena. So memory that a migration lost, mixed
 * up or brought in an old version is found and counted.
 *
 * A page's write alone costs the CPU little, so that a guest at 200 MiB/s is
 * mostly asleep, and taking half of its CPU away does not slow it down. Programs
 * compute what they write: `work` is how often all of the page is read for it.
 *
 * Time is the TSC (its frequency comes on the command line: under TCG it is
 * the host's). It stands still while the VM is stopped, so the guest cannot
 * see its own downtime: it sends a heartbeat '.' every 10 ms, and the host
 * takes the time of the silence. Work that could not be done (the CPU was
 * taken away for more than WORK_BACKLOG_MS) is not made up for: it is lost,
 * as a user's is.
 *
 * invlpg. QEMU 7.2's TCG loses dirty bits: after a bitmap sync, stores through
 * a TLB entry that is still hot are not logged, and the target gets the old
 * page. So the entry is dropped before each page is stored to, and the state
 * pages (variables, stack) are dropped in every turn of the main loop, and for
 * each page that is written: a turn that auto-converge stretches to a second
 * would leave time for a sync, and for the last stores before the switch to be
 * lost. A store right after invlpg always takes the slow path, which logs it.
 *
 * Lines on the serial port: "= " banner, "# " status (key=value), "! " trouble.
 */

typedef unsigned char u8;
typedef unsigned short u16;
typedef unsigned int u32;
typedef unsigned long long u64;

enum {
  PAGE_BYTES = 4096,
  PAGE_WORDS = PAGE_BYTES / 4,
  PAGES_PER_MIB = 256,
  WORD_STEP = 16, /* work stores one word per 64 bytes */
  HEARTBEAT_MS = 10,
  STATUS_MS = 1000,
  WORK_BACKLOG_MS = 100,
  WORK_BATCH_PAGES = 16,
  SWEEP_BACKLOG_PAGES = 16,
  TIMER_HZ = 1000,
  PIT_HZ = 1193182,
  COM1 = 0x3f8,
  ACPI_PM1A_CONTROL = 0x604, /* where the firmware of a pc puts it */
  RESET_CONTROL = 0xcf9,
  CMOS_INDEX = 0x70,
  CMOS_DATA = 0x71,
  CMOS_ENDED = 0x7f, /* a byte that nobody uses, and a reset leaves alone */
  PVPANIC = 0x505,
  MAX_PHASES = 8,
  MAX_TROUBLE_LINES = 4, /* between two status lines */
  RESERVED_TOP_MIB = 1,  /* firmware tables */
  MULTIBOOT_MAGIC = 0x1badb002,
  MULTIBOOT_FLAGS = 0x3, /* page aligned, wants the memory size */
};

struct phase {
  u32 ws_pages;
  u32 rate_pages_per_s;
  u32 length_s; /* 0: for ever */
};

struct multiboot_info {
  u32 flags, mem_lower_kib, mem_upper_kib, boot_device, cmdline;
};

static struct {
  struct phase phases[MAX_PHASES];
  u32 n_phases, phase;
  u32 tsc_khz;

  u32 arena; /* address of page 0 */
  u32 fill_pages;
  volatile u32 *last; /* per page of the working set: serial of its last write */

  u32 serial;       /* writes so far; the current one */
  u32 position;     /* next page of the working set */
  u32 phase_serial; /* serial at the begin of the phase */
  u32 owed, lost, bad, backwards;
  u32 turns, sum; /* of computing for each page written, and what came out */
  u32 sweep_position, swept, sweeps;
  u32 sweep_rate_pages_per_s;

  char end; /* how it ends by itself: p(oweroff), r(eboot), c(rash); 0: it does not */
  u32 end_ms;

  u64 last_tsc, up_tsc, phase_tsc, heartbeat_tsc, status_tsc;
  u64 work_remainder, sweep_remainder; /* cycles x pages/s; tsc_hz is a page */
  u32 work_due, sweep_due;
  u64 tsc_hz;
  u32 trouble_lines;
} g;

static u64 gdt[3];
static u64 idt[48];
u8 stack[PAGE_BYTES] __attribute__((aligned(PAGE_BYTES)));
extern u8 state_begin[], state_end[];

/* ---- the machine ---- */

__asm__(".section .multiboot,\"a\"\n"
        ".align 4\n"
        ".long 0x1badb002, 0x3, -(0x1badb002 + 0x3)\n"
        ".text\n"
        ".global start\n"
        "start: mov $stack + 4096, %esp\n"
        "push %ebx\n"
        "call run\n"
        "timer_entry: push %eax\n"
        "mov $0x20, %al\n"
        "out %al, $0x20\n"
        "pop %eax\n"
        "iret\n"
        "fault_entry: call fault\n");
extern u8 timer_entry[], fault_entry[];

static inline void outb(u16 port, u8 value) {
  __asm__ volatile("outb %0, %1" : : "a"(value), "Nd"(port));
}

static inline void outw(u16 port, u16 value) {
  __asm__ volatile("outw %0, %1" : : "a"(value), "Nd"(port));
}

static inline u8 inb(u16 port) {
  u8 value;

  __asm__ volatile("inb %1, %0" : "=a"(value) : "Nd"(port));
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

static void drop_state_pages(void) {
  for (u32 a = (u32)state_begin; a < (u32)state_end; a += PAGE_BYTES)
    invlpg(a);
}

/* Until the next timer tick: interrupts are open here only. */
static void doze(void) {
  drop_state_pages(); /* the interrupt frame is stored to the stack */
  __asm__ volatile("sti\n hlt\n cli" : : : "memory");
}

static void load_tables(void) {
  struct {
    u16 limit;
    u32 base;
  } __attribute__((packed)) pointer;

  gdt[1] = 0x00cf9a000000ffffULL; /* flat code */
  gdt[2] = 0x00cf92000000ffffULL; /* flat data */
  pointer.limit = sizeof(gdt) - 1;
  pointer.base = (u32)gdt;
  __asm__ volatile("lgdt %0\n"
                   "ljmp $8, $1f\n"
                   "1: mov %1, %%ds\n mov %1, %%es\n mov %1, %%ss"
                   :
                   : "m"(pointer), "r"(16)
                   : "memory");

  for (u32 i = 0; i < 48; i++) {
    u32 entry = (u32)(i < 32 ? fault_entry : timer_entry);

    idt[i] = ((u64)(entry & 0xffff0000) << 32) | (0x8e00ULL << 32) | (8 << 16) | (entry & 0xffff);
  }
  pointer.limit = sizeof(idt) - 1;
  pointer.base = (u32)idt;
  __asm__ volatile("lidt %0" : : "m"(pointer));

  outb(0x20, 0x11), outb(0xa0, 0x11); /* PICs: vectors from 32 and 40 */
  outb(0x21, 32), outb(0xa1, 40);
  outb(0x21, 4), outb(0xa1, 2);
  outb(0x21, 1), outb(0xa1, 1);
  outb(0x21, 0xfe), outb(0xa1, 0xff); /* only the timer */
  outb(0x43, 0x34);
  outb(0x40, (PIT_HZ / TIMER_HZ) & 0xff);
  outb(0x40, (PIT_HZ / TIMER_HZ) >> 8);
}

/* ---- text ---- */

static void put_char(char c) {
  while (!(inb(COM1 + 5) & 0x20))
    ;
  outb(COM1, (u8)c);
}

static void put_text(const char *s) {
  while (*s)
    put_char(*s++);
}

static void put_number(u32 n) {
  char digits[10];
  u32 i = 0;

  do
    digits[i++] = (char)('0' + n % 10);
  while (n /= 10);
  while (i)
    put_char(digits[--i]);
}

static void put_field(const char *key, u32 value) {
  put_char(' ');
  put_text(key);
  put_char('=');
  put_number(value);
}

__attribute__((noreturn)) static void halt(void) {
  for (;;)
    __asm__ volatile("cli\n hlt");
}

__attribute__((noreturn, used)) void fault(u32 a, u32 b) {
  put_text("\n! cpu exception");
  put_field("frame0", a);
  put_field("frame1", b);
  put_text("\n");
  halt();
}

/* The quotient has to fit 32 bits; there is no libgcc for 64-bit division. */
static u32 divide(u64 n, u32 d) {
  u32 quotient, remainder;

  __asm__("divl %4" : "=a"(quotient), "=d"(remainder) : "a"((u32)n), "d"((u32)(n >> 32)), "rm"(d));
  (void)remainder;
  return quotient;
}

static const char *parse_number(const char *s, u32 *ret_n) {
  u32 n = 0;

  while (*s >= '0' && *s <= '9')
    n = n * 10 + (u32)(*s++ - '0');
  *ret_n = n;
  return s;
}

/* The value of " key=" in the command line, or NULL. */
static const char *find_option(const char *cmdline, const char *key) {
  for (const char *s = cmdline; *s; s++) {
    const char *a = s, *k = key;

    while (*k && *a == *k)
      a++, k++;
    if (!*k && *a == '=' && (s == cmdline || s[-1] == ' '))
      return a + 1;
  }
  return 0;
}

static u32 number_option(const char *cmdline, const char *key, u32 fallback) {
  const char *s = find_option(cmdline, key);
  u32 n;

  if (!s)
    return fallback;
  parse_number(s, &n);
  return n;
}

/* ws/rate:seconds, in MiB and MiB/s, separated by commas */
static void parse_phases(const char *s) {
  while (s && *s && *s != ' ' && g.n_phases < MAX_PHASES) {
    struct phase *p = &g.phases[g.n_phases++];

    s = parse_number(s, &p->ws_pages);
    p->ws_pages *= PAGES_PER_MIB;
    if (*s == '/')
      s = parse_number(s + 1, &p->rate_pages_per_s);
    p->rate_pages_per_s *= PAGES_PER_MIB;
    if (*s == ':')
      s = parse_number(s + 1, &p->length_s);
    if (*s == ',')
      s++;
  }
  if (!g.n_phases)
    g.n_phases = 1;
}

/* ---- memory ---- */

static inline volatile u32 *page_words(u32 page) {
  return (volatile u32 *)(g.arena + page * PAGE_BYTES);
}

/* Word i of a page is pattern + i * STRIDE: distinct in the page, and each
 * (page, serial) has its own. Serial 0 is the first fill. */
#define STRIDE 0x9e3779b1u

static inline u32 pattern(u32 page, u32 serial) {
  u32 x = page * 0x85ebca6bu ^ serial * 0xc2b2ae35u;

  x ^= x >> 15;
  x *= 0x2c1b3c6du;
  return x ^ (x >> 13);
}

static void fill_page(u32 page) {
  volatile u32 *w = page_words(page);
  u32 value = pattern(page, 0);

  invlpg((u32)w);
  for (u32 i = 0; i < PAGE_WORDS; i++, value += STRIDE)
    w[i] = value;
}

static void set_last(u32 page, u32 serial) {
  invlpg((u32)&g.last[page]);
  g.last[page] = serial;
}

static void store_work(u32 page, u32 serial) {
  volatile u32 *w = page_words(page);
  u32 value = pattern(page, serial);

  invlpg((u32)w);
  for (u32 i = 0; i < PAGE_WORDS; i += WORD_STEP, value += WORD_STEP * STRIDE)
    w[i] = value;
}

static int work_is_good(u32 page, u32 serial) {
  volatile u32 *w = page_words(page);
  u32 value = pattern(page, serial), wrong = 0;

  for (u32 i = 0; i < PAGE_WORDS; i += WORD_STEP, value += WORD_STEP * STRIDE)
    wrong |= w[i] ^ value;
  return !wrong;
}

/* All of the page: work words by the last write, the others by the fill. */
static int page_is_good(u32 page, u32 serial) {
  volatile u32 *w = page_words(page);
  u32 filled = pattern(page, 0), difference = pattern(page, serial) - filled, wrong = 0;

  for (u32 i = 0; i < PAGE_WORDS; i++, filled += STRIDE)
    wrong |= w[i] ^ (i % WORD_STEP ? filled : filled + difference);
  return !wrong;
}

static void report_bad(const char *where, u32 page, u32 serial) {
  g.bad++;
  if (g.trouble_lines++ >= MAX_TROUBLE_LINES)
    return;
  put_text("\n! bad page, found by ");
  put_text(where);
  put_field("page", page);
  put_field("serial", serial);
  put_field("want", pattern(page, serial));
  put_field("got", page_words(page)[0]);
  put_text("\n");
}

/* A checksum over all of the page, as often as was asked for. */
static void compute(u32 page) {
  volatile u32 *w = page_words(page);

  for (u32 turn = 0; turn < g.turns; turn++)
    for (u32 i = 0; i < PAGE_WORDS; i++)
      g.sum = (g.sum ^ w[i]) * 0x01000193u;
}

static void write_next_page(void) {
  const struct phase *p = &g.phases[g.phase];
  u32 page, serial, was;
  int wrong;

  drop_state_pages();
  page = g.position;
  serial = ++g.serial;
  was = g.last[page];
  /* In the second lap of a phase on, the last serial is known without
     * looking it up: a stale table does not excuse a stale page. */
  wrong = serial - g.phase_serial > p->ws_pages && was != serial - p->ws_pages;
  if (wrong)
    was = serial - p->ws_pages;
  if (!work_is_good(page, was) || wrong)
    report_bad("work", page, was);
  compute(page);
  store_work(page, serial);
  set_last(page, serial);
  if (++g.position >= p->ws_pages)
    g.position = 0;
}

static void sweep_next_page(void) {
  u32 page = g.sweep_position, serial = g.last[page];

  if (!page_is_good(page, serial)) {
    report_bad("sweep", page, serial);
    fill_page(page); /* count it once */
    set_last(page, 0);
    if (serial)
      store_work(page, serial), set_last(page, serial);
  }
  g.swept++;
  if (++g.sweep_position >= g.fill_pages) {
    g.sweep_position = 0;
    g.sweeps++;
  }
}

/* ---- time ---- */

static void enter_phase(u32 phase) {
  g.phase = phase;
  g.position = 0;
  g.phase_serial = g.serial;
  g.work_due = 0;
  g.work_remainder = 0;
  g.phase_tsc = g.up_tsc;
}

static void put_status(void) {
  g.trouble_lines = 0;
  put_text("\n#");
  put_field("up_ms", divide(g.up_tsc, g.tsc_khz));
  put_field("written", g.serial);
  put_field("owed", g.owed);
  put_field("lost", g.lost);
  put_field("bad", g.bad);
  put_field("back", g.backwards);
  put_field("swept", g.swept);
  put_field("sweeps", g.sweeps);
  put_field("phase", g.phase);
  put_text("\n");
}

/* Pages that became due in `elapsed` cycles, at a rate; the rest is kept. */
static u32 pages_due(u64 elapsed, u32 rate_pages_per_s, u64 *remainder) {
  u64 credit = *remainder + elapsed * rate_pages_per_s;
  /* tsc_hz is a multiple of 4; a quarter of it fits 32 bits up to 17 GHz */
  u32 pages = divide(credit >> 2, g.tsc_khz * 250);

  *remainder = credit - pages * g.tsc_hz;
  return pages;
}

/* Owed work grows with time. Whatever exceeds the backlog is lost. */
static void account(u64 elapsed) {
  u32 rate = g.phases[g.phase].rate_pages_per_s;
  u32 backlog = rate / (1000 / WORK_BACKLOG_MS) + 1;
  u32 pages = pages_due(elapsed, rate, &g.work_remainder);

  g.owed += pages;
  g.work_due += pages;
  if (g.work_due > backlog) {
    g.lost += g.work_due - backlog;
    g.work_due = backlog;
  }
  g.sweep_due += pages_due(elapsed, g.sweep_rate_pages_per_s, &g.sweep_remainder);
  if (g.sweep_due > SWEEP_BACKLOG_PAGES)
    g.sweep_due = SWEEP_BACKLOG_PAGES;
}

/* What is written to each of these ports does it. Once: a guest that reboots runs on after that. */
static void end_by_itself(void) {
  outb(CMOS_INDEX, CMOS_ENDED);
  outb(CMOS_DATA, 1);
  switch (g.end) {
  case 'p':
    outw(ACPI_PM1A_CONTROL, 1 << 13);
    break;
  case 'r':
    outb(RESET_CONTROL, 6);
    break;
  case 'c':
    outb(PVPANIC, 1);
    break;
  }
}

static void look_at_the_clock(void) {
  u64 now = rdtsc();

  if (now < g.last_tsc) {
    g.backwards++;
  } else {
    g.up_tsc += now - g.last_tsc;
    account(now - g.last_tsc);
  }
  g.last_tsc = now;

  if (g.up_tsc >= g.heartbeat_tsc) {
    put_char('.');
    g.heartbeat_tsc += (u64)g.tsc_khz * HEARTBEAT_MS;
    if (g.heartbeat_tsc < g.up_tsc) /* no burst after a stall */
      g.heartbeat_tsc = g.up_tsc + (u64)g.tsc_khz * HEARTBEAT_MS;
  }
  if (g.up_tsc >= g.status_tsc) {
    put_status();
    g.status_tsc = g.up_tsc + (u64)g.tsc_khz * STATUS_MS;
  }
  if (g.end && g.up_tsc >= (u64)g.tsc_khz * g.end_ms)
    end_by_itself();
  if (g.phases[g.phase].length_s && g.up_tsc - g.phase_tsc >= g.tsc_hz * g.phases[g.phase].length_s)
    enter_phase(g.phase + 1 < g.n_phases ? g.phase + 1 : 0);
}

static void set_up(const struct multiboot_info *info) {
  const char *cmdline = (const char *)info->cmdline;
  u32 end = 0x100000 + info->mem_upper_kib * 1024;
  u32 total_pages, max_pages, n_last_pages;

  load_tables();
  g.tsc_khz = number_option(cmdline, "tsc_khz", 0);
  g.tsc_hz = (u64)g.tsc_khz * 1000;
  parse_phases(find_option(cmdline, "phases"));
  g.turns = number_option(cmdline, "work", 0);
  g.sweep_rate_pages_per_s = number_option(cmdline, "sweep", 4) * PAGES_PER_MIB;
  g.end_ms = number_option(cmdline, "end_ms", 0);
  outb(CMOS_INDEX, CMOS_ENDED);
  if (g.end_ms && inb(CMOS_DATA) != 1)
    g.end = *find_option(cmdline, "end");

  end = (end - RESERVED_TOP_MIB * 0x100000) & ~(u32)(PAGE_BYTES - 1);
  total_pages = (end - (u32)state_end) / PAGE_BYTES;
  n_last_pages = (total_pages * 4 + PAGE_BYTES - 1) / PAGE_BYTES;
  g.last = (volatile u32 *)(u32)state_end;
  g.arena = (u32)state_end + n_last_pages * PAGE_BYTES;
  max_pages = total_pages - n_last_pages;
  g.fill_pages = number_option(cmdline, "fill", 0xffffffffu / PAGES_PER_MIB) * PAGES_PER_MIB;
  if (g.fill_pages > max_pages)
    g.fill_pages = max_pages;
  for (u32 i = 0; i < g.n_phases; i++) {
    if (g.phases[i].ws_pages > max_pages || !g.tsc_khz ||
        (g.phases[i].rate_pages_per_s && !g.phases[i].ws_pages)) {
      put_text("\n! the working set does not fit, or an option is missing\n");
      halt();
    }
    if (g.phases[i].ws_pages > g.fill_pages)
      g.fill_pages = g.phases[i].ws_pages;
  }
  put_text("\n= handoffd lab guest:");
  put_field("fill_pages", g.fill_pages);
  put_text("\n");
  for (u32 page = 0; page < g.fill_pages; page++) {
    fill_page(page);
    g.last[page] = 0;
  }
  g.last_tsc = rdtsc();
  enter_phase(0);
}

__attribute__((noreturn, used)) void run(const struct multiboot_info *info) {
  set_up(info);
  for (;;) {
    drop_state_pages();
    look_at_the_clock();
    if (g.work_due) {
      for (u32 i = 0; i < WORK_BATCH_PAGES && g.work_due; i++, g.work_due--)
        write_next_page();
    } else if (g.fill_pages && g.sweep_due) {
      g.sweep_due--;
      sweep_next_page();
    } else {
      doze();
    }
  }
}
