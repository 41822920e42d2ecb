"""Times a step of a cable of 320 links that swings to rest, beside PyElastica and MuJoCo where they are installed, with its sag.

    python benchmarks/bench_cable.py [--quick] [--json FILE]

See README.md of this folder.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import os
import platform
import statistics
import sys
import time
from dataclasses import asdict, dataclass
from importlib.metadata import version
from pathlib import Path

# one thread, before numpy is imported; and the packages of this folder's own checkout
os.environ.update(OMP_NUM_THREADS="1", MKL_NUM_THREADS="1", OPENBLAS_NUM_THREADS="1", NUMBA_NUM_THREADS="1")
sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import numpy as np

import femsim as fs
from contact import make_solver
from femsim.model.bodies.rod import Rod
from femsim.studies.reproduction.measuring import CpuStepper

#: The cable of papers/001 section V-C5, clamped level at one end, straight at the start; SI units.
YOUNG, POISSON, DENSITY, RADIUS, LENGTH, GRAVITY = 2.954e6, 0.49, 1259.0, 0.002, 0.4, 9.81
SHEAR = YOUNG / (2.0 * (1.0 + POISSON))
AREA, MOMENT = np.pi * RADIUS**2, np.pi * RADIUS**4 / 4.0
LINKS, DT = 320, 0.005
#: Drag, N s/m per metre: half of what keeps the slowest swing from coming back.
DRAG = 0.1
#: Time step of PyElastica, s, near the largest that is stable; its method is explicit.
ELASTICA_DT = 1e-5
#: Steps before the first that counts: what is compiled is compiled there.
FIRST_COUNTED = 5


@dataclass(frozen=True)
class Result:
    """A program on the cable: CPU ms for 5 ms of simulated time (median), its tip at the end, and how far that is off."""

    name: str
    version: str
    ms: float
    tip_x_mm: float
    tip_z_mm: float
    off_mm: float
    note: str


def reference_tip(shear_factor: float = 1.0) -> np.ndarray:
    """Tip (x, z), m, of the cable at rest: Reissner's rod under its own weight, by collocation."""
    from scipy.integrate import solve_bvp

    weight, stiff, shear = DENSITY * AREA * GRAVITY, YOUNG * AREA, shear_factor * SHEAR * AREA

    def slope(s: np.ndarray, y: np.ndarray, part: float) -> np.ndarray:
        angle, moment = y[2], y[3]
        down = part * weight * (LENGTH - s)  # on what lies behind s
        stretched, sheared = 1.0 - down * np.sin(angle) / stiff, -down * np.cos(angle) / shear
        x = stretched * np.cos(angle) - sheared * np.sin(angle)
        return np.array([x, stretched * np.sin(angle) + sheared * np.cos(angle), moment / (YOUNG * MOMENT), x * down])

    def ends(a: np.ndarray, b: np.ndarray) -> np.ndarray:
        return np.array([a[0], a[1], a[2], b[3]])

    s = np.linspace(0.0, LENGTH, 201)
    guess = np.array([s, -0.1 * s, -0.1 * s, 0.0 * s])
    for part in (0.001, 0.01, 0.05, 0.2, 0.5, 1.0):
        found = solve_bvp(lambda s, y, p=part: slope(s, y, p), ends, s, guess, tol=1e-8, max_nodes=50000)
        assert found.success, found.message
        s, guess = found.x, found.y
    return np.asarray(found.y[:2, -1])


def result(name: str, version: str, spent: list[float], tip: np.ndarray, note: str) -> Result:
    """Times of steps, s, and tip (x, z), m, as a row."""
    off = float(np.linalg.norm(tip - reference_tip()))
    ms = 1e3 * statistics.median(spent[FIRST_COUNTED:])
    return Result(name, version, ms, *(1e3 * tip.round(9)).tolist(), 1e3 * off, note)


def cable_scene(duration: float) -> fs.Scene:
    """Return our cable."""
    scene = fs.Scene("cantilever", dt=DT, duration=duration, gravity=(0.0, 0.0, -GRAVITY), theta=1.0)
    scene.add_rod(
        "cable",
        np.linspace(0.0, 1.0, LINKS + 1)[:, None] * [LENGTH, 0.0, 0.0],
        fs.circular_section(RADIUS, shear_factor=1.0),
        fs.Elastic(YOUNG, POISSON, DENSITY, name="cable"),
        start=fs.RodEnd("clamped"),
        translational_damping=DRAG,
    )
    return scene


def run_ours(duration: float) -> Result:
    """Our rod and the solver for chains: assembly, detection and solve; the last residual is the note."""
    scene = cable_scene(duration)
    stepper = CpuStepper(scene, make_solver("banded", tolerance=1e-8))
    spent, worst = [], 0.0
    for _ in range(round(duration / DT)):
        before = sum(stepper.timings[stage] for stage in ("assemble", "detect", "solve"))
        report = stepper.step()
        spent.append(sum(stepper.timings[stage] for stage in ("assemble", "detect", "solve")) - before)
        worst = max(worst, report.metrics.dynamics_residual)
    rod = scene.bodies[0]
    assert isinstance(rod, Rod)
    tip = rod.centre_line(stepper.state.q)[-1][[0, 2]]
    return result("femsim", fs.__version__, spent, tip, f"dynamics + solver; largest true residual {worst:.0e}")


def mujoco_model() -> str:
    """MJCF of the cable: MuJoCo 4's rod (a flex of one dimension), whose edges are kept at their lengths by constraints.

    The direct stiffness and damping of the constraints are the stiffest tried: each tenfold brings the tip nearer, at the same
    time a step. The viscosity makes our drag of a link on a box of its inertia, 3 pi viscosity (mean side).
    """
    link = LENGTH / LINKS
    viscosity = DRAG * link / (np.pi * (link + 2.0 * np.sqrt(3.0) * RADIUS))
    points = " ".join(f"{link * k} 0 0" for k in range(LINKS + 1))
    edges = " ".join(f"{k} {k + 1}" for k in range(LINKS))
    return f"""
    <mujoco>
      <option timestep="{DT}" gravity="0 0 {-GRAVITY}" integrator="discrete" viscosity="{viscosity}"/>
      <worldbody>
        <flexcomp name="cable" type="direct" dim="1" point="{points}" element="{edges}" radius="{RADIUS}"
                  mass="{DENSITY * AREA * LENGTH}">
          <contact contype="0" conaffinity="0" selfcollide="none"/>
          <edge equality="true" solref="-4e6 -4000" solimp="0.9999 0.9999 0.001"/>
          <elasticity young="{YOUNG}" poisson="{POISSON}" shear="{SHEAR}"/>
          <pin id="0 1"/>
        </flexcomp>
      </worldbody>
    </mujoco>"""


def run_mujoco(duration: float) -> Result:
    """MuJoCo's rod, same links and time step."""
    import mujoco

    model = mujoco.MjModel.from_xml_string(mujoco_model())
    data = mujoco.MjData(model)
    spent = []
    for _ in range(round(duration / DT)):
        started = time.thread_time()
        mujoco.mj_step(model, data)
        spent.append(time.thread_time() - started)
    return result("MuJoCo", mujoco.__version__, spent, data.flexvert_xpos[-1, [0, 2]], "1D flex, integrator discrete")


def run_elastica(duration: float) -> Result:
    """PyElastica's rod, same number of elements, its own time step."""
    import elastica

    class Cable(elastica.BaseSystemCollection, elastica.Constraints, elastica.Forcing, elastica.Damping):
        pass

    collection = Cable()
    rod = elastica.CosseratRod.straight_rod(
        LINKS, np.zeros(3), np.array([1.0, 0.0, 0.0]), np.array([0.0, 0.0, 1.0]), LENGTH, RADIUS, DENSITY,
        youngs_modulus=YOUNG, shear_modulus=SHEAR,
    )  # fmt: skip
    collection.append(rod)
    collection.constrain(rod).using(elastica.OneEndFixedBC, constrained_position_idx=(0,), constrained_director_idx=(0,))
    collection.add_forcing_to(rod).using(elastica.GravityForces, acc_gravity=np.array([0.0, 0.0, -GRAVITY]))
    collection.dampen(rod).using(
        elastica.AnalyticalLinearDamper, uniform_damping_constant=DRAG / (DENSITY * AREA), time_step=ELASTICA_DT
    )
    collection.finalize()
    stepper, now, spent = elastica.PositionVerlet(), 0.0, []
    for _ in range(round(duration / DT)):
        started = time.thread_time()
        for _ in range(round(DT / ELASTICA_DT)):
            now = stepper.step(collection, now, ELASTICA_DT)
        spent.append(time.thread_time() - started)
    return result(
        "PyElastica", version("pyelastica"), spent,
        rod.position_collection[[0, 2], -1], f"explicit, {DT / ELASTICA_DT:.0f} steps of {ELASTICA_DT:g} s",
    )  # fmt: skip


#: Programs by the module that must be importable.
PROGRAMS = {"femsim": run_ours, "mujoco": run_mujoco, "elastica": run_elastica}


def compare(duration: float) -> list[Result]:
    """Run all programs that are installed; say which are not."""
    rows = []
    for module, run in PROGRAMS.items():
        if importlib.util.find_spec(module) is None:
            print(f"{module} is not installed and left out; pip install 'femsim[rivals]' brings it.")
        else:
            rows.append(run(duration))
    return rows


def main() -> None:
    """Run the benchmark."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--quick", action="store_true", help="a tenth of a second of simulated time: the sag means nothing")
    parser.add_argument("--json", type=Path, help="also write every figure to this file")
    chosen = parser.parse_args()
    load = os.getloadavg()[0]
    rows = compare(0.1 if chosen.quick else 8.0)
    x, z = 1e3 * reference_tip()
    print(f"{platform.platform()}, {os.cpu_count()} CPUs, load {load:.1f} before and {os.getloadavg()[0]:.1f} after")
    print(f"cable of {LINKS} links clamped level, swings to rest; tip at rest ({x:.3f}, {z:.3f}) mm (Reissner's rod)")
    print("| program | CPU ms for 5 ms | tip mm | off mm | |\n| --- | --- | --- | --- | --- |")
    for row in rows:
        print(
            f"| {row.name} {row.version} | {row.ms:.2f} | ({row.tip_x_mm:.3f}, {row.tip_z_mm:.3f}) | {row.off_mm:.3f} "
            f"| {row.note} |"
        )
    if chosen.json:
        content = {"platform": platform.platform(), "reference_mm": [x, z], "rows": [asdict(row) for row in rows]}
        chosen.json.write_text(json.dumps(content, indent=2) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
