# SPDX-License-Identifier: BSD-3-Clause
"""Writes the writer of mrec as one C file beside its header: `amalgamate.py FOLDER` makes FOLDER/mrec.c and mrec.h.

    cc -O2 -c mrec.c        # link with -ldeflate -lzstd -pthread -lm

Reading, reopening and what tests replace are left out. Static names and macros must be unique across the files.
"""

from __future__ import annotations

import re
import shutil
import sys
from pathlib import Path

CSRC = Path(__file__).resolve().parent.parent / "csrc"
LEFT_OUT = {
    *("archive", "cache", "chunk", "copy", "encode", "index", "reader", "reopen", "strided"),
    *("vfs_fault", "vfs_read_only"),
}

INCLUDE = re.compile(r'^#include "(\w+\.h)"\n', re.M)
FEATURES = re.compile(r"^#define (_GNU_SOURCE|_POSIX_C_SOURCE .*)\n", re.M)
LICENSE = re.compile(r"\A/\* SPDX-License-Identifier: \S+( \*/\n|\n \* )")
MACRO = re.compile(r"^#define (\w+)(.*(?:\\\n.*)*)", re.M)
STATIC = re.compile(
    r"^static (?:[^;={(]*?\b(\w+)\(|[^;({]*?\b(\w+)(?:\[[^\]]*\])*(?:;| =))"
    r"|^(?:typedef )?(?:struct|enum|union) (\w+) \{|^\} (\w+);",
    re.M,
)

HEAD = """\
/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The writer of mrec {version} in one file, made by tools/amalgamate.py. Its interface is mrec.h.
 *     cc -O2 -c mrec.c        link with -ldeflate -lzstd -pthread -lm
 *
{license} */
#define _GNU_SOURCE
#if defined(__clang__)
#pragma clang diagnostic ignored "-Wunused-function" /* inline functions, which stood in headers */
#endif
"""


def sources() -> list[Path]:
    """The C files that writing takes."""
    return [path for path in sorted(CSRC.glob("*.c")) if path.stem not in LEFT_OUT]


def text_of(path: Path) -> str:
    """A file without its licence line and feature macros; the rest of its first comment stays."""
    text = LICENSE.sub(lambda match: "" if match[1].startswith(" */") else "/* ", path.read_text(encoding="utf-8"))
    return FEATURES.sub("", text)


def inlined(path: Path, seen: set[str]) -> str:
    """A file with the headers of the core in place of their first inclusion; mrec.h stays an inclusion."""

    def header(match: re.Match[str]) -> str:
        name = match[1]
        if name in seen:
            return ""
        seen.add(name)
        return match[0] if name == "mrec.h" else inlined(CSRC / name, seen)

    return f"\n/* ==== {path.name} ==== */\n\n" + INCLUDE.sub(header, text_of(path)).lstrip("\n")


def check_unique(paths: list[Path]) -> None:
    """What is private to a file when each is compiled alone must not meet another of its name."""
    found: dict[str, tuple[str, str]] = {}
    for path in paths:
        text = text_of(path)
        private = {name: "" for match in STATIC.finditer(text) for name in match.groups() if name}
        for name, meaning in (private | dict(MACRO.findall(text))).items():
            other, before = found.setdefault(name, (path.name, meaning))
            if other != path.name and not (meaning and meaning == before):
                sys.exit(f"amalgamate: {name} is in {other} and in {path.name}; give one of them another name")


def version() -> str:
    return re.findall(r'^version = "(.+)"$', (CSRC.parent / "pyproject.toml").read_text(encoding="utf-8"), re.M)[0]


def amalgamate(folder: Path) -> None:
    """Write mrec.c and mrec.h into a folder."""
    paths = sources()
    check_unique(paths)
    license = (CSRC.parent / "LICENSE").read_text(encoding="utf-8")
    lines = "".join(f" * {line}".rstrip() + "\n" for line in license.splitlines())
    seen: set[str] = set()
    text = HEAD.format(version=version(), license=lines) + "".join(inlined(path, seen) for path in paths)
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "mrec.c").write_text(text, encoding="utf-8")
    shutil.copyfile(CSRC / "include/mrec.h", folder / "mrec.h")


if __name__ == "__main__":
    amalgamate(Path(sys.argv[1]))
