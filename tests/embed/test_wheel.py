# SPDX-License-Identifier: BSD-3-Clause
"""What the installed wheel brings for those who embed the writer, and that compilers take it."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import pytest

from tests.embed.conftest import ROOT, Installed

HEADER = (ROOT / "csrc/include/mrec.h").read_text(encoding="utf-8")


def test_the_wheel_is_what_runs(installed: Installed, tmp_path: Path) -> None:
    found = installed.python("import mrec; print(mrec.get_include())", tmp_path).strip()
    assert found == str(installed.include)


def test_the_wheel_carries_what_embedding_needs(installed: Installed) -> None:
    package = installed.include.parent
    names = {str(path.relative_to(package)) for path in package.rglob("*")}
    assert names >= {"include/mrec.h", "include/mrec.c", "include/mrec_capi.h", "__init__.pxd", "capi.pxd"}
    assert names >= {"py.typed", "_core.pyi"}
    assert (package / "include/mrec.h").read_text(encoding="utf-8") == HEADER
    assert not (package / "include/mrec.h").is_symlink()


COMPILERS = ["gcc -std=c11", "clang -std=c11", "g++ -std=c++11", "g++ -std=c++17", "clang++ -std=c++20"]


@pytest.mark.parametrize("compiler", COMPILERS)
def test_the_header_compiles_alone(compiler: str, installed: Installed, tmp_path: Path) -> None:
    command, standard = compiler.split()
    if shutil.which(command) is None:
        pytest.skip(f"there is no {command}")
    source = tmp_path / ("uses.cpp" if "++" in command else "uses.c")
    source.write_text("#include <mrec.h>\nint main(void) { return (int)sizeof(mrec_frame) == 0; }\n")
    flags = ["-Wall", "-Wextra", "-Werror", "-pedantic", "-Wno-variadic-macros", "-fsyntax-only"]
    installed.run(command, standard, *flags, f"-I{installed.include}", source, cwd=tmp_path)


def test_cython_and_the_capsule_know_every_function(installed: Installed) -> None:
    functions = re.findall(r"^MREC_API .*?\b(mrec_\w+)\(", HEADER, re.M)
    assert len(functions) > 10
    capi = (installed.include / "mrec_capi.h").read_text(encoding="utf-8")
    pxd = (installed.include.parent / "capi.pxd").read_text(encoding="utf-8")
    for function in functions:
        assert f"#define {function} (mrec_capi_table->{function.removeprefix('mrec_')})" in capi
        assert re.search(rf"\b{function}\(", pxd)


def test_cython_knows_every_member(installed: Installed) -> None:
    pxd = (installed.include.parent / "__init__.pxd").read_text(encoding="utf-8")
    code = re.sub(r"/\*.*?\*/", "", HEADER, flags=re.S)
    for kind, body, name in re.findall(r"typedef (struct|enum) \w+ \{(.*?)\} (\w+);", code, re.S):
        members = re.findall(r"(\w+)(?: = 0)?,|(\w+)$" if kind == "enum" else r"(\w+)(?:\[\d+\])?;", body.strip())
        wanted = [next(filter(None, m)) if isinstance(m, tuple) else m for m in members]
        block = re.search(rf"ctypedef {kind} {name}:\n((?:        .*\n)+)", pxd)
        assert block is not None, name
        assert re.findall(r"(\w+)(?:\[\d+\])?$", block[1], re.M) == wanted, name
