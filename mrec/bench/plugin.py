# SPDX-License-Identifier: BSD-3-Clause
"""Jobs and peers of others, by the name `module:object`."""

from __future__ import annotations

from importlib import import_module

from mrec.bench.job import FunctionJob, Job
from mrec.bench.jobs import JOBS
from mrec.bench.peer import Peer
from mrec.bench.peers import PEERS
from mrec.errors import MrecError


def register(plugin: str) -> None:
    """Take in a Job (class or instance), a Peer class, or a function that a job is made of.

    It is imported by each process of the run, so the module has to be found on sys.path. MrecError when it is not, or
    is something else.
    """
    module, _, name = plugin.partition(":")
    try:
        found = getattr(import_module(module), name)
    except (ImportError, AttributeError, ValueError) as e:
        raise MrecError(f"there is no plugin {plugin!r}: {e}") from None
    if isinstance(found, type) and issubclass(found, Peer):
        PEERS[found.name] = found
    elif isinstance(found, type) and issubclass(found, Job):
        JOBS[found.name] = found()
    elif isinstance(found, Job):
        JOBS[found.name] = found
    elif callable(found):
        job = FunctionJob(found)
        JOBS[job.name] = job
    else:
        raise MrecError(f"the plugin {plugin!r} is neither a Job, nor a Peer, nor a function")
