/* SPDX-License-Identifier: BSD-3-Clause */
#include "index.h"

#include "bytes.h"
#include "crc32c.h"

#include <string.h>

/* What an index item holds. */
typedef struct parsed {
    uint64_t torn;
    uint64_t numbers[]; /* offset and size of each chunk */
} parsed;

bool mrec_index_bytes(const mrec_index_form *form, uint64_t *bytes) {
    return mrec_mul(form->nchunks, 16, bytes) && mrec_add(*bytes, form->checked ? 4 : 0, bytes) &&
           *bytes < SIZE_MAX / 2;
}

static bool checksum_holds(const uint8_t *raw, size_t n) {
    return mrec_crc32c(0, raw, n - 4) == mrec_load_u32(raw + n - 4);
}

static uint64_t load_number(const mrec_index_form *form, const uint8_t *b) {
    uint64_t v = 0;
    if (!form->big)
        return mrec_load_u64(b);
    for (int i = 0; i < 8; i++)
        v = v << 8 | b[i];
    return v;
}

static mrec_status too_short(const char *path, uint64_t size, mrec_error *error) {
    return mrec_fail(error, MREC_E_CORRUPT, path, "the file has %llu bytes, less than its index",
                     (unsigned long long)size);
}

mrec_status mrec_index_read(mrec_vfs *vfs, int fd, const char *path, uint64_t size, const mrec_index_form *form,
                            mrec_buffer *raw, mrec_item **out, mrec_error *error) {
    uint64_t bytes;
    if (!mrec_index_bytes(form, &bytes) || bytes > size)
        return too_short(path, size, error);
    size_t n = (size_t)bytes;
    uint64_t offset = form->at_end ? size - bytes : 0;
    MREC_TRY(mrec_buffer_reserve(raw, n, error));
    MREC_TRY(mrec_file_read(vfs, fd, path, raw->data, n, offset, error));
    bool torn = false;
    if (form->checked && !checksum_holds(raw->data, n)) {
        MREC_TRY(mrec_file_read(vfs, fd, path, raw->data, n, offset, error));
        torn = !checksum_holds(raw->data, n);
    }
    /* Behind the chunks its place hangs on the length of the file: in one that was cut, entries would shift. */
    if (torn && form->at_end)
        return mrec_fail(error, MREC_E_CORRUPT, path, "the index at the end of the file fails its checksum");
    size_t nnumbers = (size_t)form->nchunks * 2;
    mrec_item *index = mrec_item_new(sizeof(parsed) + nnumbers * sizeof(uint64_t));
    if (index == NULL)
        return mrec_fail_memory(error);
    parsed *p = (parsed *)(void *)index->data;
    p->torn = torn;
    for (size_t i = 0; i < nnumbers; i++)
        p->numbers[i] = load_number(form, raw->data + 8 * i);
    *out = index;
    return MREC_OK;
}

mrec_entry mrec_index_entry(const mrec_item *index, uint64_t chunk) {
    const parsed *p = (const parsed *)(const void *)index->data;
    return (mrec_entry){p->numbers[2 * chunk], p->numbers[2 * chunk + 1], p->torn != 0};
}

mrec_status mrec_index_peek(mrec_vfs *vfs, int fd, const char *path, uint64_t size, const mrec_index_form *form,
                            uint64_t chunk, mrec_entry *entry, mrec_error *error) {
    uint8_t raw[16];
    uint64_t bytes;
    if (!mrec_index_bytes(form, &bytes) || bytes > size)
        return too_short(path, size, error);
    uint64_t offset = (form->at_end ? size - bytes : 0) + 16 * chunk;
    MREC_TRY(mrec_file_read(vfs, fd, path, raw, sizeof raw, offset, error));
    *entry = (mrec_entry){load_number(form, raw), load_number(form, raw + 8), false};
    return MREC_OK;
}

bool mrec_entry_valid(const mrec_entry *entry, const mrec_index_form *form, uint64_t size) {
    uint64_t end, index;
    if (!mrec_add(entry->offset, entry->nbytes, &end) || end > size || !mrec_index_bytes(form, &index) || index > size)
        return false;
    return form->at_end ? end <= size - index : entry->offset >= index;
}
