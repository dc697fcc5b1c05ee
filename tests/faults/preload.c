/* SPDX-License-Identifier: BSD-3-Clause
 * Loaded before libc (LD_PRELOAD): the n-th call after fault_arm() fails, or is interrupted, or ends the process. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <sys/uio.h>
#include <unistd.h>

enum { NOTHING, KILL, FAIL, INTERRUPT };

static long left = -1;
static int action = NOTHING, number;
static const char *fired = "";

void fault_arm(long n, int what, int err) {
    fired = "";
    action = what;
    number = err;
    left = n;
}

/* The name of the call that was hit; "" when there were fewer. */
const char *fault_fired(void) {
    return fired;
}

/* Whether the call is to fail, errno set. */
static int hit(const char *name) {
    if (left < 0 || left-- > 0)
        return 0;
    fired = name;
    if (action == KILL)
        kill(getpid(), SIGKILL);
    if (action == INTERRUPT)
        raise(SIGINT);
    errno = number;
    return action == FAIL;
}

#define WRAP(type, name, declared, given)                                                                              \
    type name declared {                                                                                               \
        static type(*real) declared;                                                                                   \
        if (!real)                                                                                                     \
            *(void **)&real = dlsym(RTLD_NEXT, #name);                                                                 \
        return hit(#name) ? (type)-1 : real given;                                                                     \
    }

WRAP(ssize_t, pread, (int fd, void *b, size_t n, off_t o), (fd, b, n, o))
WRAP(ssize_t, pread64, (int fd, void *b, size_t n, off64_t o), (fd, b, n, o))
WRAP(ssize_t, preadv, (int fd, const struct iovec *v, int n, off_t o), (fd, v, n, o))
WRAP(ssize_t, preadv64, (int fd, const struct iovec *v, int n, off64_t o), (fd, v, n, o))
WRAP(ssize_t, pwrite, (int fd, const void *b, size_t n, off_t o), (fd, b, n, o))
WRAP(ssize_t, pwrite64, (int fd, const void *b, size_t n, off64_t o), (fd, b, n, o))
WRAP(ssize_t, read, (int fd, void *b, size_t n), (fd, b, n))
WRAP(ssize_t, write, (int fd, const void *b, size_t n), (fd, b, n))
WRAP(int, ftruncate, (int fd, off_t n), (fd, n))
WRAP(int, ftruncate64, (int fd, off64_t n), (fd, n))
WRAP(int, fsync, (int fd), (fd))
WRAP(int, fdatasync, (int fd), (fd))
WRAP(int, sync_file_range, (int fd, off64_t a, off64_t n, unsigned f), (fd, a, n, f))
WRAP(int, flock, (int fd, int how), (fd, how))
WRAP(int, rename, (const char *a, const char *b), (a, b))
WRAP(int, renameat2, (int f, const char *a, int t, const char *b, unsigned how), (f, a, t, b, how))
WRAP(int, link, (const char *a, const char *b), (a, b))
WRAP(int, linkat, (int f, const char *a, int t, const char *b, int how), (f, a, t, b, how))
WRAP(int, unlink, (const char *a), (a))
WRAP(int, unlinkat, (int fd, const char *a, int f), (fd, a, f))
WRAP(int, rmdir, (const char *a), (a))
WRAP(int, mkdir, (const char *a, mode_t m), (a, m))
WRAP(int, mkdirat, (int fd, const char *a, mode_t m), (fd, a, m))

#define WRAP_OPEN(name)                                                                                                \
    int name(const char *path, int flags, ...) {                                                                       \
        static int (*real)(const char *, int, ...);                                                                    \
        if (!real)                                                                                                     \
            *(void **)&real = dlsym(RTLD_NEXT, #name);                                                                 \
        va_list rest;                                                                                                  \
        va_start(rest, flags);                                                                                         \
        mode_t mode = flags & O_CREAT ? va_arg(rest, mode_t) : 0;                                                      \
        va_end(rest);                                                                                                  \
        return hit(#name) ? -1 : real(path, flags, mode);                                                              \
    }

WRAP_OPEN(open)
WRAP_OPEN(open64)
