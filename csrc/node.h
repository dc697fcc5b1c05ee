/* SPDX-License-Identifier: BSD-3-Clause
 * The nodes of a trajectory, arrays and groups, in the order in which a commit replaces their documents. */
#ifndef MREC_NODE_H
#define MREC_NODE_H

#include "array.h"

/* Exactly one of the two. */
typedef struct mrec_node {
    mrec_array *array;
    mrec_group *group;
    uint64_t every_frame; /* of an array that has grown with every frame so far: a number of rows that its length is a
                             multiple of; otherwise 0 */
} mrec_node;

typedef mrec_status (*mrec_node_visit)(void *arg, mrec_node node, mrec_error *);

/* For walks over nodes: an array that is not there (NULL) is passed over. */
static inline mrec_status mrec_visit_array(mrec_node_visit visit, void *arg, mrec_array *array, uint64_t every_frame,
                                           mrec_error *error) {
    return array ? visit(arg, (mrec_node){.array = array, .every_frame = every_frame}, error) : MREC_OK;
}

static inline mrec_status mrec_visit_group(mrec_node_visit visit, void *arg, mrec_group *group, mrec_error *error) {
    return visit(arg, (mrec_node){.group = group}, error);
}

static inline mrec_document *mrec_node_document(mrec_node node) {
    return node.array ? &node.array->doc : &node.group->doc;
}

#endif
