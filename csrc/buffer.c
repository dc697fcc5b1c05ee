/* SPDX-License-Identifier: BSD-3-Clause */
#include "buffer.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

mrec_status mrec_buffer_reserve(mrec_buffer *buffer, size_t capacity, mrec_error *error) {
    if (capacity <= buffer->capacity)
        return MREC_OK;
    size_t grown = buffer->capacity + buffer->capacity / 2;
    if (grown < 64)
        grown = 64;
    if (capacity < grown)
        capacity = grown;
    if (capacity > PTRDIFF_MAX)
        return mrec_fail_memory(error);
    uint8_t *data = realloc(buffer->data, capacity);
    if (data == NULL)
        return mrec_fail_memory(error);
    buffer->data = data;
    buffer->capacity = capacity;
    return MREC_OK;
}

/* Room for n more bytes. */
static mrec_status extend(mrec_buffer *buffer, size_t n, mrec_error *error) {
    if (n > SIZE_MAX - buffer->size)
        return mrec_fail_memory(error);
    return mrec_buffer_reserve(buffer, buffer->size + n, error);
}

mrec_status mrec_buffer_add(mrec_buffer *buffer, const void *bytes, size_t n, mrec_error *error) {
    if (n == 0)
        return MREC_OK;
    MREC_TRY(extend(buffer, n, error));
    memcpy(buffer->data + buffer->size, bytes, n);
    buffer->size += n;
    return MREC_OK;
}

mrec_status mrec_buffer_print(mrec_buffer *buffer, mrec_error *error, const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    int n = vsnprintf(NULL, 0, format, arguments);
    va_end(arguments);
    if (n < 0)
        return mrec_fail(error, MREC_E_VALUE, NULL, "text that cannot be formatted");
    MREC_TRY(extend(buffer, (size_t)n + 1, error));
    va_start(arguments, format);
    vsnprintf((char *)buffer->data + buffer->size, (size_t)n + 1, format, arguments);
    va_end(arguments);
    buffer->size += (size_t)n;
    return MREC_OK;
}

/* The letter of the short escape of c, 0 when it has none. */
static char short_escape(unsigned char c) {
    switch (c) {
    case '"':
        return '"';
    case '\\':
        return '\\';
    case '\b':
        return 'b';
    case '\f':
        return 'f';
    case '\n':
        return 'n';
    case '\r':
        return 'r';
    case '\t':
        return 't';
    default:
        return 0;
    }
}

mrec_status mrec_buffer_json(mrec_buffer *buffer, const char *text, size_t n, mrec_error *error) {
    MREC_TRY(mrec_buffer_add(buffer, "\"", 1, error));
    size_t start = 0; /* of the run that needs no escape */
    for (size_t i = 0; i < n; i++) {
        unsigned char c = (unsigned char)text[i];
        char letter = short_escape(c);
        if (letter == 0 && c >= 0x20)
            continue;
        MREC_TRY(mrec_buffer_add(buffer, text + start, i - start, error));
        if (letter != 0)
            MREC_TRY(mrec_buffer_print(buffer, error, "\\%c", letter));
        else
            MREC_TRY(mrec_buffer_print(buffer, error, "\\u%04x", c));
        start = i + 1;
    }
    if (start < n)
        MREC_TRY(mrec_buffer_add(buffer, text + start, n - start, error));
    return mrec_buffer_add(buffer, "\"", 1, error);
}

void mrec_buffer_free(mrec_buffer *buffer) {
    free(buffer->data);
    *buffer = (mrec_buffer){0};
}
