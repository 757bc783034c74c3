/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Runs a fuzzer over a corpus once, without libFuzzer (TAP): replay DIRECTORY... */
#include "fuzz.h"

#include <glib.h>
#include <stdio.h>
#include <stdlib.h>

static unsigned run_directory(const char *path, unsigned n) {
  g_autoptr(GDir) directory = g_dir_open(path, 0, NULL);
  const char *name;

  if (!directory) {
    printf("Bail out! no corpus %s\n", path);
    exit(1);
  }
  while ((name = g_dir_read_name(directory))) {
    g_autofree char *file = g_build_filename(path, name, NULL);
    g_autofree char *data = NULL;
    size_t size;

    if (!g_file_get_contents(file, &data, &size, NULL))
      continue;
    /* Each beginning of it as well: what is cut off is input too. */
    for (size_t length = 0; length <= MIN(size, 2048); length++)
      LLVMFuzzerTestOneInput((const uint8_t *)data, length);
    LLVMFuzzerTestOneInput((const uint8_t *)data, size);
    printf("ok %u - %s\n", ++n, name);
    fflush(stdout);
  }
  return n;
}

int main(int argc, char **argv) {
  unsigned n = 0;

  for (int i = 1; i < argc; i++)
    n = run_directory(argv[i], n);
  printf("1..%u\n", n);
  return n > 0 ? 0 : 1;
}
