/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The lab's guest: a disk that it writes to, by virtio (legacy, PCI).
 *
 * It writes blocks of 64 KiB in turn, one request at a time. Each has a serial
 * number, and what stands in each sector follows from block and serial (see
 * write_block; `lab-report disk` checks it in the image). Like all that it
 * stores to, the ring and the buffer are dropped from the TLB before.
 */
#include "guest.h"

enum {
  PCI_ADDRESS = 0xcf8,
  PCI_DATA = 0xcfc,
  VIRTIO_BLK = 0x10011af4,
  /* offsets in its I/O ports */
  QUEUE_ADDRESS = 8,
  QUEUE_SIZE = 12,
  QUEUE_SELECT = 14,
  QUEUE_NOTIFY = 16,
  STATUS = 18,
  CAPACITY = 20,
  DRIVER_OK = 7, /* acknowledged, driver, ready */
  MAX_QUEUE = 256,
  BLOCK_BYTES = 65536,
  BLOCK_KIB = BLOCK_BYTES / 1024,
  SECTOR_BYTES = 512,
  SECTOR_WORDS = SECTOR_BYTES / 4,
  BLOCK_SECTORS = BLOCK_BYTES / SECTOR_BYTES,
  MAGIC = 0x6f6f7a21,
  CHAINED = 1,
  FOR_DEVICE_TO_WRITE = 2,
  NO_INTERRUPT = 1,
};

struct descriptor {
  u64 address;
  u32 length;
  u16 flags, next;
};

/* Where each part of the ring lies follows from the queue's size: 256 here. */
static struct {
  struct descriptor descriptors[MAX_QUEUE];
  u16 available_flags;
  volatile u16 available_index;
  u16 available[MAX_QUEUE];
  u16 used_flags __attribute__((aligned(PAGE_BYTES)));
  volatile u16 used_index;
  u8 used[8 * MAX_QUEUE];
} ring __attribute__((aligned(PAGE_BYTES)));

static struct {
  struct {
    u32 type, reserved;
    u64 sector;
  } header;
  volatile u8 status;
} request __attribute__((aligned(PAGE_BYTES)));

static u32 buffer[BLOCK_BYTES / 4] __attribute__((aligned(PAGE_BYTES)));
static u32 blocks, rate;
static u16 port;

static u32 pci_read(u32 device, u32 offset) {
  outl(PCI_ADDRESS, 0x80000000u | device << 11 | offset);
  return inl(PCI_DATA);
}

void disk_set_up(u32 rate_kib_per_s) {
  u32 device = 0;

  if (!rate_kib_per_s)
    return;
  while (device < 32 && pci_read(device, 0) != VIRTIO_BLK)
    device++;
  if (device < 32) {
    port = pci_read(device, 0x10) & 0xfffc;
    outl(PCI_ADDRESS, 0x80000000u | device << 11 | 4);
    outw(PCI_DATA, 5); /* it may use ports and memory */
    outb(port + STATUS, 0);
    outb(port + STATUS, 3);
    outl(port + 4, 0); /* features that it shall have */
    outw(port + QUEUE_SELECT, 0);
  }
  if (device == 32 || inw(port + QUEUE_SIZE) != MAX_QUEUE || !inl(port + CAPACITY)) {
    put_text("\n! no disk that it can write to\n");
    halt();
  }
  rate = rate_kib_per_s;
  blocks = inl(port + CAPACITY) / BLOCK_SECTORS;
  ring.descriptors[0] = (struct descriptor){(u32)&request.header, sizeof(request.header), CHAINED, 1};
  ring.descriptors[1] = (struct descriptor){(u32)buffer, BLOCK_BYTES, CHAINED, 2};
  ring.descriptors[2] = (struct descriptor){(u32)&request.status, 1, FOR_DEVICE_TO_WRITE, 0};
  ring.available_flags = NO_INTERRUPT;
  outl(port + QUEUE_ADDRESS, (u32)&ring / PAGE_BYTES);
  outb(port + STATUS, DRIVER_OK);
}

static void write_block(struct cpu *cpu) {
  u32 serial = ++cpu->disk_serial, block = (serial - 1) % blocks;

  for (u32 i = 0; i < BLOCK_SECTORS; i++) {
    u32 *w = buffer + i * SECTOR_WORDS, sector = block * BLOCK_SECTORS + i, value = pattern(sector, serial);

    if (i % (PAGE_BYTES / SECTOR_BYTES) == 0)
      invlpg((u32)w);
    w[0] = MAGIC;
    w[1] = sector;
    w[2] = serial;
    for (u32 k = 3; k < SECTOR_WORDS; k++, value += STRIDE)
      w[k] = value;
  }
  invlpg((u32)&request);
  request.header.type = 1; /* a write */
  request.header.sector = (u64)block * BLOCK_SECTORS;
  request.status = 0xff;
  invlpg((u32)&ring.available_index); /* all of `available` is on this page */
  ring.available_index++;             /* what stands there is 0: the first descriptor */
  __asm__ volatile("" : : : "memory");
  outw(port + QUEUE_NOTIFY, 0);
}

void disk_account(struct cpu *cpu, u64 elapsed) {
  cpu->disk_kib_due += units_due(elapsed, rate, &cpu->disk_remainder);
  if (cpu->disk_kib_due > 2 * BLOCK_KIB) /* it is not made up for */
    cpu->disk_kib_due = 2 * BLOCK_KIB;
}

void disk_step(struct cpu *cpu) {
  if (cpu->disk_done != cpu->disk_serial && ring.used_index == ring.available_index) {
    cpu->disk_done = cpu->disk_serial;
    if (request.status != 0) {
      put_text("\n! a write to the disk failed");
      put_field("serial", cpu->disk_serial);
      put_text("\n");
    }
  }
  if (cpu->disk_done == cpu->disk_serial && cpu->disk_kib_due >= BLOCK_KIB) {
    cpu->disk_kib_due -= BLOCK_KIB;
    write_block(cpu);
  }
}
