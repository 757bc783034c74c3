/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* cmocka, with the headers that it wants before it. */
#pragma once

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

/* A row that is a function, under an English name. */
#define ROW(name_, function)                                                                                 \
  { .name = (name_), .test_func = (function) }
