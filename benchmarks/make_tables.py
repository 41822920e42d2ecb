"""Makes the small tables of others' measurements in data/logs and data/trajectories from the full sets.

    python benchmarks/make_tables.py --experiments FOLDER --winding FOLDER

The first folder holds dragonskin_beam/*.c3d and elastomer_tensile/*.csv, the second p_des.txt and authors_program_N160.csv;
data/README.md names their sources. Rows are picked and numbers rounded, nothing else is changed.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np

DATA = Path(__file__).resolve().parents[1] / "data"
#: Of the tensile tests every fifth sample.
TENSILE_STEP = 5
#: Of the robot's path every 50th step and both sides of its corner; of the published program every fifth step of 20 s.
PATH_STEP, CORNER, PROGRAM_STEP, PROGRAM_ROWS = 50, (499, 500), 5, 2000


def write(path: Path, lines: list[str]) -> None:
    """Write a table and say how large it is."""
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    print(f"{path.relative_to(DATA.parent)}: {path.stat().st_size / 1e3:.1f} kB")


def beam(file: Path, target: Path) -> None:
    """Positions of the three markers on the tip and of the three on the clamp, m, capture frame."""
    import ezc3d

    found = ezc3d.c3d(str(file))
    assert found["parameters"]["POINT"]["RATE"]["value"][0] == 100.0 and found["parameters"]["POINT"]["UNITS"]["value"] == ["m"]
    points = found["data"]["points"][:3, :6].transpose(2, 1, 0)
    header = ",".join(["time_s", *(f"{place}_{k}_{axis}_m" for place in ("tip", "base") for k in (1, 2, 3) for axis in "xyz")])
    rows = [",".join([f"{0.01 * i:.2f}", *(f"{x:.5f}" for x in frame.ravel())]) for i, frame in enumerate(points)]
    write(target, [header, *rows])


def tensile(file: Path, target: Path) -> None:
    """Engineering strain and stress in MPa, as the laboratory wrote them."""
    lines = file.read_text(encoding="utf-8-sig").splitlines()
    start = next(i for i, line in enumerate(lines) if line.startswith("Time (s);"))
    rows = [line.split(";")[3:5] for line in lines[start + 1 :] if line.strip("; ")]
    write(target, ["Engineering Strain;Engineering Stress (MPa)", *(";".join(row) for row in rows[::TENSILE_STEP])])


def winding(folder: Path) -> None:
    """The robot's path, and the published program's forces and end path."""
    path = np.loadtxt(folder / "p_des.txt").reshape(-1, 3)
    steps = sorted({*range(0, len(path), PATH_STEP), *CORNER, len(path) - 1})
    rows = [",".join([f"{0.01 * (k + 1):.2f}", *(f"{x:.6f}" for x in path[k])]) for k in steps]
    write(DATA / "trajectories" / "cable_winding_robot.csv", ["time_s,x_m,y_m,z_m", *rows])
    program = np.loadtxt(folder / "authors_program_N160.csv", delimiter=",", skiprows=1)[:PROGRAM_ROWS, :7]
    picked = [program[0], *program[PROGRAM_STEP - 1 :: PROGRAM_STEP]]  # without the iterations
    rows = [",".join([f"{t:.2f}", *(f"{x:.3f}" for x in force), *(f"{x:.6f}" for x in end)]) for t, *values in picked
            for force, end in [(values[:3], values[3:])]]  # fmt: skip
    header = "time_s,Fx_N,Fy_N,Fz_N,ee_x_m,ee_y_m,ee_z_m"
    write(DATA / "trajectories" / "cable_winding_program.csv", [header, *rows])


def main() -> None:
    """Read the command line and write the tables."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--experiments", type=Path, required=True, help="folder with dragonskin_beam/ and elastomer_tensile/")
    parser.add_argument("--winding", type=Path, required=True, help="folder with p_des.txt and authors_program_N160.csv")
    chosen = parser.parse_args()
    for file in sorted((chosen.experiments / "dragonskin_beam").glob("*.c3d")):
        beam(file, DATA / "logs" / f"{file.stem}.csv")
    for file in sorted((chosen.experiments / "elastomer_tensile").glob("*.csv")):
        tensile(file, DATA / "logs" / file.name)
    winding(chosen.winding)


if __name__ == "__main__":
    main()
