/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* For cppcheck alone, which reads no headers of libraries: their macros that look like no C, as what they mean. */
#define G_DEFINE_QUARK(text, name)
#define G_DEFINE_EXTENDED_ERROR(type, name)
#define G_DEFINE_AUTOPTR_CLEANUP_FUNC(type, func)
#define G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC(type, func)
#define G_GNUC_PRINTF(format, first)
#define g_autofree
#define g_autoptr(type) type *
#define g_auto(type)    type
#define json_array_foreach(array, i, value)                                                                  \
  for (i = 0; i < json_array_size(array) && (value = json_array_get(array, i)); i++)
#define json_object_foreach(object, key, value)                                                              \
  for (key = first_key(object); key && (value = json_object_get(object, key)); key = next_key(object, key))
