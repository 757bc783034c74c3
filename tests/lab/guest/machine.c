/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The lab's guest: the machine that it runs on. */
#include "guest.h"

enum {
  PIT_HZ = 1193182,
  COM1 = 0x3f8,
  FIRST_VECTOR = 32, /* of the PICs */
  APIC_VECTOR = 64,
  VECTORS = APIC_VECTOR + 1,
  APIC_HZ = 1000000000, /* QEMU's */
  TRAMPOLINE = 0x8000,
};

#define APIC(offset)  (*(volatile u32 *)(0xfee00000u + (offset)))
#define APIC_SPURIOUS APIC(0xf0)
#define APIC_COMMAND  APIC(0x300)
#define APIC_TIMER    APIC(0x320)
#define APIC_INITIAL  APIC(0x380)
#define APIC_DIVIDE   APIC(0x3e0)
#define TO_ALL_OTHERS 0xc4000u
#define INIT          0x500u
#define STARTUP       0x600u

u64 gdt[3];
static u64 idt[VECTORS];
struct cpu cpus[MAX_CPUS];
volatile u32 next_cpu = 1;
u32 busy_cpus = 1;

__asm__(".section .multiboot,\"a\"\n"
        ".align 4\n"
        ".long 0x1badb002, 0x3, -(0x1badb002 + 0x3)\n" /* page aligned, wants the memory size */
        ".text\n"
        ".global start\n"
        "start: mov $cpus + 8192, %esp\n"
        "push %ebx\n"
        "call run\n"
        "timer_entry: push %eax\n"
        "mov $0x20, %al\n"
        "out %al, $0x20\n"
        "pop %eax\n"
        "iret\n"
        "apic_entry: movl $0, 0xfee000b0\n"
        "iret\n"
        "fault_entry: call fault\n"
        /* Another CPU begins here, copied to TRAMPOLINE, in real mode. Each takes the next number. */
        ".code16\n"
        "trampoline: cli\n"
        "xor %ax, %ax\n"
        "mov %ax, %ds\n"
        "lgdtl 0x8000 + trampoline_gdt - trampoline\n"
        "mov %cr0, %eax\n"
        "or $1, %al\n"
        "mov %eax, %cr0\n"
        "ljmpl $8, $other_cpu\n"
        "trampoline_gdt: .word 23\n"
        ".long gdt\n"
        "trampoline_end:\n"
        ".code32\n"
        "other_cpu: mov $16, %ax\n"
        "mov %ax, %ds\n"
        "mov %ax, %es\n"
        "mov %ax, %ss\n"
        "mov $1, %eax\n"
        "lock xadd %eax, next_cpu\n"
        "cmp busy_cpus, %eax\n"
        "jae idle\n"
        "mov %eax, %esp\n"
        "shl $13, %esp\n"
        "add $cpus + 8192, %esp\n"
        "push %eax\n"
        "call run_other\n"
        "idle: cli\n"
        "hlt\n"
        "jmp idle\n");
extern u8 timer_entry[], apic_entry[], fault_entry[], trampoline[], trampoline_end[];

void doze(struct cpu *cpu) {
  drop_state_pages(cpu); /* the interrupt frame is stored to the stack */
  __asm__ volatile("sti\n hlt\n cli" : : : "memory");
}

static void load_idt(void) {
  struct {
    u16 limit;
    u32 base;
  } __attribute__((packed)) pointer = {sizeof(idt) - 1, (u32)idt};

  __asm__ volatile("lidt %0" : : "m"(pointer));
}

void load_tables(void) {
  struct {
    u16 limit;
    u32 base;
  } __attribute__((packed)) pointer = {sizeof(gdt) - 1, (u32)gdt};

  gdt[1] = 0x00cf9b000000ffffULL; /* flat code */
  gdt[2] = 0x00cf93000000ffffULL; /* flat data */
  __asm__ volatile("lgdt %0\n"
                   "ljmp $8, $1f\n"
                   "1: mov %1, %%ds\n mov %1, %%es\n mov %1, %%ss"
                   :
                   : "m"(pointer), "r"(16)
                   : "memory");

  for (u32 i = 0; i < VECTORS; i++) {
    u32 entry = (u32)(i < FIRST_VECTOR ? fault_entry : i == APIC_VECTOR ? apic_entry : timer_entry);

    idt[i] = ((u64)(entry & 0xffff0000) << 32) | (0x8e00ULL << 32) | (8 << 16) | (entry & 0xffff);
  }
  load_idt();

  outb(0x20, 0x11), outb(0xa0, 0x11); /* PICs: vectors from 32 and 40 */
  outb(0x21, FIRST_VECTOR), outb(0xa1, FIRST_VECTOR + 8);
  outb(0x21, 4), outb(0xa1, 2);
  outb(0x21, 1), outb(0xa1, 1);
  outb(0x21, 0xfe), outb(0xa1, 0xff); /* only the timer */
  outb(0x43, 0x34);
  outb(0x40, (PIT_HZ / TIMER_HZ) & 0xff);
  outb(0x40, (PIT_HZ / TIMER_HZ) >> 8);
}

/* ---- other CPUs ---- */

static void wait_ms(u32 ms, u32 tsc_khz) {
  u64 until = rdtsc() + (u64)ms * tsc_khz;

  while (rdtsc() < until)
    __asm__ volatile("pause");
}

void start_cpus(u32 all, u32 busy, u32 tsc_khz) {
  u8 *to = (u8 *)TRAMPOLINE;

  if (all < 2)
    return;
  busy_cpus = busy;
  __asm__ volatile("" : "+r"(to)); /* the compiler takes an address this low for none */
  for (u32 i = 0; trampoline + i < trampoline_end; i++)
    to[i] = trampoline[i];
  APIC_COMMAND = TO_ALL_OTHERS | INIT;
  wait_ms(10, tsc_khz);
  APIC_COMMAND = TO_ALL_OTHERS | STARTUP | TRAMPOLINE / PAGE_BYTES;
  for (u32 tries = 0; next_cpu < all; tries++) {
    if (tries == 500) {
      put_text("\n! not all of its CPUs have started\n");
      halt();
    }
    wait_ms(10, tsc_khz);
  }
}

__attribute__((noreturn, used)) void run_other(u32 number) {
  load_idt();
  APIC_SPURIOUS = 0x1ff;
  APIC_DIVIDE = 0xb; /* by 1 */
  APIC_TIMER = 0x20000 | APIC_VECTOR;
  APIC_INITIAL = APIC_HZ / TIMER_HZ;
  run_cpu(&cpus[number]);
  halt();
}

void halt(void) {
  for (;;)
    __asm__ volatile("cli\n hlt");
}

/* ---- text ---- */

void put_char(char c) {
  while (!(inb(COM1 + 5) & 0x20))
    ;
  outb(COM1, (u8)c);
}

void put_text(const char *s) {
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

void put_field(const char *key, u32 value) {
  put_char(' ');
  put_text(key);
  put_char('=');
  put_number(value);
}

__attribute__((noreturn, used)) void fault(u32 a, u32 b) {
  put_text("\n! cpu exception");
  put_field("frame0", a);
  put_field("frame1", b);
  put_text("\n");
  halt();
}

u32 divide(u64 n, u32 d) {
  u32 quotient, remainder;

  __asm__("divl %4" : "=a"(quotient), "=d"(remainder) : "a"((u32)n), "d"((u32)(n >> 32)), "rm"(d));
  (void)remainder;
  return quotient;
}
