/* SPDX-License-Identifier: BSD-3-Clause
 * An extension module of two source files, valid C and C++: probe.c asks for the functions, append.c calls them. */
#ifndef PROBE_H
#define PROBE_H

#include <mrec_capi.h>

#ifdef __cplusplus
extern "C" {
#endif

/* A frame of the only block's only column, without the GIL; 0, or -1 with an exception set. */
int probe_append(mrec_writer *writer, int64_t step, const void *rows, uint64_t n);

#ifdef __cplusplus
}
#endif
#endif
