/* SPDX-License-Identifier: BSD-3-Clause */
#include "strided.h"

#include <string.h>

/* memcpy of a constant size is one load and one store. */
#define COPY_RUN(size)                                                                                                 \
    for (uint64_t i = 0; i < axis.n; i++, from += axis.from, to += axis.to)                                            \
    memcpy(to, from, size)

/* The axis by value: what is written through `to` could be an axis that is pointed to. */
static void copy_run(const uint8_t *from, uint8_t *to, mrec_axis axis, size_t unit) {
    switch (unit) {
    case 1:
        COPY_RUN(1);
        break;
    case 2:
        COPY_RUN(2);
        break;
    case 4:
        COPY_RUN(4);
        break;
    case 8:
        COPY_RUN(8);
        break;
    case 16:
        COPY_RUN(16);
        break;
    case 24:
        COPY_RUN(24);
        break;
    default:
        COPY_RUN(unit);
    }
}

static void copy_axes(const uint8_t *from, uint8_t *to, const mrec_axis *axes, uint32_t naxes, size_t unit) {
    if (naxes == 0) {
        memcpy(to, from, unit);
    } else if (naxes == 1) {
        copy_run(from, to, *axes, unit);
    } else {
        for (uint64_t i = 0; i < axes->n; i++, from += axes->from, to += axes->to)
            copy_axes(from, to, axes + 1, naxes - 1, unit);
    }
}

/* Whether `outer` steps over exactly one whole run of `inner`. */
static int continues(const mrec_axis *outer, const mrec_axis *inner) {
    return outer->from == inner->from * (ptrdiff_t)inner->n && outer->to == inner->to * (ptrdiff_t)inner->n;
}

void mrec_copy_strided(const uint8_t *from, uint8_t *to, mrec_axis *axes, uint32_t naxes, size_t unit) {
    uint32_t n = 0;
    for (uint32_t i = 0; i < naxes; i++) {
        if (axes[i].n == 0)
            return;
        if (axes[i].n == 1)
            continue;
        if (n > 0 && continues(&axes[n - 1], &axes[i])) {
            axes[i].n *= axes[n - 1].n;
            n--;
        }
        axes[n++] = axes[i];
    }
    if (n > 0 && axes[n - 1].from == (ptrdiff_t)unit && axes[n - 1].to == (ptrdiff_t)unit)
        unit *= (size_t)axes[--n].n;
    copy_axes(from, to, axes, n, unit);
}
