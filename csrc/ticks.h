/* SPDX-License-Identifier: BSD-3-Clause
 * Steps and times of a trajectory: a progression while they follow one, an array from the first frame that does not
 * (trajectory.md, Steps and times). */
#ifndef MREC_TICKS_H
#define MREC_TICKS_H

#include "node.h"

typedef struct mrec_steps {
    mrec_store *store;
    uint64_t n;
    int64_t start, stride; /* stride counts from two frames on */
    int64_t last;
    mrec_array *array; /* NULL while they are a progression */
} mrec_steps;

typedef struct mrec_times {
    mrec_store *store;
    uint64_t n;
    bool given; /* decided by the first frame */
    double start, stride;
    mrec_array *array;
} mrec_times;

/* The step of the next frame, above the last; and its time, given in every frame or in none. */
mrec_status mrec_steps_append(mrec_steps *, int64_t step, mrec_error *);
mrec_status mrec_times_append(mrec_times *, bool given, double time, mrec_error *);

/* start + f64(i) * stride, rounded twice, never fused; start itself for i = 0. */
double mrec_time_at(double start, double stride, uint64_t i);

/* Append ,"step_progression":{...} or ,"time_progression":{...} when it is one. */
mrec_status mrec_steps_attribute(const mrec_steps *, mrec_buffer *out, mrec_error *);
mrec_status mrec_times_attribute(const mrec_times *, mrec_buffer *out, mrec_error *);

#endif
