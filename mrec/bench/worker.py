# SPDX-License-Identifier: BSD-3-Clause
"""The process of one peer: it imports nothing of the others, and does jobs as they come, a JSON object a line."""

from __future__ import annotations

import gc
import json
import os
import subprocess
import sys
import traceback
import warnings
from contextlib import suppress
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any, TextIO

from mrec.bench.data import DataSet
from mrec.bench.job import Job, Place
from mrec.bench.jobs import JOBS
from mrec.bench.peer import Peer, Unsupported
from mrec.bench.peers import PEERS
from mrec.bench.plugin import register


class Worker:
    """The parent's end of such a process. versions: of the peer's packages; missing: why there is no peer."""

    def __init__(self, peer: str, cores: int, plugins: list[str], log: Path) -> None:
        self._log = open(log, "w")
        self._process = subprocess.Popen(
            [sys.executable, "-m", __name__],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._log,
            text=True,
            env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
        )
        answer = self.ask(peer=peer, cores=cores, plugins=plugins)
        self.versions: dict[str, str] = answer.get("versions", {})
        self.missing: str | None = answer.get("missing")

    def ask(self, **request: Any) -> dict[str, Any]:
        """Do what is asked; {"error": ...} also when the process is gone."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        try:
            self._process.stdin.write(json.dumps(request) + "\n")
            self._process.stdin.flush()
        except BrokenPipeError:
            return {"error": "the process is gone", "missing": "its process ended"}
        line = self._process.stdout.readline()
        if not line:
            return {"error": f"the process ended with {self._process.wait()}", "missing": "its process ended"}
        answer: dict[str, Any] = json.loads(line)
        return answer

    def close(self) -> None:
        """End it."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        with suppress(BrokenPipeError):  # it may have ended by itself
            self._process.stdin.close()
        self._process.wait()
        self._process.stdout.close()
        self._log.close()


def main() -> None:
    """Serve until stdin ends. What peers print goes to stderr."""
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    warnings.simplefilter("ignore")
    start = json.loads(sys.stdin.readline())
    use_cores(start["cores"])  # before the peer makes threads, which would stay where they were made
    for plugin in start["plugins"]:
        register(plugin)
    try:
        peer = PEERS[start["peer"]]()
    except Exception as e:
        _say(answers, {"missing": f"{type(e).__name__}: {e}"})
        return
    gc.collect()
    gc.freeze()  # what was imported need not be looked through before each job
    _say(answers, {"versions": {package: _version(package) for package in peer.packages}})
    places: dict[str, Place] = {}
    for line in sys.stdin:
        request = json.loads(line)
        key = json.dumps([request["data"], request["precision"]])
        if key not in places:
            places.clear()  # the frames of the last one need not stay in memory
            places[key] = _place(peer, request)
        _say(answers, answer(JOBS[request["job"]], places[key], request["check"]))
    os._exit(0)  # some peers take long to end


def answer(job: Job, place: Place, check: bool) -> dict[str, Any]:
    """What a job gave: {"sample": ...}, {"unsupported": reason} or {"error": traceback}."""
    try:
        if place.precision not in place.peer.precisions:
            raise Unsupported("stores to other precisions" if place.precision is None else "has no precision")
        return {"sample": job.run(place, check).to_json()}
    except Unsupported as e:
        return {"unsupported": str(e)}
    except Exception:
        return {"error": traceback.format_exc(limit=-4)}


def use_cores(count: int) -> None:
    """Run on so many of the processors that this process may use, where the system can say so."""
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:count])


def _place(peer: Peer, request: dict[str, Any]) -> Place:
    folder = Path(request["folder"])
    folder.mkdir(parents=True, exist_ok=True)
    return Place(peer, DataSet(request["data"], Path(request["files"])), request["precision"], folder)


def _version(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return "unknown"


def _say(to: TextIO, what: dict[str, Any]) -> None:
    to.write(json.dumps(what) + "\n")
    to.flush()


if __name__ == "__main__":
    main()
