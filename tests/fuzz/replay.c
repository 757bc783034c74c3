/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Runs a fuzzer over a corpus once, without libFuzzer (TAP): replay DIRECTORY... Then over inputs that are made of the corpus, by a
 * fixed seed: few beside what libFuzzer tries, but they are tried at each change. */
#include "fuzz.h"

#include <glib.h>
#include <stdio.h>
#include <stdlib.h>

#define MUTANTS          4000
#define MUTANT_SEED      4711
#define MUTANT_CHANGES   8
#define MUTANT_BYTES_MAX 8192

static GPtrArray *corpus; /* of GBytes */

static void change(GByteArray *input, GRand *rand) {
  static const char odd[] = "{}[]\",:\\-0 \n=\xff\x80";
  guint at = input->len ? (guint)g_rand_int_range(rand, 0, (gint32)input->len) : 0;
  guint left = input->len - at, length = left ? (guint)g_rand_int_range(rand, 0, (gint32)MIN(left, 64)) : 0;
  guint8 byte = (guint8)g_rand_int_range(rand, 0, 256), strange = (guint8)odd[byte % (sizeof odd - 1)];

  switch (g_rand_int_range(rand, 0, 5)) {
  case 0: /* another byte */
  case 1:
    if (left)
      input->data[at] = byte & 1 ? strange : byte;
    break;
  case 2: /* a piece less */
    if (length)
      g_byte_array_remove_range(input, at, length);
    break;
  case 3: { /* a piece twice */
    g_autofree guint8 *piece = g_memdup2(input->data + at, length);

    g_byte_array_append(input, piece, length);
    break;
  }
  default: { /* the rest is another one's */
    GBytes *other = corpus->pdata[(guint)g_rand_int_range(rand, 0, (gint32)corpus->len)];
    gsize size;
    const guint8 *data = g_bytes_get_data(other, &size);

    g_byte_array_set_size(input, at);
    if (size > at)
      g_byte_array_append(input, data + at, (guint)(size - at));
  }
  }
}

static void run_mutants(void) {
  g_autoptr(GRand) rand = g_rand_new_with_seed(MUTANT_SEED);

  for (guint i = 0; i < MUTANTS && corpus->len > 0; i++) {
    g_autoptr(GByteArray) input = g_byte_array_new();
    gsize size;
    const guint8 *data = g_bytes_get_data(corpus->pdata[i % corpus->len], &size);

    g_byte_array_append(input, data, (guint)MIN(size, MUTANT_BYTES_MAX));
    for (int n = g_rand_int_range(rand, 1, MUTANT_CHANGES); n > 0; n--)
      change(input, rand);
    LLVMFuzzerTestOneInput(input->data, input->len);
  }
}

static int compare_names(gconstpointer a, gconstpointer b) {
  return g_strcmp0(*(const char *const *)a, *(const char *const *)b);
}

static unsigned run_directory(const char *path, unsigned n) {
  g_autoptr(GDir) directory = g_dir_open(path, 0, NULL);
  g_autoptr(GPtrArray) names = g_ptr_array_new_with_free_func(g_free);
  const char *name;

  if (!directory) {
    printf("Bail out! no corpus %s\n", path);
    exit(1);
  }
  while ((name = g_dir_read_name(directory)))
    g_ptr_array_add(names, g_strdup(name));
  g_ptr_array_sort(names, compare_names);
  for (guint i = 0; i < names->len; i++) {
    g_autofree char *file = g_build_filename(path, names->pdata[i], NULL);
    g_autofree char *data = NULL;
    size_t size;

    if (!g_file_get_contents(file, &data, &size, NULL))
      continue;
    /* Each beginning of it as well: what is cut off is input too. */
    for (size_t length = 0; length <= MIN(size, 2048); length++)
      LLVMFuzzerTestOneInput((const uint8_t *)data, length);
    LLVMFuzzerTestOneInput((const uint8_t *)data, size);
    g_ptr_array_add(corpus, g_bytes_new(data, size));
    printf("ok %u - %s\n", ++n, (const char *)names->pdata[i]);
    fflush(stdout);
  }
  return n;
}

int main(int argc, char **argv) {
  unsigned n = 0;

  corpus = g_ptr_array_new_with_free_func((GDestroyNotify)g_bytes_unref);
  for (int i = 1; i < argc; i++)
    n = run_directory(argv[i], n);
  run_mutants();
  printf("ok %u - %d inputs made of these\n", ++n, MUTANTS);
  g_ptr_array_unref(corpus);
  printf("1..%u\n", n);
  return n > 1 ? 0 : 1;
}
