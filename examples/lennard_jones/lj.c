/* SPDX-License-Identifier: BSD-3-Clause
 * lj RECORD [SIDE [STEPS [EVERY]]]: side^3 atoms, appended to a record every so many steps. */
#include "output.h"

int main(int argc, char **argv) {
    if (argc < 2)
        return 2;
    const long steps = argc > 3 ? atol(argv[3]) : 1000, every = argc > 4 ? atol(argv[4]) : 1;
    lj_system s = system_new(argc > 2 ? strtoul(argv[2], NULL, 10) : 7);
    lj_output out = output_new(argv[1], &s);
    const double start = seconds();
    for (long step = 0; step < steps; step++) {
        for (size_t i = 0; i < s.n; i++)
            pull(&s, i);
        if (step % every == 0)
            output_append(&out, &s, step);
        for (size_t i = 0; i < s.n; i++) {
            kick(&s, i);
            drift(&s, i);
        }
    }
    output_report(&out, &s, steps, seconds() - start);
    output_close(&out);
    system_free(&s);
    return 0;
}
