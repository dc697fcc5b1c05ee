# SPDX-License-Identifier: BSD-3-Clause
"""Prints what pip must install to build mrec and to use the extras named: `requirements.py test`."""

import re
import sys
import tomllib

with open("pyproject.toml", "rb") as file:
    PYPROJECT = tomllib.load(file)


def requirements(extra: str) -> list[str]:
    """The requirements of one extra, those of the extras that it names as mrec[a,b] included."""
    found = []
    for requirement in PYPROJECT["project"]["optional-dependencies"][extra]:
        if own := re.fullmatch(r"mrec\[(.+)\]", requirement):
            found += [name for part in own[1].split(",") for name in requirements(part)]
        else:
            found.append(requirement)
    return found


print(*PYPROJECT["build-system"]["requires"], *PYPROJECT["project"]["dependencies"], sep="\n")
for name in sys.argv[1:]:
    print(*requirements(name), sep="\n")
