"""Reading frames, columns and values of a trajectory."""

from __future__ import annotations

import os
import pickle
import threading
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

import mrec
from mrec.errors import CorruptData, FrameIndexError, InvalidValue, SchemaError, UnknownName

N, ROWS = 30, 7


def position(i):
    return np.arange(ROWS) + 100.0 * i


@pytest.fixture(scope="module")
def regular(tmp_path_factory):
    """N frames of ROWS atoms over several chunks and shards."""
    path = tmp_path_factory.mktemp("data") / "regular.mrec"
    schema = mrec.Schema().block("atoms", rows=ROWS).column("x", "f64").column("y", "f64").column("n", "i32")
    schema.column("v", "f64", trailing=3).value("pe", "f64").value("doc", "json").value("w", "f64x3")
    options = {"frames_per_chunk": 4, "chunks_per_shard": 3, "units": {"length": "nm"}}
    with mrec.TrajectoryWriter(path, schema, **options) as writer:
        for i in range(N):
            x = position(i)
            atoms = {"x": x, "y": -x, "n": np.arange(ROWS, dtype="i4") + i, "v": np.outer(x, [1, 2, 3])}
            values = {"pe": float(i), "doc": {"i": i}, "w": [i, i + 1, i + 2]}
            box = mrec.Box.from_lengths(9, 9, 9)
            writer.append(10 * i, mrec.Frame({"atoms": atoms}, values=values), time=0.5 * i, box=box)
    return path


@pytest.fixture
def trajectory(regular):
    return mrec.open(regular).trajectory


COUNTS = [3, 3, None, 0, 5, 5, None, None, 2]


@pytest.fixture(scope="module")
def ragged(tmp_path_factory):
    """Frames whose atoms change in number; None: carried forward. The block `late` comes with frame 4."""
    path = tmp_path_factory.mktemp("data") / "ragged.mrec"
    schema = mrec.Schema().block("atoms", rows=5).column("x", "f64").column("m", "f64", nullable=True)
    schema.column("s", "string").block("late", rows=2).column("k", "u64")
    with mrec.TrajectoryWriter(path, schema) as writer:
        for i, n in enumerate(COUNTS):
            blocks = {}
            if n is not None:
                x = np.arange(n) + 10.0 * i
                m = np.ma.MaskedArray(x, mask=np.arange(n) == i % 3)
                blocks["atoms"] = {"x": x, "m": m, "s": [f"{i}.{k}" for k in range(n)]}
            if i >= 4:
                blocks["late"] = {"k": np.array([i, i], "u8")}
            writer.append(i, mrec.Frame(blocks))
    return mrec.open(path).trajectory


def test_sequence(trajectory):
    assert len(trajectory) == N and trajectory.blocks == ("atoms",)
    assert trajectory.steps.tolist() == [10 * i for i in range(N)]
    assert trajectory.times.tolist() == [0.5 * i for i in range(N)]
    for i in (0, 7, N - 1, -1, -N, np.int64(3)):
        frame = trajectory[i]
        at = int(i) % N
        assert (frame.index, frame.step, frame.time) == (at, 10 * at, 0.5 * at)
        assert frame["atoms"]["x"].tolist() == position(at).tolist()
        assert frame["atoms"]["v"].shape == (ROWS, 3)
        assert frame.values["pe"] == at and frame.values["doc"] == {"i": at}
        assert frame.values["w"].tolist() == [at, at + 1, at + 2]
        assert frame.box == mrec.Box.from_lengths(9, 9, 9)
    for i in (N, -N - 1):
        with pytest.raises(FrameIndexError, match=rf"there is no frame {i} among {N}"):
            trajectory[i]
    with pytest.raises(TypeError, match="read"):
        trajectory["atoms"]
    assert isinstance(FrameIndexError("x"), IndexError)


SLICES = [
    slice(None),
    slice(3, 20),
    slice(20, 3, -1),
    slice(None, None, 7),
    slice(-4, None),
    slice(5, 5),
    slice(None, None, -4),
]


@pytest.mark.parametrize("chosen", SLICES, ids=str)
def test_slices_are_lazy_views(trajectory, chosen):
    view, ordinals = trajectory[chosen], list(range(N))[chosen]
    assert len(view) == len(ordinals)
    assert view.steps.tolist() == [10 * i for i in ordinals]
    assert view.times.tolist() == [0.5 * i for i in ordinals]
    assert view.values("pe").tolist() == ordinals and view.values("w").shape == (len(ordinals), 3)
    assert [d["i"] for d in view.values("doc")] == ordinals
    assert [frame.index for frame in view] == ordinals
    assert view.read("atoms", "x").tolist() == [position(i).tolist() for i in ordinals]
    assert [frame.index for frame in view[1::2]] == ordinals[1::2]
    if ordinals:
        assert view[-1].index == ordinals[-1] and "frame" in repr(view)


def test_frames_can_be_changed(trajectory):
    frames = list(trajectory)
    frames[3]["atoms"]["x"][:] = 0
    assert frames[4]["atoms"]["x"].tolist() == position(4).tolist()
    assert trajectory[3]["atoms"]["x"].tolist() == position(3).tolist()


def test_index(trajectory):
    assert trajectory.index(step=70) == 7 and trajectory.index(time=3.5) == 7
    assert trajectory[10:].index(step=110) == 1
    assert trajectory.index(time=3.5 * (1 + 1e-12)) == 7
    assert trajectory.index(step=71, nearest=True) == 7 and trajectory.index(time=1e9, nearest=True) == N - 1
    with pytest.raises(FrameIndexError, match=r"step 71; frame 7 has 70"):
        trajectory.index(step=71)
    with pytest.raises(FrameIndexError, match=r"time 3.6"):
        trajectory.index(time=3.6)
    with pytest.raises(InvalidValue):
        trajectory.index()
    with pytest.raises(InvalidValue):
        trajectory.index(step=1, time=1.0)
    assert trajectory.index(step=2**80, nearest=True) == N - 1 and trajectory.index(step=-(2**80), nearest=True) == 0
    assert trajectory.index(step=70.0) == 7 and trajectory.index(step=np.int8(70)) == 7
    assert trajectory.index(step=75, nearest=True) == 7 and trajectory.index(step=75.1, nearest=True) == 8
    for wrong in ({"step": "70"}, {"time": "3.5"}, {"time": np.nan}, {"step": [70]}):
        with pytest.raises(InvalidValue, match="a step or a time is a number"):
            trajectory.index(**wrong)


def test_index_tells_large_steps_apart(tmp_path):
    steps = [-(2**62) - 1, 2**62, 2**62 + 3, 2**63 - 1]
    with mrec.TrajectoryWriter(tmp_path / "a", mrec.Schema()) as writer:
        for step in steps:
            writer.append(step)
    trajectory = mrec.open(tmp_path / "a").trajectory
    assert [trajectory.index(step=step) for step in steps] == [0, 1, 2, 3]
    assert trajectory.index(step=2**62 + 2, nearest=True) == 2 and trajectory.index(step=2**62 + 1, nearest=True) == 1
    with pytest.raises(FrameIndexError, match=f"frame 1 has {2**62}"):
        trajectory.index(step=2**62 + 1)


FRAMES = [
    None, slice(2, 19), slice(None, None, 3), slice(None, None, -1), [5], [3, 3, 4], [-1, 0, 17], np.arange(N) % 4 == 1,
    range(4, 9), np.array([], int), [], np.array([8, 9, 10, 2, 3], "u1"),
]  # fmt: skip
PICKED = [
    None,
    slice(1, 5),
    slice(None, None, 2),
    [4, 1],
    [-1],
    np.arange(ROWS) > 3,
    slice(0, 0),
    slice(None, None, -1),
]


@pytest.mark.parametrize("frames", FRAMES, ids=str)
@pytest.mark.parametrize("rows", PICKED, ids=str)
def test_read(trajectory, frames, rows):
    whole = np.stack([position(i) for i in range(N)])
    at = np.arange(N)[
        slice(None) if frames is None else np.asarray(frames, int) if isinstance(frames, list) else frames
    ]
    row = np.arange(ROWS)[slice(None) if rows is None else rows]
    expected = whole[np.ix_(at, row)]
    one = trajectory.read("atoms", "x", frames=frames, rows=rows)
    assert one.dtype == np.float64 and np.array_equal(one, expected)
    two = trajectory.read("atoms", ["x", "y"], frames=frames, rows=rows)
    assert np.array_equal(two, np.stack([expected, -expected], axis=-1))
    trailing = trajectory.read("atoms", ["v"], frames=frames, rows=rows)
    assert np.array_equal(trailing, (expected[..., None] * [1.0, 2.0, 3.0])[:, :, None, :])
    out = np.full((len(at), 2, len(row), 5), -7.0)[:, 1, :, 1:3]
    assert trajectory.read("atoms", ["x", "y"], frames=frames, rows=rows, out=out) is out
    assert np.array_equal(out, two)
    out = np.asfortranarray(np.zeros((len(at), len(row), 3)))
    assert np.array_equal(trajectory.read("atoms", "v", frames=frames, rows=rows, out=out), trailing[:, :, 0])


@pytest.mark.parametrize("precision", [None, 1e-3])
def test_read_more_than_a_thread_takes(tmp_path, precision):
    xyz = np.round(np.random.default_rng(3).normal(size=(12, 60_000, 2)) * 1024) / 1024
    schema = mrec.Schema().block("atoms", rows=60_000)
    schema.column("x", "f64", precision=precision).column("y", "f64", precision=precision)
    with mrec.TrajectoryWriter(tmp_path / "a.mrec", schema) as writer:
        for frame in xyz:
            writer.append(atoms={"x": frame[:, 0], "y": frame[:, 1]})
    trajectory = mrec.open(tmp_path / "a.mrec").trajectory
    assert np.array_equal(trajectory.read("atoms", ["x", "y"]), xyz)
    assert np.array_equal(trajectory.read("atoms", ["y", "x"], frames=slice(None, None, -2)), xyz[::-2, :, ::-1])
    assert np.array_equal(trajectory.read("atoms", "y", rows=slice(7, 50_000)), xyz[:, 7:50_000, 1])
    assert np.array_equal(trajectory.read("atoms", "x", rows=[59_999, 0, 7]), xyz[:, [59_999, 0, 7], 0])


def test_scattered_rows_of_strings(tmp_path):
    schema = mrec.Schema().block("atoms", rows=4).column("name", "string").column("n", "i32")
    with mrec.TrajectoryWriter(tmp_path / "a.mrec", schema) as w:
        for i in range(3):
            w.append(None, atoms={"name": [f"{i}:{k}" for k in range(4)], "n": np.arange(4, dtype="i4") + i})
    trajectory = mrec.open(tmp_path / "a.mrec").trajectory
    assert trajectory.read("atoms", "name", rows=[3, 0]).tolist() == [["0:3", "0:0"], ["1:3", "1:0"], ["2:3", "2:0"]]
    assert trajectory.read("atoms", "n", rows=[3, 0]).tolist() == [[3, 0], [4, 1], [5, 2]]


def test_read_one_frame(trajectory):
    assert trajectory.read("atoms", "x", frames=4).tolist() == position(4).tolist()
    assert trajectory.read("atoms", ["x", "y"], frames=-1, rows=[2]).tolist() == [
        [position(N - 1)[2], -position(N - 1)[2]]
    ]
    out = np.empty(ROWS)
    trajectory.read("atoms", "x", frames=4, out=out)
    assert out.tolist() == position(4).tolist()


def test_what_read_refuses(trajectory):
    with pytest.raises(UnknownName, match=r"no block 'bonds'.*'atoms'"):
        trajectory.read("bonds", "x")
    with pytest.raises(UnknownName, match=r"no column 'q'.*'x', 'y'"):
        trajectory.read("atoms", "q")
    with pytest.raises(SchemaError, match="one by one"):
        trajectory.read("atoms", ["x", "n"])
    with pytest.raises(SchemaError, match="one by one"):
        trajectory.read("atoms", ["x", "v"])
    with pytest.raises(InvalidValue):
        trajectory.read("atoms", [])
    for frames in ([N], [-N - 1], N, np.array([2**64 - 1], "u8"), np.array([2**63], "u8"), 2**70):
        with pytest.raises(FrameIndexError):
            trajectory.read("atoms", "x", frames=frames)
    masked = np.ma.array([1, 2], mask=[0, 1])
    for frames in (1.5, "all", np.zeros((2, 2), int), [True, False], masked, [[1], [2, 3]], [2**70], {1}):
        with pytest.raises(InvalidValue, match="frames are chosen by"):
            trajectory.read("atoms", "x", frames=frames)
    for columns in (None, 5):
        with pytest.raises(InvalidValue, match="columns are a name or several"):
            trajectory.read("atoms", columns)
    for call in (lambda: trajectory.read(["atoms"], "x"), lambda: trajectory.values(["pe"])):
        with pytest.raises(UnknownName, match=r"\['"):
            call()
    with pytest.raises(UnknownName, match=r"no column \['x'\]"):
        trajectory.read("atoms", [["x"]])
    with pytest.raises(FrameIndexError, match="there is no row 7 among 7"):
        trajectory.read("atoms", "x", rows=[7])
    with pytest.raises(InvalidValue, match="out is float32"):
        trajectory.read("atoms", "x", out=np.empty((N, ROWS), "f4"))
    with pytest.raises(InvalidValue, match="out"):
        trajectory.read("atoms", "x", out=np.empty((N, ROWS + 1)))
    with pytest.raises(InvalidValue, match=r"out is float64\[1, 7\]; float64\[7\] is read"):
        trajectory.read("atoms", "x", frames=4, out=np.empty((1, ROWS)))
    shared = np.lib.stride_tricks.as_strided(np.empty(1), (N, ROWS), (0, 0))
    frozen = np.empty((N, ROWS))
    frozen.flags.writeable = False
    kinds = {
        "a numpy array": [[0.0]],
        "without a mask": np.ma.empty((N, ROWS)),
        "share memory": shared,
        "read-only": frozen,
    }
    for says, out in kinds.items():
        with pytest.raises(InvalidValue, match=says):
            trajectory.read("atoms", "x", out=out)
    with pytest.raises(InvalidValue, match=rf"out is float64\[4\]; float64\[{ROWS}\] is read"):
        trajectory.read("atoms", "x", frames=0, out=np.empty(4))
    with pytest.raises(UnknownName, match=r"per-step value 'ke'.*'pe'"):
        trajectory.values("ke")


def test_letters_stand_for_columns(trajectory, ragged):
    assert np.array_equal(trajectory.read("atoms", "xy"), trajectory.read("atoms", ["x", "y"]))
    assert np.array_equal(trajectory.read("atoms", "xy", frames=3), trajectory.read("atoms", ("x", "y"), frames=3))
    assert np.array_equal(ragged.read_ragged("atoms", "xx")[0], ragged.read_ragged("atoms", ["x", "x"])[0])
    with pytest.raises(UnknownName, match="'xyz'"):
        trajectory.read("atoms", "xyz")


def test_ragged_frames(ragged):
    n = 0
    for i, frame in enumerate(ragged):
        if COUNTS[i] is not None:
            n, since = COUNTS[i], i
        assert frame["atoms"]["x"].tolist() == [k + 10.0 * since for k in range(n)]
        assert frame["atoms"]["s"].tolist() == [f"{since}.{k}" for k in range(n)]
        assert np.ma.getmaskarray(frame["atoms"]["m"]).tolist() == [k == since % 3 for k in range(n)]
        assert ("late" in frame) == (i >= 4)
        assert frame == ragged[i]


def test_read_ragged(ragged):
    counts = [3, 3, 3, 0, 5, 5, 5, 5, 2]
    _, offsets = ragged.read_ragged("atoms", "x")
    assert np.diff(offsets).tolist() == counts and offsets[0] == 0
    frames = [8, 0, 0, 3, 5, -2]
    for columns in ("x", ["x"], "m", "s"):
        values, offsets = ragged.read_ragged("atoms", columns, frames=frames)
        for k, i in enumerate(frames):
            found = values[offsets[k] : offsets[k + 1]]
            expected = ragged[i]["atoms"][columns if isinstance(columns, str) else "x"]
            found = found if isinstance(columns, str) else found[:, 0]
            assert np.ma.getmaskarray(found).tolist() == np.ma.getmaskarray(expected).tolist()
            assert found.tolist() == expected.tolist()
    values, offsets = ragged.read_ragged("late", "k", frames=slice(2, 7))
    assert offsets.tolist() == [0, 0, 0, 2, 4, 6] and values.tolist() == [4, 4, 5, 5, 6, 6]


def test_read_wants_the_same_rows(ragged):
    assert ragged.read("atoms", "x", frames=slice(0, 3)).shape == (3, 3)
    assert ragged.read("atoms", "x", frames=[3]).shape == (1, 0)
    with pytest.raises(SchemaError, match=r"has 0 rows at frame 3, 3 at frame 0; use read_ragged"):
        ragged.read("atoms", "x")
    with pytest.raises(SchemaError, match=r"'late' is absent at frame 2; use read_ragged"):
        ragged.read("late", "k", frames=[5, 2])
    assert ragged.read("late", "k", frames=[5, 8]).tolist() == [[5, 5], [8, 8]]


def test_null_rows_are_masked(ragged):
    found = ragged.read("atoms", ["m"], frames=[4, 5])
    assert isinstance(found, np.ma.MaskedArray) and found.mask[..., 0].tolist() == [
        [False, True, False, False, False],
        [False, False, True, False, False],
    ]
    out = np.zeros((2, 5))
    found = ragged.read("atoms", "m", frames=[4, 5], out=out)
    assert np.shares_memory(found.data, out)
    assert not isinstance(ragged.read("atoms", "m", frames=[4], rows=[0]), np.ma.MaskedArray)


def test_empty_trajectory(tmp_path):
    schema = mrec.Schema().block("atoms", rows=2).column("x", "f64").value("pe", "f64")
    with mrec.TrajectoryWriter(tmp_path / "e.mrec", schema):
        pass
    trajectory = mrec.open(tmp_path / "e.mrec").trajectory
    assert len(trajectory) == 0 and list(trajectory) == [] and trajectory.steps.tolist() == []
    assert trajectory.times is None and trajectory.values("pe").tolist() == []
    assert trajectory.read("atoms", ["x"]).shape == (0, 0, 1)
    assert trajectory.read_ragged("atoms", "x")[1].tolist() == [0]
    with pytest.raises(FrameIndexError):
        trajectory[0]
    with pytest.raises(FrameIndexError):
        trajectory.index(step=0)
    assert "0 frames" in repr(trajectory)


def test_pickle(trajectory):
    again = pickle.loads(pickle.dumps(trajectory))
    assert again[5] == trajectory[5] and again.steps.tolist() == trajectory.steps.tolist()
    view = pickle.loads(pickle.dumps(trajectory[4:8]))
    assert [f.index for f in view] == [4, 5, 6, 7]


def test_fork(trajectory):
    trajectory[0]
    child = os.fork()
    if child == 0:
        right = all(trajectory[i]["atoms"]["x"][0] == 100.0 * i for i in range(N))
        os._exit(0 if right else 1)
    assert os.waitpid(child, 0)[1] == 0
    assert trajectory[3]["atoms"]["x"][0] == 300.0


def test_threads(regular, ragged):
    trajectory = mrec.open(regular).trajectory
    barrier = threading.Barrier(8)

    def work(seed):
        rng = np.random.default_rng(seed)
        barrier.wait()
        for _ in range(150):
            i = int(rng.integers(N))
            assert trajectory[i]["atoms"]["x"].tolist() == position(i).tolist()
            a, b = sorted(rng.integers(0, N, 2).tolist())
            assert trajectory.read("atoms", ["x", "y"], frames=slice(a, b)).shape == (b - a, ROWS, 2)
            j = int(rng.integers(len(COUNTS)))
            assert len(ragged[j]["atoms"]["s"]) == [3, 3, 3, 0, 5, 5, 5, 5, 2][j]

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(work, range(8)))


def test_descriptors_stay_within_the_budget(tmp_path):
    schema = mrec.Schema().block("atoms", rows=2)
    names = [f"c{i}" for i in range(150)]
    for name in names:
        schema.column(name, "i32")
    with mrec.TrajectoryWriter(tmp_path / "wide.mrec", schema) as writer:
        for i in range(3):
            writer.append(i, atoms={name: np.array([i, k], "i4") for k, name in enumerate(names)})
    trajectory = mrec.open(tmp_path / "wide.mrec").trajectory
    before = len(os.listdir("/proc/self/fd"))
    for i in (0, 2, 1):
        assert [int(trajectory[i]["atoms"][name][1]) for name in names] == list(range(150))
    assert len(os.listdir("/proc/self/fd")) - before <= 64
    del trajectory
    assert len(os.listdir("/proc/self/fd")) <= before


def test_every_flipped_byte(tmp_path):
    """An error, or frames that are right."""
    schema = mrec.Schema().block("atoms", rows=3).column("x", "f64", precision=1e-3).column("s", "string")
    path = tmp_path / "f.mrec"
    schema.value("pe", "f64")
    with mrec.TrajectoryWriter(path, schema, frames_per_chunk=2, chunks_per_shard=2) as writer:
        for i in range(5):
            writer.append(i * i, atoms={"x": np.arange(3.0) + i, "s": ["a", "bb", str(i)]}, pe=i / 3)
    whole = list(mrec.open(path).trajectory)
    files = [f for f in path.rglob("*") if f.is_file() and f.name != "zarr.json"]
    assert len(files) > 5
    found_wrong = 0
    rng = np.random.default_rng(0)
    for file in files:
        raw = file.read_bytes()
        for at in range(len(raw)) if len(raw) < 500 else rng.integers(0, len(raw), 200).tolist():
            file.write_bytes(raw[:at] + bytes([raw[at] ^ 1 << int(rng.integers(8))]) + raw[at + 1 :])
            try:
                frames = list(mrec.open(path).trajectory)
            except CorruptData:
                found_wrong += 1
            else:
                assert frames == whole, (file, at)
        file.write_bytes(raw)
    assert found_wrong > 100 and list(mrec.open(path).trajectory) == whole
