/* SPDX-License-Identifier: BSD-3-Clause
 * How calls fail: filling an mrec_error, and arithmetic on sizes that cannot wrap. Safe from any thread. */
#ifndef MREC_STATUS_H
#define MREC_STATUS_H

#include "mrec.h"

#include <stdarg.h>

#if defined(__GNUC__)
#define MREC_PRINTF(f, a) __attribute__((format(printf, f, a)))
#else
#define MREC_PRINTF(f, a)
#endif

/* Fill *error (when not NULL) and return status: `return mrec_fail(error, MREC_E_VALUE, path, "..." ...)`.
 * path may be NULL. */
mrec_status mrec_fail(mrec_error *error, mrec_status status, const char *path, const char *format, ...)
    MREC_PRINTF(4, 5);

/* The same for a system call that failed with errno value `err`; the message is "<what>: <strerror>". */
mrec_status mrec_fail_errno(mrec_error *error, int err, const char *path, const char *what);

mrec_status mrec_fail_memory(mrec_error *error);

/* Leave the function with the status of an expression that failed. */
#define MREC_TRY(expression)                                                                                           \
    do {                                                                                                               \
        mrec_status mrec_try_ = (expression);                                                                          \
        if (mrec_try_ != MREC_OK)                                                                                      \
            return mrec_try_;                                                                                          \
    } while (0)

/* a * b and a + b into *out; false when the result does not fit (then *out is undefined). */
static inline bool mrec_mul(uint64_t a, uint64_t b, uint64_t *out) {
    if (a != 0 && b > UINT64_MAX / a)
        return false;
    *out = a * b;
    return true;
}

static inline bool mrec_add(uint64_t a, uint64_t b, uint64_t *out) {
    if (a > UINT64_MAX - b)
        return false;
    *out = a + b;
    return true;
}

#endif
