/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The lab's guest: bare metal, no operating system, no C library.
 *
 * Theory of operation
 *
 * Memory above the image is an arena of 4 KiB pages. As many as `fill` says
 * hold a pattern of their own, the others zeroes; `zeros` says where these are:
 * first, last, or scattered among the rest. The working set consists of heaps,
 * each written over and over at its rate: in turn, at random places, or by
 * Zipf's law in four steps (tests/zoo/zoo.h, zoo_phase_regions). Each of the
 * busy CPUs has an equal share of each heap, a lane, which it alone writes and
 * checks. Each write in a lane has a serial number, and what stands in a page
 * is a function of (page, serial). Before a page is written anew it is checked
 * for what must be there; a slow sweep checks every word of the whole arena. So
 * memory that a migration lost, mixed up or brought in an old version is found
 * and counted. (`last` has the serials. If it came in an old version itself,
 * most of the thousand pages that a page of it covers look bad.)
 *
 * A page's write alone costs the CPU little, so that a guest at 200 MiB/s is
 * mostly asleep, and taking half of its CPU away does not slow it down. Programs
 * compute what they write: `work` is how often all of the page is read for it,
 * or `busy` what share of the CPU it takes, measured once before it begins.
 *
 * Time is the TSC (its frequency comes on the command line: under TCG it is
 * the host's). It stands still while the VM is stopped, so the guest cannot
 * see its own downtime: it sends a heartbeat '.' every 10 ms, and the host
 * takes the time of the silence. Work that could not be done (the CPU was
 * taken away for more than WORK_BACKLOG_MS) is not made up for: it is lost,
 * as a user's is.
 *
 * CPUs share nothing that changes but `last`, of which each stores to what is
 * its own. The first one reads the counters of the others for its status lines.
 *
 * invlpg. QEMU 7.2's TCG loses dirty bits: after a bitmap sync, stores through
 * a TLB entry that is still hot are not logged, and the target gets the old
 * page. So the entry is dropped before each page is stored to, and the state
 * pages (a CPU's variables and stack) are dropped in every turn of its main
 * loop, and for each page that is written: a turn that auto-converge stretches
 * to a second would leave time for a sync, and for the last stores before the
 * switch to be lost. A store right after invlpg always takes the slow path,
 * which logs it. All other variables are set before the guest says a word.
 *
 * Lines on the serial port: "= " banner, "# " status (key=value), "! " trouble.
 */
#include "guest.h"

enum {
  HEARTBEAT_MS = 10,
  STATUS_MS = 1000,
  WORK_BACKLOG_MS = 100,
  WORK_BATCH_PAGES = 16,
  SWEEP_BACKLOG_PAGES = 16,
  SWEEP_ZERO_PAGES = 32, /* that are read for one that is not */
  MEASURED_TURNS = 64,
  ACPI_PM1A_CONTROL = 0x604, /* where the firmware of a pc puts it */
  RESET_CONTROL = 0xcf9,
  CMOS_INDEX = 0x70,
  CMOS_DATA = 0x71,
  CMOS_ENDED = 0x7f, /* a byte that nobody uses, and a reset leaves alone */
  PVPANIC = 0x505,
  MAX_PHASES = 8,
  MAX_TROUBLE_LINES = 4, /* between two status lines */
  RESERVED_TOP_MIB = 1,  /* firmware tables */
};

struct heap {
  u32 pages, rate_pages_per_s;
  char writer; /* 0: in turn, r(andom), z(ipf) */
};

struct phase {
  struct heap heaps[MAX_HEAPS];
  u32 length_ms; /* 0: for ever */
};

struct multiboot_info {
  u32 flags, mem_lower_kib, mem_upper_kib, boot_device, cmdline;
};

/* Set before the work begins, and only read from then on. */
static struct {
  struct phase phases[MAX_PHASES];
  u32 n_phases;
  u32 tsc_khz;
  u64 tsc_hz;

  u32 n_cpus; /* that are busy */
  u32 words;  /* to be read for each page that is written */
  char end;   /* how it ends by itself: p(oweroff), r(eboot), c(rash); 0: it does not */
  u32 end_ms;
} g;

extern u8 state_end[];

/* ---- options ---- */

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

/* ws/rate, in MiB and MiB/s, and r or z */
static const char *parse_heap(const char *s, struct heap *heap) {
  s = parse_number(s, &heap->pages);
  heap->pages *= PAGES_PER_MIB;
  if (*s == '/')
    s = parse_number(s + 1, &heap->rate_pages_per_s);
  heap->rate_pages_per_s *= PAGES_PER_MIB;
  if (*s == 'r' || *s == 'z')
    heap->writer = *s++;
  return s;
}

/* heap+heap:length, separated by commas; the length in seconds, or with ms behind it */
static void parse_phases(const char *s) {
  while (s && *s && *s != ' ' && g.n_phases < MAX_PHASES) {
    struct phase *p = &g.phases[g.n_phases++];

    s = parse_heap(s, &p->heaps[0]);
    for (u32 i = 1; *s == '+' && i < MAX_HEAPS; i++)
      s = parse_heap(s + 1, &p->heaps[i]);
    if (*s == ':')
      s = parse_number(s + 1, &p->length_ms);
    if (*s == 'm')
      s += 2;
    else
      p->length_ms *= 1000;
    if (*s == ',')
      s++;
  }
  if (!g.n_phases)
    g.n_phases = 1;
}

/* ---- trouble ---- */

static void report_bad(struct cpu *cpu, const char *where, u32 page, u32 serial) {
  cpu->bad++;
  if (cpu->number != 0 || cpu->trouble_lines++ >= MAX_TROUBLE_LINES)
    return; /* one alone has the serial port */
  put_text("\n! bad page, found by ");
  put_text(where);
  put_field("page", page);
  put_field("serial", serial);
  put_field("want", is_zero(page) ? 0 : pattern(page, serial));
  put_field("got", page_words(page)[0]);
  put_text("\n");
}

/* A checksum over the page, as long as was asked for. The same code for all who call it: it is measured. */
__attribute__((noipa)) static void compute(struct cpu *cpu, u32 page, u32 words) {
  volatile u32 *w = page_words(page);
  u32 sum = cpu->sum;

  for (u32 i = 0; i < words; i++)
    sum = (sum ^ w[i % PAGE_WORDS]) * 0x01000193u;
  cpu->sum = sum;
}

/* ---- work ---- */

static u32 random_below(struct lane *lane, u32 n) {
  u32 x = lane->random;

  x ^= x << 13;
  x ^= x >> 17;
  x ^= x << 5;
  lane->random = x;
  return (u32)(((u64)x * n) >> 32);
}

static u32 choose_page(struct lane *lane) {
  u32 unit = lane->pages / 85, step, page;

  switch (lane->writer) {
  case 'r':
    return random_below(lane, lane->pages);
  case 'z': /* of 1, 4, 16 and 64 units */
    step = 2 * random_below(lane, 4);
    return random_below(lane, unit << step) + unit * (((1u << step) - 1) / 3);
  }
  page = lane->position;
  if (++lane->position >= lane->pages)
    lane->position = 0;
  return page;
}

static void write_next_page(struct cpu *cpu, struct lane *lane) {
  u32 page, serial, was;
  int wrong;

  drop_state_pages(cpu);
  page = lane->first + choose_page(lane);
  serial = ++lane->serial;
  was = last_serial(page);
  /* In the second lap of a phase on, the last serial is known without
   * looking it up: a stale table does not excuse a stale page. */
  wrong = !lane->writer && serial - lane->phase_serial > lane->pages && was != serial - lane->pages;
  if (wrong)
    was = serial - lane->pages;
  if (!work_is_good(page, was) || wrong)
    report_bad(cpu, "work", page, was);
  compute(cpu, page, g.words);
  drop_state_pages(cpu); /* it may have taken long */
  store_work(page, serial);
  set_last(page, serial);
}

/* Some of what each lane owes; 0: nothing. */
static int work(struct cpu *cpu) {
  int did = 0;

  for (u32 i = 0; i < MAX_HEAPS; i++) {
    struct lane *lane = &cpu->lanes[i];

    for (u32 n = 0; n < WORK_BATCH_PAGES && lane->due; n++, lane->due--, did = 1)
      write_next_page(cpu, lane);
  }
  return did;
}

/* Checks a page; 0: it was to be a zero page. */
static int sweep_page(struct cpu *cpu, u32 page) {
  u32 serial;

  if (is_zero(page)) {
    if (!page_is_empty(page)) {
      report_bad(cpu, "sweep", page, 0);
      empty_page(page);
    }
    return 0;
  }
  serial = last_serial(page);
  if (!page_is_good(page, serial)) {
    report_bad(cpu, "sweep", page, serial);
    fill_page(page); /* count it once */
    if (serial)
      store_work(page, serial);
  }
  cpu->swept++;
  return 1;
}

static void sweep_next_page(struct cpu *cpu) {
  for (u32 i = 0; i < SWEEP_ZERO_PAGES; i++) {
    const struct range *range = &cpu->ranges[cpu->sweep_range];
    u32 page = range->first + cpu->sweep_position;

    drop_state_pages(cpu);
    if (++cpu->sweep_position >= range->pages) {
      cpu->sweep_position = 0;
      if (++cpu->sweep_range >= cpu->n_ranges) {
        cpu->sweep_range = 0;
        cpu->sweeps++;
      }
    }
    if (sweep_page(cpu, page))
      return;
  }
}

/* ---- time ---- */

static void enter_phase(struct cpu *cpu, u32 phase) {
  cpu->phase = phase;
  cpu->phase_tsc = cpu->up_tsc;
  for (u32 i = 0; i < MAX_HEAPS; i++) {
    const struct heap *heap = &g.phases[phase].heaps[i];
    struct lane *lane = &cpu->lanes[i];

    lane->pages = heap->pages / g.n_cpus;
    lane->rate_pages_per_s = heap->rate_pages_per_s / g.n_cpus;
    lane->writer = heap->writer;
    if (lane->pages && lane->position >= lane->pages) /* else it goes on where it was */
      lane->position = 0;
    lane->phase_serial = lane->serial;
    lane->due = 0;
    lane->remainder = 0;
  }
}

static void put_status(void) {
  u32 written = 0, owed = 0, lost = 0, bad = 0, backwards = 0, swept = 0;

  cpus[0].trouble_lines = 0;
  for (u32 i = 0; i < g.n_cpus; i++) {
    const volatile struct cpu *cpu = &cpus[i];

    for (u32 k = 0; k < MAX_HEAPS; k++)
      written += cpu->lanes[k].serial;
    owed += cpu->owed;
    lost += cpu->lost;
    bad += cpu->bad;
    backwards += cpu->backwards;
    swept += cpu->swept;
  }
  put_text("\n#");
  put_field("up_ms", divide(cpus[0].up_tsc, g.tsc_khz));
  put_field("written", written);
  put_field("owed", owed);
  put_field("lost", lost);
  put_field("bad", bad);
  put_field("back", backwards);
  put_field("swept", swept);
  put_field("sweeps", cpus[0].sweeps);
  put_field("phase", cpus[0].phase);
  put_field("disk", cpus[0].disk_done);
  put_text("\n");
}

u32 units_due(u64 elapsed, u32 rate_per_s, u64 *remainder) {
  u64 credit = *remainder + elapsed * rate_per_s;
  /* tsc_hz is a multiple of 4; a quarter of it fits 32 bits up to 17 GHz */
  u32 units = divide(credit >> 2, g.tsc_khz * 250);

  *remainder = credit - units * g.tsc_hz;
  return units;
}

/* Owed work grows with time. Whatever exceeds the backlog is lost. */
static void account(struct cpu *cpu, u64 elapsed) {
  for (u32 i = 0; i < MAX_HEAPS; i++) {
    struct lane *lane = &cpu->lanes[i];
    u32 backlog = lane->rate_pages_per_s / (1000 / WORK_BACKLOG_MS) + 1;
    u32 pages = units_due(elapsed, lane->rate_pages_per_s, &lane->remainder);

    cpu->owed += pages;
    lane->due += pages;
    if (lane->due > backlog) {
      cpu->lost += lane->due - backlog;
      lane->due = backlog;
    }
  }
  cpu->sweep_due += units_due(elapsed, cpu->sweep_rate_pages_per_s, &cpu->sweep_remainder);
  if (cpu->sweep_due > SWEEP_BACKLOG_PAGES)
    cpu->sweep_due = SWEEP_BACKLOG_PAGES;
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

/* What the first CPU does for all. */
static void speak(struct cpu *cpu) {
  if (cpu->up_tsc >= cpu->heartbeat_tsc) {
    put_char('.');
    cpu->heartbeat_tsc += (u64)g.tsc_khz * HEARTBEAT_MS;
    if (cpu->heartbeat_tsc < cpu->up_tsc) /* no burst after a stall */
      cpu->heartbeat_tsc = cpu->up_tsc + (u64)g.tsc_khz * HEARTBEAT_MS;
  }
  if (cpu->up_tsc >= cpu->status_tsc) {
    put_status();
    cpu->status_tsc = cpu->up_tsc + (u64)g.tsc_khz * STATUS_MS;
  }
  if (g.end && cpu->up_tsc >= (u64)g.tsc_khz * g.end_ms)
    end_by_itself();
}

static void look_at_the_clock(struct cpu *cpu) {
  u64 now = rdtsc();
  u32 length_ms = g.phases[cpu->phase].length_ms;

  if (now < cpu->last_tsc) {
    cpu->backwards++;
  } else {
    u64 elapsed = now - cpu->last_tsc;

    cpu->up_tsc += elapsed;
    account(cpu, elapsed);
    if (cpu->number == 0)
      disk_account(cpu, elapsed);
  }
  cpu->last_tsc = now;
  if (cpu->number == 0)
    speak(cpu);
  if (length_ms && cpu->up_tsc - cpu->phase_tsc >= (u64)g.tsc_khz * length_ms)
    enter_phase(cpu, cpu->phase + 1 < g.n_phases ? cpu->phase + 1 : 0);
}

/* ---- setting up ---- */

static u32 highest_rate_pages_per_s(void) {
  u32 highest = 0;

  for (u32 i = 0; i < g.n_phases; i++) {
    u32 sum = 0;

    for (u32 k = 0; k < MAX_HEAPS; k++)
      sum += g.phases[i].heaps[k].rate_pages_per_s;
    if (sum > highest)
      highest = sum;
  }
  return highest;
}

/* A heap is as large as in the phase where it is largest. */
static u32 heap_pages(u32 heap) {
  u32 pages = 0;

  for (u32 i = 0; i < g.n_phases; i++)
    if (g.phases[i].heaps[heap].pages > pages)
      pages = g.phases[i].heaps[heap].pages;
  return pages;
}

/* How many words a CPU has to read for each page that it writes, so that it is
 * busy for pct of the time: measured, because another computer is as fast as it is. */
static u32 words_for(u32 pct) {
  u32 rate = highest_rate_pages_per_s() / g.n_cpus, page = arena.hot_first;
  u64 best_store = ~0ull, best_read = ~0ull, wanted;

  if (!pct || !rate)
    return 0;
  for (u32 i = 0; i < MEASURED_TURNS; i++) { /* the fastest: the others were interrupted */
    u64 begin = rdtsc(), stored, read;

    if (!work_is_good(page, 0))
      halt();
    store_work(page, 0);
    set_last(page, 0);
    stored = rdtsc();
    compute(&cpus[0], page, PAGE_WORDS);
    read = rdtsc();
    if (stored - begin < best_store)
      best_store = stored - begin;
    if (read - stored < best_read)
      best_read = read - stored;
  }
  wanted = divide((u64)g.tsc_khz * 10 * pct, rate); /* cycles for a page */
  return wanted > best_store ? divide((wanted - best_store) * PAGE_WORDS, (u32)best_read) : 0;
}

/* CPU i has the i-th part of each heap. */
static void share_heaps(u32 sweep_pages_per_s) {
  u32 first = arena.hot_first;

  for (u32 k = 0; k < MAX_HEAPS; k++) {
    u32 extent = heap_pages(k) / g.n_cpus;

    for (u32 i = 0; i < g.n_cpus; i++, first += extent) {
      struct cpu *cpu = &cpus[i];

      cpu->lanes[k].first = first;
      cpu->lanes[k].random = 0x9e3779b9u * (i * MAX_HEAPS + k + 1);
      if (extent)
        cpu->ranges[cpu->n_ranges++] = (struct range){first, extent};
    }
  }
  for (u32 i = 0; i < g.n_cpus; i++) {
    cpus[i].number = i;
    cpus[i].sweep_rate_pages_per_s = i ? sweep_pages_per_s / g.n_cpus : sweep_pages_per_s;
  }
  if (arena.hot_first)
    cpus[0].ranges[cpus[0].n_ranges++] = (struct range){0, arena.hot_first};
  if (first < arena.pages)
    cpus[0].ranges[cpus[0].n_ranges++] = (struct range){first, arena.pages - first};
}

static void lay_out(const struct multiboot_info *info, const char *cmdline) {
  u32 end = (0x100000 + info->mem_upper_kib * 1024 - RESERVED_TOP_MIB * 0x100000) & ~(u32)(PAGE_BYTES - 1);
  const char *zeros = find_option(cmdline, "zeros");
  u32 n_last_pages;

  for (u32 k = 0; k < MAX_HEAPS; k++)
    arena.hot_pages += heap_pages(k);
  n_last_pages = (arena.hot_pages * 4 + PAGE_BYTES - 1) / PAGE_BYTES;
  arena.last = (volatile u32 *)(u32)state_end;
  arena.begin = (u32)state_end + n_last_pages * PAGE_BYTES;
  arena.pages = (end - arena.begin) / PAGE_BYTES;
  arena.fill_pages = number_option(cmdline, "fill", 0xffffffffu / PAGES_PER_MIB) * PAGES_PER_MIB;
  if (arena.fill_pages > arena.pages)
    arena.fill_pages = arena.pages;
  if (arena.fill_pages < arena.hot_pages)
    arena.fill_pages = arena.hot_pages;
  if (arena.hot_pages > arena.pages || !g.tsc_khz || g.n_cpus > MAX_CPUS ||
      (!arena.hot_pages && highest_rate_pages_per_s())) {
    put_text("\n! the working set does not fit, or an option is missing\n");
    halt();
  }
  if (zeros)
    arena.zeros = *zeros;
  if (arena.zeros == 'f')
    arena.hot_first = arena.pages - arena.fill_pages;
  if (arena.zeros == 's' && arena.pages > arena.hot_pages)
    arena.zero_share = divide((u64)(arena.pages - arena.fill_pages) * 1024, arena.pages - arena.hot_pages);
}

static void set_up(const struct multiboot_info *info) {
  static char cmdline[1024]; /* a copy: the original is where the arena will be */
  u32 n_zero = 0;

  for (u32 i = 0; i < sizeof(cmdline) - 1 && ((const char *)info->cmdline)[i]; i++)
    cmdline[i] = ((const char *)info->cmdline)[i];
  load_tables();
  g.tsc_khz = number_option(cmdline, "tsc_khz", 0);
  g.tsc_hz = (u64)g.tsc_khz * 1000;
  g.n_cpus = number_option(cmdline, "busy_vcpus", 1);
  parse_phases(find_option(cmdline, "phases"));
  g.end_ms = number_option(cmdline, "end_ms", 0);
  outb(CMOS_INDEX, CMOS_ENDED);
  if (g.end_ms && inb(CMOS_DATA) != 1)
    g.end = *find_option(cmdline, "end");
  lay_out(info, cmdline);
  for (u32 i = 0; i < arena.hot_pages; i++)
    arena.last[i] = 0;
  for (u32 page = 0; page < arena.pages; page++) {
    if (!is_zero(page)) {
      fill_page(page);
      continue;
    }
    n_zero++;
    if (!page_is_empty(page)) /* it has rebooted */
      empty_page(page);
  }
  put_text("\n= handoffd lab guest:");
  put_field("fill_pages", arena.pages - n_zero);
  put_field("zero_pages", n_zero);
  put_text("\n");
  g.words = number_option(cmdline, "work", 0) * PAGE_WORDS;
  if (!g.words)
    g.words = words_for(number_option(cmdline, "busy", 0));
  share_heaps(number_option(cmdline, "sweep", 4) * PAGES_PER_MIB);
  disk_set_up(number_option(cmdline, "disk_kib", 0));
  start_cpus(number_option(cmdline, "vcpus", 1), g.n_cpus, g.tsc_khz);
}

void run_cpu(struct cpu *cpu) {
  cpu->last_tsc = rdtsc();
  enter_phase(cpu, 0);
  for (;;) {
    drop_state_pages(cpu);
    look_at_the_clock(cpu);
    if (cpu->number == 0)
      disk_step(cpu);
    if (work(cpu))
      continue;
    if (cpu->n_ranges && cpu->sweep_due) {
      cpu->sweep_due--;
      sweep_next_page(cpu);
    } else {
      doze(cpu);
    }
  }
}

__attribute__((noreturn, used)) void run(const struct multiboot_info *info) {
  set_up(info);
  run_cpu(&cpus[0]);
  halt();
}
