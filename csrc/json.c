/* SPDX-License-Identifier: BSD-3-Clause */
#define _GNU_SOURCE
#include "json.h"

#include "vlen.h"

#include <string.h>

#define DEPTH 80 /* of the 100 that readers take; documents stand around */

static const char *skip_space(const char *at) {
    return at + strspn(at, " \t\n\r");
}

/* Each of these goes from the first character of what it is named after to behind its last: true. False: *at is where
 * it cannot go on. */

static bool pass_digits(const char **at) {
    const size_t n = strspn(*at, "0123456789");
    *at += n;
    return n > 0;
}

static bool pass_number(const char **at) {
    *at += **at == '-';
    if (**at == '0')
        ++*at;
    else if (!pass_digits(at))
        return false;
    if (**at == '.' && (++*at, !pass_digits(at)))
        return false;
    if (**at != 'e' && **at != 'E')
        return true;
    ++*at;
    *at += **at == '-' || **at == '+';
    return pass_digits(at);
}

/* Four hexadecimal digits; -1 when they are not there. */
static int pass_unit(const char **at) {
    int unit = 0;
    for (int i = 0; i < 4; i++, ++*at) {
        static const char digits[] = "0123456789abcdef0123456789ABCDEF";
        const char *digit = **at ? strchr(digits, **at) : NULL;
        if (digit == NULL)
            return -1;
        unit = unit * 16 + (int)(digit - digits) % 16;
    }
    return unit;
}

/* What stands behind a backslash; of surrogates both. */
static bool pass_escape(const char **at) {
    if (**at == '\0' || strchr("\"\\/bfnrtu", **at) == NULL)
        return false;
    if (*(*at)++ != 'u')
        return true;
    const int unit = pass_unit(at);
    if (unit < 0xd800 || unit > 0xdfff)
        return unit >= 0;
    if (unit >= 0xdc00 || (*at)[0] != '\\' || (*at)[1] != 'u')
        return false;
    *at += 2;
    const int low = pass_unit(at);
    return low >= 0xdc00 && low <= 0xdfff;
}

static bool pass_string(const char **at) {
    if (**at != '"')
        return false;
    const char *first = ++*at;
    while (**at != '"') {
        if ((unsigned char)**at < ' ')
            return false;
        if (*(*at)++ == '\\' && !pass_escape(at))
            return false;
    }
    if (!mrec_utf8_valid(first, (size_t)(*at - first)))
        return *at = first, false;
    ++*at;
    return true;
}

static bool pass_word(const char **at, const char *word) {
    for (; *word; word++, ++*at)
        if (**at != *word)
            return false;
    return true;
}

static bool pass_value(const char **at, int depth);

static bool pass_member(const char **at, int depth) {
    if (!pass_string(at))
        return false;
    *at = skip_space(*at);
    if (**at != ':')
        return false;
    *at = skip_space(*at + 1);
    return pass_value(at, depth);
}

/* An array or an object, up to its closing bracket. */
static bool pass_items(const char **at, char close, int depth) {
    if (depth == 0)
        return false;
    *at = skip_space(*at + 1);
    if (**at == close)
        return ++*at, true;
    while (close == '}' ? pass_member(at, depth - 1) : pass_value(at, depth - 1)) {
        *at = skip_space(*at);
        if (**at == close)
            return ++*at, true;
        if (**at != ',')
            return false;
        *at = skip_space(*at + 1);
    }
    return false;
}

static bool pass_value(const char **at, int depth) {
    switch (**at) {
    case '{':
        return pass_items(at, '}', depth);
    case '[':
        return pass_items(at, ']', depth);
    case '"':
        return pass_string(at);
    case 't':
        return pass_word(at, "true");
    case 'f':
        return pass_word(at, "false");
    case 'n':
        return pass_word(at, "null");
    default:
        return pass_number(at);
    }
}

size_t mrec_json_fault(const char *text) {
    const char *at = skip_space(text);
    if (!pass_value(&at, DEPTH))
        return (size_t)(at - text);
    at = skip_space(at);
    return *at ? (size_t)(at - text) : SIZE_MAX;
}
