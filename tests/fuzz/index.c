/* SPDX-License-Identifier: BSD-3-Clause
 * The index of a shard: any bytes as the file, any number of chunks. */
#include "input.h"

#include "index.h"

static void look(memory_file *file, const mrec_index_form *form, const mrec_item *index, uint64_t chunk) {
    mrec_entry entry = mrec_index_entry(index, chunk);
    uint64_t bytes;
    assert(mrec_index_bytes(form, &bytes));
    if (mrec_entry_valid(&entry, form, file->n)) {
        assert(entry.offset <= file->n && entry.nbytes <= file->n - entry.offset);
        assert(form->at_end ? entry.offset + entry.nbytes <= file->n - bytes : entry.offset >= bytes);
    }
    mrec_entry now;
    mrec_error error;
    assert(mrec_index_peek(&file->vfs, 0, file->path, file->n, form, chunk, &now, &error) == MREC_OK);
    assert(now.offset == entry.offset && now.nbytes == entry.nbytes);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n) {
    input in = {data, n};
    unsigned flags = take(&in);
    mrec_index_form form = {take(&in), flags & 1, flags & 2, flags & 4};
    if (flags & 8) /* what a document may claim */
        form.nchunks = (form.nchunks + 1) << (flags >> 2 & 62);
    uint8_t *bytes = take_rest(&in);
    memory_file file = memory_file_of("shard", bytes, in.n);
    uint64_t size;
    if (flags & 64 && mrec_index_bytes(&form, &size) && size <= in.n)
        mend_checksum(bytes + (form.at_end ? in.n - size : 0), (size_t)size);
    mrec_buffer raw = {0};
    mrec_item *index = NULL;
    mrec_error error;
    mrec_status status = mrec_index_read(&file.vfs, 0, file.path, in.n, &form, &raw, &index, &error);
    assert(status == MREC_OK || status == MREC_E_CORRUPT);
    if (status == MREC_OK)
        for (uint64_t i = 0; i < form.nchunks; i++)
            look(&file, &form, index, i);
    free(index);
    mrec_buffer_free(&raw);
    free(bytes);
    return 0;
}
