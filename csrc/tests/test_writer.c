/* SPDX-License-Identifier: BSD-3-Clause */
#define _GNU_SOURCE
#include "tests.h"

#include "array.h"
#include "writer.h"

#include <unistd.h>

static const uint64_t three = 3;
static const mrec_column columns[] = {{.name = "x", .dtype = MREC_F64},
                                      {.name = "image", .dtype = MREC_I32, .ntrailing = 1, .trailing = &three}};
static const mrec_block atoms = {.name = "atoms", .ncolumns = 2, .columns = columns, .rows = 4};
static const mrec_value energy = {.name = "pe", .dtype = MREC_F64, .width = 1};
static const mrec_schema declared = {.nblocks = 1, .blocks = &atoms, .nvalues = 1, .values = &energy};

/* The rows of x in the last frame, as they will be stored. */
static double staged_x(const mrec_writer *writer, size_t i) {
    double x;
    memcpy(&x, writer->sequence.blocks[0].columns[0].last.data + i * sizeof x, sizeof x);
    return x;
}

/* x from a float in records of 13 bytes, from the last to the first; image as it stands. */
static void append_floats(mrec_writer *writer) {
    char records[4][13];
    int32_t image[4][3] = {{0}};
    for (int i = 0; i < 4; i++)
        memcpy(records[i] + 1, &(float){0.1f * (float)i}, sizeof(float));
    double pe = -1;
    mrec_column_data data[] = {{.data = records[3] + 1, .stride = -13, .f32 = true}, {.data = image}};
    mrec_block_data rows = {.present = true, .rows = 4, .columns = data};
    mrec_value_data value = {.data = &pe, .size = sizeof pe};
    mrec_frame frame = {.step = 10, .blocks = &rows, .values = &value};
    mrec_error error;
    assert(mrec_append(writer, &frame, &error) == MREC_OK);
    for (size_t i = 0; i < 4; i++)
        assert(staged_x(writer, i) == (double)(0.1f * (float)(3 - i)));
    assert(mrec_append(writer, &frame, &error) == MREC_E_VALUE); /* the step again */
    int64_t step;
    assert(mrec_nframes(writer) == 1 && mrec_last_step(writer, &step) && step == 10 && !mrec_has_times(writer));
}

static void check_refused(const mrec_writer *writer, const mrec_schema *wanted, const char *naming) {
    mrec_error error;
    assert(mrec_check_schema(writer, wanted, &error) == MREC_E_SCHEMA && strstr(error.message, naming) != NULL);
}

static void check_schemas(const mrec_writer *writer) {
    mrec_error error;
    assert(mrec_check_schema(writer, &declared, &error) == MREC_OK);
    assert(mrec_check_schema(writer, mrec_writer_schema(writer), NULL) == MREC_OK);
    mrec_schema other = declared;
    other.nvalues = 0;
    check_refused(writer, &other, "1 per-step values, not 1 and 0");
    mrec_block block = atoms;
    other = (mrec_schema){1, &block, 1, &energy};
    block.ncolumns = 1;
    check_refused(writer, &other, "2 columns, not 1");
    mrec_column changed[] = {columns[1], columns[0]};
    block = (mrec_block){.name = "atoms", .ncolumns = 2, .columns = changed};
    check_refused(writer, &other, "column 0 of the writer is 'x', not 'image'");
    changed[0] = columns[0];
    changed[1] = columns[1];
    changed[1].trailing = &(uint64_t){2};
    check_refused(writer, &other, "column 'image'");
    changed[1] = columns[1];
    changed[0].dtype = MREC_I64;
    check_refused(writer, &other, "column 'x'");
    block = atoms;
    block.name = "atom";
    check_refused(writer, &other, "block 0 of the writer is 'atoms', not 'atom'");
    mrec_value value = energy;
    other = (mrec_schema){1, &atoms, 1, &value};
    value.width = 3;
    check_refused(writer, &other, "'pe'");
    value.name = "ke";
    check_refused(writer, &other, "is 'pe', not 'ke'");
}

static void check_not_made(const mrec_schema *schema, const char *naming) {
    mrec_error error;
    mrec_writer *writer;
    assert(mrec_create("never.mrec", schema, NULL, &writer, &error) == MREC_E_SCHEMA && writer == NULL);
    assert(strstr(error.message, naming) != NULL && access("never.mrec", F_OK) != 0);
}

/* A schema with holes, or with what no reader would take, is told apart before anything is made. */
static void check_malformed(const mrec_writer *writer) {
    const uint64_t zero = 0, huge[] = {UINT64_C(1) << 40, UINT64_C(1) << 40};
    check_not_made(NULL, "NULL");
    check_refused(writer, NULL, "NULL");
    mrec_schema other = {.nblocks = 2};
    check_not_made(&other, "2 blocks");
    other = (mrec_schema){.nvalues = 3};
    check_not_made(&other, "3 per-step values");
    mrec_block block = {.name = "atoms", .ncolumns = 2};
    other = (mrec_schema){1, &block, 1, &energy};
    check_not_made(&other, "2 columns of block atoms");
    check_refused(writer, &other, "2 columns of block atoms");
    block = (mrec_block){.name = "atoms", .nstructural = 1};
    check_not_made(&other, "structural_shape of atoms");
    block = (mrec_block){.name = "atoms", .nstructural = 2, .structural = huge};
    check_not_made(&other, "structural_shape has more than 2^63 rows");
    mrec_column column = {.name = "x", .dtype = MREC_F64, .ntrailing = 1};
    block = (mrec_block){.name = "atoms", .ncolumns = 1, .columns = &column};
    check_not_made(&other, "column 'x': 1 trailing axes at NULL");
    column.trailing = &zero;
    check_not_made(&other, "column 'x': a trailing axis of length 0");
    column.ntrailing = SIZE_MAX;
    check_not_made(&other, "at most 6");
    column = (mrec_column){.name = NULL, .dtype = MREC_F64};
    check_not_made(&other, "column name ''");
    column = (mrec_column){.name = "x", .dtype = (mrec_dtype)-1};
    check_not_made(&other, "column 'x': not a column type");
}

static void check_fills(void) {
    const double fill = 0;
    mrec_value value = {.name = "pe", .dtype = MREC_F64, .width = 1, .fill_json = "0.0", .fill_size = sizeof fill};
    const mrec_schema other = {.nvalues = 1, .values = &value};
    check_not_made(&other, "8 bytes as the fill of pe");
    value.fill = &fill;
    value.fill_json = "0.0}";
    check_not_made(&other, "'pe': fill_json is no JSON from byte 3 on");
    value = (mrec_value){
        .name = "note", .dtype = MREC_STRING, .width = 1, .fill_json = "\"?\"", .fill = "\xff", .fill_size = 1};
    check_not_made(&other, "'note': its fill is not valid UTF-8");
    assert(mrec_dtype_size(MREC_C128) == 16 && mrec_dtype_size(MREC_STRING) == 0);
    assert(mrec_dtype_size((mrec_dtype)99) == 0 && mrec_dtype_size((mrec_dtype)-1) == 0);
}

/* Rows of a block without columns cost nothing, so that their sum has to be looked at. */
static void check_rows_without_columns(void) {
    const mrec_block empty = {.name = "e"};
    const mrec_schema schema = {.nblocks = 1, .blocks = &empty};
    mrec_block_data rows = {.present = true, .rows = UINT64_C(1) << 62};
    mrec_error error;
    mrec_writer *writer;
    assert(mrec_create("empty.mrec", &schema, NULL, &writer, &error) == MREC_OK);
    assert(mrec_append(writer, &(mrec_frame){.step = 0, .blocks = &rows}, &error) == MREC_OK);
    rows.rows--;
    assert(mrec_append(writer, &(mrec_frame){.step = 1, .blocks = &rows}, &error) == MREC_OK);
    rows.rows = 2;
    assert(mrec_append(writer, &(mrec_frame){.step = 2, .blocks = &rows}, &error) == MREC_E_VALUE);
    assert(strcmp(error.message, "frame 2: block 'e' comes to more than 2^63 rows") == 0);
    mrec_free(writer);
}

/* A relative path keeps its meaning when the program goes elsewhere. */
void test_writer(void) {
    char folder[] = "/tmp/mrec-test-XXXXXX", *here = getcwd(NULL, 0);
    assert(here != NULL && mkdtemp(folder) != NULL && chdir(folder) == 0);
    mrec_options options;
    mrec_error error;
    mrec_writer *writer, *second;
    mrec_options_init(&options);
    options.no_durable = true;
    assert(mrec_create("none/run.mrec", &declared, &options, &writer, &error) == MREC_E_IO && writer == NULL);
    assert(mrec_create("run.mrec", &declared, &options, &writer, &error) == MREC_OK && chdir("/") == 0);
    check_schemas(writer);
    assert(!mrec_closed(writer) && chdir(folder) == 0);
    check_malformed(writer);
    check_fills();
    check_rows_without_columns();
    append_floats(writer);
    assert(mrec_flush(writer, false, &error) == MREC_OK && mrec_npublished(writer) == 1);
    assert(chdir(folder) == 0 && access("run.mrec/trajectory/atoms/x/c/0", F_OK) == 0);
    options.overwrite = true;
    assert(mrec_create("run.mrec", &declared, &options, &second, &error) == MREC_E_LOCKED && second == NULL);
    assert(mrec_close(writer, &error) == MREC_OK && mrec_close(writer, &error) == MREC_OK);
    assert(mrec_flush(writer, true, &error) == MREC_E_CLOSED && mrec_closed(writer));
    mrec_free(writer);
    mrec_free(NULL);
    assert(mrec_tree_remove(mrec_vfs_posix(), folder, &error) == MREC_OK && chdir(here) == 0);
    free(here);
}
