/* SPDX-License-Identifier: BSD-3-Clause */
#include "schema.h"

#include "document.h"
#include "json.h"
#include "layout.h"
#include "quantize.h"
#include "vlen.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/* ---- rules ---- */

static bool is_one_of(const char *name, const char *const *names) {
    for (; *names; names++)
        if (strcmp(name, *names) == 0)
            return true;
    return false;
}

static bool is_node_name(const char *name) {
    static const char *const taken[] = {".", "..", "zarr.json", NULL};
    return name && name[0] && !strchr(name, '/') && !is_one_of(name, taken) && strncmp(name, "__", 2) != 0 &&
           mrec_utf8_valid(name, strlen(name));
}

/* A file that this writer puts beside the nodes of a group: the durable file, or one not yet renamed. */
static bool is_own_file(const char *name) {
    size_t n = strlen(name);
    return strcmp(name, ".durable") == 0 || (n > 4 && name[0] == '.' && strcmp(name + n - 4, ".tmp") == 0);
}

static mrec_status check_name(const char *what, const char *name, const char *const *reserved, mrec_error *error) {
    if (!is_node_name(name))
        return mrec_fail(error, MREC_E_SCHEMA, NULL,
                         "%s name '%s' is no node name: it must be UTF-8, not empty, without '/', not '.', '..' or "
                         "'zarr.json', and not begin with '__'",
                         what, name ? name : "");
    if (is_one_of(name, reserved) || is_own_file(name))
        return mrec_fail(error, MREC_E_SCHEMA, NULL, "%s name '%s' is reserved; choose another", what, name);
    return MREC_OK;
}

static mrec_status check_column(const mrec_block *block, size_t i, mrec_error *error) {
    static const char *const reserved[] = {"offset", "step_index", "_validity", NULL};
    const mrec_column *column = &block->columns[i];
    double grid;
    MREC_TRY(check_name("column", column->name, reserved, error));
    for (size_t k = 0; k < i; k++)
        if (strcmp(block->columns[k].name, column->name) == 0)
            return mrec_fail(error, MREC_E_SCHEMA, NULL, "block '%s' declares column '%s' twice", block->name,
                             column->name);
    if ((unsigned)column->dtype > MREC_STRING)
        return mrec_fail(error, MREC_E_SCHEMA, NULL, "block '%s', column '%s': not a column type; use f64", block->name,
                         column->name);
    if (column->precision != 0 && (column->dtype != MREC_F64 || !mrec_grid(column->precision, &grid)))
        return mrec_fail(error, MREC_E_SCHEMA, NULL,
                         "block '%s', column '%s': a precision is for f64 columns and lies between 2^-1000 and 2^1000",
                         block->name, column->name);
    if (column->ntrailing > 6 || (column->ntrailing && !column->trailing))
        return mrec_fail(error, MREC_E_SCHEMA, NULL,
                         "block '%s', column '%s': %zu trailing axes%s; their lengths are an array of at most 6",
                         block->name, column->name, column->ntrailing, column->trailing ? "" : " at NULL");
    for (size_t k = 0; k < column->ntrailing; k++)
        if (column->trailing[k] == 0)
            return mrec_fail(error, MREC_E_SCHEMA, NULL, "block '%s', column '%s': a trailing axis of length 0",
                             block->name, column->name);
    return MREC_OK;
}

/* Something is declared, and nothing is there. */
static mrec_status check_there(const void *array, size_t n, const char *what, const char *of, mrec_error *error) {
    if (n == 0 || array)
        return MREC_OK;
    return mrec_fail(error, MREC_E_SCHEMA, NULL, "%zu %s%s are declared, and their array is NULL", n, what, of);
}

/* The lengths of a structural_shape, whose product is a number of rows. */
static mrec_status check_shape(const mrec_block *block, mrec_error *error) {
    uint64_t rows = 1;
    MREC_TRY(
        check_there(block->structural, block->nstructural, "axes of the structural_shape of ", block->name, error));
    for (size_t k = 0; k < block->nstructural; k++) {
        if (block->structural[k] == 0)
            return mrec_fail(error, MREC_E_SCHEMA, NULL, "block '%s': structural_shape has an axis of length 0",
                             block->name);
        if (!mrec_mul(rows, block->structural[k], &rows) || rows > INT64_MAX)
            return mrec_fail(error, MREC_E_SCHEMA, NULL, "block '%s': structural_shape has more than 2^63 rows",
                             block->name);
    }
    return MREC_OK;
}

static mrec_status check_block(const mrec_schema *schema, size_t i, mrec_error *error) {
    static const char *const reserved[] = {"step", "time", "meta", "box", NULL};
    const mrec_block *block = &schema->blocks[i];
    MREC_TRY(check_name("block", block->name, reserved, error));
    for (size_t k = 0; k < i; k++)
        if (strcmp(schema->blocks[k].name, block->name) == 0)
            return mrec_fail(error, MREC_E_SCHEMA, NULL, "block '%s' is declared twice", block->name);
    MREC_TRY(check_shape(block, error));
    MREC_TRY(check_there(block->columns, block->ncolumns, "columns of block ", block->name, error));
    for (size_t k = 0; k < block->ncolumns; k++)
        MREC_TRY(check_column(block, k, error));
    return MREC_OK;
}

static bool is_tag(const mrec_value *value) {
    const uint32_t w = value->width;
    switch (value->dtype) {
    case MREC_BOOL:
    case MREC_I32:
    case MREC_I64:
    case MREC_U32:
    case MREC_U64:
        return !value->json && (w == 1 || w == 3);
    case MREC_F64:
        return !value->json && (w == 1 || w == 3 || w == 6 || w == 9);
    case MREC_STRING:
        return w == 1;
    default:
        return false;
    }
}

static mrec_status check_fill(const mrec_value *value, mrec_error *error) {
    const size_t size = mrec_dtype_size(value->dtype) * value->width, fault = mrec_json_fault(value->fill_json);
    if (value->dtype != MREC_STRING && value->fill_size != size)
        return mrec_fail(error, MREC_E_SCHEMA, NULL, "per-step value '%s': its fill has %zu bytes instead of %zu",
                         value->name, value->fill_size, size);
    MREC_TRY(check_there(value->fill, value->fill_size, "bytes as the fill of ", value->name, error));
    if (value->dtype == MREC_STRING && !mrec_utf8_valid(value->fill, value->fill_size))
        return mrec_fail(error, MREC_E_SCHEMA, NULL, "per-step value '%s': its fill is not valid UTF-8", value->name);
    if (fault != SIZE_MAX)
        return mrec_fail(error, MREC_E_SCHEMA, NULL, "per-step value '%s': fill_json is no JSON from byte %zu on",
                         value->name, fault);
    return MREC_OK;
}

static mrec_status check_value(const mrec_schema *schema, size_t i, mrec_error *error) {
    static const char *const reserved[] = {NULL};
    const mrec_value *value = &schema->values[i];
    MREC_TRY(check_name("per-step value", value->name, reserved, error));
    for (size_t k = 0; k < i; k++)
        if (strcmp(schema->values[k].name, value->name) == 0)
            return mrec_fail(error, MREC_E_SCHEMA, NULL, "per-step value '%s' is declared twice", value->name);
    if (!is_tag(value))
        return mrec_fail(error, MREC_E_SCHEMA, NULL, "per-step value '%s' has a type that no tag names", value->name);
    return value->fill_json ? check_fill(value, error) : MREC_OK;
}

/* All that a schema has to be before it is used. */
static mrec_status check_schema(const mrec_schema *schema, mrec_error *error) {
    if (!schema)
        return mrec_fail(error, MREC_E_SCHEMA, NULL, "the schema is NULL; one that declares nothing is all zero");
    MREC_TRY(check_there(schema->blocks, schema->nblocks, "blocks", "", error));
    MREC_TRY(check_there(schema->values, schema->nvalues, "per-step values", "", error));
    for (size_t i = 0; i < schema->nblocks; i++)
        MREC_TRY(check_block(schema, i, error));
    for (size_t i = 0; i < schema->nvalues; i++)
        MREC_TRY(check_value(schema, i, error));
    return MREC_OK;
}

/* ---- copy ---- */

/* n bytes and a NUL, owned by the copy; `bytes` may be NULL when n is 0. */
static void *keep(mrec_schema_copy *copy, const void *bytes, size_t n) {
    void **owned = realloc(copy->owned, (copy->nowned + 1) * sizeof *owned);
    if (!owned)
        return NULL;
    copy->owned = owned;
    uint8_t *kept = malloc(n + 1);
    if (!kept)
        return NULL;
    if (n)
        memcpy(kept, bytes, n);
    kept[n] = 0;
    copy->owned[copy->nowned++] = kept;
    return kept;
}

static bool keep_text(mrec_schema_copy *copy, const char **text) {
    *text = keep(copy, *text, strlen(*text));
    return *text != NULL;
}

static bool keep_block(mrec_schema_copy *copy, mrec_block *block) {
    mrec_column *columns = keep(copy, block->columns, block->ncolumns * sizeof *columns);
    block->structural = keep(copy, block->structural, block->nstructural * sizeof *block->structural);
    block->columns = columns;
    if (!columns || !block->structural || !keep_text(copy, &block->name))
        return false;
    for (size_t i = 0; i < block->ncolumns; i++) {
        columns[i].trailing = keep(copy, columns[i].trailing, columns[i].ntrailing * sizeof *columns[i].trailing);
        if (!columns[i].trailing || !keep_text(copy, &columns[i].name))
            return false;
    }
    return true;
}

static bool keep_value(mrec_schema_copy *copy, mrec_value *value) {
    if (!value->fill_json) {
        value->fill = NULL;
        value->fill_size = 0;
        return keep_text(copy, &value->name);
    }
    if (!keep_text(copy, &value->name))
        return false;
    value->fill = keep(copy, value->fill, value->fill_size);
    return value->fill && keep_text(copy, &value->fill_json);
}

static bool keep_schema(mrec_schema_copy *copy, const mrec_schema *schema) {
    mrec_block *blocks = keep(copy, schema->blocks, schema->nblocks * sizeof *blocks);
    mrec_value *values = keep(copy, schema->values, schema->nvalues * sizeof *values);
    if (!blocks || !values)
        return false;
    for (size_t i = 0; i < schema->nblocks; i++)
        if (!keep_block(copy, &blocks[i]))
            return false;
    for (size_t i = 0; i < schema->nvalues; i++)
        if (!keep_value(copy, &values[i]))
            return false;
    copy->schema = (mrec_schema){schema->nblocks, blocks, schema->nvalues, values};
    return true;
}

mrec_status mrec_schema_copy_init(mrec_schema_copy *copy, const mrec_schema *schema, mrec_error *error) {
    memset(copy, 0, sizeof *copy);
    MREC_TRY(check_schema(schema, error));
    return keep_schema(copy, schema) ? MREC_OK : mrec_fail_memory(error);
}

void mrec_schema_copy_free(mrec_schema_copy *copy) {
    for (size_t i = 0; i < copy->nowned; i++)
        free(copy->owned[i]);
    free(copy->owned);
    memset(copy, 0, sizeof *copy);
}

/* ---- comparing ---- */

static mrec_status differ(mrec_error *error, const char *what, size_t i, const char *declared, const char *wanted) {
    return mrec_fail(error, MREC_E_SCHEMA, NULL, "%s %zu of the writer is '%s', not '%s' as the frames have it", what,
                     i, declared, wanted);
}

static mrec_status match_columns(const mrec_block *declared, const mrec_block *wanted, mrec_error *error) {
    if (declared->ncolumns != wanted->ncolumns)
        return mrec_fail(error, MREC_E_SCHEMA, NULL, "block '%s' of the writer has %zu columns, not %zu", wanted->name,
                         declared->ncolumns, wanted->ncolumns);
    for (size_t i = 0; i < wanted->ncolumns; i++) {
        const mrec_column *a = &declared->columns[i], *b = &wanted->columns[i];
        if (strcmp(a->name, b->name) != 0)
            return differ(error, "column", i, a->name, b->name);
        if (a->dtype != b->dtype || a->ntrailing != b->ntrailing ||
            (a->ntrailing && memcmp(a->trailing, b->trailing, a->ntrailing * sizeof *a->trailing) != 0))
            return mrec_fail(error, MREC_E_SCHEMA, NULL,
                             "block '%s', column '%s': the writer has another type or other axes", wanted->name,
                             b->name);
    }
    return MREC_OK;
}

mrec_status mrec_schema_match(const mrec_schema *declared, const mrec_schema *wanted, mrec_error *error) {
    MREC_TRY(check_schema(wanted, error));
    if (declared->nblocks != wanted->nblocks || declared->nvalues != wanted->nvalues)
        return mrec_fail(error, MREC_E_SCHEMA, NULL,
                         "the writer has %zu blocks and %zu per-step values, not %zu and %zu", declared->nblocks,
                         declared->nvalues, wanted->nblocks, wanted->nvalues);
    for (size_t i = 0; i < wanted->nblocks; i++) {
        if (strcmp(declared->blocks[i].name, wanted->blocks[i].name) != 0)
            return differ(error, "block", i, declared->blocks[i].name, wanted->blocks[i].name);
        MREC_TRY(match_columns(&declared->blocks[i], &wanted->blocks[i], error));
    }
    for (size_t i = 0; i < wanted->nvalues; i++) {
        const mrec_value *a = &declared->values[i], *b = &wanted->values[i];
        if (strcmp(a->name, b->name) != 0)
            return differ(error, "per-step value", i, a->name, b->name);
        if (a->dtype != b->dtype || a->width != b->width || a->json != b->json)
            return mrec_fail(error, MREC_E_SCHEMA, NULL, "per-step value '%s': the writer has another type", b->name);
    }
    return MREC_OK;
}

/* ---- JSON ---- */

static mrec_status print_key(mrec_buffer *out, bool first, const char *name, mrec_error *error) {
    if (!first)
        MREC_TRY(mrec_buffer_print(out, error, ","));
    MREC_TRY(mrec_buffer_json(out, name, strlen(name), error));
    return mrec_buffer_print(out, error, ":");
}

static mrec_status print_column(mrec_buffer *out, const mrec_column *column, mrec_error *error) {
    MREC_TRY(mrec_buffer_print(out, error, "{\"dtype\":\"%s\",\"trailing\":", mrec_dtype_name(column->dtype)));
    MREC_TRY(mrec_json_axes(out, column->trailing, column->ntrailing, error));
    if (column->precision != 0) {
        MREC_TRY(mrec_buffer_print(out, error, ",\"precision\":"));
        MREC_TRY(mrec_json_f64(out, column->precision, error));
    }
    return mrec_buffer_print(out, error, column->nullable ? ",\"nullable\":true}" : "}");
}

static mrec_status print_block(mrec_buffer *out, const mrec_block *block, mrec_error *error) {
    MREC_TRY(mrec_buffer_print(out, error, "{\"columns\":{"));
    for (size_t i = 0; i < block->ncolumns; i++) {
        MREC_TRY(print_key(out, i == 0, block->columns[i].name, error));
        MREC_TRY(print_column(out, &block->columns[i], error));
    }
    MREC_TRY(mrec_buffer_print(out, error, "}"));
    if (block->nstructural) {
        MREC_TRY(mrec_buffer_print(out, error, ",\"structural_shape\":"));
        MREC_TRY(mrec_json_axes(out, block->structural, block->nstructural, error));
    }
    return mrec_buffer_print(out, error, "}");
}

mrec_status mrec_value_tag(const mrec_value *value, mrec_buffer *out, mrec_error *error) {
    if (value->json)
        return mrec_buffer_print(out, error, "json");
    MREC_TRY(mrec_buffer_print(out, error, "%s", mrec_dtype_name(value->dtype)));
    if (value->width == 1)
        return MREC_OK;
    return mrec_buffer_print(out, error, value->dtype == MREC_BOOL ? "%" PRIu32 : "x%" PRIu32, value->width);
}

static mrec_status print_value(mrec_buffer *out, const mrec_value *value, mrec_error *error) {
    MREC_TRY(mrec_buffer_print(out, error, "{\"dtype\":\""));
    MREC_TRY(mrec_value_tag(value, out, error));
    return value->fill_json ? mrec_buffer_print(out, error, "\",\"fill\":%s}", value->fill_json)
                            : mrec_buffer_print(out, error, "\"}");
}

mrec_status mrec_schema_json(const mrec_schema *schema, mrec_buffer *out, mrec_error *error) {
    MREC_TRY(mrec_buffer_print(out, error, "{\"blocks\":{"));
    for (size_t i = 0; i < schema->nblocks; i++) {
        MREC_TRY(print_key(out, i == 0, schema->blocks[i].name, error));
        MREC_TRY(print_block(out, &schema->blocks[i], error));
    }
    MREC_TRY(mrec_buffer_print(out, error, "},\"meta\":{"));
    for (size_t i = 0; i < schema->nvalues; i++) {
        MREC_TRY(print_key(out, i == 0, schema->values[i].name, error));
        MREC_TRY(print_value(out, &schema->values[i], error));
    }
    return mrec_buffer_print(out, error, "}}");
}
