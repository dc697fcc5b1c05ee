/* SPDX-License-Identifier: BSD-3-Clause
 * The core, tested without Python. From the top of the repository:
 *   cc -std=c11 -g -Icsrc -Icsrc/include csrc/?*.c csrc/tests/?*.c -ldeflate -lzstd -lpthread -lm -o build/test_core
 * Add -fsanitize=address,undefined, or run it under valgrind. Every kernel runs with and without what the processor
 * offers beyond the base instruction set. */
#define _GNU_SOURCE
#include "tests.h"

#include "buffer.h"
#include "cpu.h"
#include "json.h"
#include "layout.h"
#include "shard.h"
#include "vlen.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <unistd.h>

void test_status(void) {
    mrec_error error;
    assert(mrec_fail(&error, MREC_E_VALUE, "/a/b", "step %d", 3) == MREC_E_VALUE);
    assert(error.status == MREC_E_VALUE && error.sys_errno == 0);
    assert(strcmp(error.path, "/a/b") == 0 && strcmp(error.message, "step 3") == 0);
    /* an error may be put into other words with its own parts */
    mrec_fail(&error, MREC_E_CORRUPT, error.path, "array x: %s", error.message);
    assert(strcmp(error.path, "/a/b") == 0 && strcmp(error.message, "array x: step 3") == 0);
    assert(mrec_fail_errno(&error, ENOENT, "f", "open") == MREC_E_IO && error.sys_errno == ENOENT);
    assert(strncmp(error.message, "open: ", 6) == 0 && strlen(error.message) > 6);
    char path[2000];
    memset(path, 'p', sizeof path);
    path[sizeof path - 1] = '\0';
    mrec_fail(&error, MREC_E_IO, path, "%s", path);
    assert(strlen(error.path) == sizeof error.path - 1 && strlen(error.message) == sizeof error.message - 1);
    assert(mrec_fail_memory(NULL) == MREC_E_MEMORY && mrec_fail_errno(NULL, EIO, NULL, "x") == MREC_E_IO);
    assert(strcmp(mrec_status_name(MREC_E_IO), "i/o error") == 0 && mrec_status_name((mrec_status)99) != NULL);
    assert(mrec_dtype_size(MREC_C128) == 16 && mrec_dtype_size(MREC_F16) == 2 && mrec_dtype_size(MREC_STRING) == 0);
    uint64_t out;
    assert(mrec_mul(UINT64_MAX / 3, 3, &out) && out == UINT64_MAX && !mrec_mul(UINT64_MAX / 3 + 1, 3, &out));
    assert(mrec_add(UINT64_MAX - 1, 1, &out) && out == UINT64_MAX && !mrec_add(UINT64_MAX, 1, &out));
}

/* The text of a file; "" for none. */
static void check_text(mrec_vfs *vfs, const char *path, const char *right) {
    mrec_buffer found = {0};
    mrec_error error;
    bool there;
    assert(mrec_file_load(vfs, path, &found, &there, &error) == MREC_OK && there == (right[0] != '\0'));
    assert(found.size == strlen(right) && memcmp(found.data ? found.data : (uint8_t *)"", right, found.size) == 0);
    mrec_buffer_free(&found);
}

/* More files than are synced at the same time: none has its name before it is given, and then those that were asked
 * for. */
void test_together(void) {
    enum { N = 2 * MREC_MAX_TOGETHER + 3 };
    mrec_vfs *vfs = mrec_vfs_posix();
    mrec_replacements all = {0};
    mrec_error error;
    char directory[] = "/tmp/mrec-together-XXXXXX", path[N][64], text[32];
    assert(mkdtemp(directory) != NULL);
    for (int i = 0; i < N; i++) {
        snprintf(path[i], sizeof path[i], "%s/%d", directory, i);
        snprintf(text, sizeof text, "new %d", i);
        assert(mrec_file_replace(vfs, path[i], "old", 3, &error) == MREC_OK);
        assert(mrec_file_prepare(vfs, path[i], text, strlen(text), &all, &error) == MREC_OK);
    }
    assert(mrec_files_settle(vfs, &all, &error) == MREC_OK && all.settled == N);
    check_text(vfs, path[0], "old");
    assert(mrec_files_name(vfs, &all, N - 2, &error) == MREC_OK);
    mrec_files_drop(vfs, &all);
    for (int i = 0; i < N; i++) {
        snprintf(text, sizeof text, "new %d", i);
        check_text(vfs, path[i], i < N - 2 ? text : "old");
        assert(mrec_file_remove(vfs, path[i], &error) == MREC_OK);
    }
    const mrec_open_file files[] = {{open(directory, O_RDONLY), directory}, {-1, "none"}, {-1, "neither"}};
    assert(mrec_files_sync(vfs, files, 3, &error) == MREC_E_IO && error.sys_errno == EBADF);
    assert(strcmp(error.path, "none") == 0);
    close(files[0].fd);
    assert(vfs->rmdir(vfs, directory) == 0); /* no temporary file is left */
}

void test_buffer(void) {
    mrec_buffer buffer = {0};
    mrec_error error;
    assert(mrec_buffer_reserve(&buffer, 0, &error) == MREC_OK && buffer.data == NULL);
    assert(mrec_buffer_add(&buffer, "", 0, &error) == MREC_OK && buffer.size == 0);
    for (int i = 0; i < 1000; i++)
        assert(mrec_buffer_print(&buffer, &error, "%03d,", i) == MREC_OK && buffer.data[buffer.size] == '\0');
    assert(buffer.size == 4000 && strncmp((char *)buffer.data + 2800, "700,701,", 8) == 0);
    assert(mrec_buffer_reserve(&buffer, SIZE_MAX, &error) == MREC_E_MEMORY && buffer.size == 4000);
    assert(mrec_buffer_add(&buffer, "x", SIZE_MAX, &error) == MREC_E_MEMORY && buffer.size == 4000);
    buffer.size = 0;
    assert(mrec_buffer_json(&buffer, "a\"\\\n\t\x01\xc3\xa9\x7f", 9, &error) == MREC_OK);
    const char *json = "\"a\\\"\\\\\\n\\t\\u0001\xc3\xa9\x7f\"";
    assert(buffer.size == strlen(json) && memcmp(buffer.data, json, buffer.size) == 0);
    buffer.size = 0;
    assert(mrec_buffer_json(&buffer, NULL, 0, &error) == MREC_OK && buffer.size == 2);
    mrec_buffer_free(&buffer);
    assert(buffer.data == NULL && buffer.capacity == 0);
}

static bool valid(const char *text) {
    return mrec_utf8_valid(text, strlen(text));
}

static void test_utf8(void) {
    assert(mrec_utf8_valid(NULL, 0) && mrec_utf8_valid("\0", 1));
    assert(valid("plain text longer than a word") && valid("\xc2\x80\xdf\xbf"));
    assert(valid("\xe0\xa0\x80\xed\x9f\xbf\xee\x80\x80\xef\xbf\xbf") && valid("\xf0\x90\x80\x80\xf4\x8f\xbf\xbf"));
    const char *bad[] = {"\x80",         "\xbf",         "\xc0\x80",         "\xc1\xbf",         "\xe0\x9f\xbf",
                         "\xed\xa0\x80", "\xed\xbf\xbf", "\xf0\x8f\xbf\xbf", "\xf4\x90\x80\x80", "\xf5\x80\x80\x80",
                         "\xff",         "\xc2",         "\xe1\x80",         "\xf1\x80\x80",     "\xc2 ",
                         "\xe1\x80 ",    "\xf1\x80\x80 "};
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        char text[64];
        assert(!valid(bad[i]));
        snprintf(text, sizeof text, "twelve bytes%sand then some more", bad[i]);
        assert(!valid(text));
    }
}

void test_vlen(void) {
    test_utf8();
    static const uint8_t chunk[] = {3, 0, 0, 0, 2, 0, 0, 0, 'O', 'W', 0, 0, 0, 0, 2, 0, 0, 0, 0xc3, 0xa9};
    uint64_t ends[3];
    mrec_error error;
    assert(mrec_vlen_walk(chunk, sizeof chunk, 3, ends, &error) == MREC_OK);
    assert(ends[0] == 10 && ends[1] == 14 && ends[2] == 20);
    assert(mrec_vlen_start(ends, 0) == 8 && mrec_vlen_start(ends, 1) == 14 && mrec_vlen_start(ends, 2) == 18);
    assert(mrec_vlen_walk(chunk, sizeof chunk, 2, NULL, &error) == MREC_E_CORRUPT);
    assert(mrec_vlen_walk(chunk, sizeof chunk, 3 + (1ull << 32), NULL, &error) == MREC_E_CORRUPT);
    for (size_t n = 0; n < sizeof chunk; n++) {
        uint8_t *cut = malloc(n > 0 ? n : 1);
        assert(cut != NULL);
        memcpy(cut, chunk, n);
        assert(mrec_vlen_walk(cut, n, 3, ends, &error) == MREC_E_CORRUPT);
        free(cut);
    }
    static const size_t bad_at[] = {4, 7, 8, 18, 19}; /* sizes, and bytes that stop being UTF-8 */
    for (size_t i = 0; i < sizeof bad_at / sizeof bad_at[0]; i++) {
        uint8_t copy[sizeof chunk];
        memcpy(copy, chunk, sizeof chunk);
        copy[bad_at[i]] = 0xff;
        assert(mrec_vlen_walk(copy, sizeof copy, 3, ends, &error) == MREC_E_CORRUPT);
    }
    uint8_t longer[sizeof chunk + 1] = {0};
    memcpy(longer, chunk, sizeof chunk);
    assert(mrec_vlen_walk(longer, sizeof longer, 3, ends, &error) == MREC_E_CORRUPT);
    assert(mrec_vlen_walk("\0\0\0\0", 4, 0, NULL, &error) == MREC_OK);
}

/* The sanitizers' malloc fails as the system's does. */
const char *__asan_default_options(void);
const char *__asan_default_options(void) {
    return "allocator_may_return_null=1";
}

const char *__tsan_default_options(void);
const char *__tsan_default_options(void) {
    return "allocator_may_return_null=1:halt_on_error=1";
}

/* An index that no memory holds: refused, and no descriptor that belongs to others is closed on the way. */
void test_shard(void) {
    mrec_files files = {.vfs = mrec_vfs_posix(), .budget = 4};
    mrec_shard *shard;
    mrec_error error;
    assert(mrec_shard_new(&files, "c/0", UINT64_C(1) << 58, &shard, &error) == MREC_E_MEMORY && shard == NULL);
    assert(files.open == 0 && files.newest == NULL && fcntl(0, F_GETFD) != -1);
}

void test_options(void) {
    static const struct {
        mrec_compression compression;
        int level;
        mrec_status status;
    } cases[] = {{MREC_COMPRESS_DEFAULT, 0, MREC_OK},    {MREC_COMPRESS_GZIP, 9, MREC_OK},
                 {MREC_COMPRESS_GZIP, 10, MREC_E_VALUE}, {MREC_COMPRESS_ZSTD, 22, MREC_OK},
                 {MREC_COMPRESS_ZSTD, -131072, MREC_OK}, {MREC_COMPRESS_SHUFFLE_ZSTD, 23, MREC_E_VALUE},
                 {(mrec_compression)77, 0, MREC_E_VALUE}};
    mrec_error error;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        mrec_options options = {.compression = cases[i].compression, .level = cases[i].level};
        assert(mrec_layout_check_options(&options, &error) == cases[i].status);
    }
    const mrec_options wrong[] = {{.flush_seconds = NAN},
                                  {.durable_seconds = NAN},
                                  {.chunks_per_shard = (1 << 24) + 1},
                                  {.threads = 257},
                                  {.meta_json = "{\"title\":\"3 o'clock\" \"x\"}"}};
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++)
        assert(mrec_layout_check_options(&wrong[i], &error) == MREC_E_VALUE);
    assert(strcmp(error.message, "meta_json is no JSON from byte 21 on: \"x\"}") == 0);
    mrec_options right = {.flush_seconds = INFINITY, .chunks_per_shard = 1 << 24, .threads = 256, .meta_json = ""};
    assert(mrec_layout_check_options(&right, &error) == MREC_OK);
}

void test_json(void) {
    static const char *const right[] = {
        "{}",     " [ ] ", "0",     "-0.5e+10",    "\"\"",         "{\"a\":{\"b\":[1,2 , {}]},\"c\":null}",
        "[true]", "1E5",   "false", "\"\\u00e5\"", "\"\xc3\xa5\"", "\"\\ud83d\\ude00 \\\\ \\/ \\\" \\n\""};
    static const struct {
        const char *text;
        size_t fault;
    } wrong[] = {{"", 0},
                 {"{bad}", 1},
                 {"{\"a\":1,}", 7},
                 {"[1 2]", 3},
                 {"01", 1},
                 {"1.", 2},
                 {"1e", 2},
                 {"-", 1},
                 {"+1", 0},
                 {"NaN", 0},
                 {"nul", 3},
                 {"{\"a\"}", 4},
                 {"[1", 2},
                 {"{} x", 3},
                 {"\"a", 2},
                 {"\"a\nb\"", 2},
                 {"\"\\x\"", 2},
                 {"\"\\u12g4\"", 5},
                 {"\"\\ud800\"", 7},
                 {"\"\\udc00\"", 7},
                 {"\"\xe5\"", 1},
                 {"\"\\ud800\\u0020\"", 13},
                 {"[1]]", 3},
                 {"'a'", 0},
                 {"\xc3\xa5", 0},
                 {"\"\\", 2}};
    for (size_t i = 0; i < sizeof right / sizeof right[0]; i++)
        assert(mrec_json_fault(right[i]) == SIZE_MAX);
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++)
        assert(mrec_json_fault(wrong[i].text) == wrong[i].fault);
    char nested[2 * 81 + 1] = {0};
    memset(nested, '[', 81);
    memset(nested + 81, ']', 81);
    assert(mrec_json_fault(nested) == 80);
    nested[80] = nested[81] = ' ';
    assert(mrec_json_fault(nested) == SIZE_MAX);
}

int main(void) {
    static const struct {
        const char *name;
        void (*run)(void);
    } tests[] = {
        {"status", test_status},   {"buffer", test_buffer},   {"together", test_together}, {"vlen", test_vlen},
        {"crc32c", test_crc32c},   {"shuffle", test_shuffle}, {"quantize", test_quantize}, {"zframe", test_zframe},
        {"codec", test_codec},     {"runs", test_runs},       {"damage", test_damage},     {"shard", test_shard},
        {"options", test_options}, {"json", test_json},       {"strided", test_strided},   {"reader", test_reader},
        {"archive", test_archive}, {"encode", test_encode},   {"writer", test_writer},     {"threads", test_threads}};
    static const struct {
        const char *name;
        unsigned features;
    } processors[] = {{"", ~0u}, {" (older)", MREC_CPU_CRC32C}, {" (portable)", 0}};
    for (size_t p = 0; p < 3; p++) {
        mrec_cpu_allow(processors[p].features);
        for (size_t i = 0; i < sizeof tests / sizeof tests[0]; i++) {
            tests[i].run();
            printf("ok %s%s\n", tests[i].name, processors[p].name);
        }
    }
    return 0;
}
