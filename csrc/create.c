/* SPDX-License-Identifier: BSD-3-Clause
 * Making a new record on disk, in the order of docs/order-of-writes.md, Creating. */
#define _GNU_SOURCE
#include "writer.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* ---- the place ---- */

typedef struct content {
    bool any, zarr, section, other;
} content;

static bool is_section(const char *name) {
    static const char *const sections[] = {"trajectory", "frame", "system", "forcefield", "status"};
    for (size_t i = 0; i < sizeof sections / sizeof *sections; i++)
        if (strcmp(name, sections[i]) == 0)
            return true;
    return false;
}

static int look(void *arg, const char *name, bool is_directory) {
    content *c = arg;
    if (!is_directory && strcmp(name, ".zarr.json.tmp") == 0)
        return 0;
    c->any = true;
    if (!is_directory && strcmp(name, "zarr.json") == 0)
        c->zarr = true;
    else if (is_directory && is_section(name))
        c->section = true;
    else if (!is_directory || strcmp(name, "meta") != 0)
        c->other = true;
    return 0;
}

/* Only a record, the beginning of one that a creation left (at the very least: its first temporary file), or an empty
 * directory, is ever removed for overwrite. */
static mrec_status check_replaceable(mrec_vfs *vfs, const char *path, const mrec_options *options, mrec_error *error) {
    content c = {.any = false};
    if (!options->overwrite)
        return mrec_fail(error, MREC_E_EXISTS, path,
                         "there is something at this path already; pass overwrite=True to "
                         "replace it, or open it to append");
    mrec_status status = mrec_dir_list(vfs, path, look, &c, error);
    bool is_file = status != MREC_OK && error->sys_errno == ENOTDIR;
    if (status != MREC_OK && !is_file)
        return status;
    if (is_file || (c.any && !(c.zarr && (c.section || !c.other))))
        return mrec_fail(error, MREC_E_EXISTS, path,
                         "what is there is no record, so it is not replaced; remove it first");
    return MREC_OK;
}

typedef struct children {
    bool sections;
    mrec_buffer names;
    mrec_status status;
    mrec_error *error;
} children;

static int collect_child(void *arg, const char *name, bool is_directory) {
    children *c = arg;
    if (strcmp(name, "zarr.json") != 0 && (is_directory && is_section(name)) == c->sections)
        c->status = mrec_buffer_add(&c->names, name, strlen(name) + 1, c->error);
    return c->status != MREC_OK;
}

static mrec_status remove_child(mrec_vfs *vfs, const char *root, const char *name, mrec_error *error) {
    char *path = mrec_path_join(root, name);
    mrec_status status = path ? mrec_tree_remove(vfs, path, error) : mrec_fail_memory(error);
    free(path);
    return status;
}

/* What makes a trajectory of the files goes first, each part durably, so that also after a power loss no reader takes
 * what is left for one: without the marker the durable file stands for all that is still there. */
static mrec_status unpublish(mrec_vfs *vfs, const char *root, mrec_error *error) {
    bool there = false;
    char *dir = mrec_path_join(root, "trajectory");
    mrec_status status = dir ? mrec_file_exists(vfs, dir, &there, error) : mrec_fail_memory(error);
    if (status == MREC_OK && there)
        status = remove_child(vfs, dir, "zarr.json", error);
    if (status == MREC_OK && there)
        status = mrec_dir_sync(vfs, dir, error);
    if (status == MREC_OK && there)
        status = remove_child(vfs, dir, ".durable", error);
    if (status == MREC_OK && there)
        status = mrec_dir_sync(vfs, dir, error);
    free(dir);
    return status;
}

static mrec_status remove_children(mrec_vfs *vfs, const char *root, bool sections, mrec_error *error) {
    children c = {.sections = sections, .error = error};
    mrec_status status = mrec_dir_list(vfs, root, collect_child, &c, error);
    if (status == MREC_OK)
        status = c.status;
    for (size_t at = 0; status == MREC_OK && at < c.names.size; at += strlen((char *)c.names.data + at) + 1)
        status = remove_child(vfs, root, (char *)c.names.data + at, error);
    mrec_buffer_free(&c.names);
    return status == MREC_OK ? mrec_dir_sync(vfs, root, error) : status;
}

/* What a record is known by goes last, each part durably, so that a half-emptied one can still be replaced. The
 * directory itself stays, it carries the lock. */
static mrec_status empty_record(mrec_vfs *vfs, const char *root, mrec_error *error) {
    MREC_TRY(unpublish(vfs, root, error));
    MREC_TRY(remove_children(vfs, root, false, error));
    MREC_TRY(remove_children(vfs, root, true, error));
    return remove_child(vfs, root, "zarr.json", error);
}

/* An empty directory at path, locked. */
static mrec_status take_place(mrec_vfs *vfs, const char *path, const mrec_options *options, mrec_lock **lock,
                              mrec_error *error) {
    int made;
    MREC_RETRY(made, vfs->mkdir(vfs, path));
    if (made < 0 && made != -EEXIST)
        return mrec_fail_errno(error, -made, path, "cannot create the record");
    if (made == -EEXIST)
        MREC_TRY(check_replaceable(vfs, path, options, error));
    mrec_status status = mrec_lock_take(vfs, path, lock, error);
    if (status == MREC_OK && made == -EEXIST)
        status = empty_record(vfs, path, error);
    if (status == MREC_OK)
        return MREC_OK;
    mrec_lock_free(*lock);
    *lock = NULL;
    if (made == 0 && status != MREC_E_LOCKED) /* otherwise another has it by now */
        vfs->rmdir(vfs, path);
    return status;
}

/* ---- the documents ---- */

static mrec_status write_group(mrec_vfs *vfs, const char *root, const char *key, const char *members, bool durable,
                               mrec_error *error) {
    mrec_group group;
    mrec_replacements synced = {0};
    mrec_status status = mrec_group_init(&group, root, key, error);
    if (status == MREC_OK)
        status = mrec_group_set(&group, members, error);
    if (status == MREC_OK)
        status = mrec_group_write(vfs, &group, durable ? &synced : NULL, error);
    if (status == MREC_OK)
        status = mrec_files_publish(vfs, &synced, error);
    mrec_files_drop(vfs, &synced);
    if (status == MREC_OK && durable)
        status = mrec_document_sync_dirs(vfs, &group.doc, error);
    mrec_group_free(&group);
    return status;
}

/* meta_json is an object; a group takes its members. */
static mrec_status write_meta(mrec_vfs *vfs, const char *root, const char *meta_json, bool durable, mrec_error *error) {
    size_t n = meta_json ? strlen(meta_json) : 0;
    if (n && (n < 2 || meta_json[0] != '{' || meta_json[n - 1] != '}'))
        return mrec_fail(error, MREC_E_VALUE, root, "meta_json is no JSON object without space around it");
    char *members = n ? strndup(meta_json + 1, n - 2) : strdup("");
    mrec_status status = members ? write_group(vfs, root, "meta", members, durable, error) : mrec_fail_memory(error);
    free(members);
    return status;
}

static mrec_status init_sequence(mrec_sequence *seq, mrec_vfs *vfs, const mrec_lock *lock, const char *root,
                                 const mrec_schema *schema, const char *schema_json, const mrec_options *options,
                                 mrec_error *error) {
    MREC_TRY(mrec_sequence_init(seq, vfs, lock, root, schema, schema_json, NULL, error));
    for (size_t i = 0; i < seq->declared.schema.nblocks; i++) {
        const mrec_block *block = &seq->declared.schema.blocks[i];
        mrec_buffer members = {0};
        mrec_status status = MREC_OK;
        if (block->nstructural) {
            status = mrec_buffer_print(&members, error, "\"structural_shape\":");
            if (status == MREC_OK)
                status = mrec_json_axes(&members, block->structural, block->nstructural, error);
        }
        if (status == MREC_OK)
            status = mrec_block_init(&seq->blocks[i], &seq->store, block,
                                     members.data ? (const char *)members.data : "", error);
        mrec_buffer_free(&members);
        MREC_TRY(status);
    }
    MREC_TRY(mrec_cell_init(&seq->cell, &seq->store, "", error));
    seq->complete = true;
    seq->store.never_sync = options->no_durable;
    return mrec_sequence_make_arrays(seq, options, error);
}

static mrec_status write_record(mrec_sequence *seq, const mrec_options *options, mrec_error *error) {
    mrec_vfs *vfs = seq->store.files.vfs;
    const char *root = seq->store.root;
    const bool durable = !options->no_durable;
    MREC_TRY(write_group(vfs, root, "", "", durable, error));
    MREC_TRY(write_meta(vfs, root, options->meta_json, durable, error));
    MREC_TRY(mrec_dir_make(vfs, seq->marker.dir, error));
    MREC_TRY(mrec_commit_documents(seq, durable, error));
    if (durable)
        MREC_TRY(mrec_commit_directories(seq, true, error));
    MREC_TRY(mrec_commit_durable_file(seq, durable, error));
    MREC_TRY(mrec_commit_marker(seq, true, durable, error));
    return durable ? mrec_dir_sync(vfs, root, error) : MREC_OK;
}

mrec_status mrec_create_on(mrec_vfs *vfs, const char *path, const mrec_schema *schema, const char *schema_json,
                           const mrec_options *options, mrec_writer **out, mrec_error *error) {
    mrec_options defaults;
    mrec_lock *lock = NULL;
    mrec_sequence sequence;
    *out = NULL;
    if (!options) {
        mrec_options_init(&defaults);
        options = &defaults;
    }
    MREC_TRY(mrec_layout_check_options(options, error));
    /* The schema is checked before anything is touched. */
    mrec_status status = init_sequence(&sequence, vfs, NULL, path, schema, schema_json, options, error);
    if (status == MREC_OK)
        status = take_place(vfs, path, options, &lock, error);
    mrec_sequence_free(&sequence);
    if (status == MREC_OK)
        status = mrec_writer_new(lock, options, out, error);
    if (status != MREC_OK)
        return status;
    status = init_sequence(&(*out)->sequence, vfs, lock, path, schema, schema_json, options, error);
    if (status == MREC_OK)
        status = write_record(&(*out)->sequence, options, error);
    if (status != MREC_OK) {
        mrec_error local;
        if (mrec_lock_check(lock, &local) == MREC_OK) { /* nothing half-made stays where it can be helped */
            empty_record(vfs, path, &local);
            vfs->rmdir(vfs, path);
        }
        mrec_free(*out);
        *out = NULL;
    }
    return status;
}

/* The path from the root, so that a later chdir() does not matter. Free it. */
static mrec_status absolute_path(const char *path, char **out, mrec_error *error) {
    if (path[0] == '/') {
        *out = strdup(path);
    } else {
        char *here = getcwd(NULL, 0);
        if (!here)
            return mrec_fail_errno(error, errno, path, "cannot tell the current directory");
        *out = mrec_path_join(here, path);
        free(here);
    }
    return *out ? MREC_OK : mrec_fail_memory(error);
}

mrec_status mrec_create(const char *path, const mrec_schema *schema, const mrec_options *options, mrec_writer **writer,
                        mrec_error *error) {
    char *from_root;
    *writer = NULL;
    MREC_TRY(absolute_path(path, &from_root, error));
    mrec_status status = mrec_create_on(mrec_vfs_posix(), from_root, schema, NULL, options, writer, error);
    free(from_root);
    return status;
}
