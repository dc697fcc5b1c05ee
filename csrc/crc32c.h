/* SPDX-License-Identifier: BSD-3-Clause
 * CRC-32C (Castagnoli, RFC 3720 B.4) and CRC-32 (IEEE, as in zip and gzip). Safe from any thread. */
#ifndef MREC_CRC32C_H
#define MREC_CRC32C_H

#include <stddef.h>
#include <stdint.h>

/* The checksum of n bytes, going on from `crc` (0 to start): crc32c(crc32c(0, a), b) = crc32c(0, a then b). */
uint32_t mrec_crc32c(uint32_t crc, const void *bytes, size_t n);
uint32_t mrec_crc32(uint32_t crc, const void *bytes, size_t n);

#endif
