"""A corpus of small files that hang, crash or fill the memory of a reader that believes what they claim.

`CORPUS` has the files by name; `open_as` reads one by the same door as a user. Run as a program it reads all of a folder that
:func:`write_corpus` wrote and prints how each ended, how long it took and how much memory: see ``test_bad_files.py``.
"""

from __future__ import annotations

import io
import json
import resource
import signal
import struct
import sys
import time
import zipfile
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

ROWS = "".join(f"{0.01 * k:.2f},{k}\n" for k in range(20))
TETRA = "4 0 1 2 3"


def open_as(kind: str, path: Path) -> list[np.ndarray]:
    """Read a file as a user would; return its numbers."""
    import femsim as fs

    if kind == "tetmesh":
        mesh = fs.load_tetmesh(path)
        return [mesh.points]
    if kind == "surface":
        return [fs.load_surface(path).points]
    if kind == "fclib":
        problem: Any = fs.read_fclib(path).problem
        if hasattr(problem, "W"):
            return [problem.W, problem.q]
        rows = [] if problem.rows is None else [problem.rows.G.data, problem.rows.offset, problem.rows.softness]
        return [problem.A.data, problem.b, problem.J.data, problem.phi, *rows]
    if kind == "log":
        log = fs.read_log(path, sensors=["wrist"], markers=["tip"])
        return [log.time, np.nan_to_num(log.values, nan=0.0, posinf=np.inf, neginf=-np.inf)]
    if kind == "card":
        fs.read_card(path)
        return []
    if kind == "material":
        elastic = fs.load_card(path).elastic()
        return [np.array([elastic.young_modulus, elastic.density])]
    if kind == "sweep":
        from femsim.studies.sweeps.file import read_sweep

        read_sweep(path)
        return []
    if kind == "path":
        poses = fs.load_path(path)
        return [poses.times, poses.positions, *([] if poses.quaternions is None else [poses.quaternions])]
    if kind == "tensile":
        from femsim.studies.material_fit.tensile_test import read_tensile_test

        test = read_tensile_test(path)
        return [test.stretch, test.stress]
    if kind == "robot":
        return [np.array([fs.load_robot(path).mass])]
    if kind == "state":
        from femsim.step.state import State

        return [value for value in State.load(path).arrays().values() if value.dtype.kind == "f"]
    if kind == "run":
        from femsim.studies.comparison.run_series import read_run

        return [read_run(path).time]
    if kind == "report":
        fs.write_report(path)
        return []
    if kind == "plot":
        fs.plot_run(path)
        return []
    raise ValueError(kind)


# ---------------------------------------------------------------------- what they hold


def fclib(change: Callable[[Any, Path], None]) -> Callable[[Path], None]:
    """Write an FCLib file of one contact, and change it."""

    def write(path: Path) -> None:
        import h5py

        with h5py.File(path, "w") as file:
            group = file.create_group("fclib_local")
            group["spacedim"] = [3]
            group["vectors/q"], group["vectors/mu"] = np.zeros(3), [0.5]
            values: dict[str, Any] = {"m": [3], "n": [3], "nz": [3], "p": [0, 1, 2], "i": [0, 1, 2], "x": np.ones(3)}
            for name, value in values.items():
                group[f"W/{name}"] = value
            change(file, path)

    return write


def put(**values: Any) -> Callable[[Any, Path], None]:
    def change(file: Any, _: Path) -> None:
        for name, value in values.items():
            place = f"fclib_local/{name.replace('__', '/')}"
            del file[place]
            file[place] = value

    return change


def _linked(file: Any, path: Path) -> None:
    import h5py

    secret = path.with_name("secret.hdf5")
    with h5py.File(secret, "w") as other:
        other["q"] = np.arange(3.0)
    del file["fclib_local/vectors/q"]
    file["fclib_local/vectors/q"] = h5py.ExternalLink(str(secret), "q")


def _external(file: Any, path: Path) -> None:
    secret = path.with_name("secret.bin")
    secret.write_bytes(np.arange(3.0).tobytes())
    del file["fclib_local/vectors/q"]
    file.create_dataset("fclib_local/vectors/q", (3,), "f8", external=[(str(secret), 0, 24)])


def _virtual(file: Any, path: Path) -> None:
    import h5py

    secret = path.with_name("secret2.hdf5")
    with h5py.File(secret, "w") as other:
        other["q"] = np.arange(3.0)
    layout = h5py.VirtualLayout((3,), "f8")
    layout[:] = h5py.VirtualSource(str(secret), "q", (3,))
    del file["fclib_local/vectors/q"]
    file.create_virtual_dataset("fclib_local/vectors/q", layout)


def _soft(file: Any, _: Path) -> None:
    import h5py

    file["fclib_local/info"] = h5py.SoftLink("/fclib_local")


def _never_written(file: Any, _: Path) -> None:
    del file["fclib_local/W/x"]
    file.create_dataset("fclib_local/W/x", (1 << 33,), "f8", chunks=(1 << 20,))


def _full_matrix(file: Any, path: Path) -> None:
    nc = 40_000
    put(
        vectors__mu=np.zeros(nc),
        vectors__q=np.zeros(3 * nc),
        W__m=[3 * nc],
        W__n=[3 * nc],
    )(file, path)


def _heap(path: Path) -> None:
    """Two bytes of the strings of one of our own files: HDF5 walks its heap for ever."""
    import scipy.sparse as sp

    from contact import make_problem, write_fclib

    J = sp.csr_matrix(np.eye(3))
    problem = make_problem(sp.identity(3, format="csc"), np.zeros(3), J, np.zeros(1), 0.5, dt=0.1)
    write_fclib(path, problem)
    data = bytearray(path.read_bytes())
    heap = data.index(b"GCOL")
    data[heap + 8], data[heap + 138] = 187, 208
    path.write_bytes(data)


def _c3d(path: Path) -> None:
    """The first 842 of 2048 bytes of a file of ezc3d's layout, whose parameters then claim what is not there."""
    import ezc3d

    recording = ezc3d.c3d()
    recording["parameters"]["POINT"]["RATE"]["value"] = [100.0]
    recording["parameters"]["POINT"]["LABELS"]["value"] = ["tip"]
    recording["data"]["points"] = np.ones((4, 1, 30))
    recording.write(str(path))
    path.write_bytes(path.read_bytes()[:842])


def _c3d_claims(path: Path) -> None:
    _c3d(path)
    data = bytearray(path.read_bytes().ljust(2048, b"\0"))
    data[2:4], data[8:10] = struct.pack("<H", 65535), struct.pack("<H", 65535)
    path.write_bytes(data)


def _mcap(path: Path) -> None:
    path.write_bytes(b"\x89MCAP0\r\n" + b"\x01" + struct.pack("<Q", 1 << 40) + b"\0" * 40 + b"\x89MCAP0\r\n")


def _bag(path: Path) -> None:
    path.write_bytes(b"#ROSBAG V2.0\n" + struct.pack("<I", 0x7FFFFFFF) + b"op=\x03" * 20)


def _bag_folder(path: Path) -> None:
    path.mkdir()
    (path / "metadata.yaml").write_text("a: &a [x,x,x,x,x,x,x,x,x]\n" + "".join(
        f"{chr(98 + k)}: &{chr(98 + k)} [{','.join([f'*{chr(97 + k)}'] * 9)}]\n" for k in range(9)
    ))  # fmt: skip
    (path / "bag.db3").write_bytes(b"SQLite format 3\0" + b"\xff" * 200)


def _npz(members: dict[str, bytes], compression: int = zipfile.ZIP_STORED) -> Callable[[Path], None]:
    def write(path: Path) -> None:
        with zipfile.ZipFile(path, "w", compression) as archive:
            for name, data in members.items():
                archive.writestr(name, data)

    return write


def _npy(shape: str, data: bytes = b"", kind: str = "<f8") -> bytes:
    head = f"{{'descr': '{kind}', 'fortran_order': False, 'shape': {shape}, }}".encode()
    head += b" " * (63 - (len(head) + 10) % 64) + b"\n"
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(head)) + head + data


def _zeros() -> bytes:
    buffer = io.BytesIO()
    np.save(buffer, np.zeros(50_000_000))
    return buffer.getvalue()


def _bomb(path: Path) -> None:
    _npz({"q.npy": _zeros(), "version.npy": _npy("()", struct.pack("<q", 1), "<i8")}, zipfile.ZIP_DEFLATED)(path)


def _run(info: str, sensors: str) -> Callable[[Path], None]:
    def write(path: Path) -> None:
        path.mkdir()
        (path / "run.json").write_text(info)
        (path / "sensors.csv").write_text(sensors)
        (path / "steps.csv").write_text(sensors)

    return write


def _vtu(path: Path) -> None:
    """Points that are a zlib block of 80 MB of zeros in 80 kB."""
    import base64

    block = zlib.compress(bytes(10_000_000))
    head = struct.pack("<11I", 8, 10_000_000, 0, *[len(block)] * 8)
    data = base64.b64encode(head) + base64.b64encode(block * 8)
    path.write_bytes(
        b'<VTKFile type="UnstructuredGrid" version="0.1" byte_order="LittleEndian" compressor="vtkZLibDataCompressor">'
        b'<UnstructuredGrid><Piece NumberOfPoints="3333333" NumberOfCells="1"><Points><DataArray type="Float64" '
        b'NumberOfComponents="3" format="binary">'
        + data
        + b"</DataArray></Points><Cells></Cells></Piece></UnstructuredGrid></VTKFile>"
    )


def _text(content: str | bytes) -> Callable[[Path], None]:
    def write(path: Path) -> None:
        path.write_bytes(content if isinstance(content, bytes) else content.encode())

    return write


def _vtk(points: str, cells: str = f"1 5\n{TETRA}", count: str = "4") -> str:
    return (
        f"# vtk DataFile Version 3.0\nx\nASCII\nDATASET UNSTRUCTURED_GRID\nPOINTS {count} double\n{points}\n"
        f"CELLS {cells}\nCELL_TYPES 1\n10\n"
    )


def _obj(face: str, point: str = "0 0 1") -> str:
    return f"v 0 0 0\nv 1 0 0\nv 0 1 0\nv {point}\nf {face}\n"


_MATERIAL = """title = "x"
young_modulus = {{ value = {young}, unit = "Pa", source = "x" }}
poisson_ratio = {{ value = 0.3, unit = "1", source = "x" }}
density = {{ value = {density}, unit = "kg/m3", source = "x" }}
"""
_WIDE = ",".join(f"c{k}" for k in range(200_000)) + "\n" + ",".join(["1"] * 200_000) + "\n"
_STRAIN = "engineering strain,engineering stress (MPa)\n"

#: Name of the file: how it is read, and what writes it. All must be refused with a sentence.
LAUGHS = b"".join(b'<!ENTITY l%d "%s">' % (k, b"&l%d;" % (k - 1) * 10 if k else b"ha") for k in range(12))

CORPUS: dict[str, tuple[str, Callable[[Path], None]]] = {
    "laughs.urdf": ("robot", _text(b"<!DOCTYPE r [" + LAUGHS + b"]><robot name='a'>&l11;</robot>")),
    "outside.urdf": ("robot", _text(b"<!DOCTYPE r [<!ENTITY x SYSTEM 'file:///etc/hostname'>]><robot name='a'>&x;</robot>")),
    "laughs.xml": ("robot", _text(b"<!DOCTYPE r [" + LAUGHS + b"]><mujoco model='a'>&l11;</mujoco>")),
    "endless_bodies.xml": ("robot", _text(
        b"<mujoco><worldbody>" + b"<body>" * 3000 + b"</body>" * 3000 + b"</worldbody></mujoco>")),
    "huge_mass.xml": ("robot", _text(b"<mujoco><worldbody><body><geom size='1e200'/></body></worldbody></mujoco>")),
    "deep.urdf": ("robot", _text(b"<robot>" + b"<a>" * 500_000)),
    "deep_closed.urdf": ("robot", _text(b"<robot>" + b"<a>" * 300_000 + b"</a>" * 300_000 + b"</robot>")),
    "cut.urdf": ("robot", _text(b"<robot name='a'><link name='b'><inertial><mass value='1'/>")),
    "nan.urdf": ("robot", _text(b"<robot name='a'><link name='b'><inertial><mass value='nan'/><inertia ixx='1' iyy='1' izz='1'/>"
                                b"</inertial></link></robot>")),
    "huge_capsule.urdf": ("robot", _text(
        b"<robot name='a'><link name='b'><inertial><mass value='1'/><inertia ixx='1' iyy='1' izz='1'/></inertial>"
        b"<collision><geometry><capsule radius='21474836' length='0.16'/></geometry></collision></link></robot>")),
    "huge_moment.urdf": ("robot", _text(
        b"<robot name='a'><link name='b'><inertial><mass value='1'/><inertia ixx='1e308' iyy='1e308' izz='1e308'/></inertial>"
        b"</link></robot>")),
    "chain_of_itself.urdf": ("robot", _text(
        b"<robot name='a'><link name='b'/><joint name='j' type='fixed'><parent link='b'/><child link='b'/></joint></robot>")),
    "cut_in_header.ply": ("surface", _text(b"ply\nformat ascii 1.0\nelement vertex 3000\nproperty float x\n")),
    "claims_points.ply": ("surface", _text(
        b"ply\nformat binary_little_endian 1.0\nelement vertex 2000000000\nproperty float x\nproperty float y\nproperty float z\n"
        b"element face 1\nproperty list uchar int vertex_indices\nend_header\n" + bytes(40))),
    "claims_triangles.stl": ("surface", _text(bytes(80) + struct.pack("<I", 4_000_000_000) + bytes(50))),
    "empty.stl": ("surface", _text(b"")),
    "index_of_24_digits.obj": ("surface", _text(_obj("1 2 " + "9" * 24))),
    "index_beyond.obj": ("surface", _text(_obj("1 2 9"))),
    "index_before_the_first.obj": ("surface", _text(_obj("1 2 -5"))),
    "index_from_the_end_of_24_digits.obj": ("surface", _text(_obj("1 2 -" + "9" * 24))),
    "index_from_the_end_no_number.obj": ("surface", _text(_obj("-1 -2 -x"))),
    "index_zero.obj": ("surface", _text(_obj("0 1 2"))),
    "far_away.obj": ("surface", _text(_obj("2 3 4", "0 0 1e7"))),
    "tiny.obj": ("surface", _text("v 0 0 0\nv 1e-10 0 0\nv 0 1e-10 0\nf 1 2 3\n")),
    "no_coordinates.obj": ("surface", _text("v \nf 0 1 2\n")),
    "two_corners.ply": ("surface", _text(
        "ply\nformat ascii 1.0\nelement vertex 3\nproperty double x\nproperty double y\nproperty double z\nelement face 2\n"
        "property list uint8 int32 vertex_indices\nend_header\n0 0 0\n0 0 1\n0 1 0\n3 0 1 2\n4 0 1\n")),
    "infinite.obj": ("surface", _text(_obj("1 2 4", "0 0 1e999"))),
    "claims_points.vtk": ("tetmesh", _text(_vtk("0 0 0", count="99999999999"))),
    "claims_cells.vtk": ("tetmesh", _text(_vtk("0 0 0 1 0 0 0 1 0 0 0 1", "9999999999 99999999999\n4 0 1 2 3"))),
    "binary_claims.vtk": ("tetmesh", _text(
        b"# vtk DataFile Version 3.0\nx\nBINARY\nDATASET UNSTRUCTURED_GRID\nPOINTS 3000000000 double\n" + bytes(90))),
    "far_away.vtk": ("tetmesh", _text(_vtk("0 0 0 1 0 0 0 1 0 0 0 1e7"))),
    "tiny.vtk": ("tetmesh", _text(_vtk("0 0 0 1e-11 0 0 0 1e-11 0 0 0 1e-11"))),
    "huge.vtk": ("tetmesh", _text(_vtk("0 0 0 1e300 0 0 0 1e300 0 0 0 1e300"))),
    "zeros_80_MB.vtu": ("tetmesh", _vtu),
    "nested.vtu": ("tetmesh", _text("<a>" * 100_000)),
    "laughs.vtu": ("tetmesh", _text('<?xml version="1.0"?><!DOCTYPE l [<!ENTITY a "ha">' + "".join(
        f'<!ENTITY {chr(98 + k)} "{f"&{chr(97 + k)};" * 20}">' for k in range(9)) + "]><VTKFile>&j;</VTKFile>")),
    "claims_nodes.msh": ("tetmesh", _text("$MeshFormat\n4.1 0 8\n$EndMeshFormat\n$Nodes\n1 99999999999 1 99999999999\n")),
    "cut.msh": ("tetmesh", _text("$MeshFormat\n2.2 0 8\n$EndMeshFormat\n$Nodes\n4\n1 0 0 0\n")),
    "cut_ansys.msh": ("tetmesh", _text('(1 "x")\n(2 3)\n(10 (0 1 4 0))\n(10 (1 1 4 1 3) (\n0 0 0\n1 0 0\n')),
    "bracket_ansys.msh": ("tetmesh", _text("(0 \"")),
    "claims_vertices.mesh": ("tetmesh", _text("MeshVersionFormatted 1\nDimension 3\nVertices\n99999999999\n0 0 0 1\n")),
    "claims_dimension.mesh": ("tetmesh", _text("MeshVersionFormatted 1\nDimension 999999999\nVertices\n99\n0 0 0 1\n")),
    "cut.inp": ("tetmesh", _text("*NODE\n1, 0, 0, 0\n*ELEMENT, TYPE=C3D4\n1, 1,")),
    "heap.hdf5": ("fclib", _heap),
    "triplets_of_3e8.hdf5": ("fclib", fclib(put(W__m=[300_000_000], W__n=[300_000_000]))),
    "never_written.hdf5": ("fclib", fclib(_never_written)),
    "full_matrix.hdf5": ("fclib", fclib(_full_matrix)),
    "external_link.hdf5": ("fclib", fclib(_linked)),
    "external_storage.hdf5": ("fclib", fclib(_external)),
    "virtual.hdf5": ("fclib", fclib(_virtual)),
    "soft_link.hdf5": ("fclib", fclib(_soft)),
    "indefinite.hdf5": ("fclib", fclib(put(W__x=[1.0, -0.5, 1.0]))),
    "infinite.hdf5": ("fclib", fclib(put(W__x=[1.0, np.inf, 1.0]))),
    "columns_200000.csv": ("log", _text(_WIDE * 3)),
    "infinite.csv": ("log", _text("time,Fx\n" + ROWS.replace(",7\n", ",inf\n"))),
    "huge.csv": ("log", _text("time,Fx (kN)\n" + ROWS.replace(",7\n", ",1e307\n"))),
    "one_row_cut.csv": ("log", _text("time,Fx,Fy\n0.00,0.5\n")),
    "gap_of_years.csv": ("log", _text("time,Fx\n" + ROWS.replace("0.19,", "9e11,"))),
    "cell_of_a_million.csv": ("log", _text("time,Fx\n" + ROWS + "(" * 1_000_000 + ",1\n0.3,1\n")),
    "name_of_a_million.csv": ("log", _text("time," + "a(" * 500_000 + "\n" + ROWS)),
    "cut_at_842.c3d": ("log", _c3d),
    "claims_frames.c3d": ("log", _c3d_claims),
    "claims_chunk.mcap": ("log", _mcap),
    "claims_header.bag": ("log", _bag),
    "laughs_bag": ("log", _bag_folder),
    "brackets_20000.toml": ("card", _text("a = " + "[" * 20_000 + "]" * 20_000)),
    "brackets_200.toml": ("card", _text("a = " + "[" * 200 + "]" * 200)),
    "tables_20000.toml": ("card", _text("a = " + "{a=" * 20_000)),
    "key_of_300000_parts.toml": ("card", _text("a." * 300_000 + "a = 1\n")),
    "quoted_key_of_many_parts.toml": ("card", _text('[a."b"' + " . 'c'" * 50_000 + "]\n" + "d.e = 1\n" * 3)),
    "number_of_400_digits.toml": ("sweep", _text(
        'scene = "a.py"\n[parameters]\nspeed = { range = [0.0, ' + "9" * 400 + "], count = 3 }\n")),
    "number_of_1e5_digits.toml": ("card", _text("sensor = " + "9" * 100_000)),
    "density_1e308.toml": ("material", _text(_MATERIAL.format(young=1e6, density=1e308))),
    "young_1e308.toml": ("material", _text(_MATERIAL.format(young=1e308, density=1e3))),
    "infinite.txt": ("path", _text("0 0 0\n1 0 inf\n")),
    "far_away.txt": ("path", _text("0 0 0\n1 0 1e7\n")),
    "columns_200000.txt": ("path", _text("x_m " * 200_000 + "\n" + "1 " * 200_000 + "\n")),
    "empty_tensile.csv": ("tensile", _text(_STRAIN)),
    "cell_of_200000.csv": ("tensile", _text(_STRAIN + "0.1,1\n" + '"' + "1" * 200_000 + '",2\n')),
    "title_of_many_brackets.csv": ("tensile", _text("(" * 130_000 + "," + "(" * 130_000 + "\n")),
    "huge_tensile.csv": ("tensile", _text(_STRAIN + "0.1,1\n0.2,1e304\n")),
    "claims_1e12.npz": ("state", _npz({"q.npy": _npy("(1000000000000,)")})),
    "zeros_400_MB.npz": ("state", _bomb),
    "objects.npz": ("state", _npz({"q.npy": _npy("(1,)", b"\x80\x04N.", "|O")})),
    "only_version.npz": ("state", _npz({"version.npy": _npy("()", struct.pack("<q", 1), "<i8")})),
    "nested_run": ("run", _run("[" * 100_000, "time_s,a_fx_N\n" + ROWS)),
    "wide_run": ("run", _run('{"status": "converged"}', _WIDE)),
    "nested_run_to_report": ("report", _run("[" * 100_000, "time_s,a_fx_N\n" + ROWS)),
    "long_cell_to_plot": ("plot", _run('{"status": "converged"}', "time_s,step\n1," + "1" * 200_000 + "\n")),
}  # fmt: skip


def write_corpus(folder: Path) -> None:
    """Write all files."""
    for name, (_, write) in CORPUS.items():
        write(folder / name)


def size_of(path: Path) -> int:
    """Size of a file or of all files of a folder, bytes."""
    return path.stat().st_size if path.is_file() else sum(file.stat().st_size for file in path.iterdir())


def main(folder: Path, start: int, most: int) -> None:
    """Read the files from one on, and print a line of JSON for each; killed after so many seconds on one."""
    import femsim as fs

    refusals = (fs.InputError, fs.MeshError, fs.MaterialError, fs.ContactError, fs.VizError)
    good = folder / "good.obj"
    good.write_text(_obj("1 2 3"))
    open_as("surface", good)  # the child and the libraries are there
    for number, (name, (kind, _)) in enumerate(CORPUS.items()):
        if number < start:
            continue
        Path("/proc/self/clear_refs").write_text("5")  # the peak starts anew
        before, began = _peak(), time.perf_counter()
        signal.alarm(most)
        try:
            values = open_as(kind, folder / name)
            ended = "read" if all(np.isfinite(value).all() for value in values) else "not finite"
        except refusals as error:
            ended = f"refused: {str(error)[:400]}"
        except BaseException as error:
            ended = f"{type(error).__name__}: {str(error)[:300]}"
        signal.alarm(0)
        print(json.dumps([name, ended, time.perf_counter() - began, _peak() - before]), flush=True)


def _peak() -> int:
    """Largest memory of this process so far, bytes."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return 1024 * next(int(line.split()[1]) for line in lines if line.startswith("VmHWM"))


if __name__ == "__main__":
    resource.setrlimit(resource.RLIMIT_AS, (8 << 30, 8 << 30))  # a reader that fills the memory shall not fill the machine's
    main(Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3]))
