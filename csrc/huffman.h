/* SPDX-License-Identifier: BSD-3-Clause
 * The literals section of a zstd block (RFC 8878, 3.1.1.3.1): raw, one byte repeated, or Huffman-coded. Safe from any
 * thread. */
#ifndef MREC_HUFFMAN_H
#define MREC_HUFFMAN_H

#include <stddef.h>
#include <stdint.h>

#define MREC_HUFFMAN_MARGIN 16 /* bytes behind a section that may be overwritten */

/* How often each byte occurs in bytes[0, n), n < 2^32. */
void mrec_histogram(const uint8_t *bytes, size_t n, uint32_t counts[256]);

#define MREC_HUFFMAN_ASIDE ((size_t)48 * 1024)

/* Write n <= 2^17 literals with these counts; the smallest of the three forms is taken. Needs n + MREC_HUFFMAN_MARGIN
 * bytes of room, and MREC_HUFFMAN_ASIDE bytes of working memory. Returns the size, at most n + 3, or 0 when it would be
 * `limit`, within a dozen bytes, or more. */
size_t mrec_literals(const uint8_t *bytes, size_t n, const uint32_t counts[256], size_t limit, uint8_t *out,
                     uint8_t *aside);

#endif
