/* SPDX-License-Identifier: BSD-3-Clause
 * The simulated part, which knows nothing of output: a Lennard-Jones liquid in reduced units, every pair within 2.5
 * looked at, moved by leapfrog steps. Each atom sums its own forces, so threads need not share. */
#ifndef SYSTEM_H
#define SYSTEM_H

#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <time.h>

#define DENSITY 0.8
#define TIME_STEP 0.002

typedef struct lj_system {
    size_t n;
    double length; /* of the cubic cell */
    double (*r)[3], (*v)[3], (*f)[3];
    double *pe; /* of each atom */
} lj_system;

static inline double seconds(void) {
    struct timespec t;
    timespec_get(&t, TIME_UTC);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static inline void *allocate(size_t n, size_t size) {
    void *memory = calloc(n, size);
    if (memory == NULL)
        exit(1);
    return memory;
}

/* side^3 atoms on a cubic lattice, with the same velocities in every run. */
static inline lj_system system_new(size_t side) {
    lj_system s = {.n = side * side * side};
    s.length = cbrt((double)s.n / DENSITY);
    s.r = allocate(s.n, sizeof *s.r);
    s.v = allocate(s.n, sizeof *s.v);
    s.f = allocate(s.n, sizeof *s.f);
    s.pe = allocate(s.n, sizeof *s.pe);
    uint64_t seed = 1;
    for (size_t i = 0; i < s.n; i++) {
        const size_t at[3] = {i / (side * side), i / side % side, i % side};
        for (int k = 0; k < 3; k++) {
            seed = seed * 6364136223846793005u + 1442695040888963407u;
            s.r[i][k] = (double)at[k] * s.length / (double)side;
            s.v[i][k] = 2.0 * ((double)(seed >> 11) / (double)(UINT64_C(1) << 53)) - 1.0;
        }
    }
    return s;
}

static inline void system_free(lj_system *s) {
    free(s->r);
    free(s->v);
    free(s->f);
    free(s->pe);
}

/* The force on atom i, and its half of the energy of each of its pairs. */
static inline void pull(lj_system *s, size_t i) {
    const double per_length = 1.0 / s->length;
    double f[3] = {0, 0, 0}, pe = 0;
    for (size_t j = 0; j < s->n; j++) {
        double d[3], square = 0;
        for (int k = 0; k < 3; k++) {
            d[k] = s->r[i][k] - s->r[j][k];
            d[k] -= s->length * rint(d[k] * per_length);
            square += d[k] * d[k];
        }
        if (j == i || square >= 2.5 * 2.5)
            continue;
        const double inverse = 1.0 / square, six = inverse * inverse * inverse;
        pe += 2.0 * six * (six - 1.0);
        for (int k = 0; k < 3; k++)
            f[k] += 24.0 * six * (2.0 * six - 1.0) * inverse * d[k];
    }
    for (int k = 0; k < 3; k++)
        s->f[i][k] = f[k];
    s->pe[i] = pe;
}

static inline void kick(lj_system *s, size_t i) {
    for (int k = 0; k < 3; k++)
        s->v[i][k] += TIME_STEP * s->f[i][k];
}

static inline void drift(lj_system *s, size_t i) {
    for (int k = 0; k < 3; k++)
        s->r[i][k] += TIME_STEP * s->v[i][k];
}

#endif
