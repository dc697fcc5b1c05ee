/* SPDX-License-Identifier: BSD-3-Clause
 * Pipelines: there and back in every order, streams of other encoders, and damage of every kind refused. */
#include "tests.h"

#include "codec.h"

#include <libdeflate.h>
#include <zstd.h>

#define LENGTH(a) (sizeof(a) / sizeof((a)[0]))

static const mrec_codec LITTLE = {.kind = MREC_CODEC_BYTES, .elementsize = 8};
static const mrec_codec BIG = {.kind = MREC_CODEC_BYTES, .elementsize = 8, .big = true};
static const mrec_codec VLEN = {.kind = MREC_CODEC_VLEN_UTF8};
static const mrec_codec SHUFFLE = {.kind = MREC_CODEC_SHUFFLE, .elementsize = 8};
static const mrec_codec GZIP = {.kind = MREC_CODEC_GZIP, .level = 1};
static const mrec_codec ZSTD = {.kind = MREC_CODEC_ZSTD, .level = 3};
static const mrec_codec CRC = {.kind = MREC_CODEC_CRC32C};

static mrec_pipeline line(size_t n, const mrec_codec *codecs) {
    mrec_pipeline pipeline = {.n = (uint32_t)n};
    memcpy(pipeline.codecs, codecs, n * sizeof *codecs);
    return pipeline;
}
#define LINE(...) line(LENGTH(((mrec_codec[]){__VA_ARGS__})), (mrec_codec[]){__VA_ARGS__})

/* Doubles whose upper bytes hardly change, as coordinates have them. */
static uint8_t *coordinates(size_t n) {
    uint8_t *bytes = random_bytes(n, n);
    for (size_t i = 0; i < n; i++)
        if (i % 8 >= 5 || i % 8 < 2)
            bytes[i] = (uint8_t)(i % 8);
    return bytes;
}

static void check_there_and_back(mrec_coder *coder, const mrec_pipeline *pipeline, size_t n) {
    uint8_t *bytes = coordinates(n), *back = random_bytes(n, 0);
    mrec_buffer coded = {0}, any = {0};
    mrec_error error;
    size_t bound;
    assert(mrec_buffer_add(&coded, "before", 6, &error) == MREC_OK);
    assert(mrec_encode(coder, pipeline, bytes, n, &coded, &error) == MREC_OK);
    assert(mrec_encode_bound(pipeline, n, &bound, &error) == MREC_OK && coded.size - 6 <= bound);
    assert(memcmp(coded.data, "before", 6) == 0);
    assert(mrec_decode(coder, pipeline, coded.data + 6, coded.size - 6, back, n, &error) == MREC_OK);
    assert(memcmp(bytes, back, n) == 0);
    assert(mrec_decode_any(coder, pipeline, coded.data + 6, coded.size - 6, n, &any, &error) == MREC_OK);
    assert(any.size == n && (n == 0 || memcmp(bytes, any.data, n) == 0));
    assert(mrec_decode_any(coder, pipeline, coded.data + 6, coded.size - 6, 1 << 30, &any, &error) == MREC_OK);
    assert(any.size == n);
    assert(mrec_decode(coder, pipeline, coded.data + 6, coded.size - 6, back, n + 8, &error) == MREC_E_CORRUPT);
    if (n > 0) {
        assert(mrec_decode(coder, pipeline, coded.data + 6, coded.size - 6, back, n - 8, &error) == MREC_E_CORRUPT);
        assert(mrec_decode_any(coder, pipeline, coded.data + 6, coded.size - 6, n - 8, &any, &error) == MREC_E_CORRUPT);
    }
    mrec_buffer_free(&coded);
    mrec_buffer_free(&any);
    free(bytes);
    free(back);
}

/* Every order of up to four codecs after the first. */
static void test_orders(mrec_coder *coder) {
    const mrec_codec firsts[] = {LITTLE, BIG, VLEN}, others[] = {SHUFFLE, GZIP, ZSTD, CRC};
    for (size_t first = 0; first < LENGTH(firsts); first++)
        for (size_t code = 0; code < 5 * 5 * 5 * 5; code++) {
            mrec_pipeline pipeline = {.n = 1, .codecs = {firsts[first]}};
            bool odd = false; /* what compressors and checksums make is no whole number of elements */
            for (size_t rest = code; rest > 0; rest /= 5)
                if (rest % 5 > 0) {
                    mrec_codec next = others[rest % 5 - 1];
                    if (odd && next.kind == MREC_CODEC_SHUFFLE)
                        next.elementsize = 1;
                    odd = odd || next.kind != MREC_CODEC_SHUFFLE;
                    pipeline.codecs[pipeline.n++] = next;
                }
            check_there_and_back(coder, &pipeline, 1600);
            check_there_and_back(coder, &pipeline, 8);
            check_there_and_back(coder, &pipeline, 0);
        }
}

static void test_layout(mrec_coder *coder) {
    static const uint8_t values[] = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16};
    mrec_buffer out = {0};
    mrec_error error;
    mrec_pipeline big = LINE(BIG);
    assert(mrec_encode(coder, &big, values, 16, &out, &error) == MREC_OK);
    assert(out.size == 16 && memcmp(out.data, "\10\7\6\5\4\3\2\1\20\17\16\15\14\13\12\11", 16) == 0);
    out.size = 0;
    mrec_pipeline checked = LINE(LITTLE, CRC);
    assert(mrec_encode(coder, &checked, "123456789", 9, &out, &error) == MREC_OK);
    assert(out.size == 13 && memcmp(out.data, "123456789\x83\x92\x06\xe3", 13) == 0);
    out.size = 0;
    mrec_pipeline shuffled = LINE(LITTLE, SHUFFLE, CRC);
    assert(mrec_encode(coder, &shuffled, values, 16, &out, &error) == MREC_OK);
    assert(out.size == 20 && memcmp(out.data, "\1\11\2\12\3\13\4\14\5\15\6\16\7\17\10\20", 16) == 0);
    assert(mrec_pipeline_checked(&checked) && !mrec_pipeline_checked(&big));
    mrec_buffer_free(&out);
}

static mrec_status encodes(mrec_coder *coder, mrec_pipeline pipeline, size_t n) {
    uint8_t *bytes = random_bytes(n, 3);
    mrec_buffer out = {0};
    mrec_error error;
    mrec_status status = mrec_encode(coder, &pipeline, bytes, n, &out, &error);
    assert(status == MREC_OK || (out.size == 0 && error.status == status && error.message[0] != '\0'));
    mrec_buffer_free(&out);
    free(bytes);
    return status;
}

static void test_refused(mrec_coder *coder) {
    mrec_codec level = GZIP, nothing = SHUFFLE, unknown = GZIP;
    level.level = 10;
    nothing.elementsize = 0;
    unknown.kind = (mrec_codec_kind)77;
    assert(encodes(coder, (mrec_pipeline){0}, 8) == MREC_E_CODEC);
    assert(encodes(coder, (mrec_pipeline){.n = MREC_MAX_CODECS + 1}, 8) == MREC_E_CODEC);
    assert(encodes(coder, LINE(GZIP), 8) == MREC_E_CODEC);
    assert(encodes(coder, LINE(LITTLE, GZIP, LITTLE), 8) == MREC_E_CODEC);
    assert(encodes(coder, LINE(LITTLE, nothing), 8) == MREC_E_CODEC);
    assert(encodes(coder, LINE(LITTLE, unknown), 8) == MREC_E_CODEC);
    assert(encodes(coder, LINE(LITTLE, SHUFFLE), 12) == MREC_E_CODEC);
    assert(encodes(coder, LINE(LITTLE, CRC, SHUFFLE), 8) == MREC_E_CODEC);
    assert(encodes(coder, LINE(BIG), 12) == MREC_E_CODEC);
    assert(encodes(coder, LINE(LITTLE, level), 8) == MREC_E_VALUE);
    level = ZSTD;
    level.level = 23;
    assert(encodes(coder, LINE(LITTLE, level), 8) == MREC_E_VALUE);
    size_t bound;
    mrec_error error;
    mrec_pipeline raw = LINE(LITTLE, GZIP);
    assert(mrec_encode_bound(&raw, SIZE_MAX, &bound, &error) == MREC_E_CODEC);
    uint8_t byte = 0;
    mrec_pipeline strange = LINE(GZIP);
    assert(mrec_decode(coder, &strange, &byte, 1, &byte, 1, &error) == MREC_E_CODEC);
}

void test_codec(void) {
    mrec_coder *coder;
    mrec_error error;
    assert(mrec_coder_new(&coder, &error) == MREC_OK);
    test_orders(coder);
    test_layout(coder);
    test_refused(coder);
    mrec_pipeline default_column = LINE(LITTLE, SHUFFLE, ZSTD, CRC);
    for (size_t n = 8; n < 1 << 21; n *= 3)
        check_there_and_back(coder, &default_column, n - n % 8);
    mrec_coder_free(coder);
    mrec_coder_free(NULL);
}

/* ---- streams of other encoders, and damaged ones ------------------------------------------------------------ */

static void add_gzip(mrec_buffer *out, const void *bytes, size_t n, int level) {
    struct libdeflate_compressor *compressor = libdeflate_alloc_compressor(level);
    mrec_error error;
    assert(mrec_buffer_reserve(out, out->size + n + 1000, &error) == MREC_OK);
    size_t size = libdeflate_gzip_compress(compressor, bytes, n, out->data + out->size, n + 1000);
    assert(size > 0);
    out->size += size;
    libdeflate_free_compressor(compressor);
}

static void add_zstd(mrec_buffer *out, const void *bytes, size_t n, bool content_size) {
    ZSTD_CCtx *context = ZSTD_createCCtx();
    mrec_error error;
    ZSTD_CCtx_setParameter(context, ZSTD_c_contentSizeFlag, content_size);
    ZSTD_CCtx_setParameter(context, ZSTD_c_checksumFlag, 1);
    assert(mrec_buffer_reserve(out, out->size + n + 1000, &error) == MREC_OK);
    size_t size = ZSTD_compress2(context, out->data + out->size, n + 1000, bytes, n);
    assert(!ZSTD_isError(size));
    out->size += size;
    ZSTD_freeCCtx(context);
}

static void check_decodes(mrec_coder *coder, mrec_pipeline pipeline, const mrec_buffer *coded, const uint8_t *bytes,
                          size_t n) {
    uint8_t *back = random_bytes(n, 0);
    mrec_buffer any = {0};
    mrec_error error;
    assert(mrec_decode(coder, &pipeline, coded->data, coded->size, back, n, &error) == MREC_OK);
    assert(memcmp(bytes, back, n) == 0);
    assert(mrec_decode_any(coder, &pipeline, coded->data, coded->size, 1 << 30, &any, &error) == MREC_OK);
    assert(any.size == n && (n == 0 || memcmp(bytes, any.data, n) == 0));
    mrec_buffer_free(&any);
    free(back);
}

static void test_joined(mrec_coder *coder) {
    size_t n = 300000;
    uint8_t *bytes = coordinates(n);
    memset(bytes + 100000, 0, 100000); /* compresses so well that the first guess of a size is far too small */
    mrec_buffer gzip = {0}, zstd = {0};
    const size_t cuts[] = {0, 0, 17, 100000, 200000, 299999, n};
    mrec_error error;
    for (size_t i = 0; i + 1 < LENGTH(cuts); i++) {
        add_gzip(&gzip, bytes + cuts[i], cuts[i + 1] - cuts[i], (int)i);
        add_zstd(&zstd, bytes + cuts[i], cuts[i + 1] - cuts[i], i % 2);
        assert(mrec_buffer_add(&zstd, "\x5a\x2a\x4d\x18\3\0\0\0abc", 11, &error) == MREC_OK); /* skippable */
    }
    check_decodes(coder, LINE(LITTLE, GZIP), &gzip, bytes, n);
    check_decodes(coder, LINE(LITTLE, ZSTD), &zstd, bytes, n);
    mrec_pipeline pipeline = LINE(LITTLE, GZIP);
    assert(mrec_buffer_add(&gzip, "\0", 1, &error) == MREC_OK);
    uint8_t *back = random_bytes(n, 0);
    assert(mrec_decode(coder, &pipeline, gzip.data, gzip.size, back, n, &error) == MREC_E_CORRUPT);
    free(back);
    mrec_buffer_free(&gzip);
    mrec_buffer_free(&zstd);
    free(bytes);
}

/* Whatever comes in, a decoder answers CORRUPT or the right number of bytes, and `checked` never the latter. */
static void check_damaged(mrec_coder *coder, const mrec_pipeline *pipeline, const uint8_t *coded, size_t size, size_t n,
                          bool checked) {
    uint8_t *copy = random_bytes(size, 0), *out = random_bytes(n, 0);
    if (size > 0)
        memcpy(copy, coded, size);
    mrec_buffer any = {0};
    mrec_error error;
    mrec_status status = mrec_decode(coder, pipeline, copy, size, out, n, &error);
    assert(status == MREC_E_CORRUPT || (status == MREC_OK && !checked));
    status = mrec_decode_any(coder, pipeline, copy, size, n, &any, &error);
    assert(status == MREC_E_CORRUPT || (status == MREC_OK && !checked && any.size <= n));
    mrec_buffer_free(&any);
    free(copy);
    free(out);
}

static void test_cut_and_flipped(mrec_coder *coder, mrec_pipeline pipeline) {
    size_t n = 400;
    uint8_t *bytes = coordinates(n);
    mrec_buffer coded = {0};
    mrec_error error;
    bool checked = mrec_pipeline_checked(&pipeline);
    assert(mrec_encode(coder, &pipeline, bytes, n, &coded, &error) == MREC_OK);
    for (size_t size = 0; size < coded.size; size++)
        check_damaged(coder, &pipeline, coded.data, size, n, checked);
    for (size_t bit = 0; bit < coded.size * 8; bit++) {
        coded.data[bit / 8] ^= (uint8_t)(1 << bit % 8);
        check_damaged(coder, &pipeline, coded.data, coded.size, n, checked);
        coded.data[bit / 8] ^= (uint8_t)(1 << bit % 8);
    }
    mrec_buffer_free(&coded);
    free(bytes);
}

/* Many zeros in few bytes must not be unpacked, at whatever depth they stand. */
static void test_bombs(mrec_coder *coder) {
    size_t n = 1 << 24;
    uint8_t *zeros = calloc(n, 1), out[64];
    assert(zeros != NULL);
    mrec_buffer once = {0}, twice = {0}, any = {0};
    mrec_error error;
    add_gzip(&once, zeros, n, 9);
    add_zstd(&twice, once.data, once.size, false);
    mrec_pipeline pipeline = LINE(LITTLE, GZIP), nested = LINE(LITTLE, GZIP, ZSTD);
    assert(mrec_decode(coder, &pipeline, once.data, once.size, out, sizeof out, &error) == MREC_E_CORRUPT);
    assert(mrec_decode_any(coder, &pipeline, once.data, once.size, 64, &any, &error) == MREC_E_CORRUPT);
    assert(any.capacity < n / 16);
    assert(mrec_decode(coder, &nested, twice.data, twice.size, out, sizeof out, &error) == MREC_E_CORRUPT);
    mrec_buffer_free(&once);
    mrec_buffer_free(&twice);
    mrec_buffer_free(&any);
    free(zeros);
}

/* A damaged frame for which zstd says, whatever there is, that the room is too small: what is tried is no more than its
 * bytes can stand for. */
static void test_claims(mrec_coder *coder) {
    static const uint8_t frame[] = {0x28, 0xb5, 0x2f, 0xfd, 0x20, 0x60, 0xc5, 0x00, 0x00, 0x80, 0x00,
                                    0x00, 0xf0, 0x80, 0x08, 0x10, 0x14, 0x18, 0x1c, 0x20, 0x22, 0x24,
                                    0x26, 0x00, 0x3f, 0x40, 0x02, 0x00, 0x15, 0x15, 0x15, 0x15, 0x15};
    mrec_pipeline pipeline = LINE(VLEN, ZSTD);
    mrec_buffer any = {0};
    mrec_error error;
    mrec_status status = mrec_decode_any(coder, &pipeline, frame, sizeof frame, (size_t)1 << 30, &any, &error);
    assert(status == MREC_E_CORRUPT && any.capacity <= sizeof frame << 16);
    mrec_buffer_free(&any);
}

void test_damage(void) {
    mrec_coder *coder;
    mrec_error error;
    assert(mrec_coder_new(&coder, &error) == MREC_OK);
    test_joined(coder);
    test_cut_and_flipped(coder, LINE(LITTLE, SHUFFLE, ZSTD, CRC));
    test_cut_and_flipped(coder, LINE(LITTLE, GZIP, CRC));
    test_cut_and_flipped(coder, LINE(LITTLE, CRC));
    test_cut_and_flipped(coder, LINE(BIG, SHUFFLE, ZSTD));
    test_cut_and_flipped(coder, LINE(VLEN, GZIP));
    test_cut_and_flipped(coder, LINE(LITTLE, CRC, GZIP, ZSTD));
    test_bombs(coder);
    test_claims(coder);
    mrec_coder_free(coder);
}
