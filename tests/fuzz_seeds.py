"""The files that the fuzzer starts from: good ones of every kind that femsim reads, and the corpus of bad ones."""

from __future__ import annotations

import json
import re
import shutil
import struct
import zipfile
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from bad_files import CORPUS
from fuzz_doors import DROP, drop

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
    for make in (_meshes, _problems, _logs, _mapped, _bags, _texts, _robots, _states, _frames, _runs, _sweeps, _benches):
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


def _mapped(folder: Path) -> list[Seed]:
    """Logs and the cards that map their columns, each in a folder whose other file is good."""
    from log_files import write_mcap_of_joints

    table = "Bench 3\nUhr;effort [mNm];q [deg];cable (mm)\n"
    for k in range(60):
        table += f"{1000 + 10 * k};{1000 * np.sin(0.3 * k):.2f};{5.7 * np.sin(0.3 * k):.3f};{3 + 10 * np.sin(0.3 * k):.3f}\n"
    card = """[columns]
elbow_torque_Nm = "-effort"
elbow_angle_rad = "q [deg]"
wire_length_m = "cable"
[units]
torque = "mN m"
[time]
column = "Uhr"
unit = "ms"
max_lag = 0.2
[tare]
start = 0.0
end = 0.05
[filter]
cutoff = 20
"""
    joints = """rate = 50
window = [0.05, 0.5]
[columns]
elbow_torque_Nm = "-arm.pin.effort"
elbow_angle_rad = "arm.pin.position"
[time]
offset = 0.01
"""
    states = [
        (0.01 * k, {"arm.pin": [0.1 * np.sin(0.3 * k), 0.0, -np.sin(0.3 * k)], "arm.other": [0.0, 0.0, 1.0]}) for k in range(60)
    ]
    out = []
    for name in ("mapped_table", "mapped_card", "mapped_bag", "mapped_joints"):
        place = folder / name
        place.mkdir()
        bag = name in ("mapped_bag", "mapped_joints")
        (place / "card.toml").write_text(joints if bag else card)
        if bag:
            write_mcap_of_joints(place / "log.mcap", states)
        else:
            (place / "log.csv").write_text(table.replace(".", ","))
        changed = "card.toml" if name in ("mapped_card", "mapped_joints") else "log.mcap" if bag else "log.csv"
        out.append(Seed("mapped", f"{name}/{changed}", (place / changed).read_bytes()))
    return [*out, Seed("card", "columns.toml", card.encode())]


def _bags(folder: Path) -> list[Seed]:
    """The files of a rosbag2 of poses, each changed in a folder whose other file is good."""
    from log_files import write_bag_of_poses

    turns, out = np.tile([0.1, 0.2, 0.3, 0.0, 0.0, 0.0, 1.0], (9, 1)), []
    for kind in ("data", "words"):
        bag = folder / f"bag_{kind}"
        write_bag_of_poses(bag, turns, rate=9.0)
        for file in bag.glob("*.db3" if kind == "data" else "metadata.yaml"):
            out.append(Seed("path", f"{bag.name}/{file.name}", file.read_bytes()))
    (folder / "places.txt").write_text("0 0 0\n0.01 0 0\n0.02 0 0.01\n")
    return [*out, Seed("path", "a.turns", b"0 0 0 1\n0 0.01 0 0.99995\n0 0 0 1\n")]


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
    friction = (Path(__file__).parents[1] / "data" / "materials" / "friction.toml").read_text()[:3000].rpartition("[[pair]]")[0]
    robot = (
        '<robot name="a"><link name="b"><inertial><origin xyz="0 0 1" rpy="0 1 0"/><mass value="1"/>'
        '<inertia ixx="1" iyy="1" izz="1"/></inertial><collision><geometry><box size="1 1 1"/></geometry></collision></link>'
        '<link name="c"><inertial><mass value="2"/><inertia ixx="1" iyy="1" izz="1"/></inertial></link>'
        '<joint name="j" type="revolute"><parent link="b"/><child link="c"/><axis xyz="0 1 0"/>'
        '<limit lower="-1" upper="1"/></joint></robot>'
    )
    mjcf = (
        '<mujoco model="a"><compiler angle="radian"/><default><default class="c"><joint damping="0.1"/></default></default>'
        '<worldbody><body name="a"><inertial pos="0 0 1" mass="1" diaginertia="1 1 1" quat="1 0 1 0"/>'
        '<body name="b" pos="0 0 1" euler="0 1 0" childclass="c"><joint name="j" axis="0 1 0" range="-1 1"/>'
        '<geom type="capsule" size="0.1" fromto="0 0 0 0 0 1"/><body name="d" xyaxes="1 0 0 0 1 0"><joint name="k" type="slide"/>'
        '<geom type="box" size="1 1 1" mass="2"/></body></body></body></worldbody>'
        '<equality><joint joint1="k" joint2="j" polycoef="0 2 0 0 0"/></equality></mujoco>'
    )
    meshes = (
        '<mujoco><asset><mesh name="m" vertex="0 0 0 1 0 0 0 1 0 0 0 1" face="0 2 1 0 1 3 1 2 3 0 3 2" refpos="1 0 0"/></asset>'
        '<worldbody><body name="a"><geom type="mesh" mesh="m"/><geom type="ellipsoid" size="1 2 3"/></body></worldbody></mujoco>'
    )
    texts = {
        ("robot", "b.xml"): meshes,
        ("robot", "a.urdf"): robot, ("robot", "a.xml"): mjcf, ("friction", "friction.toml"): friction,
        ("card", "a.toml"): card, ("sweep", "b.toml"): sweep, ("calibration", "c.toml"): calibration,
        ("path", "a.path"): path, ("path", "b.path"): "0 0 0\n0.01 0 0\n0.02 0 0.01\n",
        ("path", "c.path"): poses, ("tensile", "t.csv"): tensile,
        ("steps", "steps.csv"): steps, ("json", "run.json"): info, ("pvd", "frames.pvd"): pvd,
    }  # fmt: skip
    return [Seed("material", "ecoflex_00_50.toml", material)] + [Seed(*key, text.encode()) for key, text in texts.items()]


def _robots(folder: Path) -> list[Seed]:
    """Robots that come with femsim, one of all kinds of joints and shapes, and the meshes of one.

    Round shapes are thin: the grids of meshes reach as far beyond them, and one robot took a second.
    """
    import meshio

    import femsim as fs

    box = fs.box_tets((0.1, 0.1, 0.1), 1).surface()
    inertia = '<inertial><mass value="1"/><inertia ixx="1" iyy="1" izz="1" ixy="0.1"/></inertial>'
    shapes = ('<sphere radius="0.02"/>', '<cylinder radius="0.02" length="0.2"/>', '<capsule radius="0.02" length="0.2"/>',
              '<mesh filename="link.stl" scale="1 1 0.5"/>', '<mesh filename="package://a/link.obj"/>')  # fmt: skip
    kinds = ("continuous", "prismatic", "fixed", "revolute")
    text = '<?xml version="1.0"?><robot name="r"><link name="l0"/>'
    for k, shape in enumerate(shapes, 1):
        drawn = f'<{{0}}><origin xyz="0 0 0.{k}" rpy="0.{k} 0 1"/><geometry>{shape}</geometry></{{0}}>'
        text += f'<link name="l{k}">{inertia}{drawn.format("visual")}{drawn.format("collision")}</link>'
    for k, kind in enumerate((*kinds, "fixed")):
        more = f'<mimic joint="j{k - 2}" multiplier="-0.5" offset="0.1"/>' if k == 3 else ""
        text += (
            f'<joint name="j{k}" type="{kind}"><origin xyz="0.{k} 0 0" rpy="0 1 0"/><parent link="l{k}"/><child link="l{k + 1}"/>'
            f'<axis xyz="0 1 0.{k}"/><limit lower="-1" upper="1" effort="3" velocity="2"/>'
            f'<dynamics damping="0.1" friction="0.2"/>{more}</joint>'
        )
    text += "</robot>"
    text, packaged = text.replace("package://a/", ""), text
    out = [Seed("robot", "all.urdf", text.encode()), Seed("robot", "packaged.urdf", packaged.encode())]
    out += [Seed("robot", f.name, f.read_bytes()) for f in sorted((Path(__file__).parents[1] / "data" / "robots").glob("*.urdf"))]
    # all links in one place: contacts of every pair of shapes, whose kernels are compiled when the first input has them
    out += [Seed("robot", f"crossed_{one.name}", re.sub(rb'origin xyz="[^"]*"', b'origin xyz="0 0 0"', one.data)) for one in out]
    for kind in ("stl", "obj", ""):
        place = folder / (f"robot_{kind}" if kind else "")
        place.mkdir(exist_ok=True)
        (place / "robot.urdf").write_text(text)
        for name in ("link.stl", "link.obj"):
            meshio.write(place / name, meshio.Mesh(box.points, [("triangle", box.triangles)]))
        if kind:
            out.append(Seed("robot", f"{place.name}/link.{kind}", (place / f"link.{kind}").read_bytes()))
    return out


def _runs(folder: Path) -> list[Seed]:
    """Files of the folder of a run that ended, and of one that goes on; each in a folder whose other files are good."""
    import femsim as fs

    run = folder / "run"
    file = folder / "drop.py"
    file.write_text(DROP)
    fs.simulate(fs.load_scene(file), out=run, fps=100.0, quiet=True, scene_path=file)
    (run / "log.csv").write_text("time,Fx,Fy,Fz\n" + "".join(f"{0.01 * k:.2f},{k % 3}.5,0,1\n" for k in range(12)))
    out = []
    for kind, names in (
        ("run", ("run.json", "sensors.csv", "steps.csv")),
        ("report", ("run.json",)),
        ("repair", ("run.json", "sensors.csv", "steps.csv", "frames.pvd")),
        ("resume", ("run.json",)),
    ):
        for name in names:
            place = folder / f"{kind}_{name.partition('.')[0]}"
            shutil.copytree(run, place)
            data = (place / name).read_bytes()
            if kind == "report":
                (place / "steps.csv").unlink()
            if kind == "resume":
                data = data.replace(b'"status": "converged"', b'"status": "interrupted"')
            out.append(Seed(kind, f"{place.name}/{name}", data))
    return out


def _sweeps(folder: Path) -> list[Seed]:
    """The row of a case, the words and the table of a sweep, a request to the page of a run."""
    import pandas

    row: dict[str, Any] = {
        "case": 1, "id": "case", "status": "converged", "message": "All.", "attempts": 1, "parameters": {"friction": 0.5},
        "metrics": {"f": 1.5}, "outputs": {"metrics": {"f": "max(a_fx_N)"}, "series": ["a_fx_N"], "fps": 0.0},
        "health": {"verdict": "good", "reasons": [{"sentence": "x"}], "steps": 3, "mean_iterations": 2.5}, "wall_s": 0.5,
        "versions": {"numpy": "1"},
    }  # fmt: skip
    info = {"varied": ["friction"], "metrics": {"f": "max(a_fx_N)"}, "units": {"friction": "1"}, "scales": {}}
    table = pandas.DataFrame({"status": ["converged"] * 3, "friction": [0.1, 0.2, 0.3], "f": [1.0, np.nan, 2.0]})
    request = (
        "GET /path?token=abc&x=%41 HTTP/1.1\r\nHost: localhost:8080\r\nOrigin: http://localhost:8080\r\n"
        'Cookie: femsim-0=abc; other="q\\"uoted"; Path=/\r\nUpgrade: websocket\r\n\r\n'
    )
    out = [Seed("row", "case/case.json", json.dumps(row).encode()), Seed("request", "request", request.encode())]
    for kind, name in (("words", "sweep.json"), ("table", "results.parquet")):
        place = folder / f"swept_{kind}"
        place.mkdir()
        (place / "sweep.json").write_text(json.dumps(info))
        table.to_parquet(place / "results.parquet", index=False)
        out.append(Seed("swept", f"{place.name}/{name}", (place / name).read_bytes()))
    (folder / "case").mkdir()
    return out


def _benches(folder: Path) -> list[Seed]:
    """The two tables of a benchmark, each in a folder whose other file is good."""
    from femsim.studies.problems.bench import BenchRow, write_rows
    from femsim.studies.problems.traits import Traits

    rows = [
        BenchRow(problem, 4, 30, solver, "converged", "So.", 3, cpu_ms=k + 1.0, tolerance=1e-6)
        for k, (problem, solver) in enumerate((p, s) for p in ("a", "b, step 2") for s in ("pgs", "exact"))
    ]
    traits = "\n".join([",".join(("problem", *Traits._fields, "categories")), "a,30,4,0,12,0.4,nan,True,soft", ""])
    out = []
    for name in ("bench.csv", "problems.csv"):
        place = folder / f"benched_{name.partition('.')[0]}"
        place.mkdir()
        write_rows(place / "bench.csv", rows)
        (place / "problems.csv").write_text(traits)
        out.append(Seed("bench", f"{place.name}/{name}", (place / name).read_bytes()))
    return out


def _states(folder: Path) -> list[Seed]:
    import femsim as fs
    from femsim.step.stepper import Stepper

    Stepper(drop(), fs.make_solver("exact")).state.save(folder / "a.npz")
    data = (folder / "a.npz").read_bytes()
    with zipfile.ZipFile(folder / "b.npz", "w", zipfile.ZIP_DEFLATED) as packed, zipfile.ZipFile(folder / "a.npz") as plain:
        for name in plain.namelist():
            packed.writestr(name, plain.read(name))
    states = [Seed("state", "a.npz", data), Seed("state", "b.npz", (folder / "b.npz").read_bytes())]
    simulation = fs.Simulation(drop())
    simulation.step()
    simulation.save().write(folder / "c.npz")
    return [*states, Seed("saved", "c.npz", (folder / "c.npz").read_bytes()), _checkpoint(folder)]


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
        shutil.copytree(run, folder / f"repair_{kind}")
        (folder / f"repair_{kind}" / "run.json").write_text('{"status": "converged"}')
        out.append(Seed("repair", f"repair_{kind}/{file}", (run / file).read_bytes()))
    return out
