# SPDX-License-Identifier: BSD-3-Clause
"""Frames that keep a record in its short forms, take it out of them, or never let it in; frame i is always the same."""

from __future__ import annotations

import numpy as np

import mrec


def schema():
    declared = mrec.Schema().block("b", rows=3).column("q", "f64", precision=1e-3).column("s", "string")
    declared.column("n", "i32", nullable=True).column("v", "f64", trailing=(2,))
    return declared.block("c").column("i", "u64").value("pe", "f64").value("t", "string", fill="é")


def regular(i):
    rng = np.random.default_rng(i)
    null = rng.random(3) < 0.5
    b = {
        "q": rng.normal(size=3),
        "s": [f"{i}" * k for k in range(3)],
        "n": np.ma.array(np.arange(3, dtype="i4"), mask=null),
        "v": rng.normal(size=(3, 2)),
    }
    return {"step": 10 * i, "time": 0.5 * i, "blocks": {"b": b}, "box": (5, 6, 7), "values": {"pe": float(i)}}


def ragged(i):
    frame = regular(i)
    rows = (3, 0, 1, 2)[i % 4]
    frame["blocks"]["b"] = {name: data[:rows] for name, data in frame["blocks"]["b"].items()}
    if i % 3 == 1:
        frame["blocks"] = {"c": {"i": np.arange(i)}}
    frame["box"] = mrec.Box.from_lengths(5, 6, 7 + i, origin=(0, 0, i // 4), periodic=(True, True, i < 5))
    return frame | {"step": i * i, "time": 0.1 * i * i, "values": {"pe": float(i), "t": "x" * i}}


def turning(i):
    """Regular at first, then not."""
    return (regular(i) if i < 6 else ragged(i)) | {"step": i if i < 6 else i * i}


def late(i):
    """Nothing at first; then blocks, a cell, other steps."""
    frame = regular(i)
    return frame | ({"blocks": {}, "box": None} if i < 5 else {"step": 50 + i * i})


KINDS = {"regular": regular, "ragged": ragged, "turning": turning, "late": late}
OPTIONS = {"chunks_per_shard": 2, "frames_per_chunk": 2}


def append(w, frame):
    w.append(frame["step"], time=frame["time"], box=frame["box"], blocks=frame["blocks"], values=frame["values"])
