#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# Makes .venv ready for the extras named (tools/setup.sh convert plot): system packages, interpreter, Python packages,
# the build. Each step looks first whether there is anything to do. MREC_PYTHON names the interpreter to use.
set -eu
cd "$(dirname "$0")/.."

venv=.venv
log=build/setup.log

fail() {
    echo "setup: $*" >&2
    exit 1
}

# Run a command with its output in the log; when it fails, say in one line what that means.
logged() {
    meaning=$1
    shift
    "$@" >>"$log" 2>&1 || fail "$meaning (the end of $log says why)"
}

# Does this interpreter run, and is it recent enough? A pyenv shim without its version exists and does neither.
works() {
    "$1" -c "import ssl, sys, zlib; sys.exit(sys.version_info < ($2))" >/dev/null 2>&1
}

# The newest interpreter that the peers in the tests have wheels for, otherwise any that mrec itself runs on.
find_python() {
    if [ -n "${MREC_PYTHON:-}" ]; then
        works "$MREC_PYTHON" "3, 11" || fail "MREC_PYTHON=$MREC_PYTHON is no working Python >= 3.11"
        echo "$MREC_PYTHON"
        return
    fi
    pyenv=$(pyenv root 2>/dev/null) || pyenv=/nonexistent
    for candidate in python3.14 python3.13 python3.12 \
        "$pyenv"/versions/3.14*/bin/python3 "$pyenv"/versions/3.13*/bin/python3 "$pyenv"/versions/3.12*/bin/python3; do
        if works "$candidate" "3, 12"; then
            echo "$candidate"
            return
        fi
    done
    for candidate in python3 python3.11; do
        if works "$candidate" "3, 11"; then
            echo "$candidate"
            return
        fi
    done
    fail "mrec needs Python 3.11 or newer, and none is on the PATH"
}

# Debian's names of the packages that are missing, empty when the machine has all.
missing_packages() {
    command -v cc >/dev/null || echo gcc libc6-dev
    if [ -z "${MREC_LDFLAGS:-}${LIBDEFLATE_DIR:-}" ]; then
        command -v pkg-config >/dev/null || echo pkg-config
        pkg-config --exists libdeflate 2>/dev/null || echo libdeflate-dev
        pkg-config --exists libzstd 2>/dev/null || echo libzstd-dev
    fi
    "$1" - <<'PYTHON'
import importlib.util, os, sys, sysconfig

package = "python%d.%d" % sys.version_info[:2]
if importlib.util.find_spec("ensurepip") is None:
    print(package + "-venv")
if not os.path.exists(os.path.join(sysconfig.get_path("include"), "Python.h")):
    print(package + "-dev")
PYTHON
}

install_packages() {
    command -v apt-get >/dev/null || fail "missing (by their Debian names): $*"
    root=
    if [ "$(id -u)" != 0 ]; then
        root=$(command -v sudo) || fail "missing; as root: apt-get install $*"
    fi
    echo "setup: installing $*" >&2
    # shellcheck disable=SC2086  # root is a command or nothing
    $root apt-get update >>"$log" 2>&1 || true # one dead source of many does no harm
    # shellcheck disable=SC2086
    logged "missing, and apt-get could not install: $*" \
        $root env DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends "$@"
}

# Programs that tests run, clang with libFuzzer among them. Where they can not be had, that is said.
install_test_tools() (
    [ "$(uname)" = Linux ] || exit 0
    set --
    command -v c++ >/dev/null || set -- "$@" g++
    for tool in clang valgrind unzip zip zstd; do
        command -v $tool >/dev/null || set -- "$@" $tool
    done
    case $(uname -m) in
    aarch64) ;;
    *) # the kernels of the other platform, under an emulator
        command -v aarch64-linux-gnu-gcc >/dev/null || set -- "$@" gcc-aarch64-linux-gnu
        [ -e /usr/aarch64-linux-gnu/include/stdio.h ] || set -- "$@" libc6-dev-arm64-cross
        command -v qemu-aarch64 >/dev/null || set -- "$@" qemu-user
        ;;
    esac
    [ $# = 0 ] || install_packages "$@"
    has_fuzzer || install_packages "libclang-rt-$(clang -dumpversion | cut -d. -f1)-dev"
)

has_fuzzer() {
    echo 'int LLVMFuzzerTestOneInput(const char *d, long n) { return d && n < 0; }' |
        clang -fsanitize=fuzzer -x c - -o build/probe >/dev/null 2>&1
}

make_venv() {
    python=$(find_python)
    # shellcheck disable=SC2046  # names of packages have no spaces
    set -- $(missing_packages "$python")
    [ $# = 0 ] || install_packages "$@"
    rm -rf $venv
    logged "$python could not make $venv" "$python" -m venv $venv
}

# The packages for one set of extras; the stamp holds what was asked for.
install_requirements() {
    wanted=$($venv/bin/python tools/requirements.py "$@")
    stamp=$venv/installed-$(echo "$*" | tr ' ' -)
    if [ "$wanted" != "$(cat "$stamp" 2>/dev/null)" ]; then
        echo "setup: installing Python packages for $*" >&2
        echo "$wanted" >build/requirements.txt
        logged "pip could not install what build/requirements.txt lists; is there a network?" \
            $venv/bin/python -m pip install --disable-pip-version-check --no-compile -r build/requirements.txt
        echo "$wanted" >"$stamp"
    fi
}

build() {
    if [ ! -e $venv/built ] || ! ls mrec/_core.*.so >/dev/null 2>&1 ||
        [ -n "$(find csrc mrec setup.py pyproject.toml -newer $venv/built \
            \( -name '*.[ch]' -o -name '*.py[xd]' -o -name '*.pxi' -o -name setup.py -o -name pyproject.toml \) \
            ! -name _core.c)" ]; then
        echo "setup: building" >&2
        touch $venv/building
        logged "the build failed" \
            $venv/bin/python -m pip install --disable-pip-version-check --no-build-isolation --no-deps -e .
        mv $venv/building $venv/built # as old as the start of the build: what changed since is built next time
    fi
}

mkdir -p build
$venv/bin/python -c '' 2>/dev/null || make_venv
install_requirements "$@"
case " $* " in *" test "* | *" dev "*) install_test_tools || true ;; esac
build
