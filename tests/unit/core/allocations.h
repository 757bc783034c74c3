/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Counts what the program allocates, by whomever. For one file of a program. */
#pragma once

#include <stddef.h>
#include <stdlib.h>

static size_t allocations;

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)

/* A sanitizer has its own allocator. The plain build counts. */

#else

/* glibc's own names for what is replaced here; it calls the replacements itself. */
void *__libc_malloc(size_t size);
void *__libc_calloc(size_t n, size_t size);
void *__libc_realloc(void *memory, size_t size);

void *malloc(size_t size) {
  allocations++;
  return __libc_malloc(size);
}

void *calloc(size_t n, size_t size) {
  allocations++;
  return __libc_calloc(n, size);
}

void *realloc(void *memory, size_t size) {
  allocations++;
  return __libc_realloc(memory, size);
}

#endif
