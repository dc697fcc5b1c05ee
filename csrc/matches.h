/* SPDX-License-Identifier: BSD-3-Clause
 * Whether bytes repeat at distances of all kinds, so that looking for matches pays. Safe from any thread. */
#ifndef MREC_MATCHES_H
#define MREC_MATCHES_H

#include <stddef.h>
#include <stdint.h>

/* What matches would save of the bits of bytes[0, n), n <= 2^17, in 256ths, by a sample; a literal takes bits / 256. */
unsigned mrec_match_sample(const uint8_t *bytes, size_t n, uint64_t bits);

#endif
