/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Runs a fuzzer over a corpus once, without libFuzzer (TAP): replay DIRECTORY */
#include "fuzz.h"

#include <glib.h>
#include <stdio.h>

int main(int argc, char **argv) {
  g_autoptr(GDir) directory = argc == 2 ? g_dir_open(argv[1], 0, NULL) : NULL;
  const char *name;
  unsigned n = 0;

  if (!directory) {
    printf("Bail out! no corpus\n");
    return 1;
  }
  while ((name = g_dir_read_name(directory))) {
    g_autofree char *path = g_build_filename(argv[1], name, NULL);
    g_autofree char *data = NULL;
    size_t size;

    if (!g_file_get_contents(path, &data, &size, NULL))
      continue;
    /* Each beginning of it as well: what is cut off is input too. */
    for (size_t length = 0; length <= MIN(size, 2048); length++)
      LLVMFuzzerTestOneInput((const uint8_t *)data, length);
    LLVMFuzzerTestOneInput((const uint8_t *)data, size);
    printf("ok %u - %s\n", ++n, name);
    fflush(stdout);
  }
  printf("1..%u\n", n);
  return n > 0 ? 0 : 1;
}
