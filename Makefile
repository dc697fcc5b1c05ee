# `make demo` and `make test` set up all they need, on a machine with nothing but Python and a C compiler: tools/setup.sh.
# ARGS goes to the command: make test ARGS="-k ragged -x".

PYTHON = .venv/bin/python
CFLAGS = -std=c11 -O2 -g -Wall -Wextra -Werror -Icsrc/include -Icsrc $(MREC_CFLAGS)
LDLIBS = $(or $(MREC_LDFLAGS),$(shell pkg-config --libs libdeflate libzstd)) -pthread -lm
ARGS =

.PHONY: demo test test-c bench lint docs clean distclean

demo:
	@tools/setup.sh convert plot
	@$(PYTHON) examples/demo.py $(ARGS)

test: test-c
	@$(PYTHON) -m pytest $(ARGS)

# The core without Python, under the address and undefined-behaviour sanitizers.
test-c:
	@tools/setup.sh test
	@$(MAKE) --no-print-directory build/test-core
	@build/test-core

build/test-core: $(wildcard csrc/*.[ch] csrc/include/*.h csrc/tests/*.[ch])
	$(CC) $(CFLAGS) -fsanitize=address,undefined -fno-sanitize-recover=all $(filter %.c,$^) $(LDLIBS) -o $@

# Runs too long for every day: tests/long/test_<name>.py.
test-long-%:
	@tools/setup.sh test
	@$(PYTHON) -m pytest tests/long/test_$(subst -,_,$*).py $(ARGS)

bench:
	@tools/setup.sh bench
	@$(PYTHON) -m benchmarks $(ARGS)
	@$(PYTHON) -m benchmarks.packing
	@$(PYTHON) -m benchmarks.dead
	@$(PYTHON) -m benchmarks.instructions

lint:
	@tools/setup.sh dev
	$(PYTHON) -m ruff check
	$(PYTHON) -m ruff format --check
	$(PYTHON) -m mypy
	.venv/bin/clang-format --dry-run -Werror $$(git ls-files '*.c' '*.h')
	gcc $(CFLAGS) -shared -fPIC csrc/*.c $(LDLIBS) -o build/libmrec-gcc.so
	clang $(CFLAGS) -shared -fPIC csrc/*.c $(LDLIBS) -o build/libmrec-clang.so

docs:
	@tools/setup.sh test
	@$(PYTHON) -m pytest tests/test_docs.py mrec $(ARGS)

clean:
	rm -rf build dist *.egg-info mrec/_core.c mrec/*.so demo-out .pytest_cache .mypy_cache .ruff_cache .hypothesis
	find . -name __pycache__ -not -path './.venv/*' -prune -exec rm -rf {} +

distclean: clean
	rm -rf .venv
