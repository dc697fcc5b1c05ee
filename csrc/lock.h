/* SPDX-License-Identifier: BSD-3-Clause
 * One writer a record: flock on the record's directory. It ends with its process, and a forked child lets go of its
 * copy, so that it ends with its owner. */
#ifndef MREC_LOCK_H
#define MREC_LOCK_H

#include "vfs.h"

typedef struct mrec_lock mrec_lock;

/* Hold the directory at path (which is copied). LOCKED when another handle, of this or any process, has it. A file
 * system without locks: OK, unprotected. */
mrec_status mrec_lock_take(mrec_vfs *, const char *path, mrec_lock **lock, mrec_error *);
void mrec_lock_free(mrec_lock *lock);

/* OK while the path still names the directory that is held. A writer goes by path, so it asks before each commit and
 * each file that it opens: otherwise it could go on in whatever came to be there. IO with ENOENT when nothing is there
 * any more, ESTALE when something else is. Not in a forked child. */
mrec_status mrec_lock_check(const mrec_lock *lock, mrec_error *);

/* How often this process is a fork of the one that loaded the library; a handle remembers the count it was made at. */
unsigned mrec_fork_count(void);

#endif
