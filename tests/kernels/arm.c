/* SPDX-License-Identifier: BSD-3-Clause
 * The kernels on another processor, without the libraries: `kernels` runs their tests, `encode N` makes a frame of the
 * planes of N bytes an element that come in. */
#include "tests.h"

#include "cpu.h"
#include "zframe.h"

uint32_t libdeflate_crc32(uint32_t crc, const void *bytes, size_t n) {
    const uint8_t *p = bytes;
    crc = ~crc;
    for (size_t i = 0; i < n; i++) {
        crc ^= p[i];
        for (int bit = 0; bit < 8; bit++)
            crc = (crc >> 1) ^ (crc & 1 ? 0xedb88320u : 0);
    }
    return ~crc;
}

static int encode(size_t size) {
    size_t n = 0, room = 1 << 24;
    uint8_t *planes = malloc(room), *out = malloc(room);
    mrec_zframe *z = mrec_zframe_new();
    assert(planes != NULL && out != NULL && z != NULL);
    for (size_t got; (got = fread(planes + n, 1, room - n, stdin)) > 0;)
        n += got;
    size_t made = mrec_zframe_encode(z, planes, n, size, out, room);
    fwrite(out, 1, made, stdout);
    mrec_zframe_free(z);
    free(planes);
    free(out);
    return 0;
}

int main(int argc, char **argv) {
    if (argc == 3)
        return encode((size_t)atoi(argv[2]));
    for (int allowed = 0; allowed < 2; allowed++) {
        mrec_cpu_allow(allowed ? ~0u : 0);
        test_crc32c();
        test_shuffle();
        test_runs();
        test_quantize();
    }
    printf("%#x\n", mrec_cpu());
    return 0;
}
