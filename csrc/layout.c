/* SPDX-License-Identifier: BSD-3-Clause */
#define _GNU_SOURCE
#include "layout.h"

#include "json.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

#define CHUNK_BYTES ((uint64_t)16 * 1024)
#define MIN_CHUNK_BYTES ((uint64_t)1024)
#define MAX_CHUNK_BYTES ((uint64_t)64 * 1024 * 1024)
#define MOST_OF_FRAMES ((uint64_t)1024 * 1024 * 1024) /* of a chunk of several frames: it is held in memory */
#define SHARD_BYTES ((uint64_t)256 * 1024 * 1024)
#define MAX_CHUNKS 4096
#define MOST_CHUNKS ((uint64_t)1 << 24) /* that are asked for: 16 bytes each in memory, and in every file */
#define STRING_BYTES 16                 /* what a string counts as */
#define DENSE_ROWS 1024
#define DENSE_CHUNKS 256

static const struct {
    const char *name, *zarr, *fill;
    uint8_t size, part; /* part: the unit whose byte order counts */
} types[] = {
    [MREC_BOOL] = {"bool", "bool", "false", 1, 1},
    [MREC_I8] = {"i8", "int8", "0", 1, 1},
    [MREC_I16] = {"i16", "int16", "0", 2, 2},
    [MREC_I32] = {"i32", "int32", "0", 4, 4},
    [MREC_I64] = {"i64", "int64", "0", 8, 8},
    [MREC_U8] = {"u8", "uint8", "0", 1, 1},
    [MREC_U16] = {"u16", "uint16", "0", 2, 2},
    [MREC_U32] = {"u32", "uint32", "0", 4, 4},
    [MREC_U64] = {"u64", "uint64", "0", 8, 8},
    [MREC_F64] = {"f64", "float64", "0.0", 8, 8},
    [MREC_C64] = {"c64", "complex64", "[0.0,0.0]", 8, 4},
    [MREC_C128] = {"c128", "complex128", "[0.0,0.0]", 16, 8},
    [MREC_STRING] = {"string", "string", "\"\"", 0, 1},
    [MREC_F32] = {"f32", "float32", "0.0", 4, 4},
    [MREC_F16] = {"f16", "float16", "0.0", 2, 2},
};

size_t mrec_dtype_size(mrec_dtype dtype) {
    return (size_t)dtype < sizeof types / sizeof *types ? types[dtype].size : 0;
}

const char *mrec_dtype_zarr(mrec_dtype dtype) {
    return types[dtype].zarr;
}

const char *mrec_dtype_name(mrec_dtype dtype) {
    return types[dtype].name;
}

static bool is_float(mrec_dtype dtype) {
    return dtype == MREC_F64 || dtype == MREC_C64 || dtype == MREC_C128;
}

static void add_codec(mrec_pipeline *pipeline, mrec_codec codec) {
    pipeline->codecs[pipeline->n++] = codec;
}

/* The compressor of a float column: what the options say, or zstd 3 for a precision column and none for another. */
static mrec_codec float_compressor(bool precise, const mrec_options *options) {
    switch (options->compression) {
    case MREC_COMPRESS_GZIP:
        return (mrec_codec){.kind = MREC_CODEC_GZIP, .level = options->level};
    case MREC_COMPRESS_ZSTD:
    case MREC_COMPRESS_SHUFFLE_ZSTD:
        return (mrec_codec){.kind = MREC_CODEC_ZSTD, .level = options->level};
    default:
        return precise ? (mrec_codec){.kind = MREC_CODEC_ZSTD, .level = 3} : (mrec_codec){.kind = MREC_CODEC_BYTES};
    }
}

static void make_pipeline(mrec_layout *layout, bool precise, const mrec_options *options) {
    mrec_pipeline *pipeline = &layout->pipeline;
    pipeline->n = 0;
    uint32_t part = types[layout->dtype].part;
    if (layout->dtype == MREC_STRING)
        add_codec(pipeline, (mrec_codec){.kind = MREC_CODEC_VLEN_UTF8});
    else
        add_codec(pipeline, (mrec_codec){.kind = MREC_CODEC_BYTES, .elementsize = part});
    if (options && is_float(layout->dtype)) {
        mrec_codec compressor = float_compressor(precise, options);
        if (precise || options->compression == MREC_COMPRESS_SHUFFLE_ZSTD)
            add_codec(pipeline, (mrec_codec){.kind = MREC_CODEC_SHUFFLE, .elementsize = part});
        if (compressor.kind != MREC_CODEC_BYTES)
            add_codec(pipeline, compressor);
    } else {
        add_codec(pipeline, (mrec_codec){.kind = MREC_CODEC_GZIP, .level = 1});
    }
    add_codec(pipeline, (mrec_codec){.kind = MREC_CODEC_CRC32C});
}

/* ---- extents ---- */

static mrec_status too_large(const char *name, mrec_error *error) {
    return mrec_fail(error, MREC_E_SCHEMA, NULL, "'%s': a row, or a chunk of rows, is beyond 2^63 bytes", name);
}

/* What a row of the column counts in the extents rule. */
static mrec_status row_weight(const mrec_column *column, uint64_t *bytes, mrec_error *error) {
    *bytes = column->dtype == MREC_STRING ? STRING_BYTES : types[column->dtype].size;
    for (size_t i = 0; i < column->ntrailing; i++)
        if (!mrec_mul(*bytes, column->trailing[i], bytes) || *bytes > INT64_MAX)
            return too_large(column->name, error);
    return MREC_OK;
}

static mrec_status check_chunk(const mrec_options *options, mrec_error *error) {
    uint64_t bytes = options->chunk_bytes;
    if (bytes != 0 && options->frames_per_chunk != 0)
        return mrec_fail(error, MREC_E_VALUE, NULL, "chunk_bytes and frames_per_chunk exclude each other");
    if (bytes != 0 && (bytes < MIN_CHUNK_BYTES || bytes > MAX_CHUNK_BYTES))
        return mrec_fail(error, MREC_E_VALUE, NULL, "a chunk of %llu bytes is not within 1 KiB to 64 MiB",
                         (unsigned long long)bytes);
    if (options->chunks_per_shard > MOST_CHUNKS)
        return mrec_fail(error, MREC_E_VALUE, NULL, "chunks_per_shard is %llu; at most %llu are possible",
                         (unsigned long long)options->chunks_per_shard, (unsigned long long)MOST_CHUNKS);
    return MREC_OK;
}

static mrec_status check_meta(const char *meta_json, mrec_error *error) {
    const size_t fault = meta_json && *meta_json ? mrec_json_fault(meta_json) : SIZE_MAX;
    if (fault == SIZE_MAX)
        return MREC_OK;
    return mrec_fail(error, MREC_E_VALUE, NULL, "meta_json is no JSON from byte %zu on: %.40s", fault,
                     meta_json + fault);
}

static mrec_status check_compression(const mrec_options *options, mrec_error *error) {
    int low = 0, high = 0;
    switch (options->compression) {
    case MREC_COMPRESS_DEFAULT:
    case MREC_COMPRESS_NONE:
        return MREC_OK;
    case MREC_COMPRESS_GZIP:
        high = 9;
        break;
    case MREC_COMPRESS_ZSTD:
    case MREC_COMPRESS_SHUFFLE_ZSTD:
        low = -131072;
        high = 22;
        break;
    default:
        return mrec_fail(error, MREC_E_VALUE, NULL, "there is no compression %d", (int)options->compression);
    }
    if (options->level < low || options->level > high)
        return mrec_fail(error, MREC_E_VALUE, NULL, "the compression level %d is not within %d to %d", options->level,
                         low, high);
    return MREC_OK;
}

mrec_status mrec_layout_check_options(const mrec_options *options, mrec_error *error) {
    MREC_TRY(check_chunk(options, error));
    MREC_TRY(check_compression(options, error));
    if (options->threads > 256)
        return mrec_fail(error, MREC_E_VALUE, NULL, "%u threads are too many; use at most 256", options->threads);
    if (isnan(options->flush_seconds) || isnan(options->durable_seconds))
        return mrec_fail(error, MREC_E_VALUE, NULL, "flush_seconds and durable_seconds are numbers, not NaN");
    return check_meta(options->meta_json, error);
}

mrec_status mrec_layout_rows(const mrec_block *block, const mrec_options *options, uint64_t *rows, mrec_error *error) {
    uint64_t narrowest = UINT64_MAX;
    for (size_t i = 0; i < block->ncolumns; i++) {
        uint64_t bytes;
        MREC_TRY(row_weight(&block->columns[i], &bytes, error));
        if (bytes < narrowest)
            narrowest = bytes;
    }
    if (narrowest == UINT64_MAX)
        narrowest = 1;
    uint64_t bytes = options->chunk_bytes ? options->chunk_bytes : CHUNK_BYTES;
    uint64_t target = bytes / narrowest + (bytes % narrowest != 0);
    if (block->rows == 0) {
        *rows = bytes / narrowest > 0 ? bytes / narrowest : 1;
        return MREC_OK;
    }
    uint64_t frames = options->frames_per_chunk;
    if (frames == 0)
        frames = block->rows >= target ? 1 : target / block->rows + (target % block->rows != 0);
    return mrec_mul(block->rows, frames, rows) && *rows <= INT64_MAX ? MREC_OK : too_large(block->name, error);
}

static uint64_t chunks_per_shard(uint64_t chunk_bytes, const mrec_options *options) {
    if (options->chunks_per_shard)
        return options->chunks_per_shard;
    uint64_t chunks = SHARD_BYTES / chunk_bytes;
    return chunks < 1 ? 1 : chunks > MAX_CHUNKS ? MAX_CHUNKS : chunks;
}

mrec_status mrec_layout_column(const mrec_column *column, uint64_t rows_per_chunk, const mrec_options *options,
                               mrec_layout *layout, mrec_error *error) {
    memset(layout, 0, sizeof *layout);
    uint64_t row, chunk;
    MREC_TRY(row_weight(column, &row, error));
    if (!mrec_mul(row, rows_per_chunk, &chunk) || chunk > INT64_MAX)
        return too_large(column->name, error);
    if (options->frames_per_chunk > 1 && chunk > MOST_OF_FRAMES)
        return mrec_fail(error, MREC_E_VALUE, NULL,
                         "frames_per_chunk %u makes chunks of %llu bytes of column '%s'; at most 1 GiB is possible",
                         (unsigned)options->frames_per_chunk, (unsigned long long)chunk, column->name);
    layout->dtype = column->dtype;
    layout->ntrailing = column->ntrailing;
    memcpy(layout->trailing, column->trailing, column->ntrailing * sizeof *column->trailing);
    layout->rows_per_chunk = rows_per_chunk;
    layout->chunks_per_shard = chunks_per_shard(chunk, options);
    make_pipeline(layout, column->precision != 0, options);
    return MREC_OK;
}

void mrec_layout_mask(uint64_t rows_per_chunk, const mrec_options *options, mrec_layout *layout) {
    mrec_layout_dense(MREC_BOOL, 0, NULL, layout);
    layout->rows_per_chunk = rows_per_chunk;
    layout->chunks_per_shard = chunks_per_shard(rows_per_chunk, options);
}

void mrec_layout_dense(mrec_dtype dtype, size_t ntrailing, const uint64_t *trailing, mrec_layout *layout) {
    memset(layout, 0, sizeof *layout);
    layout->dtype = dtype;
    layout->ntrailing = ntrailing;
    for (size_t i = 0; i < ntrailing; i++)
        layout->trailing[i] = trailing[i];
    layout->rows_per_chunk = DENSE_ROWS;
    layout->chunks_per_shard = DENSE_CHUNKS;
    make_pipeline(layout, false, NULL);
}

mrec_status mrec_layout_check(const mrec_layout *layout, const char *key, size_t *row_items, mrec_error *error) {
    const bool string = layout->dtype == MREC_STRING;
    uint64_t items = 1, chunk = 0, bytes = 0, shard = 0;
    bool fits = layout->ntrailing <= 6 && layout->rows_per_chunk > 0 && layout->chunks_per_shard > 0;
    for (size_t i = 0; fits && i < layout->ntrailing; i++)
        fits = layout->trailing[i] > 0 && mrec_mul(items, layout->trailing[i], &items);
    fits = fits && mrec_mul(items, layout->rows_per_chunk, &chunk) && (!string || chunk <= UINT32_MAX) &&
           mrec_mul(chunk, string ? 4 : types[layout->dtype].size, &bytes) && bytes <= SIZE_MAX / 4 &&
           mrec_mul(layout->rows_per_chunk, layout->chunks_per_shard, &shard) && shard <= INT64_MAX;
    if (!fits)
        return mrec_fail(error, MREC_E_SCHEMA, key, "the chunks of this array are too large, or of no size");
    *row_items = (size_t)items;
    return MREC_OK;
}

/* ---- zarr.json ---- */

static mrec_status print_codec(mrec_buffer *out, const mrec_codec *codec, mrec_error *error) {
    switch (codec->kind) {
    case MREC_CODEC_BYTES:
        return mrec_buffer_print(out, error, "{\"name\":\"bytes\",\"configuration\":{\"endian\":\"little\"}}");
    case MREC_CODEC_VLEN_UTF8:
        return mrec_buffer_print(out, error, "{\"name\":\"vlen-utf8\"}");
    case MREC_CODEC_SHUFFLE:
        return mrec_buffer_print(out, error,
                                 "{\"name\":\"numcodecs.shuffle\",\"configuration\":{\"elementsize\":%" PRIu32 "}}",
                                 codec->elementsize);
    case MREC_CODEC_GZIP:
        return mrec_buffer_print(out, error, "{\"name\":\"gzip\",\"configuration\":{\"level\":%d}}", codec->level);
    case MREC_CODEC_ZSTD:
        return mrec_buffer_print(out, error, "{\"name\":\"zstd\",\"configuration\":{\"level\":%d,\"checksum\":%s}}",
                                 codec->level, codec->checksum ? "true" : "false");
    case MREC_CODEC_CRC32C:
        return mrec_buffer_print(out, error, "{\"name\":\"crc32c\"}");
    }
    return mrec_fail(error, MREC_E_CODEC, NULL, "codec %d has no name", (int)codec->kind);
}

static mrec_status print_trailing(mrec_buffer *out, const mrec_layout *layout, mrec_error *error) {
    for (size_t i = 0; i < layout->ntrailing; i++)
        MREC_TRY(mrec_buffer_print(out, error, ",%" PRIu64, layout->trailing[i]));
    return mrec_buffer_print(out, error, "]");
}

static mrec_status print_suffix(mrec_buffer *out, const mrec_layout *layout, const char *attributes,
                                mrec_error *error) {
    MREC_TRY(print_trailing(out, layout, error));
    MREC_TRY(mrec_buffer_print(out, error,
                               ",\"data_type\":\"%s\",\"chunk_grid\":{\"name\":\"regular\",\"configuration\":"
                               "{\"chunk_shape\":[%" PRIu64,
                               types[layout->dtype].zarr, layout->rows_per_chunk * layout->chunks_per_shard));
    MREC_TRY(print_trailing(out, layout, error));
    MREC_TRY(
        mrec_buffer_print(out, error,
                          "}},\"chunk_key_encoding\":{\"name\":\"default\",\"configuration\":{\"separator\":\"/\"}},"
                          "\"fill_value\":%s,\"codecs\":[{\"name\":\"sharding_indexed\",\"configuration\":"
                          "{\"chunk_shape\":[%" PRIu64,
                          types[layout->dtype].fill, layout->rows_per_chunk));
    MREC_TRY(print_trailing(out, layout, error));
    MREC_TRY(mrec_buffer_print(out, error, ",\"codecs\":["));
    for (uint32_t i = 0; i < layout->pipeline.n; i++) {
        MREC_TRY(mrec_buffer_print(out, error, i ? "," : ""));
        MREC_TRY(print_codec(out, &layout->pipeline.codecs[i], error));
    }
    MREC_TRY(mrec_buffer_print(out, error,
                               "],\"index_codecs\":[{\"name\":\"bytes\",\"configuration\":{\"endian\":\"little\"}},"
                               "{\"name\":\"crc32c\"}],\"index_location\":\"start\"}}]"));
    if (attributes)
        MREC_TRY(mrec_buffer_print(out, error, ",\"attributes\":%s", attributes));
    return mrec_buffer_print(out, error, "}");
}

mrec_status mrec_layout_document(const mrec_layout *layout, const char *attributes, char **prefix, char **suffix,
                                 mrec_error *error) {
    mrec_buffer text = {0};
    *suffix = NULL;
    *prefix = strdup("{\"zarr_format\":3,\"node_type\":\"array\",\"shape\":[");
    if (!*prefix)
        return mrec_fail_memory(error);
    mrec_status status = print_suffix(&text, layout, attributes, error);
    if (status != MREC_OK) {
        mrec_buffer_free(&text);
        return status;
    }
    *suffix = (char *)text.data;
    return MREC_OK;
}
