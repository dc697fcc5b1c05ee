/* SPDX-License-Identifier: BSD-3-Clause */
#include "ticks.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

static mrec_status make_tick_array(mrec_store *store, const char *key, mrec_dtype dtype, mrec_array **array,
                                   mrec_error *error) {
    mrec_layout layout;
    mrec_layout_dense(dtype, 0, NULL, &layout);
    return mrec_array_new(store, key, &layout, NULL, NULL, NULL, array, error);
}

/* ---- steps ---- */

/* step - last as int64, false when it does not fit. step > last. */
static bool distance(int64_t last, int64_t step, int64_t *out) {
    uint64_t d = (uint64_t)step - (uint64_t)last;
    *out = (int64_t)d;
    return d <= INT64_MAX;
}

static mrec_status materialize_steps(mrec_steps *steps, mrec_error *error) {
    MREC_TRY(make_tick_array(steps->store, "trajectory/step", MREC_I64, &steps->array, error));
    for (uint64_t i = 0; i < steps->n; i++) {
        int64_t step = steps->start + (int64_t)i * steps->stride;
        MREC_TRY(mrec_array_append(steps->array, &step, 1, sizeof step, error));
    }
    return MREC_OK;
}

mrec_status mrec_steps_append(mrec_steps *steps, int64_t step, mrec_error *error) {
    int64_t stride = 0;
    if (steps->n == 0) {
        steps->start = step;
    } else if (!steps->array) {
        bool fits = distance(steps->last, step, &stride);
        if (steps->n == 1 && fits)
            steps->stride = stride;
        else if (!fits || stride != steps->stride)
            MREC_TRY(materialize_steps(steps, error));
    }
    if (steps->array)
        MREC_TRY(mrec_array_append(steps->array, &step, 1, sizeof step, error));
    steps->last = step;
    steps->n++;
    return MREC_OK;
}

mrec_status mrec_steps_attribute(const mrec_steps *steps, mrec_buffer *out, mrec_error *error) {
    if (steps->n == 0 || steps->array)
        return MREC_OK;
    MREC_TRY(mrec_buffer_print(out, error, ",\"step_progression\":{\"start\":%" PRId64, steps->start));
    if (steps->n > 1)
        MREC_TRY(mrec_buffer_print(out, error, ",\"stride\":%" PRId64, steps->stride));
    return mrec_buffer_print(out, error, "}");
}

/* ---- times ---- */

double mrec_time_at(double start, double stride, uint64_t i) {
    if (i == 0)
        return start;
    volatile double product = (double)i * stride; /* a compiler may fuse the two roundings otherwise */
    return start + product;
}

static bool same_bits(double a, double b) {
    return memcmp(&a, &b, sizeof a) == 0;
}

static mrec_status materialize_times(mrec_times *times, mrec_error *error) {
    MREC_TRY(make_tick_array(times->store, "trajectory/time", MREC_F64, &times->array, error));
    for (uint64_t i = 0; i < times->n; i++) {
        double time = mrec_time_at(times->start, times->stride, i);
        MREC_TRY(mrec_array_append(times->array, &time, 1, sizeof time, error));
    }
    return MREC_OK;
}

/* Whether the times so far and this one are a progression; with the second frame, of which stride. */
static bool continues(mrec_times *times, double time) {
    if (!isfinite(time))
        return false;
    double stride = times->n == 1 ? time - times->start : times->stride;
    if (!isfinite(stride) || !same_bits(mrec_time_at(times->start, stride, times->n), time))
        return false;
    times->stride = stride;
    return true;
}

mrec_status mrec_times_append(mrec_times *times, bool given, double time, mrec_error *error) {
    if (times->n == 0) {
        times->given = given;
        times->start = time;
    }
    if (given && !times->array && (times->n == 0 ? !isfinite(time) : !continues(times, time)))
        MREC_TRY(materialize_times(times, error));
    if (times->array)
        MREC_TRY(mrec_array_append(times->array, &time, 1, sizeof time, error));
    times->n++;
    return MREC_OK;
}

mrec_status mrec_times_attribute(const mrec_times *times, mrec_buffer *out, mrec_error *error) {
    if (times->n == 0 || !times->given || times->array)
        return MREC_OK;
    MREC_TRY(mrec_buffer_print(out, error, ",\"time_progression\":{\"start\":"));
    MREC_TRY(mrec_json_f64(out, times->start, error));
    if (times->n > 1) {
        MREC_TRY(mrec_buffer_print(out, error, ",\"stride\":"));
        MREC_TRY(mrec_json_f64(out, times->stride, error));
    }
    return mrec_buffer_print(out, error, "}");
}
