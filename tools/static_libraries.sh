#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# Builds libdeflate and zstd for linking into a wheel: static_libraries.sh PREFIX makes PREFIX/lib/*.a and PREFIX/include.
# The sources are those that two packages of PyPI carry, by the hashes in tools/static_libraries.txt.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
mkdir -p "$1/lib" "$1/include"
prefix=$(cd "$1" && pwd)
python=${PYTHON:-python3}
flags="-O3 -fPIC -fvisibility=hidden ${CFLAGS:-}"

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
$python -m pip download --quiet --disable-pip-version-check --no-deps --no-binary deflate,zstd --require-hashes \
    --dest "$work" --requirement "$here/static_libraries.txt"
for archive in "$work"/*.tar.gz; do
    tar -xzf "$archive" -C "$work"
done

# archive NAME FLAGS FILES: compiles the files into PREFIX/lib/NAME.a
archive() {
    name=$1
    more=$2
    shift 2
    # shellcheck disable=SC2086  # flags are many words
    printf '%s\n' "$@" | xargs -P "$(getconf _NPROCESSORS_ONLN)" -I FILE sh -c 'file=$1 && shift &&
        exec "$@" -c "$file" -o "$(echo "$file" | tr / _).o"' sh FILE ${CC:-cc} $flags $more
    rm -f "$prefix/lib/$name.a"
    ar rcs "$prefix/lib/$name.a" ./*.o
}

cd "$work"/deflate-*/libdeflate
archive libdeflate -I. lib/*.c lib/x86/*.c lib/arm/*.c
cp libdeflate.h "$prefix/include"

cd "$work"/zstd-*/zstd/lib
hidden="-DZSTDLIB_VISIBLE= -DZSTDERRORLIB_VISIBLE= -DXXH_NAMESPACE=ZSTD_ -DZSTD_LEGACY_SUPPORT=0"
archive libzstd "$hidden" common/*.c compress/*.c decompress/*.c decompress/*.S
cp zstd*.h "$prefix/include"
