/* SPDX-License-Identifier: BSD-3-Clause */
#include "codec.h"

#include "crc32c.h"
#include "shuffle.h"
#include "zframe.h"

#include <libdeflate.h>
#include <stdlib.h>
#include <string.h>
#include <zstd.h>
#include <zstd_errors.h>

#if defined(__BYTE_ORDER__) && __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__
#error "mrec supports little-endian processors only"
#endif

#define CHECKSUM_SIZE 4
#define GZIP_LEVELS 10
#define SLACK ((size_t)64 << 10)

struct mrec_coder {
    mrec_buffer scratch[2]; /* a stage reads from one and writes to the other */
    struct libdeflate_compressor *deflate[GZIP_LEVELS];
    struct libdeflate_decompressor *inflate;
    ZSTD_CCtx *zstd;
    ZSTD_DCtx *unzstd;
    mrec_zframe *zframe;
};

mrec_status mrec_coder_new(mrec_coder **coder, mrec_error *error) {
    *coder = calloc(1, sizeof **coder);
    return *coder == NULL ? mrec_fail_memory(error) : MREC_OK;
}

void mrec_coder_free(mrec_coder *coder) {
    if (coder == NULL)
        return;
    mrec_buffer_free(&coder->scratch[0]);
    mrec_buffer_free(&coder->scratch[1]);
    for (int level = 0; level < GZIP_LEVELS; level++)
        libdeflate_free_compressor(coder->deflate[level]);
    libdeflate_free_decompressor(coder->inflate);
    ZSTD_freeCCtx(coder->zstd);
    ZSTD_freeDCtx(coder->unzstd);
    mrec_zframe_free(coder->zframe);
    free(coder);
}

bool mrec_pipeline_checked(const mrec_pipeline *pipeline) {
    return pipeline->n > 0 && pipeline->codecs[pipeline->n - 1].kind == MREC_CODEC_CRC32C;
}

bool mrec_pipeline_compresses(const mrec_pipeline *pipeline) {
    for (uint32_t i = 0; i < pipeline->n; i++)
        if (pipeline->codecs[i].kind == MREC_CODEC_GZIP || pipeline->codecs[i].kind == MREC_CODEC_ZSTD)
            return true;
    return false;
}

/* ---- what both directions share ----------------------------------------------------------------------------- */

/* The bytes between two stages. */
typedef struct span {
    const uint8_t *data;
    size_t size;
} span;

static span span_of(const void *bytes, size_t n) {
    return (span){n > 0 ? bytes : (const void *)"", n};
}

static bool is_first(mrec_codec_kind kind) {
    return kind == MREC_CODEC_BYTES || kind == MREC_CODEC_VLEN_UTF8;
}

static bool compresses(mrec_codec_kind kind) {
    return kind == MREC_CODEC_GZIP || kind == MREC_CODEC_ZSTD;
}

static mrec_status check_pipeline(const mrec_pipeline *pipeline, mrec_error *error) {
    if (pipeline->n == 0 || pipeline->n > MREC_MAX_CODECS)
        return mrec_fail(error, MREC_E_CODEC, NULL, "a pipeline has 1 to %d codecs, not %u", MREC_MAX_CODECS,
                         (unsigned)pipeline->n);
    for (uint32_t i = 0; i < pipeline->n; i++) {
        const mrec_codec *codec = &pipeline->codecs[i];
        if ((unsigned)codec->kind > MREC_CODEC_CRC32C)
            return mrec_fail(error, MREC_E_CODEC, NULL, "unknown codec number %d", (int)codec->kind);
        if (is_first(codec->kind) != (i == 0))
            return mrec_fail(error, MREC_E_CODEC, NULL, "exactly the first codec is bytes or vlen-utf8");
        if (codec->kind == MREC_CODEC_SHUFFLE && codec->elementsize == 0)
            return mrec_fail(error, MREC_E_CODEC, NULL, "numcodecs.shuffle with element size 0");
    }
    return MREC_OK;
}

static bool swaps(const mrec_codec *codec) {
    return codec->kind == MREC_CODEC_BYTES && codec->big && codec->elementsize > 1;
}

static void reverse_elements(uint8_t *bytes, size_t n, size_t size) {
    for (size_t at = 0; at < n; at += size)
        for (size_t i = at, j = at + size - 1; i < j; i++, j--) {
            uint8_t byte = bytes[i];
            bytes[i] = bytes[j];
            bytes[j] = byte;
        }
}

/* The largest output of one codec for n bytes; false when it does not fit. */
static bool codec_bound(const mrec_codec *codec, size_t n, size_t *bound) {
    size_t extra = 0;
    *bound = 0;
    if (n > PTRDIFF_MAX / 4)
        return false;
    if (codec->kind == MREC_CODEC_GZIP)
        extra = libdeflate_gzip_compress_bound(NULL, n) - n;
    else if (codec->kind == MREC_CODEC_ZSTD)
        extra = ZSTD_compressBound(n) - n;
    else if (codec->kind == MREC_CODEC_CRC32C)
        extra = CHECKSUM_SIZE;
    *bound = n + extra;
    return extra <= PTRDIFF_MAX / 4;
}

/* Every codec after number i only appends, so that its output can be made at its place. */
static bool only_checksums_follow(const mrec_pipeline *pipeline, uint32_t i) {
    while (++i < pipeline->n)
        if (pipeline->codecs[i].kind != MREC_CODEC_CRC32C)
            return false;
    return true;
}

bool mrec_pipeline_plain(const mrec_pipeline *pipeline, size_t *checksums) {
    *checksums = (size_t)(pipeline->n - 1) * CHECKSUM_SIZE;
    return pipeline->codecs[0].kind == MREC_CODEC_BYTES && !swaps(&pipeline->codecs[0]) &&
           only_checksums_follow(pipeline, 0);
}

/* ---- encoding ----------------------------------------------------------------------------------------------- */

static mrec_status bound_one(const mrec_codec *codec, size_t n, size_t *bound, mrec_error *error) {
    if (codec_bound(codec, n, bound))
        return MREC_OK;
    return mrec_fail(error, MREC_E_CODEC, NULL, "%zu bytes are too many to encode as one chunk", n);
}

mrec_status mrec_encode_bound(const mrec_pipeline *pipeline, size_t n, size_t *bound, mrec_error *error) {
    MREC_TRY(check_pipeline(pipeline, error));
    *bound = n;
    for (uint32_t i = 0; i < pipeline->n; i++)
        MREC_TRY(bound_one(&pipeline->codecs[i], *bound, bound, error));
    return MREC_OK;
}

static mrec_status encode_gzip(mrec_coder *coder, const mrec_codec *codec, span in, uint8_t *out, size_t room,
                               size_t *size, mrec_error *error) {
    if (codec->level < 0 || codec->level >= GZIP_LEVELS)
        return mrec_fail(error, MREC_E_VALUE, NULL, "gzip level %d is not within 0 to %d", codec->level,
                         GZIP_LEVELS - 1);
    struct libdeflate_compressor **compressor = &coder->deflate[codec->level];
    if (*compressor == NULL)
        *compressor = libdeflate_alloc_compressor(codec->level);
    if (*compressor == NULL)
        return mrec_fail_memory(error);
    *size = libdeflate_gzip_compress(*compressor, in.data, in.size, out, room);
    if (*size == 0)
        return mrec_fail(error, MREC_E_CODEC, NULL, "gzip needs more than its bound for %zu bytes", in.size);
    return MREC_OK;
}

static mrec_status encode_zstd(mrec_coder *coder, const mrec_codec *codec, span in, uint8_t *out, size_t room,
                               size_t *size, mrec_error *error) {
    if (codec->level < ZSTD_minCLevel() || codec->level > ZSTD_maxCLevel())
        return mrec_fail(error, MREC_E_VALUE, NULL, "zstd level %d is not within %d to %d", codec->level,
                         ZSTD_minCLevel(), ZSTD_maxCLevel());
    if (coder->zstd == NULL)
        coder->zstd = ZSTD_createCCtx();
    if (coder->zstd == NULL)
        return mrec_fail_memory(error);
    ZSTD_CCtx_setParameter(coder->zstd, ZSTD_c_compressionLevel, codec->level);
    ZSTD_CCtx_setParameter(coder->zstd, ZSTD_c_checksumFlag, codec->checksum);
    *size = ZSTD_compress2(coder->zstd, out, room, in.data, in.size);
    if (!ZSTD_isError(*size))
        return MREC_OK;
    if (ZSTD_getErrorCode(*size) == ZSTD_error_memory_allocation)
        return mrec_fail_memory(error);
    return mrec_fail(error, MREC_E_CODEC, NULL, "zstd: %s", ZSTD_getErrorName(*size));
}

/* A frame of our own where a shuffle stands before `codec`, and with zstd's usual level: another one says what is
 * wanted of zstd itself. *size is 0 where zstd has to make it. */
static mrec_status encode_planes(mrec_coder *coder, const mrec_codec *codec, span in, uint8_t *out, size_t room,
                                 size_t *size, mrec_error *error) {
    const mrec_codec *before = codec - 1; /* there is one: the first of a pipeline is no compressor */
    *size = 0;
    if (before->kind != MREC_CODEC_SHUFFLE || codec->level != ZSTD_CLEVEL_DEFAULT || codec->checksum)
        return MREC_OK;
    if (coder->zframe == NULL)
        coder->zframe = mrec_zframe_new();
    if (coder->zframe == NULL)
        return mrec_fail_memory(error);
    *size = mrec_zframe_encode(coder->zframe, in.data, in.size, before->elementsize, out, room);
    return MREC_OK;
}

/* Run one codec over `now`; what it makes follows what is in *to, which has room for it, and becomes `now`. */
static mrec_status encode_stage(mrec_coder *coder, const mrec_codec *codec, span *now, mrec_buffer *to,
                                mrec_error *error) {
    uint8_t *out = to->data + to->size;
    size_t room = to->capacity - to->size;
    size_t size = now->size;
    switch (codec->kind) {
    case MREC_CODEC_SHUFFLE:
        mrec_shuffle(now->data, out, now->size, codec->elementsize);
        break;
    case MREC_CODEC_GZIP:
        MREC_TRY(encode_gzip(coder, codec, *now, out, room, &size, error));
        break;
    case MREC_CODEC_ZSTD:
        MREC_TRY(encode_planes(coder, codec, *now, out, room, &size, error));
        if (size == 0)
            MREC_TRY(encode_zstd(coder, codec, *now, out, room, &size, error));
        break;
    default: /* a copy to change in its place */
        if (size > 0)
            memcpy(out, now->data, size);
        if (swaps(codec))
            reverse_elements(out, size, codec->elementsize);
    }
    to->size += size;
    *now = (span){out, size};
    return MREC_OK;
}

/* Append the checksum of `now` to `now`, with which *home ends and for which it has room. */
static void add_checksum(span *now, mrec_buffer *home) {
    uint32_t crc = mrec_crc32c(0, now->data, now->size);
    for (int i = 0; i < CHECKSUM_SIZE; i++)
        home->data[home->size++] = (uint8_t)(crc >> 8 * i);
    now->size += CHECKSUM_SIZE;
}

static mrec_status check_elements(const mrec_codec *codec, size_t n, mrec_status status, mrec_error *error) {
    if ((codec->kind != MREC_CODEC_SHUFFLE && !swaps(codec)) || n % codec->elementsize == 0)
        return MREC_OK;
    return mrec_fail(error, status, NULL, "%zu bytes are no whole number of elements of %u bytes", n,
                     (unsigned)codec->elementsize);
}

static mrec_status encode(mrec_coder *coder, const mrec_pipeline *pipeline, span now, mrec_buffer *out,
                          mrec_error *error) {
    mrec_buffer *home = NULL; /* the buffer that ends with `now`; NULL: those are the caller's bytes */
    for (uint32_t i = 0; i < pipeline->n; i++) {
        const mrec_codec *codec = &pipeline->codecs[i];
        bool checksum = codec->kind == MREC_CODEC_CRC32C;
        MREC_TRY(check_elements(codec, now.size, MREC_E_CODEC, error));
        if (is_first(codec->kind) && !swaps(codec))
            continue;
        if (!checksum || home == NULL) {
            mrec_buffer *to = out;
            if (!only_checksums_follow(pipeline, i)) {
                size_t bound;
                MREC_TRY(bound_one(codec, now.size, &bound, error));
                to = &coder->scratch[home == &coder->scratch[0]];
                to->size = 0;
                MREC_TRY(mrec_buffer_reserve(to, bound + MREC_MAX_CODECS * CHECKSUM_SIZE, error));
            }
            MREC_TRY(encode_stage(coder, codec, &now, to, error));
            home = to;
        }
        if (checksum)
            add_checksum(&now, home);
    }
    return home == NULL ? mrec_buffer_add(out, now.data, now.size, error) : MREC_OK;
}

mrec_status mrec_encode(mrec_coder *coder, const mrec_pipeline *pipeline, const void *bytes, size_t n, mrec_buffer *out,
                        mrec_error *error) {
    size_t bound, before = out->size;
    MREC_TRY(mrec_encode_bound(pipeline, n, &bound, error));
    if (bound > SIZE_MAX - before)
        return mrec_fail_memory(error);
    MREC_TRY(mrec_buffer_reserve(out, before + bound + 1, error)); /* 1: never NULL */
    mrec_status status = encode(coder, pipeline, span_of(bytes, n), out, error);
    if (status != MREC_OK)
        out->size = before;
    return status;
}

/* ---- decoding ----------------------------------------------------------------------------------------------- */

/* Decompressors append to *to and never go above `limit` bytes there. When the room they have is not enough, they get
 * more and begin the stream (gzip: the member) again, so that no window has to be kept beside the output. */
static mrec_status grow(mrec_buffer *to, size_t limit, mrec_error *error) {
    if (to->capacity >= limit)
        return mrec_fail(error, MREC_E_CORRUPT, NULL, "a compressed chunk holds more than %zu bytes", limit);
    size_t more = to->capacity < limit / 2 ? to->capacity * 2 : limit;
    return mrec_buffer_reserve(to, more, error);
}

static size_t room_in(const mrec_buffer *to, size_t limit) {
    return (to->capacity < limit ? to->capacity : limit) - to->size;
}

static mrec_status decode_gzip(mrec_coder *coder, span in, mrec_buffer *to, size_t limit, mrec_error *error) {
    if (coder->inflate == NULL)
        coder->inflate = libdeflate_alloc_decompressor();
    if (coder->inflate == NULL)
        return mrec_fail_memory(error);
    do {
        size_t used = 0, made = 0;
        enum libdeflate_result result = libdeflate_gzip_decompress_ex(
            coder->inflate, in.data, in.size, to->data + to->size, room_in(to, limit), &used, &made);
        if (result == LIBDEFLATE_INSUFFICIENT_SPACE) {
            MREC_TRY(grow(to, limit, error));
            continue;
        }
        if (result != LIBDEFLATE_SUCCESS)
            return mrec_fail(error, MREC_E_CORRUPT, NULL, "a gzip stream is damaged");
        to->size += made;
        in.data += used;
        in.size -= used;
    } while (in.size > 0);
    return MREC_OK;
}

static mrec_status decode_zstd(mrec_coder *coder, span in, mrec_buffer *to, size_t limit, mrec_error *error) {
    if (coder->unzstd == NULL)
        coder->unzstd = ZSTD_createDCtx();
    if (coder->unzstd == NULL)
        return mrec_fail_memory(error);
    if (in.size == 0)
        return mrec_fail(error, MREC_E_CORRUPT, NULL, "a zstd stream is empty");
    for (;;) {
        size_t made = ZSTD_decompressDCtx(coder->unzstd, to->data, room_in(to, limit), in.data, in.size);
        if (!ZSTD_isError(made)) {
            to->size = made;
            return MREC_OK;
        }
        if (ZSTD_getErrorCode(made) == ZSTD_error_memory_allocation)
            return mrec_fail_memory(error);
        if (ZSTD_getErrorCode(made) != ZSTD_error_dstSize_tooSmall)
            return mrec_fail(error, MREC_E_CORRUPT, NULL, "a zstd stream is damaged: %s", ZSTD_getErrorName(made));
        MREC_TRY(grow(to, limit, error));
    }
}

static mrec_status remove_checksum(const mrec_codec *codec, span *now, mrec_error *error) {
    if (now->size < CHECKSUM_SIZE)
        return mrec_fail(error, MREC_E_CORRUPT, NULL, "%zu bytes are too few for a checksum", now->size);
    now->size -= CHECKSUM_SIZE;
    if (codec->unchecked)
        return MREC_OK;
    const uint8_t *end = now->data + now->size;
    uint32_t stored = (uint32_t)end[0] | (uint32_t)end[1] << 8 | (uint32_t)end[2] << 16 | (uint32_t)end[3] << 24;
    uint32_t computed = mrec_crc32c(0, now->data, now->size);
    if (stored != computed)
        return mrec_fail(error, MREC_E_CORRUPT, NULL, "crc32c is %08x where %08x is stored", (unsigned)computed,
                         (unsigned)stored);
    return MREC_OK;
}

/* Undo one codec: `now` becomes what it was made of, at most `limit` bytes, put into *to. */
static mrec_status decode_stage(mrec_coder *coder, const mrec_codec *codec, span *now, mrec_buffer *to, size_t limit,
                                size_t guess, mrec_error *error) {
    to->size = 0;
    if (to->data == NULL) /* the libraries want a pointer, be it for 0 bytes */
        MREC_TRY(mrec_buffer_reserve(to, 1, error));
    if (codec->kind == MREC_CODEC_SHUFFLE) {
        if (now->size > limit)
            return mrec_fail(error, MREC_E_CORRUPT, NULL, "a chunk holds more than %zu bytes", limit);
        MREC_TRY(check_elements(codec, now->size, MREC_E_CORRUPT, error));
        MREC_TRY(mrec_buffer_reserve(to, now->size, error));
        mrec_unshuffle(now->data, to->data, now->size, codec->elementsize);
        to->size = now->size;
    } else {
        MREC_TRY(mrec_buffer_reserve(to, guess, error));
        MREC_TRY(codec->kind == MREC_CODEC_GZIP ? decode_gzip(coder, *now, to, limit, error)
                                                : decode_zstd(coder, *now, to, limit, error));
    }
    *now = (span){to->data, to->size};
    return MREC_OK;
}

/* The most bytes that may stand before codec number i when `size` (at most, or exactly) are to come out at the end.
 * Another encoder may need more than our bound for the same bytes, hence a quarter more. */
static size_t limit_before(const mrec_pipeline *pipeline, uint32_t i, size_t size, bool *exact) {
    for (uint32_t j = 0; j < i; j++) {
        const mrec_codec *codec = &pipeline->codecs[j];
        size_t bound;
        if (!codec_bound(codec, size, &bound))
            return PTRDIFF_MAX;
        if (compresses(codec->kind)) {
            *exact = false;
            bound += bound / 4 + SLACK;
        }
        size = bound;
    }
    return size;
}

/* The most that n bytes can stand for, whatever they say: of deflate 258 bytes for two bits, of zstd a block of 128 KiB
 * for four bytes. */
static size_t most_of(mrec_codec_kind kind, size_t n) {
    size_t ratio = kind == MREC_CODEC_GZIP ? 1032 : kind == MREC_CODEC_ZSTD ? (size_t)1 << 16 : 1;
    return n < PTRDIFF_MAX / ratio ? n * ratio : PTRDIFF_MAX;
}

/* Decode into *out, whose size becomes at most `size`; memory of that size that stands there already is never moved.
 * exact: the chunk is known to have `size` bytes. */
static mrec_status decode(mrec_coder *coder, const mrec_pipeline *pipeline, span now, mrec_buffer *out, size_t size,
                          bool exact, mrec_error *error) {
    for (uint32_t i = pipeline->n - 1; i > 0; i--) {
        const mrec_codec *codec = &pipeline->codecs[i];
        if (codec->kind == MREC_CODEC_CRC32C) {
            MREC_TRY(remove_checksum(codec, &now, error));
            continue;
        }
        bool known = exact;
        size_t limit = limit_before(pipeline, i, size, &known), most = most_of(codec->kind, now.size);
        limit = limit < most ? limit : most;
        size_t guess = now.size < limit / 4 ? 4 * now.size + 1 : limit;
        mrec_buffer *to = i == 1 ? out : &coder->scratch[now.data == coder->scratch[0].data];
        MREC_TRY(decode_stage(coder, codec, &now, to, limit, known ? limit : guess, error));
    }
    if (now.size > size || (exact && now.size != size))
        return mrec_fail(error, MREC_E_CORRUPT, NULL, "a chunk holds %zu bytes, not %zu", now.size, size);
    MREC_TRY(check_elements(&pipeline->codecs[0], now.size, MREC_E_CORRUPT, error));
    MREC_TRY(mrec_buffer_reserve(out, now.size, error));
    if (now.data != out->data && now.size > 0)
        memcpy(out->data, now.data, now.size);
    out->size = now.size;
    if (swaps(&pipeline->codecs[0]))
        reverse_elements(out->data, out->size, pipeline->codecs[0].elementsize);
    return MREC_OK;
}

mrec_status mrec_decode(mrec_coder *coder, const mrec_pipeline *pipeline, const void *bytes, size_t n, void *out,
                        size_t size, mrec_error *error) {
    MREC_TRY(check_pipeline(pipeline, error));
    uint8_t none;
    mrec_buffer fixed = {size > 0 ? out : &none, 0, size};
    return decode(coder, pipeline, span_of(bytes, n), &fixed, size, true, error);
}

mrec_status mrec_decode_any(mrec_coder *coder, const mrec_pipeline *pipeline, const void *bytes, size_t n, size_t limit,
                            mrec_buffer *out, mrec_error *error) {
    MREC_TRY(check_pipeline(pipeline, error));
    return decode(coder, pipeline, span_of(bytes, n), out, limit, false, error);
}
