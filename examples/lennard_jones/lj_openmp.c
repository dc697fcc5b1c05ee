/* SPDX-License-Identifier: BSD-3-Clause
 * lj_openmp RECORD [SIDE [STEPS [EVERY]]]: lj with threads. They share the atoms; whichever comes first appends, while
 * the others change the velocities, which the frame does not have. */
#include "output.h"

int main(int argc, char **argv) {
    if (argc < 2)
        return 2;
    const long steps = argc > 3 ? atol(argv[3]) : 1000, every = argc > 4 ? atol(argv[4]) : 1;
    lj_system s = system_new(argc > 2 ? strtoul(argv[2], NULL, 10) : 7);
    lj_output out = output_new(argv[1], &s);
    const double start = seconds();
#pragma omp parallel
    for (long step = 0; step < steps; step++) {
#pragma omp for
        for (size_t i = 0; i < s.n; i++)
            pull(&s, i);
#pragma omp single nowait
        if (step % every == 0)
            output_append(&out, &s, step);
#pragma omp for schedule(dynamic, 64)
        for (size_t i = 0; i < s.n; i++)
            kick(&s, i);
#pragma omp for
        for (size_t i = 0; i < s.n; i++)
            drift(&s, i);
    }
    output_report(&out, &s, steps, seconds() - start);
    output_close(&out);
    system_free(&s);
    return 0;
}
