# SPDX-License-Identifier: BSD-3-Clause
"""Stories in which one system call fails, or the process ends at it; what is left is read, and gone on with."""

from __future__ import annotations

import errno
import random
import shutil
from collections.abc import Iterable
from pathlib import Path

from tests.power.disk import Disk, State
from tests.stream.story import STORIES, Calls, Killed, Story, check

#: How a call fails: an error, for this call or all from it on, or the end of the process.
FAULTS = ("ENOSPC", "EIO", "EIO for good", "short", "kill")


def strike(name: str, fault: str, at: int, path: Path, same: bool, threads: int = 1) -> bool:
    """Tell a story with a fault at call `at`; go on with the same writers or with new ones. False when the story had no
    such call. threads: of each writer; with more than one it is another call each time."""
    kind, words = STORIES[name]
    files = Calls()
    story = Story(path, kind, files, threads=threads)
    error: BaseException | None = Killed()
    if fault.startswith("E"):
        code = getattr(errno, fault.split()[0])
        error = OSError(code, "a fault")
    files.arm(at, None if fault == "short" else error, "good" in fault, fault == "short")
    for word in words.split():
        try:
            story.word(word)
        except (OSError, Killed) as e:
            files.arm(0, None)
            _go_on(story, word, same and not isinstance(e, Killed))
    struck = files.struck or (files.at == 0)
    files.arm(0, None)
    story._leave()
    assert check(path, story.schema, (story.committed,), False) == story.committed
    if "good" not in fault:  # where removing fails too, they stay until a resume
        assert not list((path / "tmp").rglob("*"))
    shutil.rmtree(path)
    return struck


def _go_on(story: Story, word: str, same: bool) -> None:
    check(story.path, story.schema, (story.committed, story.coming), story.making)
    if same and story.crew is not None and word in "aDI":
        try:
            getattr(story, f"_{'D' if word == 'I' else word}")()
            story.committed = story.coming
            return
        except OSError as e:  # a sync that failed ends the writer
            assert "an earlier sync failed" in str(e), e
    if word in "CW":
        story._leave()
        story.found()
        if not story.making:
            story.word("R")
            return
        story.word("W")
        return
    story._leave()
    story.again()


class Powered:
    """A story that was told once, and the power lost at any of its calls."""

    def __init__(self, name: str, folder: Path) -> None:
        self.name, self.folder = name, folder
        self.kind, words = STORIES[name]
        files = Calls()
        home = folder / "told"
        home.mkdir(parents=True)
        story = Story(home / "s", self.kind, files)
        self.points: list[tuple[int, tuple, bool]] = []
        for word in words.split():
            before, making = story.committed, story.making or word in "CW"
            story.word(word)
            self.points.append((len(files.log), (before, story.committed), making))
        story._leave()
        self.home, self.log, self.schema = str(home), files.log, story.schema
        self.rng = random.Random(name)
        self.seen: set[int] = set()
        self.went_on = 0

    def lose(self, share: float, most: int, again: float) -> None:
        """At a share of the calls, in at most so many ways; some of what is left is gone on with."""
        disk, points = Disk(self.home), iter(self.points)
        end, states, making = next(points)
        for i, call in enumerate(self.log):
            disk.apply(*call)
            if i + 1 > end:
                end, states, making = next(points)
            if call[0] in "oc" or self.rng.random() > share:
                continue
            found = states if i + 1 < end else states[-1:]
            for state in disk.losses(self.rng, most):
                key = hash((found, tuple(sorted(state.items()))))
                if key not in self.seen:
                    self.seen.add(key)
                    self._examine(state, found, making and i + 1 < end, again)

    def _examine(self, state: State, states: tuple, making: bool, again: float) -> None:
        path = self.folder / "left"
        shutil.rmtree(path, ignore_errors=True)
        path.mkdir()
        for name, content in sorted(state.items()):
            (path / name).mkdir() if content is None else (path / name).write_bytes(content)
        if not (path / "s").exists():
            assert making
            return
        story = Story(path / "s", self.kind)
        story.committed, story.coming, story.making, story.salt = states[0], states[-1], making, 100
        story.found()
        if self.rng.random() < again:
            self.went_on += 1
            story.word("W" if story.making else "R")
            story.tell("a D a a D")
            story._leave()
            assert check(path / "s", self.schema, (story.committed,), False) == story.committed


def sweep(names: Iterable[str], path: Path, faults: Iterable[str], step: int, start: int = 1, threads: int = 1) -> int:
    """Each story with each fault at every step-th call; how many."""
    done = 0
    for name in names:
        for fault in faults:
            for same in (True, False) if fault.startswith("E") else (False,):
                at = start
                while strike(name, fault, at, path, same, threads):
                    at += step
                    done += 1
    return done
