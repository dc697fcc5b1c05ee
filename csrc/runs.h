/* SPDX-License-Identifier: BSD-3-Clause
 * Where bytes repeat at one distance. Safe from any thread. */
#ifndef MREC_RUNS_H
#define MREC_RUNS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Bit i % 64 of equal[i / 64] becomes whether bytes[i] == bytes[i - distance], for i in [0, n); the bits after it in
 * the last word and one word more become 0. Returns how many are set. */
size_t mrec_equal_bits(const uint8_t *bytes, size_t n, size_t distance, uint64_t *equal);

/* The first i >= from at which a bit is not set. */
size_t mrec_run_end(const uint64_t *equal, size_t from);

/* Whether bytes[0, n), n >= 64, mostly go on as the byte before. */
bool mrec_run_flat(const uint8_t *bytes, size_t n);

/* The distance in (1, n / 2) at which bytes[0, n) repeat more than elsewhere, 0 when there is none. */
size_t mrec_run_distance(const uint8_t *bytes, size_t n);

#endif
