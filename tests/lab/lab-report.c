/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * lab-report: evaluates the recorders' logs from a given time on, as JSON.
 *
 *   lab-report serial LOG SERIAL SINCE_US SILENCE_MS
 *   lab-report wire LOG SINCE_US THRESHOLD_BYTES
 *   lab-report disk IMAGE
 *
 * serial: LOG says when the guest's serial port had grown to which size, SERIAL
 * is what it said. Silences come from LOG alone. Work, memory and the guest's
 * clock come from its status lines, each dated by the growth that brought its
 * last byte. Only differences between two status lines count, so the first one
 * is the last before SINCE_US.
 *
 * wire: a sample is part of the stream when more than THRESHOLD_BYTES per 10 ms
 * passed in the busier direction; RPC and keepalives stay below it.
 *
 * disk: each sector must hold what the guest wrote there last (guest/disk.c),
 * or zeroes, if it has never come there. It writes blocks in turn, so all
 * follows from the newest serial number.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum {
  MAX_SILENCES = 200,
  MAX_NOTES = 8,
  LINE_BYTES = 512,
  WIRE_INTERVAL_US = 10000,
};

struct growth {
  int64_t t_us, size;
};

struct growths {
  struct growth *items;
  size_t length, capacity;
};

struct status {
  int64_t t_us;
  uint64_t up_ms, written, owed, lost, bad, back, swept, sweeps, phase, disk;
};

static const struct {
  const char *key;
  size_t offset;
} status_fields[] = {
#define FIELD(name)                                                                                          \
  { #name, offsetof(struct status, name) }
    FIELD(up_ms), FIELD(written), FIELD(owed),   FIELD(lost),  FIELD(bad),
    FIELD(back),  FIELD(swept),   FIELD(sweeps), FIELD(phase), FIELD(disk),
#undef FIELD
};

static int fail(const char *what) {
  fprintf(stderr, "lab-report: %s: %s\n", what, strerror(errno));
  return 1;
}

static int64_t now_us(void) {
  struct timespec ts;

  clock_gettime(CLOCK_MONOTONIC, &ts);
  return (int64_t)ts.tv_sec * 1000000 + ts.tv_nsec / 1000;
}

static bool read_growths(const char *path, struct growths *ret) {
  FILE *file = fopen(path, "re");
  struct growth item;

  *ret = (struct growths){0};
  if (!file)
    return false;
  while (fscanf(file, "%" SCNd64 " %" SCNd64, &item.t_us, &item.size) == 2) {
    if (ret->length == ret->capacity) {
      size_t capacity = ret->capacity ? 2 * ret->capacity : 4096;
      struct growth *items = realloc(ret->items, capacity * sizeof(*items));

      if (!items) {
        fclose(file);
        return false;
      }
      ret->items = items;
      ret->capacity = capacity;
    }
    ret->items[ret->length++] = item;
  }
  fclose(file);
  return true;
}

/* When the file had grown beyond this offset; offsets come in order. */
static int64_t time_of_byte(const struct growths *growths, int64_t offset, size_t *cursor) {
  while (*cursor < growths->length && growths->items[*cursor].size <= offset)
    ++*cursor;
  return *cursor < growths->length ? growths->items[*cursor].t_us : INT64_MAX;
}

static bool parse_status(const char *line, struct status *ret) {
  for (size_t i = 0; i < sizeof(status_fields) / sizeof(status_fields[0]); i++) {
    char key[32];
    const char *found;

    snprintf(key, sizeof(key), " %s=", status_fields[i].key);
    found = strstr(line, key);
    if (!found)
      return false; /* cut short */
    *(uint64_t *)((char *)ret + status_fields[i].offset) = strtoull(found + strlen(key), NULL, 10);
  }
  return true;
}

static void put_string(const char *s) {
  putchar('"');
  for (; *s; s++) {
    if ((unsigned char)*s < 0x20 || (unsigned char)*s >= 0x7f)
      printf("\\u%04x", (unsigned char)*s);
    else if (*s == '"' || *s == '\\')
      printf("\\%c", *s);
    else
      putchar(*s);
  }
  putchar('"');
}

static double ms(int64_t us) {
  return (double)us / 1000;
}

static void report_silences(const struct growths *growths, int64_t since_us, int64_t end_us,
                            int64_t limit_us) {
  int64_t previous_us = since_us, longest_us = 0, longest_at_us = since_us;
  int n = 0;

  printf("\"silences\":[");
  for (size_t i = 0; i <= growths->length; i++) {
    /* the one that goes on now is a silence as well */
    int64_t t_us = i < growths->length ? growths->items[i].t_us : end_us;

    if (t_us < since_us)
      continue;
    if (t_us - previous_us > longest_us) {
      longest_us = t_us - previous_us;
      longest_at_us = previous_us;
    }
    if (t_us - previous_us > limit_us && n < MAX_SILENCES)
      printf("%s{\"begin_us\":%" PRId64 ",\"ms\":%.1f}", n++ ? "," : "", previous_us, ms(t_us - previous_us));
    if (i < growths->length)
      previous_us = t_us;
  }
  printf("],\"longest_silence_ms\":%.1f,\"longest_silence_begin_us\":%" PRId64 ",\"silent_now_ms\":%.1f",
         ms(longest_us), longest_at_us, ms(end_us - previous_us));
}

/* Everything that the serial text says, put together while reading it. */
struct story {
  struct status first, last;
  uint64_t n_statuses, heartbeats, restarts, went_back;
  double owed_pages; /* by the host's clock */
  char notes[MAX_NOTES][LINE_BYTES];
  int n_notes;
};

static void add_status(struct story *story, struct status status, int64_t since_us) {
  if (!story->n_statuses || status.t_us < since_us) {
    story->first = status;
    story->n_statuses = 1;
  } else {
    const struct status *before = &story->last;

    story->n_statuses++;
    if (status.up_ms < before->up_ms || status.written < before->written)
      story->went_back++;
    /* the rate of this interval by the guest's clock, times the host's */
    if (status.up_ms > before->up_ms)
      story->owed_pages += (double)(status.owed - before->owed) * ms(status.t_us - before->t_us) /
                           (double)(status.up_ms - before->up_ms);
  }
  story->last = status;
}

static bool read_story(const char *path, const struct growths *growths, int64_t since_us,
                       struct story *story) {
  FILE *file = fopen(path, "re");
  char line[LINE_BYTES];
  size_t length = 0, cursor = 0;
  int64_t offset = 0;
  int c;

  *story = (struct story){0};
  if (!file)
    return false;
  for (; (c = getc(file)) != EOF; offset++) {
    int64_t t_us;

    if (c != '\n' && length < sizeof(line) - 1)
      line[length++] = (char)c;
    if (c != '\n' && c != '.')
      continue;
    t_us = time_of_byte(growths, offset, &cursor);
    if (t_us == INT64_MAX) /* younger than the log */
      break;
    if (c == '.') {
      story->heartbeats += t_us >= since_us;
      if (length == 1)
        length = 0;
      continue;
    }
    line[length] = '\0';
    length = 0;
    if (line[0] == '#') {
      struct status status = {.t_us = t_us};

      if (parse_status(line, &status))
        add_status(story, status, since_us);
    } else if (line[0] == '=') {
      story->restarts += t_us >= since_us;
    } else if (line[0] == '!' && t_us >= since_us && story->n_notes < MAX_NOTES) {
      memcpy(story->notes[story->n_notes++], line, sizeof(line));
    }
  }
  fclose(file);
  return true;
}

static int report_serial(const char *log_path, const char *serial_path, int64_t since_us,
                         int64_t silence_ms) {
  struct growths growths;
  struct story story;
  int64_t end_us = now_us(), status_us;
  double lost_pages, done_pages, rate_pages_per_ms;

  if (!read_growths(log_path, &growths))
    return fail(log_path);
  if (!read_story(serial_path, &growths, since_us, &story))
    return fail(serial_path);
  if (growths.length && growths.items[0].t_us > since_us)
    since_us = growths.items[0].t_us;

  status_us = story.last.t_us - story.first.t_us;
  done_pages = (double)(story.last.written - story.first.written);
  lost_pages = story.owed_pages - done_pages;
  rate_pages_per_ms = status_us ? story.owed_pages / ms(status_us) : 0;
  printf("{\"since_us\":%" PRId64 ",\"until_us\":%" PRId64 ",\"window_ms\":%.1f,", since_us, end_us,
         ms(end_us - since_us));
  report_silences(&growths, since_us, end_us, silence_ms * 1000);
  printf(",\"heartbeats\":%" PRIu64 ",\"uptime_ms\":%" PRIu64 ",\"restarts\":%" PRIu64, story.heartbeats,
         story.last.up_ms, story.restarts);
  printf(",\"bad_pages\":%" PRIu64 ",\"bad_pages_total\":%" PRIu64, story.last.bad - story.first.bad,
         story.last.bad);
  printf(",\"time_backwards\":%" PRIu64, story.last.back - story.first.back + story.went_back);
  printf(",\"clock_stopped_ms\":%.1f", ms(status_us) - (double)(story.last.up_ms - story.first.up_ms));
  printf(",\"work_owed_pages\":%.0f,\"work_done_pages\":%.0f,\"work_lost_pages\":%.0f,\"work_lost_ms\":%.1f",
         story.owed_pages, done_pages, lost_pages,
         rate_pages_per_ms > 0 ? lost_pages / rate_pages_per_ms : 0);
  printf(",\"pages_written\":%" PRIu64 ",\"pages_swept\":%" PRIu64 ",\"sweeps\":%" PRIu64
         ",\"phase\":%" PRIu64 ",\"disk_writes\":%" PRIu64,
         story.last.written, story.last.swept - story.first.swept, story.last.sweeps, story.last.phase,
         story.last.disk);
  printf(",\"status_lines\":%" PRIu64 ",\"last_status_us\":%" PRId64 ",\"notes\":[", story.n_statuses,
         story.last.t_us);
  for (int i = 0; i < story.n_notes; i++) {
    if (i)
      putchar(',');
    put_string(story.notes[i]);
  }
  puts("]}");
  free(growths.items);
  return 0;
}

static int report_wire(const char *log_path, int64_t since_us, int64_t threshold_bytes) {
  FILE *file = fopen(log_path, "re");
  struct {
    int64_t t_us;
    uint64_t tx, rx;
  } first = {0}, last = {0}, sample;
  int64_t begin_us = 0, end_us = 0, busy_us = 0, longest_gap_us = 0;
  uint64_t stream_bytes = 0;
  bool any = false;

  if (!file)
    return fail(log_path);
  while (fscanf(file, "%" SCNd64 " %" SCNu64 " %" SCNu64, &sample.t_us, &sample.tx, &sample.rx) == 3) {
    if (!any || sample.t_us < since_us) {
      first = last = sample;
      any = true;
      continue;
    }
    {
      uint64_t tx = sample.tx - last.tx, rx = sample.rx - last.rx, bytes = tx > rx ? tx : rx;
      int64_t interval_us = sample.t_us - last.t_us;

      if ((double)bytes * WIRE_INTERVAL_US > (double)threshold_bytes * (double)interval_us) {
        if (!begin_us)
          begin_us = last.t_us;
        else if (last.t_us - end_us > longest_gap_us)
          longest_gap_us = last.t_us - end_us;
        end_us = sample.t_us;
        busy_us += interval_us;
        stream_bytes += bytes;
      }
    }
    last = sample;
  }
  fclose(file);
  printf("{\"since_us\":%" PRId64 ",\"until_us\":%" PRId64 ",\"bytes_there\":%" PRIu64
         ",\"bytes_back\":%" PRIu64,
         since_us, now_us(), last.tx - first.tx, last.rx - first.rx);
  printf(",\"stream\":%s,\"stream_begin_us\":%" PRId64 ",\"stream_end_us\":%" PRId64 ",\"stream_ms\":%.1f",
         begin_us ? "true" : "false", begin_us, end_us, ms(end_us - begin_us));
  printf(",\"stream_bytes\":%" PRIu64 ",\"busy_ms\":%.1f,\"longest_gap_ms\":%.1f", stream_bytes, ms(busy_us),
         ms(longest_gap_us));
  printf(",\"mean_bytes_per_s\":%.0f}\n",
         end_us > begin_us ? (double)stream_bytes * 1e6 / (double)(end_us - begin_us) : 0);
  return 0;
}

enum { SECTOR_WORDS = 128, BLOCK_SECTORS = 128, DISK_MAGIC = 0x6f6f7a21 };

/* As the guest has it (guest/memory.c, guest/guest.h). */
static uint32_t pattern(uint32_t page, uint32_t serial) {
  uint32_t x = page * 0x85ebca6bu ^ serial * 0xc2b2ae35u;

  x ^= x >> 15;
  x *= 0x2c1b3c6du;
  return x ^ (x >> 13);
}

/* Serial 0: never written. */
static bool sector_is_good(const uint32_t *words, uint32_t sector, uint32_t serial) {
  uint32_t value = pattern(sector, serial);

  if (serial && (words[0] != DISK_MAGIC || words[1] != sector || words[2] != serial))
    return false;
  for (uint32_t i = serial ? 3 : 0; i < SECTOR_WORDS; i++, value += 0x9e3779b1u)
    if (words[i] != (serial ? value : 0))
      return false;
  return true;
}

static int report_disk(const char *path) {
  FILE *file = fopen(path, "re");
  uint32_t words[SECTOR_WORDS], n = 0, newest = 0, bad = 0, written = 0;

  if (!file)
    return fail(path);
  for (; fread(words, sizeof(words), 1, file) == 1; n++)
    if (words[0] == DISK_MAGIC && words[2] > newest)
      newest = words[2];
  rewind(file);
  for (uint32_t sector = 0; sector < n && fread(words, sizeof(words), 1, file) == 1; sector++) {
    uint32_t blocks = n / BLOCK_SECTORS, block = sector / BLOCK_SECTORS, serial = 0;

    if (newest > block) /* the last one up to the newest that came here */
      serial = newest - (newest - 1 - block) % blocks;
    written += serial > 0;
    bad += !sector_is_good(words, sector, serial);
  }
  fclose(file);
  printf("{\"sectors\":%" PRIu32 ",\"written_sectors\":%" PRIu32 ",\"bad_sectors\":%" PRIu32
         ",\"newest\":%" PRIu32 "}\n",
         n, written, bad, newest);
  return 0;
}

int main(int argc, char **argv) {
  if (argc == 6 && !strcmp(argv[1], "serial"))
    return report_serial(argv[2], argv[3], atoll(argv[4]), atoll(argv[5]));
  if (argc == 5 && !strcmp(argv[1], "wire"))
    return report_wire(argv[2], atoll(argv[3]), atoll(argv[4]));
  if (argc == 3 && !strcmp(argv[1], "disk"))
    return report_disk(argv[2]);
  fputs("usage: lab-report serial LOG SERIAL SINCE_US SILENCE_MS | wire LOG SINCE_US THRESHOLD_BYTES | disk "
        "IMAGE\n",
        stderr);
  return 2;
}
