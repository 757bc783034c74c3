/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The configuration file format: which files to read, and their sections and settings. */
#include "agent/config/config-files.h"

#include <errno.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

/* Theory of Operation
 *
 * Each line of a file is one of: [Section] or [Section NAME], Key=Value, a comment (# or ;), or empty. A later value replaces
 * an earlier one, an empty one restores the default, and a section may be reopened. A line that is not understood costs only
 * that line, and a warning that says what would be accepted.
 *
 * libeconf, which reads such files for others, was tried (0.5.1) and will not do: one bad section header loses the whole file;
 * if a key is given twice, the first one silently wins; a line without '=' is silently appended to the value above it, and
 * takes over its line number; '#' cuts a value, and so a URI, in the middle. */

/* Enough for thousands of targets; anything larger is not a configuration. */
#define FILE_SIZE_MAX (1024 * 1024)

typedef struct Reader {
  const ConfigFileHooks *hooks;
  gpointer user_data;
} Reader;

static void G_GNUC_PRINTF(3, 4)
    complain(const Reader *reader, const ConfigPlace *place, const char *format, ...) {
  va_list args;
  va_start(args, format);
  g_autofree char *text = g_strdup_vprintf(format, args);
  va_end(args);
  reader->hooks->complaint(place, text, reader->user_data);
}

static void read_section(const Reader *reader, const ConfigPlace *place, char *line) {
  size_t length = strlen(line);
  if (line[length - 1] != ']') {
    complain(reader, place, "missing closing bracket, as in [Agent]; the section is skipped");
    reader->hooks->section(place, NULL, reader->user_data);
    return;
  }
  line[length - 1] = '\0';
  reader->hooks->section(place, g_strstrip(line + 1), reader->user_data);
}

static void read_line(const Reader *reader, const ConfigPlace *place, char *line) {
  line = g_strstrip(line);
  if (!*line || *line == '#' || *line == ';')
    return;
  if (*line == '[') {
    read_section(reader, place, line);
    return;
  }
  char *equals = strchr(line, '=');
  if (!equals || equals == line) {
    complain(reader, place, "expected Key=Value, [Section] or # comment, not \"%.80s\"", line);
    return;
  }
  *equals = '\0';
  reader->hooks->setting(place, g_strchomp(line), g_strchug(equals + 1), reader->user_data);
}

static void read_text(const Reader *reader, const char *file, char *text, gsize size) {
  ConfigPlace place = {.file = file};
  char *next = text;
  if (size >= 3 && memcmp(next, "\xef\xbb\xbf", 3) == 0)
    next += 3;
  reader->hooks->begin(reader->user_data);
  while (next < text + size) {
    char *line = next, *end = memchr(next, '\n', (size_t)(text + size - next));
    if (!end)
      end = text + size;
    next = end + 1;
    place.line++;
    *end = '\0'; /* at the end of the text this is GLib's own terminator */
    if (strlen(line) != (size_t)(end - line) || !g_utf8_validate(line, -1, NULL))
      complain(reader, &place, "this line is not valid text; skipped");
    else
      read_line(reader, &place, line);
  }
}

void config_files_parse(const char *file, char *text, size_t size, const ConfigFileHooks *hooks,
                        gpointer user_data) {
  read_text(&(Reader){hooks, user_data}, file, text, size);
}

static bool read_file(const Reader *reader, const char *path, GError **error) {
  struct stat st;
  g_autofree char *text = NULL, *display = g_filename_display_name(path);
  gsize size = 0;
  if (stat(path, &st) < 0) {
    g_set_error(error, G_FILE_ERROR, g_file_error_from_errno(errno), "cannot read %s: %s", display,
                g_strerror(errno));
    return false;
  }
  if (S_ISCHR(st.st_mode) && st.st_rdev == makedev(1, 3))
    return true; /* /dev/null: masked */
  /* Rejects what a read could block on, such as a FIFO. */
  if (!S_ISREG(st.st_mode) || st.st_size > FILE_SIZE_MAX) {
    g_set_error(error, G_FILE_ERROR, G_FILE_ERROR_FAILED, "cannot read %s: %s", display,
                S_ISREG(st.st_mode) ? "larger than 1 MiB" : "not a regular file");
    return false;
  }
  if (!g_file_get_contents(path, &text, &size, error)) {
    g_prefix_error(error, "cannot read the configuration: ");
    return false;
  }
  read_text(reader, display, text, size);
  return true;
}

static gint compare_names(gconstpointer a, gconstpointer b) {
  return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/* The names of the drop-ins, sorted, each once. */
static bool list_dropins(const char *const *directories, GPtrArray *names, GError **error) {
  g_autoptr(GHashTable) seen = g_hash_table_new(g_str_hash, g_str_equal);
  for (size_t i = 0; directories[i]; i++) {
    g_autofree char *path = g_build_filename(directories[i], "handoffd.conf.d", NULL);
    g_autoptr(GError) local = NULL;
    g_autoptr(GDir) dir = g_dir_open(path, 0, &local);
    if (!dir) {
      if (g_error_matches(local, G_FILE_ERROR, G_FILE_ERROR_NOENT))
        continue;
      g_propagate_error(error, g_steal_pointer(&local));
      return false;
    }
    for (const char *name; (name = g_dir_read_name(dir));)
      if (*name != '.' && g_str_has_suffix(name, ".conf") && !g_hash_table_contains(seen, name)) {
        char *copy = g_strdup(name);
        g_ptr_array_add(names, copy);
        g_hash_table_add(seen, copy);
      }
  }
  g_ptr_array_sort(names, compare_names);
  return true;
}

/* Reads `name` from the first directory that has it. */
static bool read_first(const Reader *reader, const char *const *directories, const char *name,
                       GError **error) {
  for (size_t i = 0; directories[i]; i++) {
    g_autofree char *path = g_build_filename(directories[i], name, NULL);
    struct stat st;
    if (stat(path, &st) == 0 || errno != ENOENT)
      return read_file(reader, path, error);
  }
  return true;
}

bool config_files_read(const char *path, const char *const *directories, const ConfigFileHooks *hooks,
                       gpointer user_data, GError **error) {
  const Reader reader = {hooks, user_data};
  if (path)
    return read_file(&reader, path, error);

  g_autoptr(GPtrArray) names = g_ptr_array_new_with_free_func(g_free);
  if (!read_first(&reader, directories, "handoffd.conf", error) || !list_dropins(directories, names, error))
    return false;
  for (guint i = 0; i < names->len; i++) {
    g_autofree char *name = g_build_filename("handoffd.conf.d", g_ptr_array_index(names, i), NULL);
    if (!read_first(&reader, directories, name, error))
      return false;
  }
  return true;
}
