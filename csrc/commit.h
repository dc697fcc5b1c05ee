/* SPDX-License-Identifier: BSD-3-Clause
 * Publishing what a sequence holds, in the order of docs/order-of-writes.md. */
#ifndef MREC_COMMIT_H
#define MREC_COMMIT_H

#include "sequence.h"

typedef enum mrec_commit_kind {
    MREC_COMMIT_AUTO,    /* survives the death of the process */
    MREC_COMMIT_DURABLE, /* survives a power loss */
    MREC_COMMIT_CLOSE,   /* durable, and ends the live form of the record */
    MREC_COMMIT_CLOSE_UNSYNCED
} mrec_commit_kind;

/* One flush, whole. After a failure the sequence must not be committed again. */
mrec_status mrec_commit(mrec_sequence *, mrec_commit_kind, mrec_error *);

/* Close the data files that a failure left open: what closing says is of no more use. */
void mrec_commit_close_files(mrec_sequence *);

/* Parts of it, for creation and opening: every document that is stale, with exact lengths, its bytes synced when
 * `durable`; the directories of new documents, or of `all` that were replaced; trajectory/.durable and the marker, with
 * `durable` synced, name included; a marker of this text, synced. */
mrec_status mrec_commit_documents(mrec_sequence *, bool durable, mrec_error *);
mrec_status mrec_commit_directories(mrec_sequence *, bool all, mrec_error *);
mrec_status mrec_commit_durable_file(mrec_sequence *, bool durable, mrec_error *);
mrec_status mrec_commit_marker(mrec_sequence *, bool live, bool durable, mrec_error *);
mrec_status mrec_commit_marker_text(mrec_sequence *, const void *text, size_t n, mrec_error *);

#endif
