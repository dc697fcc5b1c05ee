/* SPDX-License-Identifier: BSD-3-Clause
 * The declaration of a trajectory: a copy that a writer owns, its rules, and its JSON text (trajectory.md,
 * Declaration). */
#ifndef MREC_SCHEMA_H
#define MREC_SCHEMA_H

#include "buffer.h"

typedef struct mrec_schema_copy {
    mrec_schema schema;
    void **owned;
    size_t nowned;
} mrec_schema_copy;

/* Check every rule of the declaration (SCHEMA names block and column) and copy it. Free it also after a failure. */
mrec_status mrec_schema_copy_init(mrec_schema_copy *, const mrec_schema *, mrec_error *);
void mrec_schema_copy_free(mrec_schema_copy *);

/* SCHEMA when a frame laid out for `wanted` does not fit `declared`; see mrec_check_schema. */
mrec_status mrec_schema_match(const mrec_schema *declared, const mrec_schema *wanted, mrec_error *);

/* Append the sequence_schema object. */
mrec_status mrec_schema_json(const mrec_schema *, mrec_buffer *out, mrec_error *);

/* Append the tag of a per-step value: "f64x9", "json". */
mrec_status mrec_value_tag(const mrec_value *, mrec_buffer *out, mrec_error *);

#endif
