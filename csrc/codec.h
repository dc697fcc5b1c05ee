/* SPDX-License-Identifier: BSD-3-Clause
 * The pipeline of a chunk: the bytes of its elements to the bytes in the file, and back. */
#ifndef MREC_CODEC_H
#define MREC_CODEC_H

#include "buffer.h"

typedef enum mrec_codec_kind {
    MREC_CODEC_BYTES = 0, /* elements as they stand in memory; with big: each element's bytes reversed */
    MREC_CODEC_VLEN_UTF8, /* u32 count, then u32 length + bytes a string; the chunk is this text already */
    MREC_CODEC_SHUFFLE,   /* numcodecs.shuffle */
    MREC_CODEC_GZIP,
    MREC_CODEC_ZSTD,
    MREC_CODEC_CRC32C
} mrec_codec_kind;

typedef struct mrec_codec {
    mrec_codec_kind kind;
    int level;            /* GZIP, ZSTD */
    uint32_t elementsize; /* BYTES: the unit whose bytes are reversed when big (a complex number's half); SHUFFLE */
    bool big;             /* BYTES: big-endian in the file */
    bool checksum;        /* ZSTD */
    bool unchecked;       /* CRC32C: decoding takes it off, and does not look at it */
} mrec_codec;

#define MREC_MAX_CODECS 8

/* In the order of the metadata: encoding runs from the first to the last. The first is BYTES or VLEN_UTF8. */
typedef struct mrec_pipeline {
    uint32_t n;
    mrec_codec codecs[MREC_MAX_CODECS];
} mrec_pipeline;

/* Working memory and (de)compressors, made once and used for many chunks. One thread at a time. */
typedef struct mrec_coder mrec_coder;

mrec_status mrec_coder_new(mrec_coder **coder, mrec_error *error);
void mrec_coder_free(mrec_coder *coder);

/* The largest encoding that n bytes can have; CODEC when the size does not fit. */
mrec_status mrec_encode_bound(const mrec_pipeline *pipeline, size_t n, size_t *bound, mrec_error *error);

/* Encode n bytes and append the result to *out, so out->size grows by the encoded size. Where SHUFFLE meets bytes
 * that are no multiple of its element size: CODEC. A level that does not exist: VALUE. No allocation once coder and out
 * have grown to size. */
mrec_status mrec_encode(mrec_coder *coder, const mrec_pipeline *pipeline, const void *bytes, size_t n, mrec_buffer *out,
                        mrec_error *error);

/* Decode into exactly `size` bytes at `out`. CORRUPT when a checksum fails, a stream is damaged, or the decoded size
 * is another; whatever the input, nothing outside out[0, size) is written and memory stays within a small multiple
 * of size + n. gzip may have several members, zstd several frames (also skippable ones), with or without a content
 * size; all are joined. */
mrec_status mrec_decode(mrec_coder *coder, const mrec_pipeline *pipeline, const void *bytes, size_t n, void *out,
                        size_t size, mrec_error *error);

/* Decode a chunk whose size is not known (VLEN_UTF8) and put it in *out (replacing what is there). CORRUPT also when
 * it would be larger than `limit`. */
mrec_status mrec_decode_any(mrec_coder *coder, const mrec_pipeline *pipeline, const void *bytes, size_t n, size_t limit,
                            mrec_buffer *out, mrec_error *error);

/* True when the elements are stored as they stand in memory, with nothing after them but *checksums bytes. */
bool mrec_pipeline_plain(const mrec_pipeline *pipeline, size_t *checksums);

/* True when the last codec is a checksum over all bytes before it, so that damage cannot pass unseen. */
bool mrec_pipeline_checked(const mrec_pipeline *pipeline);

/* True when there is a compressor in it, so that encoding takes far longer than copying. */
bool mrec_pipeline_compresses(const mrec_pipeline *pipeline);

#endif
