/* SPDX-License-Identifier: BSD-3-Clause
 * The stored entries of a zip file as files, read by byte ranges of one descriptor. Whoever makes one has checked the
 * zip's directory: entries lie inside the file. Thread-safe. */
#ifndef MREC_ARCHIVE_H
#define MREC_ARCHIVE_H

#include "vfs.h"

/* Where the bytes of an entry are; key: its name, with "/" between names. */
typedef struct mrec_archive_entry {
    const char *key;
    uint64_t offset, size;
    uint32_t crc32;
} mrec_archive_entry;

typedef struct mrec_archive mrec_archive;

/* n entries, ascending by the bytes of their keys; both are copied. `fd` is open for reading in `base` and is closed
 * with the archive, also when this fails. VALUE when the keys do not ascend. */
mrec_status mrec_archive_new(mrec_vfs *base, int fd, const char *root, const mrec_archive_entry *, size_t n,
                             mrec_archive **, mrec_error *);
void mrec_archive_free(mrec_archive *);

/* Its calls: open (of <root>/<key>, read-only), close, pread, preadv and size; all others answer -EROFS. An entry that
 * is read whole in one call is checked: -EBADMSG when its CRC-32 does not match. Lives as long as the archive. */
mrec_vfs *mrec_archive_vfs(mrec_archive *);

#endif
