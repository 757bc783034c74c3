/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* A file that is replaced as a whole, by a thread. */
#include "agent/base/textfile.h"

#include "tests/unit/core/rows.h"

#include <fcntl.h>
#include <glib/gstdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define PATIENCE_MS 30000
#define LOOK_MS     5

typedef struct Place {
  char *directory;
  char *path;
} Place;

static int place_new(void **state) {
  Place *place = g_new0(Place, 1);

  place->directory = g_dir_make_tmp("textfile-XXXXXX", NULL);
  place->path = g_build_filename(place->directory, "m.prom", NULL);
  *state = place;
  return place->directory ? 0 : -1;
}

static int place_free(void **state) {
  Place *place = *state;
  g_autoptr(GDir) directory = g_dir_open(place->directory, 0, NULL);
  const char *name;

  while (directory && (name = g_dir_read_name(directory))) {
    g_autofree char *path = g_build_filename(place->directory, name, NULL);

    if (g_remove(path) < 0)
      return -1;
  }
  g_rmdir(place->directory);
  g_free(place->directory);
  g_free(place->path);
  g_free(place);
  return 0;
}

static void await_content(const char *path, const char *expected) {
  for (int waited_ms = 0; waited_ms < PATIENCE_MS; waited_ms += LOOK_MS) {
    g_autofree char *content = NULL;

    if (g_file_get_contents(path, &content, NULL, NULL) && strcmp(content, expected) == 0)
      return;
    g_usleep(LOOK_MS * 1000);
  }
  fail_msg("%s does not get its content", path);
}

static void await_error(TextFile *file, bool wanted) {
  for (int waited_ms = 0; waited_ms < PATIENCE_MS; waited_ms += LOOK_MS) {
    g_autofree char *error = text_file_get_error(file);

    if ((error != NULL) == wanted)
      return;
    g_usleep(LOOK_MS * 1000);
  }
  fail_msg("no %s is told", wanted ? "error" : "success");
}

static void the_newest_text_is_there_and_goes_with_its_owner(void **state) {
  const Place *place = *state;
  TextFile *file = text_file_new(place->path);
  struct stat status;

  assert_string_equal(text_file_get_path(file), place->path);
  assert_int_equal(access(place->path, F_OK), -1);
  text_file_write(file, g_strdup("one\n"));
  await_content(place->path, "one\n");
  for (int i = 0; i < 100; i++)
    text_file_write(file, g_strdup_printf("%d\n", i));
  await_content(place->path, "99\n");
  assert_int_equal(stat(place->path, &status), 0);
  assert_int_equal(status.st_mode & 07777, 0644);
  assert_null(text_file_get_error(file));
  text_file_free(file);
  assert_int_equal(access(place->path, F_OK), -1);
}

/* umask() is the process's, and the unit's is 0077. */
static void others_may_read_it_whatever_the_umask_is(void **state) {
  const Place *place = *state;
  mode_t before = umask(0077);
  TextFile *file = text_file_new(place->path);
  struct stat status;

  text_file_write(file, g_strdup("x\n"));
  await_content(place->path, "x\n");
  umask(before);
  assert_int_equal(stat(place->path, &status), 0);
  assert_int_equal(status.st_mode & 07777, 0644);
  text_file_free(file);
}

static void what_cannot_be_written_is_told_and_tried_again(void **state) {
  const Place *place = *state;
  g_autofree char *directory = g_build_filename(place->directory, "later", NULL);
  g_autofree char *path = g_build_filename(directory, "m.prom", NULL);
  TextFile *file = text_file_new(path);

  text_file_write(file, g_strdup("x\n"));
  await_error(file, true);
  assert_int_equal(g_mkdir(directory, 0700), 0);
  text_file_write(file, g_strdup("y\n"));
  await_error(file, false);
  await_content(path, "y\n");
  text_file_free(file);
  assert_int_equal(g_rmdir(directory), 0);
}

static void a_link_is_not_written_through(void **state) {
  const Place *place = *state;
  g_autofree char *temporary = g_strconcat(place->path, ".tmp", NULL);
  g_autofree char *precious = g_build_filename(place->directory, "precious", NULL);
  TextFile *file = text_file_new(place->path);

  assert_true(g_file_set_contents(precious, "keep", -1, NULL));
  assert_int_equal(symlink(precious, temporary), 0);
  text_file_write(file, g_strdup("x\n"));
  await_content(place->path, "x\n");
  await_content(precious, "keep");
  text_file_free(file);
}

int main(void) {
  Tests tests = {0};

  tests_add(&tests, "the newest text is there, and goes with its owner",
            the_newest_text_is_there_and_goes_with_its_owner, NULL);
  tests_add(&tests, "others may read it, whatever the umask is", others_may_read_it_whatever_the_umask_is,
            NULL);
  tests_add(&tests, "what cannot be written is told and tried again",
            what_cannot_be_written_is_told_and_tried_again, NULL);
  tests_add(&tests, "a link is not written through", a_link_is_not_written_through, NULL);
  for (size_t i = 0; i < tests.count; i++) {
    tests.list[i].setup_func = place_new;
    tests.list[i].teardown_func = place_free;
  }
  return tests_run(&tests, "textfile");
}
