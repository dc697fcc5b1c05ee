/* SPDX-License-Identifier: BSD-3-Clause */
#include "intern.h"

#include "crc32c.h"

#include <stdlib.h>
#include <string.h>

struct mrec_intern {
    mrec_buffer texts; /* one after another */
    mrec_buffer ends;  /* uint64_t each */
    uint32_t *slots;   /* id + 1, or 0: open addressing, at most three in four taken */
    size_t nslots;     /* a power of two */
};

mrec_status mrec_intern_new(mrec_intern **out, mrec_error *error) {
    *out = calloc(1, sizeof **out);
    return *out != NULL ? MREC_OK : mrec_fail_memory(error);
}

void mrec_intern_free(mrec_intern *intern) {
    if (intern == NULL)
        return;
    mrec_buffer_free(&intern->texts);
    mrec_buffer_free(&intern->ends);
    free(intern->slots);
    free(intern);
}

uint32_t mrec_intern_count(const mrec_intern *intern) {
    return (uint32_t)(intern->ends.size / sizeof(uint64_t));
}

size_t mrec_intern_bytes(const mrec_intern *intern) {
    return intern->texts.capacity + intern->ends.capacity + intern->nslots * sizeof *intern->slots;
}

mrec_text mrec_intern_text(const mrec_intern *intern, uint32_t id) {
    uint64_t range[2] = {0};
    memcpy(range + (id == 0), intern->ends.data + (id > 0 ? id - 1 : 0) * sizeof *range,
           (id > 0 ? 2 : 1) * sizeof *range);
    return (mrec_text){intern->texts.data + range[0], (size_t)(range[1] - range[0])};
}

/* Where these bytes are, or may be put. */
static uint32_t *intern_slot(mrec_intern *intern, const void *bytes, size_t n) {
    uint64_t hash = mrec_crc32c(0, bytes, n) * UINT64_C(0x9e3779b97f4a7c15);
    for (size_t i = (size_t)(hash >> 32);; i++) {
        uint32_t *slot = &intern->slots[i & (intern->nslots - 1)];
        if (*slot == 0)
            return slot;
        mrec_text text = mrec_intern_text(intern, *slot - 1);
        if (text.n == n && (n == 0 || memcmp(text.bytes, bytes, n) == 0))
            return slot;
    }
}

static mrec_status intern_grow(mrec_intern *intern, mrec_error *error) {
    uint32_t count = mrec_intern_count(intern);
    if (count == UINT32_MAX - 1)
        return mrec_fail(error, MREC_E_VALUE, NULL, "a segment has at most 2^32 - 2 different texts or values");
    if (count < intern->nslots / 4 * 3)
        return MREC_OK;
    size_t n = intern->nslots > 0 ? 2 * intern->nslots : 16;
    uint32_t *slots = calloc(n, sizeof *slots);
    if (slots == NULL)
        return mrec_fail_memory(error);
    free(intern->slots);
    intern->slots = slots;
    intern->nslots = n;
    for (uint32_t id = 0; id < count; id++) {
        mrec_text text = mrec_intern_text(intern, id);
        *intern_slot(intern, text.bytes, text.n) = id + 1;
    }
    return MREC_OK;
}

mrec_status mrec_intern_add(mrec_intern *intern, const void *bytes, size_t n, uint32_t *id, mrec_error *error) {
    MREC_TRY(intern_grow(intern, error));
    uint32_t *slot = intern_slot(intern, bytes, n);
    if (*slot == 0) {
        size_t before = intern->texts.size;
        MREC_TRY(mrec_buffer_reserve(&intern->texts, before + n + 1, error)); /* an address also for "" */
        MREC_TRY(mrec_buffer_add(&intern->texts, bytes, n, error));
        uint64_t end = intern->texts.size;
        mrec_status status = mrec_buffer_add(&intern->ends, &end, sizeof end, error);
        if (status != MREC_OK) {
            intern->texts.size = before;
            return status;
        }
        *slot = mrec_intern_count(intern);
    }
    *id = *slot - 1;
    return MREC_OK;
}
