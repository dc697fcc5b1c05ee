/* SPDX-License-Identifier: BSD-3-Clause
 *
 * mrec: append molecular trajectories to a Zarr V3 record, frame by frame. docs/embedding.md shows how.
 *
 *     mrec_create(path, &schema, NULL, &writer, &error);     once: what every frame may hold
 *     mrec_append(writer, &frame, &error);                   as often as the simulation writes
 *     mrec_close(writer, &error);                            at the end; without it the last frames may be missing
 *     mrec_free(writer);
 *
 * Every function that can fail returns an mrec_status and fills the mrec_error that it was given (which may be NULL).
 * No other argument may be NULL unless its comment says so. Strings are UTF-8 and NUL-terminated unless a length stands
 * beside them. Nothing here is kept after a call returns,
 * unless the text says so: the caller may reuse or free what it passed. Zero a struct before filling it: a member that
 * stays 0 means what its comment says of 0. Nothing is ever converted: units are the caller's, the same in every frame,
 * and may be named in the record (mrec_options.meta_json).
 *
 * Threads: distinct handles may be used from distinct threads at the same time. One writer serves one call at a time;
 * a second concurrent call gets MREC_E_BUSY and changes nothing. Calls may come from different threads in turn. The
 * questions (mrec_nframes and those below it) are for the thread whose turn it is.
 *
 * fork(): the child does not hold the record. A handle that crossed gets MREC_E_FORKED there; mrec_free in the child
 * releases memory and leaves the record alone.
 *
 * Signals: no call may be made from a signal handler; calls that a signal interrupts are continued.
 */
#ifndef MREC_H
#define MREC_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* What stands before each function; a shared library makes them visible by it. */
#ifndef MREC_API
#define MREC_API
#endif

/* Goes up when a struct or the meaning of a function here changes, so that what was compiled before does not fit. */
#define MREC_ABI_VERSION 2

#ifdef __cplusplus
extern "C" {
#endif

/* ---- status ------------------------------------------------------------------------------------------------- */

typedef enum mrec_status {
    MREC_OK = 0,
    MREC_E_IO,      /* a system call failed: sys_errno and path say which */
    MREC_E_MEMORY,  /* an allocation failed */
    MREC_E_CORRUPT, /* bytes on disk contradict a checksum or the format */
    MREC_E_CODEC,   /* a codec, or an order of codecs, that this library does not know */
    MREC_E_SCHEMA,  /* a declaration that is not allowed, or data that does not fit the declaration */
    MREC_E_VALUE,   /* an argument out of its range: a step that does not increase, an unknown option */
    MREC_E_LOCKED,  /* another writer holds the record */
    MREC_E_EXISTS,  /* the record is there already */
    MREC_E_CLOSED,  /* the handle was closed */
    MREC_E_BUSY,    /* the writer is inside another call */
    MREC_E_FORKED   /* the handle belongs to the parent process */
} mrec_status;

/* What went wrong, filled by the failing call and left alone by a call that succeeds. */
typedef struct mrec_error {
    mrec_status status;
    int sys_errno;      /* with MREC_E_IO, otherwise 0 */
    char path[1024];    /* the file or directory concerned, "" when there is none; cut when longer */
    char message[1024]; /* one line: what, where (array, chunk, frame), and what to do */
} mrec_error;

/* A short English name of a status ("i/o error"); never NULL. */
MREC_API const char *mrec_status_name(mrec_status status);

/* ---- schema ------------------------------------------------------------------------------------------------- */

/* Element types. Every column is stored at exactly its width. MREC_F32 and MREC_F16 exist for plain arrays, and
 * MREC_F32 as a source of f64 columns; no column is declared so. */
typedef enum mrec_dtype {
    MREC_BOOL = 0, /* one byte, 0 or 1 */
    MREC_I8,
    MREC_I16,
    MREC_I32,
    MREC_I64,
    MREC_U8,
    MREC_U16,
    MREC_U32,
    MREC_U64,
    MREC_F64,
    MREC_C64,
    MREC_C128,
    MREC_STRING, /* UTF-8, any length */
    MREC_F32,
    MREC_F16
} mrec_dtype;

/* Bytes of one element; 0 for MREC_STRING and for what is no mrec_dtype. */
MREC_API size_t mrec_dtype_size(mrec_dtype dtype);

/* One column of a block. */
typedef struct mrec_column {
    const char *name;
    mrec_dtype dtype;
    size_t ntrailing;         /* axes after the row axis, at most 6 */
    const uint64_t *trailing; /* their lengths, each > 0 */
    double precision;         /* 0: every bit is kept; otherwise f64 values are stored to within half of it, rounded to
                                 a multiple of the power of two at or below it */
    bool nullable;            /* rows may be null; needs a mask array on disk */
} mrec_column;

/* A table of rows: atoms, bonds. Positions are the f64 columns x, y, z, velocities vx, vy, vz, forces fx, fy, fz of the
 * block "atoms": by these names other programs find them. */
typedef struct mrec_block {
    const char *name;
    size_t ncolumns;
    const mrec_column *columns;
    uint64_t rows;      /* rows of a typical (the largest) frame: fixes the chunk extents; 0 when unknown */
    size_t nstructural; /* structural_shape: 0 axes when there is none */
    const uint64_t *structural;
} mrec_block;

/* One per-step value. Its tag (f64x9, json ...) is dtype, width and json together. */
typedef struct mrec_value {
    const char *name;
    mrec_dtype dtype;      /* BOOL I32 I64 U32 U64 F64 STRING */
    uint32_t width;        /* 1, 3, 6 or 9 elements a step */
    bool json;             /* STRING only: each value is a compact JSON text */
    const char *fill_json; /* the fill in typed JSON form, which the caller vouches to say what `fill` holds; NULL:
                              every frame must give the value */
    const void *fill;      /* with fill_json: width elements, or the UTF-8 text of a string */
    size_t fill_size;      /* bytes at fill */
} mrec_value;

/* What every frame of a trajectory may hold. */
typedef struct mrec_schema {
    size_t nblocks;
    const mrec_block *blocks;
    size_t nvalues;
    const mrec_value *values;
} mrec_schema;

/* ---- options ------------------------------------------------------------------------------------------------ */

typedef enum mrec_compression {
    MREC_COMPRESS_DEFAULT = 0, /* precision columns shuffle+zstd:3, other floats none, the rest gzip:1 */
    MREC_COMPRESS_NONE,        /* floats stored plain; precision columns keep shuffle+zstd:3 */
    MREC_COMPRESS_GZIP,
    MREC_COMPRESS_ZSTD,
    MREC_COMPRESS_SHUFFLE_ZSTD
} mrec_compression;

/* All zero is the default configuration (mrec_options_init writes it out). */
typedef struct mrec_options {
    mrec_compression compression;
    int level;                 /* of GZIP (0-9), ZSTD and SHUFFLE_ZSTD (-131072..22) */
    uint64_t frames_per_chunk; /* 0: the extents rule */
    uint64_t chunks_per_shard; /* 0: the extents rule; at most 2^24, each takes 16 bytes in memory and in the file */
    uint64_t flush_frames;     /* land every so many frames; 0: by the cadence rule */
    uint64_t flush_bytes;      /* land when so many bytes wait; 0: by the cadence rule */
    double flush_seconds;      /* land when the last landing is so long ago; 0: 10 s; < 0: always; infinity: never */
    double durable_seconds;    /* make a landing durable when the last such is so long ago; 0: 60 s; < 0, infinity */
    bool no_durable;           /* flush and close do not sync */
    bool overwrite;            /* replace a record that is there */
    unsigned threads;          /* 0 and 1: all is done by the thread that calls; 2: another behind it encodes, lands and
                                  syncs, and both encode while one waits for the other; more: also by others. A call
                                  may then report what failed in an earlier frame */
    const char *meta_json;     /* what the record says of itself, a JSON object without space around it:
                                  {"units":{"length":"angstrom"}}; NULL: nothing. The caller vouches that no key
                                  stands twice and that numbers are within the range of double */
    uint64_t chunk_bytes; /* the extents rule with so many bytes instead of 16 KiB (0), 1 KiB to 64 MiB; not together
                             with frames_per_chunk */
} mrec_options;

/* The default configuration, written out. */
MREC_API void mrec_options_init(mrec_options *options);

/* ---- frames ------------------------------------------------------------------------------------------------- */

/* The rows of one column in one frame, where the caller has them. x, y and z out of double r[n][3] are {&r[0][0], 24},
 * {&r[0][1], 24} and {&r[0][2], 24}; a negative stride goes through the rows backwards. Nothing need be aligned. */
typedef struct mrec_column_data {
    const void *data;        /* first row; for strings the bytes of all rows, one after another */
    ptrdiff_t stride;        /* bytes from row to row; 0: rows stand close. Trailing axes are contiguous within a row */
    bool f32;                /* an f64 column given as float: widened, which is exact */
    const uint64_t *offsets; /* strings: a position in data for each, and the end; ascending */
    const uint8_t *valid;    /* a nullable column: one byte a row, 0 = null; NULL: no row is null */
} mrec_column_data;

/* One block in one frame; columns in the order of the schema, all of them. */
typedef struct mrec_block_data {
    bool present; /* false: the block carries forward */
    uint64_t rows;
    const mrec_column_data *columns;
} mrec_block_data;

/* The simulation cell. vectors: 3x3 row-major, the lattice vectors are the COLUMNS. */
typedef struct mrec_cell {
    bool defined; /* false: "this system has no cell"; vectors are ignored */
    double vectors[9];
    double origin[3];
    uint8_t periodic[3];
} mrec_cell;

/* A per-step value; data NULL: not given, the fill is taken (refused when there is none). */
typedef struct mrec_value_data {
    const void *data;
    size_t size; /* bytes: width * element size, or the length of the text */
} mrec_value_data;

/* One frame. What it leaves out carries forward: a block, or the cell, is then that of the frame before. */
typedef struct mrec_frame {
    int64_t step;  /* above the step before */
    bool has_time; /* in every frame, or in none */
    double time;
    const mrec_cell *cell;         /* NULL: carries forward */
    const mrec_block_data *blocks; /* schema order, all of them; NULL: none is presented */
    const mrec_value_data *values; /* schema order, all of them; NULL: none is given */
} mrec_frame;

/* ---- writer ------------------------------------------------------------------------------------------------- */

typedef struct mrec_writer mrec_writer;

/* Make a new record at path (a directory that does not exist, unless options->overwrite) and hold it for writing.
 * By convention its name ends in .mrec. options: NULL for the defaults. The program may change its directory later.
 * On disk afterwards, synced unless no_durable: the root group, meta/, trajectory/ and its arrays, empty, and
 * trajectory/.durable at 0 frames. Errors: EXISTS, SCHEMA, VALUE, LOCKED, IO, MEMORY; then *writer is NULL. */
MREC_API mrec_status mrec_create(const char *path, const mrec_schema *schema, const mrec_options *options,
                                 mrec_writer **writer, mrec_error *error);

/* Take one frame. It is checked whole before anything changes: after SCHEMA or VALUE the writer is as it was. The
 * frame's arrays may be reused when the call returns. It may land earlier frames (see mrec_flush).
 * After IO the writer is poisoned: every later call returns that first error, frames after the last published one are
 * not in the record, and the record is reopened to go on. After MEMORY too, unless the frame was not taken yet (it
 * could not be copied, or a thread not be started): then the call may be made again. mrec_nframes tells which. */
MREC_API mrec_status mrec_append(mrec_writer *writer, const mrec_frame *frame, mrec_error *error);

/* Publish every frame taken so far; durable: and sync them, so that they survive a power loss. */
MREC_API mrec_status mrec_flush(mrec_writer *writer, bool durable, mrec_error *error);

/* Land what waits, make it durable (unless no_durable), and end the live form of the record (trajectory/.durable
 * goes). The handle stays until mrec_free. Closing twice is no error. */
MREC_API mrec_status mrec_close(mrec_writer *writer, mrec_error *error);

/* Whether mrec_close did its work, or failed in it. */
MREC_API bool mrec_closed(const mrec_writer *writer);

/* Release the handle, its lock and its memory. Frames not landed are dropped. NULL is allowed. */
MREC_API void mrec_free(mrec_writer *writer);

/* What the writer was declared with, or found in the record that it appends to: frames follow its order. Belongs to the
 * writer and ends with it. */
MREC_API const mrec_schema *mrec_writer_schema(const mrec_writer *writer);

/* SCHEMA, naming the first difference, unless the writer's blocks, columns and per-step values are these: names, types,
 * and order. For whoever fills frames for a writer that another part of the program made. (What does not change how a
 * frame is laid out in memory is not compared: rows, precision, nullable, structural shape, fill.) */
MREC_API mrec_status mrec_check_schema(const mrec_writer *writer, const mrec_schema *schema, mrec_error *error);

/* Frames taken, and of these published, and of these durable. */
MREC_API uint64_t mrec_nframes(const mrec_writer *writer);
MREC_API uint64_t mrec_npublished(const mrec_writer *writer);
MREC_API uint64_t mrec_ndurable(const mrec_writer *writer);

/* The step of the last frame taken; false, and *step undefined, when there is none. */
MREC_API bool mrec_last_step(const mrec_writer *writer, int64_t *step);

/* Whether the frames have times; false while there is none. */
MREC_API bool mrec_has_times(const mrec_writer *writer);

#ifdef __cplusplus
}
#endif
#endif /* MREC_H */
