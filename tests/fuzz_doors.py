"""How each kind of file is read under fuzzing: by the function that a user's file meets, and what it gives as numbers.

A changed file that lies in a folder of several (a run, a sweep, a rosbag2) has a folder of its own, whose other files are good.
"""

from __future__ import annotations

import shutil
import tempfile
import warnings
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from bad_files import open_as

Values = list[np.ndarray]


def read(kind: str, path: Path) -> Values:
    """Read a file as a user would, also of the kinds that are no part of the corpus."""
    door = DOORS.get(kind)
    return door(path) if door is not None else open_as(kind, path)


#: A scene of one ball in the air: the shortest that can be run.
DROP = """import femsim as fs


def build(radius: float = 0.1) -> fs.Scene:
    scene = fs.Scene("a", dt=0.01, duration=0.1, theta=1.0)
    scene.add_rigid("ball", fs.Sphere(radius), density=1e3, position=(0, 0, 0.2))
    scene.add_floor()
    scene.sensor("wrist", "ball")
    return scene
"""


def drop() -> Any:
    """Build it."""
    held: dict[str, Any] = {}
    exec(DROP, held)
    return held["build"]()


@cache
def _simulation() -> Any:
    import femsim as fs

    return fs.Simulation(drop())


def _calibration(path: Path) -> Values:
    from femsim.studies.calibration.file import read_calibration

    read_calibration(path)
    return []


def _steps(path: Path) -> Values:
    from viz.tables import read_table

    return [np.nan_to_num(values, nan=0.0, posinf=0.0, neginf=0.0) for values in read_table(path, ("step", "time_s")).values()]


def _json(path: Path) -> Values:
    from femsim.run.folder import refuse_busy
    from viz.ending import read_ending
    from viz.report import read_info

    read_ending(path.parent)
    refuse_busy(path.parent)
    read_info(path.parent)
    return []


def _pvd(path: Path) -> Values:
    from viz.vtk_series import read_pvd

    return [np.array([time for time, _ in read_pvd(path)])]


def _frame(path: Path) -> Values:
    from viz import read_part

    return [_drawn(read_part(path))]


def _hdf(path: Path) -> Values:
    from viz import open_frames

    frames = open_frames(path.parent if path.name == "frames.vtkhdf" else path.parents[1])
    parts = [frames.read(number, part) for number in range(len(frames.times)) for part in frames.parts]
    return [np.array(frames.times), *map(_drawn, parts)]


def _drawn(data: Any) -> np.ndarray:
    """Let VTK walk the cells of a part, as it does to draw them; return its points."""
    skin = data.extract_surface(algorithm="dataset_surface") if data.IsA("vtkUnstructuredGrid") else data.triangulate()
    assert np.isfinite(skin.bounds).all()
    return np.asarray(data.points)


def _checkpoint(path: Path) -> Values:
    from femsim.run.checkpoint import read_checkpoint, stamped

    path.write_bytes(stamped(path.read_bytes()))  # with the right digest, else that is all that is read
    state = read_checkpoint(path).state
    return [value for value in state.arrays().values() if value.dtype.kind == "f"]


def _saved(path: Path) -> Values:
    """Read what was saved, and put a simulation there."""
    import femsim as fs

    saved = fs.Saved.read(path)
    simulation = _simulation()
    simulation.restore(saved)
    return [value for value in simulation.save().state.arrays().values() if value.dtype.kind == "f"]


def _robot(path: Path) -> Values:
    """A robot file, or a mesh of one that lies beside it; into a scene too, as everybody does with a robot."""
    import femsim as fs

    robot = fs.load_robot(path if path.suffix in (".urdf", ".xml") else path.parent / "robot.urdf")
    fs.Scene("a", dt=0.01, theta=1.0).add_robot(robot)
    return [np.array([robot.mass])]


def _path(path: Path) -> Values:
    """Poses, or orientations alone, which need positions beside them; a file of a rosbag2 is read by its folder."""
    import femsim as fs

    if path.suffix == ".turns":
        poses = fs.load_path(path.parent / "places.txt", orientations=path, orientation="xyzw")
    else:
        poses = fs.load_path(_bag(path))
    return [poses.times, poses.positions, *([] if poses.quaternions is None else [poses.quaternions])]


def _log(path: Path) -> Values:
    return open_as("log", _bag(path))


def _bag(path: Path) -> Path:
    return path.parent if (path.parent / "metadata.yaml").is_file() and path.suffix in (".db3", ".yaml", ".mcap") else path


def _mapped(path: Path) -> Values:
    """A log and the card that maps its columns, either of them changed, beside a run that has them."""
    import femsim as fs
    from femsim.studies.comparison.run_series import make_run_series

    log = next(file for file in path.parent.iterdir() if file.stem == "log")
    wave = np.sin(0.3 * np.arange(60.0))
    columns = {"elbow_torque_Nm": wave, "elbow_angle_rad": 0.1 * wave, "wire_length_m": 1.0 + 0.01 * wave}
    series = make_run_series("a", {"time_s": 0.01 * np.arange(60.0), **columns}, (0.0, 0.0, -9.81))
    result = fs.compare(series, log, path.parent / "card.toml")
    assert result.summary() and result.to_dict()
    return [result.time, result.simulated, np.nan_to_num(result.measured, nan=0.0, posinf=np.inf, neginf=-np.inf)]


def _friction(path: Path) -> Values:
    from materials import load_friction

    return [np.array([pair.value]) for pair in load_friction(path).values()]


def _run(path: Path) -> Values:
    """A file of a run folder, where a log is compared with the run."""
    import femsim as fs
    from femsim.studies.comparison.run_series import read_run

    series = read_run(path.parent)
    fs.compare(series, path.parent / "log.csv", {"time": {"offset": 0.0}}, sensor="wrist")
    return [series.time]


def _report(path: Path) -> Values:
    """A page of a run without tables and pictures, which take long and have readers of their own."""
    import femsim as fs

    fs.write_report(path.parent, stills=0)
    return []


def _repair(path: Path) -> Values:
    import femsim as fs

    run = path.parent if (path.parent / "run.json").is_file() else path.parents[1]
    with tempfile.TemporaryDirectory(dir=run.parent) as name:
        shutil.copytree(run, Path(name) / "run")
        fs.repair(Path(name) / "run")
    return []


def _resume(path: Path) -> Values:
    """Go on with a run for a step."""
    import femsim as fs

    with tempfile.TemporaryDirectory(dir=path.parents[1]) as name, warnings.catch_warnings(action="ignore"):
        shutil.copytree(path.parent, Path(name) / "run")
        fs.resume(Path(name) / "run", until=lambda _: "That is enough.")
    return []


def _row(path: Path) -> Values:
    """The row of a case of a sweep, which goes on without it where it is not whole."""
    from femsim.studies.sweeps.case import Job, read_row, satisfies
    from femsim.studies.sweeps.results import make_table
    from femsim.studies.sweeps.sampling import Case

    row = read_row(path.parent)
    job = Job(1, "case", {}, "a.py", "", "", metrics={"f": "max(a_fx_N)"}, series=["a_fx_N"], version="1")
    satisfies(row, job)
    table = make_table([Case(1, "case", {})], {} if row is None else {"case": row}, {"f": "max(a_fx_N)"})
    table.to_parquet(path.with_suffix(".t"))
    return []


def _swept(path: Path) -> Values:
    from viz.sweep_plots import read_sweep_table

    read_sweep_table(path.parent)
    return []


def _bench(path: Path) -> Values:
    """A table of a benchmark, of which everything is drawn again."""
    import femsim as fs

    with tempfile.TemporaryDirectory(dir=path.parent) as name:
        rows = fs.redraw_bench(path.parent / "bench.csv", Path(name) / "out")
    return [np.array([row.tolerance for row in rows])]


def _request(path: Path) -> Values:
    """A request to the page of a run, after the server has taken it apart."""
    from websockets.exceptions import SecurityError
    from websockets.http11 import Request
    from websockets.streams import StreamReader

    from viz import VizError
    from viz.gate import Gate

    stream = StreamReader()
    stream.feed_data(path.read_bytes())
    stream.feed_eof()
    reader = Request.parse(stream.read_line)
    try:
        next(reader)
    except StopIteration as read:
        assert Gate("127.0.0.1").objection(read.value.path, read.value.headers)  # nobody knows the token
        return []
    except (EOFError, ValueError, SecurityError) as error:  # this is the server's, which answers 400
        raise VizError(str(error)) from error
    raise AssertionError("it waits for more")


#: By kind; those of the corpus of bad files are in `bad_files.open_as`.
DOORS: dict[str, Callable[[Path], Values]] = {
    "calibration": _calibration, "steps": _steps, "json": _json, "pvd": _pvd, "frame": _frame, "hdf": _hdf,
    "checkpoint": _checkpoint, "saved": _saved, "robot": _robot, "path": _path, "log": _log, "mapped": _mapped,
    "friction": _friction, "run": _run, "report": _report, "repair": _repair, "resume": _resume, "row": _row, "swept": _swept,
    "request": _request, "bench": _bench,
}  # fmt: skip
