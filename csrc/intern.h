/* SPDX-License-Identifier: BSD-3-Clause
 * Texts, each kept once and numbered as first met. Not thread-safe. */
#ifndef MREC_INTERN_H
#define MREC_INTERN_H

#include "segment.h"

typedef struct mrec_intern mrec_intern;

mrec_status mrec_intern_new(mrec_intern **, mrec_error *);
void mrec_intern_free(mrec_intern *);

/* The number of these bytes, which are kept when they are new. */
mrec_status mrec_intern_add(mrec_intern *, const void *bytes, size_t n, uint32_t *id, mrec_error *);

uint32_t mrec_intern_count(const mrec_intern *);
mrec_text mrec_intern_text(const mrec_intern *, uint32_t id); /* until the next is added */
size_t mrec_intern_bytes(const mrec_intern *);                /* of memory */

#endif
