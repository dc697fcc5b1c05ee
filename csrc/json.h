/* SPDX-License-Identifier: BSD-3-Clause
 * Checking JSON (RFC 8259) that goes into a document as it was given. Safe from any thread. */
#ifndef MREC_JSON_H
#define MREC_JSON_H

#include "status.h"

/* Where the text stops to be one JSON value in UTF-8, nested at most 80 deep: a position in it, or its length when more
 * would have to follow. SIZE_MAX: it is one. Whether a key stands twice, or a number fits, is not looked at. */
size_t mrec_json_fault(const char *text);

#endif
