/* SPDX-License-Identifier: BSD-3-Clause
 * Threads that the core starts for itself. */
#ifndef MREC_THREAD_H
#define MREC_THREAD_H

#include "status.h"

#include <pthread.h>

/* Start `body(arg)` with every signal blocked: handlers belong to the program's own threads. MEMORY when the system
 * gives no thread. */
mrec_status mrec_thread_start(pthread_t *thread, void *(*body)(void *), void *arg, mrec_error *error);

#endif
