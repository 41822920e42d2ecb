"""The files that the fuzzer starts from: good ones of every kind that femsim reads, and the corpus of bad ones."""

from __future__ import annotations

import json
import re
import struct
import zipfile
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from bad_files import CORPUS

#: When meshio wrote a file; input N of a seed is the same on every day.
_DATE = re.compile(rb"20\d\d-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}")


@dataclass(frozen=True)
class Seed:
    """A file to start from: how it is read, its name, what it holds."""

    kind: str
    name: str
    data: bytes


def seeds(folder: Path) -> list[Seed]:
    """Make good files of every kind, and add the corpus of bad ones that are files and small."""
    out: list[Seed] = []
    for make in (_meshes, _problems, _logs, _texts, _states, _frames):
        out += make(folder)
    for name, (kind, write) in CORPUS.items():
        path = folder / name
        write(path)
        if path.is_file() and path.stat().st_size < 100_000:
            out.append(Seed(kind, name, path.read_bytes()))
    return [replace(seed, data=_DATE.sub(b"2020-01-01T00:00:00.000000", seed.data)) for seed in out]


def _meshes(folder: Path) -> list[Seed]:
    import meshio

    import femsim as fs

    box, out = fs.box_tets((1.0, 1.0, 1.0), 1), []
    surface = box.surface()
    for name, options in (
        ("a.vtu", {}), ("b.vtu", {"binary": False}), ("a.vtk", {}), ("b.vtk", {"binary": False}), ("a.msh", {}),
        ("b.msh", {"binary": False}), ("c.msh", {"file_format": "gmsh22", "binary": False}), ("a.mesh", {}), ("a.inp", {}),
        ("d.msh", {"file_format": "ansys", "binary": True}), ("e.msh", {"file_format": "ansys", "binary": False}),
    ):  # fmt: skip
        path = folder / name
        meshio.write(path, meshio.Mesh(box.points, [("tetra", box.tets)]), **options)
        out.append(Seed("tetmesh", path.name, path.read_bytes()))
    for name, options in (
        ("a.stl", {"binary": True}),
        ("b.stl", {"binary": False}),
        ("a.obj", {}),
        ("a.ply", {}),
        ("b.ply", {"binary": False}),
    ):
        path = folder / name
        meshio.write(path, meshio.Mesh(surface.points, [("triangle", surface.triangles)]), **options)
        out.append(Seed("surface", path.name, path.read_bytes()))
    return out


def _problems(folder: Path) -> list[Seed]:
    import scipy.sparse as sp

    from contact import make_local_problem, make_problem, make_rows, write_fclib
    from contact.local import eliminate_rows

    path = folder / "a.hdf5"
    write_fclib(
        path, make_problem(sp.identity(6, format="csc"), np.zeros(6), sp.csr_matrix(np.eye(3, 6)), np.zeros(1), 0.5, dt=0.1)
    )
    first = path.read_bytes()
    files = [first]
    rows = make_rows(np.eye(3, 6), 0.1, [-np.inf, 0.0, -2.0], [np.inf, np.inf, 2.0])
    for problem in (
        make_local_problem(np.eye(6), np.zeros(6), 0.5),
        make_problem(sp.identity(6, format="csc"), np.zeros(6), sp.csr_matrix(np.eye(3, 6)), np.zeros(1), 0.5, dt=0.1, rows=rows),
        eliminate_rows(2.0 * np.eye(3), np.zeros(3), 0.5, np.eye(3, 1), np.eye(1), np.zeros(1)),
    ):
        write_fclib(path, problem)
        files.append(path.read_bytes())
    return [Seed("fclib", f"{name}.hdf5", data) for name, data in zip("abcd", files, strict=True)]


def _logs(folder: Path) -> list[Seed]:
    from log_files import write_c3d, write_mcap, write_mcap_of_poses

    rows = "".join(f"{0.01 * k:.2f},{k % 7}.5,-2.5,3e-1,0.5,0.0,{k}.25\n" for k in range(30))
    columns = "time,Fx,Fy,Fz,Tx,Ty,Tz\n"
    table = "Bench 3\nForce Units:,N\n" + columns + "s,N,N,N,Nm,Nm,Nm\n" + rows
    german = table.replace(",", ";").replace(".", ",")
    c3d = write_c3d(folder / "a.c3d", np.ones((3, 2, 30)), ["tip", "base"], "mm").read_bytes()
    mcap = write_mcap(folder / "a.mcap").read_bytes()
    out = [
        Seed("log", "a.csv", table.encode()),
        Seed("log", "b.txt", german.encode()),
        Seed("log", "c.csv", (columns + rows).encode()),
    ]
    turns = np.tile([0.1, 0.2, 0.3, 0.0, 0.0, 0.0, 1.0], (9, 1))
    out.append(
        Seed("path", "poses.mcap", write_mcap_of_poses(folder / "poses.mcap", "PoseStamped", turns, rate=9.0).read_bytes())
    )
    return [*out, Seed("log", "a.c3d", c3d), Seed("log", "a.mcap", mcap), Seed("log", "a.bag", _bag())]


def _bag() -> bytes:
    """A ROS 1 bag with an index and no message: records are a header of NAME=VALUE and data, lengths before both."""

    def record(data: bytes, **header: bytes) -> bytes:
        fields = b"".join(struct.pack("<I", len(k) + 1 + len(v)) + k.encode() + b"=" + v for k, v in header.items())
        return struct.pack("<I", len(fields)) + fields + struct.pack("<I", len(data)) + data

    definition = {
        "type": b"geometry_msgs/WrenchStamped",
        "md5sum": b"d78d3cb249ce23087ade7e7d0c40cfa7",
        "message_definition": b"float64 x",
    }
    pairs = b"".join(
        struct.pack("<I", len(k) + 1 + len(v)) + k.encode() + b"=" + v for k, v in ({"topic": b"/ft"} | definition).items()
    )
    connection = record(pairs, op=b"\x07", conn=struct.pack("<I", 0), topic=b"/ft")
    head = b"#ROSBAG V2.0\n"
    place = len(head) + 4 + 69 + 4 + 4027
    bag = record(
        b" " * 4027,
        op=b"\x03",
        index_pos=struct.pack("<Q", place),
        conn_count=struct.pack("<I", 1),
        chunk_count=struct.pack("<I", 0),
    )
    return head + bag + connection


def _texts(_: Path) -> list[Seed]:
    card = """sensor = "wrist"
[axes]
fz = "load"
[units]
force = "kg"
[time]
column = "clock"
unit = "ms"
[frame]
sign = -1
point = [0, 0.1, 0]
"""
    sweep = """scene = "a.py"
[parameters]
friction = { values = [0.1, 0.2] }
speed = { range = [0.0, 1.0], count = 3 }
"""
    calibration = """scene = "a.py"
[free]
young_modulus = { between = [1e4, 1e6], scale = "log" }
[[experiments]]
name = "a"
readings = [{ logs = ["a.csv"], card = { time = { offset = 0.005 } } }]
"""
    material = (Path(__file__).parents[1] / "data" / "materials" / "ecoflex_00_50.toml").read_bytes()
    path = "time_s,tool_x_m,tool_y_m,tool_z_m\n" + "".join(f"{0.1 * k + 0.1},0,0.{k},1e-2\n" for k in range(9))
    poses = "Time (ms);X (mm);Y (mm);Z (mm);qw;qx;qy;qz\n" + "".join(f"{k}0;{k},5;0,0;0,1;0,8;0,0;-0,6;0,0\n" for k in range(9))
    tensile = "Test 1\nEngineering Strain (%),Engineering Stress (MPa)\n" + "".join(f"{k},{0.1 * k}\n" for k in range(9))
    steps = "step,time_s,iterations\n" + "".join(f"{k},{0.1 * k},3\n" for k in range(9))
    info = json.dumps({"status": "converged", "message": "", "settings": {"gravity_mps2": [0, 0, -9.81]}})
    entry = '<DataSet timestep="0.1" name="a" file="a.vtu"/>'
    pvd = f'<?xml version="1.0"?><VTKFile type="Collection"><Collection>{entry}</Collection></VTKFile>'
    robot = (
        '<robot name="a"><link name="b"><inertial><origin xyz="0 0 1" rpy="0 1 0"/><mass value="1"/>'
        '<inertia ixx="1" iyy="1" izz="1"/></inertial><collision><geometry><box size="1 1 1"/></geometry></collision></link>'
        '<link name="c"/><joint name="j" type="revolute"><parent link="b"/><child link="c"/><axis xyz="0 1 0"/>'
        '<limit lower="-1" upper="1"/></joint></robot>'
    )
    texts = {
        ("robot", "a.urdf"): robot,
        ("card", "a.toml"): card, ("sweep", "b.toml"): sweep, ("calibration", "c.toml"): calibration,
        ("path", "a.path"): path, ("path", "b.path"): "0 0 0\n1 0 0\n2 0 1\n",
        ("path", "c.path"): poses, ("tensile", "t.csv"): tensile,
        ("steps", "steps.csv"): steps, ("json", "run.json"): info, ("pvd", "frames.pvd"): pvd,
    }  # fmt: skip
    return [Seed("material", "ecoflex_00_50.toml", material)] + [Seed(*key, text.encode()) for key, text in texts.items()]


def _states(folder: Path) -> list[Seed]:
    import femsim as fs
    from femsim.step.stepper import Stepper

    scene = fs.Scene("a", dt=0.01, theta=1.0)
    scene.add_rigid("ball", fs.Sphere(0.1), density=1e3)
    Stepper(scene, fs.make_solver("exact")).state.save(folder / "a.npz")
    data = (folder / "a.npz").read_bytes()
    with zipfile.ZipFile(folder / "b.npz", "w", zipfile.ZIP_DEFLATED) as packed, zipfile.ZipFile(folder / "a.npz") as plain:
        for name in plain.namelist():
            packed.writestr(name, plain.read(name))
    states = [Seed("state", "a.npz", data), Seed("state", "b.npz", (folder / "b.npz").read_bytes())]
    return [*states, _checkpoint(folder)]


def _checkpoint(folder: Path) -> Seed:
    """What a checkpoint holds, without its first line; the rows that it names lie beside it."""
    from femsim.run.checkpoint import Checkpoints, Every, found_checkpoints
    from femsim.step.state import State

    rows = {"steps": np.arange(6.0).reshape(2, 3), "sensors": np.ones((2, 4))}
    Checkpoints(folder, Every.of(1)).save(1, State.load(folder / "a.npz"), {"lam": np.ones(3)}, {"seed": 1}, rows)
    path = found_checkpoints(folder)[0]
    return Seed("checkpoint", str(path.relative_to(folder)), path.read_bytes().partition(b"\n")[2])


def _frames(folder: Path) -> list[Seed]:
    """Frames of a run: files of parts, by femsim and by VTK, and the two kinds of VTKHDF files."""
    from small_frames import add_small_parts, make_frame, make_series
    from vtkmodules.vtkIOXML import vtkXMLPolyDataWriter, vtkXMLUnstructuredGridWriter

    from viz import HdfSeries, read_part

    with make_series(folder / "xml") as series:
        for number in range(3):
            series.write_frame(0.1 * number, make_frame(number))
    parts = [folder / "xml" / "frames" / name for name in ("ball_000001.vtu", "pad_000001.vtp", "contacts_000002.vtp")]
    out = [Seed("frame", path.name, path.read_bytes()) for path in parts]
    writer: Any
    for path, writer in ((parts[0], vtkXMLUnstructuredGridWriter()), (parts[1], vtkXMLPolyDataWriter())):
        for name, mode in (("text", writer.SetDataModeToAscii), ("base64", writer.SetDataModeToBinary)):
            writer.SetInputData(read_part(path))
            mode()
            writer.SetFileName(str(folder / f"{name}{path.suffix}"))
            writer.Write()
            out.append(Seed("frame", f"{name}{path.suffix}", (folder / f"{name}{path.suffix}").read_bytes()))
    for kind, file in (("part", "frames/ball.vtkhdf"), ("points", "frames/contacts.vtkhdf"), ("index", "frames.vtkhdf")):
        run = folder / f"hdf_{kind}"
        with HdfSeries(run / "frames.vtkhdf", run / "frames") as frames:
            add_small_parts(frames)
            for number in range(3):
                frames.write_frame(0.1 * number, make_frame(number))
        out.append(Seed("hdf", f"{run.name}/{file}", (run / file).read_bytes()))
    return out
