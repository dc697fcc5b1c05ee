# `make demo` and `make test` set up all they need, on a machine with nothing but Python and a C compiler: tools/setup.sh.
# ARGS goes to the command: make test ARGS="-k ragged -x".

PYTHON = .venv/bin/python
PREFIX = /usr/local
DESTDIR =
CFLAGS = -std=c11 -O2 -g -Wall -Wextra -Werror -Icsrc/include -Icsrc $(MREC_CFLAGS)
LDLIBS = $(or $(MREC_LDFLAGS),$(shell pkg-config --libs libdeflate libzstd)) -pthread -lm
ARGS =

# Hundreds of processes of the tests import the same modules: compile them once, whatever the machine is set to.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: demo test test-c bench bench-docs bench-chunks lint docs site wheel amalgamation install clean distclean

demo:
	@tools/setup.sh convert plot
	@$(PYTHON) examples/demo.py $(ARGS)

# On two processes or more, as there are processors; make test ARGS="-n0 -x" on one.
test: test-c
	@$(PYTHON) -m pytest -n auto --dist loadfile $(ARGS)

# The core without Python, under the address and undefined-behaviour sanitizers.
test-c:
	@tools/setup.sh test
	@$(MAKE) --no-print-directory -j$(shell getconf _NPROCESSORS_ONLN) build/test-core
	@build/test-core

# zframe against zstd, chunk by chunk; ARGS: a file of doubles and how many make a chunk.
bench-chunks:
	@mkdir -p build
	$(CC) $(CFLAGS) -O3 benchmarks/chunks.c csrc/*.c $(LDLIBS) -o build/bench-chunks
	@build/bench-chunks $(ARGS)

SANITIZE = -fsanitize=address,undefined -fno-sanitize-recover=all

build/test-core: $(patsubst %.c,build/test/%.o,$(wildcard csrc/*.c csrc/tests/*.c))
	@$(CC) $(SANITIZE) $^ $(LDLIBS) -o $@

build/test/%.o: %.c $(wildcard csrc/*.h csrc/include/*.h csrc/tests/*.h)
	@mkdir -p $(@D)
	@$(CC) $(CFLAGS) $(SANITIZE) -c $< -o $@

# Runs too long for every day: tests/long/test_<name>.py.
test-long-%:
	@tools/setup.sh test
	@$(PYTHON) -m pytest -o faulthandler_timeout=0 tests/long/test_$(subst -,_,$*).py $(ARGS)

# mrec against its peers, as `mrec bench`: make bench ARGS=--quick.
bench:
	@tools/setup.sh bench
	@$(PYTHON) -m benchmarks $(ARGS)

# All figures of the documentation, anew: docs/figures.md, docs/plots, the tables of docs/performance.md.
bench-docs:
	@tools/setup.sh bench
	@$(PYTHON) -m benchmarks --docs $(ARGS)
	@$(PYTHON) -m benchmarks.memory
	@$(PYTHON) -m benchmarks.reading
	@$(PYTHON) -m benchmarks.dead

lint:
	@tools/setup.sh dev
	$(PYTHON) -m ruff check
	$(PYTHON) -m ruff format --check
	$(PYTHON) -m mypy
	$(PYTHON) -m mypy.stubtest mrec._core --mypy-config-file pyproject.toml --allowlist tools/stubtest.txt
	.venv/bin/clang-format --dry-run -Werror $$(git ls-files '*.c' '*.h')
	gcc $(CFLAGS) -shared -fPIC csrc/*.c $(LDLIBS) -o build/libmrec-gcc.so
	clang $(CFLAGS) -shared -fPIC csrc/*.c $(LDLIBS) -o build/libmrec-clang.so
	python3 tools/amalgamate.py build/amalgamation
	gcc $(CFLAGS) -c build/amalgamation/mrec.c -o build/mrec-gcc.o
	clang $(CFLAGS) -c build/amalgamation/mrec.c -o build/mrec-clang.o

docs:
	@tools/setup.sh test
	@$(PYTHON) -m pytest tests/test_docs.py mrec $(ARGS)

# The documentation with its tutorial run, in build/site; a warning is an error.
site:
	@tools/setup.sh site
	@$(PYTHON) -m sphinx -q -W --keep-going -d build/doctrees docs build/site $(ARGS)
	@echo build/site/index.html

# A wheel of its own, in dist/: libdeflate and zstd are linked into it, from the sources that PyPI has.
wheel: build/libraries/lib/libzstd.a
	@tools/setup.sh wheel
	@rm -rf build/wheel
	MREC_CFLAGS=-I$(CURDIR)/build/libraries/include \
	MREC_LDFLAGS="-L$(CURDIR)/build/libraries/lib $(EXCLUDE) -ldeflate -lzstd" $(PYTHON) -m build -w -o build/wheel $(ARGS)
	@mkdir -p dist
	$(REPAIR)

build/libraries/lib/libzstd.a: tools/static_libraries.sh tools/static_libraries.txt
	@tools/setup.sh wheel
	PYTHON=$(CURDIR)/$(PYTHON) tools/static_libraries.sh build/libraries

ifeq ($(shell uname -s),Darwin)
REPAIR = cp build/wheel/*.whl dist
else
EXCLUDE = -Wl,--exclude-libs,ALL
REPAIR = PATH=$(CURDIR)/.venv/bin:$$PATH $(PYTHON) -m auditwheel repair -w dist build/wheel/*.whl
endif

# For programs without Python: the writer as one C file, and as a library with its header and mrec.pc. Any Python 3.9 or
# newer makes the one file.
amalgamation: build/amalgamation/mrec.c

build/amalgamation/mrec.c: tools/amalgamate.py $(wildcard csrc/*.[ch] csrc/include/*.h)
	python3 tools/amalgamate.py $(@D)

VERSION = $(shell sed -n 's/^version = "\(.*\)"/\1/p' pyproject.toml)
ABI = $(shell sed -n 's/^.define MREC_ABI_VERSION //p' csrc/include/mrec.h)
ifeq ($(shell uname -s),Darwin)
LIBRARY = libmrec.$(ABI).dylib
LIBRARY_LINK = libmrec.dylib
LIBRARY_FLAGS = -dynamiclib -install_name $(PREFIX)/lib/$(LIBRARY)
else
LIBRARY = libmrec.so.$(ABI)
LIBRARY_LINK = libmrec.so
LIBRARY_FLAGS = -shared -Wl,-soname,$(LIBRARY)
endif
PRIVATE = $(if $(MREC_LDFLAGS),Libs.private: $(MREC_LDFLAGS),Requires.private: libdeflate libzstd)

build/library/mrec.o: build/amalgamation/mrec.c
	mkdir -p $(@D)
	$(CC) -std=c11 -O3 -fPIC -fvisibility=hidden -DMREC_API='__attribute__((visibility("default")))' -pthread \
		$(or $(MREC_CFLAGS),$(shell pkg-config --cflags libdeflate libzstd)) -c $< -o $@

install: build/library/mrec.o
	mkdir -p $(DESTDIR)$(PREFIX)/include $(DESTDIR)$(PREFIX)/lib/pkgconfig
	cp csrc/include/mrec.h $(DESTDIR)$(PREFIX)/include/mrec.h
	rm -f $(DESTDIR)$(PREFIX)/lib/libmrec.a
	$(AR) rcs $(DESTDIR)$(PREFIX)/lib/libmrec.a $<
	$(CC) $(LIBRARY_FLAGS) $< $(LDLIBS) -o $(DESTDIR)$(PREFIX)/lib/$(LIBRARY)
	ln -sf $(LIBRARY) $(DESTDIR)$(PREFIX)/lib/$(LIBRARY_LINK)
	sed 's|@PREFIX@|$(PREFIX)|; s|@VERSION@|$(VERSION)|; s|@PRIVATE@|$(PRIVATE)|' csrc/mrec.pc.in \
		>$(DESTDIR)$(PREFIX)/lib/pkgconfig/mrec.pc

clean:
	rm -rf build dist *.egg-info mrec/_core.c mrec/*.so demo-out .pytest_cache .mypy_cache .ruff_cache .hypothesis
	find . -name __pycache__ -not -path './.venv/*' -prune -exec rm -rf {} +

distclean: clean
	rm -rf .venv
