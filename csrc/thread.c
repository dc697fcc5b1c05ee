/* SPDX-License-Identifier: BSD-3-Clause */
#define _GNU_SOURCE
#include "thread.h"

#include <signal.h>
#include <string.h>

mrec_status mrec_thread_start(pthread_t *thread, void *(*body)(void *), void *arg, mrec_error *error) {
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    int result = pthread_create(thread, NULL, body, arg);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (result == 0)
        return MREC_OK;
    return mrec_fail(error, MREC_E_MEMORY, NULL, "cannot start a thread: %s; use threads=1", strerror(result));
}
