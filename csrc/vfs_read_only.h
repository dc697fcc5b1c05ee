/* SPDX-License-Identifier: BSD-3-Clause
 * What a table of calls has in common where nothing can be written. */
#ifndef MREC_VFS_READ_ONLY_H
#define MREC_VFS_READ_ONLY_H

#include "vfs.h"

/* Every call but open, close, pread, preadv and size, which are NULL, answers -EROFS. */
extern const mrec_vfs mrec_vfs_read_only;

#endif
