/* SPDX-License-Identifier: BSD-3-Clause */
#define _GNU_SOURCE
#include "status.h"

#include <stdio.h>
#include <string.h>

const char *mrec_status_name(mrec_status status) {
    static const char *const names[] = {
        [MREC_OK] = "ok",
        [MREC_E_IO] = "i/o error",
        [MREC_E_MEMORY] = "out of memory",
        [MREC_E_CORRUPT] = "corrupt data",
        [MREC_E_CODEC] = "unsupported codec",
        [MREC_E_SCHEMA] = "schema error",
        [MREC_E_VALUE] = "invalid value",
        [MREC_E_LOCKED] = "record locked",
        [MREC_E_EXISTS] = "record exists",
        [MREC_E_CLOSED] = "handle closed",
        [MREC_E_BUSY] = "writer busy",
        [MREC_E_FORKED] = "handle of another process",
    };
    size_t i = (size_t)status;
    return i < sizeof names / sizeof names[0] ? names[i] : "unknown status";
}

static void set_path(mrec_error *error, const char *path) {
    if (path == error->path)
        return;
    size_t n = path == NULL ? 0 : strlen(path);
    if (n >= sizeof error->path)
        n = sizeof error->path - 1;
    if (n > 0)
        memmove(error->path, path, n);
    error->path[n] = '\0';
}

mrec_status mrec_fail(mrec_error *error, mrec_status status, const char *path, const char *format, ...) {
    if (error == NULL)
        return status;
    char message[sizeof error->message]; /* the arguments may point into *error */
    va_list arguments;
    va_start(arguments, format);
    if (vsnprintf(message, sizeof message, format, arguments) < 0)
        message[0] = '\0';
    va_end(arguments);
    set_path(error, path);
    memcpy(error->message, message, strlen(message) + 1);
    error->status = status;
    error->sys_errno = 0;
    return status;
}

/* strerror_r is two functions: GNU's returns the text, POSIX's puts it into the buffer and returns a number. */
static const char *gnu_reason(const char *text, const char *buffer) {
    (void)buffer;
    return text;
}

static const char *posix_reason(int failed, const char *buffer) {
    return failed ? "unknown error" : buffer;
}

mrec_status mrec_fail_errno(mrec_error *error, int err, const char *path, const char *what) {
    char buffer[256];
    const char *reason = _Generic(strerror_r(err, buffer, sizeof buffer), int
                                  : posix_reason, default
                                  : gnu_reason)(strerror_r(err, buffer, sizeof buffer), buffer);
    mrec_fail(error, MREC_E_IO, path, "%s: %s", what, reason);
    if (error != NULL)
        error->sys_errno = err;
    return MREC_E_IO;
}

mrec_status mrec_fail_memory(mrec_error *error) {
    return mrec_fail(error, MREC_E_MEMORY, NULL, "out of memory");
}
