/* SPDX-License-Identifier: BSD-3-Clause */
#include "probe.h"

#include <string.h>

int probe_append(mrec_writer *writer, int64_t step, const void *rows, uint64_t n) {
    mrec_column_data column;
    mrec_block_data block;
    mrec_frame frame;
    mrec_error error;
    mrec_status status;
    memset(&column, 0, sizeof column);
    memset(&frame, 0, sizeof frame);
    column.data = rows;
    block.present = true;
    block.rows = n;
    block.columns = &column;
    frame.step = step;
    frame.blocks = &block;
    Py_BEGIN_ALLOW_THREADS;
    status = mrec_append(writer, &frame, &error);
    Py_END_ALLOW_THREADS;
    return mrec_check(status, &error);
}
