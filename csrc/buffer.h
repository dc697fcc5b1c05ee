/* SPDX-License-Identifier: BSD-3-Clause
 * A growing run of bytes. Not thread-safe. */
#ifndef MREC_BUFFER_H
#define MREC_BUFFER_H

#include "status.h"

/* {0} is an empty buffer. size <= capacity. */
typedef struct mrec_buffer {
    uint8_t *data;
    size_t size;
    size_t capacity;
} mrec_buffer;

/* Make room for at least `capacity` bytes in all; grows by half, keeps the content. MEMORY when it cannot. */
mrec_status mrec_buffer_reserve(mrec_buffer *buffer, size_t capacity, mrec_error *error);

/* Append n bytes. */
mrec_status mrec_buffer_add(mrec_buffer *buffer, const void *bytes, size_t n, mrec_error *error);

/* Append formatted text (without its NUL; one byte after the text is always a NUL, not counted). */
mrec_status mrec_buffer_print(mrec_buffer *buffer, mrec_error *error, const char *format, ...) MREC_PRINTF(3, 4);

/* Append `text` as a JSON string, quotes included; control characters, quote and backslash escaped, the rest as it
 * is. `text` must be valid UTF-8. */
mrec_status mrec_buffer_json(mrec_buffer *buffer, const char *text, size_t n, mrec_error *error);

void mrec_buffer_free(mrec_buffer *buffer);

#endif
