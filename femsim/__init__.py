"""femsim simulates deformable bodies that are manipulated, in exact Signorini-Coulomb contact.

A tour: a scene is described by plain calls, simulated, and gives a run.

    import femsim as fs

    scene = fs.Scene("drop", dt=0.01, duration=0.5)
    scene.add_floor()
    scene.add_soft("ball", fs.mesh_file("ball_r30.vtu"), "ecoflex_00_50", position=(0, 0, 0.05))
    scene.sensor("floor", "floor")
    run = fs.simulate(scene, out="runs/drop")
    run.sensors["floor"].force  # (n_steps, 3) N, world frame

- Build: `Scene`, `Finger`, `Motion`, `Profile`; shapes `Box`, `Capsule`, `Cylinder`, `Mesh`, `Plane`, `Sphere`; meshes by
  `load_tetmesh`, `box_tets`, `ball_tets` ...; materials by name, or `Elastic` for values of your own.
- Run: `simulate` gives a `Run` with tables, sensors and a status; `SOLVERS` lists the contact solvers.
- Contact problems: `read_fclib`, `solve_problem` for files; `make_problem`, `make_solver`, `measure` for arrays of your own;
  `bench` compares solvers.
- Scene files: `load_scene(path, **parameters)`, `scene_parameters(path)`, `list_scenes()`.
- Sweeps: `sweep` runs the cases of a sweep file and gives a `SweepResult`.
- Sweeps: `sweep` runs the cases of a sweep file and gives a `SweepResult`; `sensitivity` says which parameters matter.
- See: `render_run`, `plot_run`; ParaView opens `frames.pvd` of a run folder.
- Compare with an experiment: `compare(run, log, card)`; `read_log`, `read_card` for its parts.
- Calibrate: `calibrate` finds parameters of a scene from logs and gives a `CalibrationResult`.
- Wrong input raises `InputError`, `MeshError`, `MaterialError`, `ContactError` or `VizError`, all of them ValueErrors.

Units are SI, arrays (n, 3), frames world unless a name says otherwise. This is all a user imports. Names load their module when
they are first used, so that ``import femsim`` costs nothing.
"""

from __future__ import annotations

import importlib
import importlib.util
import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

from femsim.numba_cache import use_source_digest

if TYPE_CHECKING:
    from contact import (
        SOLVERS,
        Box,
        Capsule,
        ContactError,
        ContactProblem,
        Cylinder,
        FclibProblem,
        Group,
        LocalProblem,
        Mesh,
        Plane,
        Sphere,
        make_local_problem,
        make_problem,
        make_solver,
        measure,
        measure_local,
        read_fclib,
        to_global,
        write_fclib,
    )
    from femsim.benchmark import BenchRow, bench
    from femsim.bodies.rod import RodEnd
    from femsim.calibration.calibrate import CalibrationResult, calibrate
    from femsim.comparison import Comparison, compare
    from femsim.drives import Motion, Profile, load_path
    from femsim.errors import InputError
    from femsim.load import Parameter, list_scenes, load_scene, scene_parameters
    from femsim.logs import Log, read_card, read_log
    from femsim.material_fit import (
        FIT_LAWS,
        LawFit,
        MaterialFit,
        TensileTest,
        fit_material,
        plot_fit,
        read_tensile_test,
        write_card,
    )
    from femsim.reproduction.command import Reproduction, reproduce
    from femsim.run import ChamberSeries, GaugeSeries, MarkerSeries, Run, SensorSeries, TendonSeries, simulate
    from femsim.scene import Finger, Handle, Scene, mesh_file, mesh_shape
    from femsim.sensors import Reading
    from femsim.solve import SolvedProblem, solve_problem
    from femsim.sweeps.sensitivity import SensitivityResult, sensitivity
    from femsim.sweeps.sweep import SweepResult, sweep
    from femsim.xpbd import XpbdRun, simulate_xpbd
    from materials import (
        LAWS,
        Corotational,
        Elastic,
        FrictionTable,
        Law,
        MaterialError,
        MooneyRivlin,
        Ogden,
        RodSection,
        StableNeoHookean,
        StVenantKirchhoff,
        circular_section,
        friction,
        load_card,
        material,
        materials,
        rectangular_section,
    )
    from meshes import (
        MeshError,
        TetMesh,
        TriMesh,
        ball_tets,
        box_tets,
        box_triangles,
        capsule_triangles,
        chamfered_box_triangles,
        cylinder_tets,
        cylinder_triangles,
        length_scale,
        load_surface,
        load_tetmesh,
        load_volume,
        make_tetmesh,
        make_trimesh,
        quality,
        save_tetmesh,
        sphere_triangles,
        tetrahedralize,
    )
    from viz import (
        VizError,
        open_frames,
        plot_convergence,
        plot_run,
        plot_sweep,
        probe_rendering,
        read_part,
        read_pvd,
        render_run,
        view_run,
        write_report,
    )

__version__ = "0.1.0"

#: Public names by the module that has them, as imported above for type checkers; tests/test_layers.py holds the two equal.
_EXPORTS: dict[str, tuple[str, ...]] = {
    "contact": (
        "SOLVERS", "Box", "Capsule", "ContactError", "ContactProblem", "Cylinder", "FclibProblem", "Group", "LocalProblem",
        "Mesh", "Plane", "Sphere", "make_local_problem", "make_problem", "make_solver", "measure", "measure_local", "read_fclib",
        "to_global", "write_fclib",
    ),
    "femsim.benchmark": ("BenchRow", "bench"),
    "femsim.bodies.rod": ("RodEnd",),
    "femsim.calibration.calibrate": ("CalibrationResult", "calibrate"),
    "femsim.comparison": ("Comparison", "compare"),
    "femsim.drives": ("Motion", "Profile", "load_path"),
    "femsim.errors": ("InputError",),
    "femsim.material_fit": (
        "FIT_LAWS", "LawFit", "MaterialFit", "TensileTest", "fit_material", "plot_fit", "read_tensile_test", "write_card",
    ),
    "femsim.load": ("Parameter", "list_scenes", "load_scene", "scene_parameters"),
    "femsim.logs": ("Log", "read_card", "read_log"),
    "femsim.reproduction.command": ("Reproduction", "reproduce"),
    "femsim.run": ("ChamberSeries", "GaugeSeries", "MarkerSeries", "Run", "SensorSeries", "TendonSeries", "simulate"),
    "femsim.scene": ("Finger", "Handle", "Scene", "mesh_file", "mesh_shape"),
    "femsim.sensors": ("Reading",),
    "femsim.solve": ("SolvedProblem", "solve_problem"),
    "femsim.xpbd": ("XpbdRun", "simulate_xpbd"),
    "femsim.sweeps.sensitivity": ("SensitivityResult", "sensitivity"),
    "femsim.sweeps.sweep": ("SweepResult", "sweep"),
    "materials": (
        "LAWS", "Corotational", "Elastic", "FrictionTable", "Law", "MaterialError", "MooneyRivlin", "Ogden", "RodSection",
        "StVenantKirchhoff", "StableNeoHookean", "circular_section", "friction", "load_card", "material", "materials",
        "rectangular_section",
    ),
    "meshes": (
        "MeshError", "TetMesh", "TriMesh", "ball_tets", "box_tets", "box_triangles", "capsule_triangles",
        "chamfered_box_triangles", "cylinder_tets", "cylinder_triangles", "length_scale", "load_surface", "load_tetmesh",
        "load_volume", "make_tetmesh", "make_trimesh", "quality", "save_tetmesh", "sphere_triangles", "tetrahedralize",
    ),
    "viz": (
        "VizError", "open_frames", "plot_convergence", "plot_run", "plot_sweep", "probe_rendering", "read_part", "read_pvd",
        "render_run", "view_run", "write_report",
    ),
}  # fmt: skip
_MODULE_OF = {name: module for module, names in _EXPORTS.items() for name in names}
_SIBLINGS = ("materials", "meshes", "contact", "viz")
_ROOT = Path(__file__).resolve().parent.parent

__all__ = [
    "FIT_LAWS", "LAWS", "SOLVERS", "BenchRow", "Box", "CalibrationResult", "Capsule", "ChamberSeries", "Comparison",
    "ContactError", "ContactProblem", "Corotational", "Cylinder", "Elastic", "FclibProblem", "Finger", "FrictionTable",
    "GaugeSeries", "Group", "Handle", "InputError", "Law", "LawFit", "LocalProblem", "Log", "MarkerSeries", "MaterialError",
    "MaterialFit", "Mesh", "MeshError", "MooneyRivlin", "Motion", "Ogden", "Parameter", "Plane", "Profile", "Reading",
    "Reproduction", "RodEnd", "RodSection", "Run", "Scene", "SensitivityResult", "SensorSeries", "SolvedProblem", "Sphere",
    "StVenantKirchhoff", "StableNeoHookean", "SweepResult", "TendonSeries", "TensileTest", "TetMesh", "TriMesh", "VizError",
    "XpbdRun", "ball_tets", "bench", "box_tets", "box_triangles", "calibrate", "capsule_triangles", "chamfered_box_triangles",
    "circular_section", "compare", "cylinder_tets", "cylinder_triangles", "fit_material", "friction", "length_scale",
    "list_scenes", "load_card", "load_path", "load_scene", "load_surface", "load_tetmesh", "load_volume", "make_local_problem",
    "make_problem", "make_solver", "make_tetmesh", "make_trimesh", "material", "materials", "measure", "measure_local",
    "mesh_file", "mesh_shape", "open_frames", "plot_convergence", "plot_fit", "plot_run", "plot_sweep", "probe_rendering",
    "quality", "read_card", "read_fclib", "read_log", "read_part", "read_pvd", "read_tensile_test", "rectangular_section",
    "render_run", "reproduce", "save_tetmesh", "scene_parameters", "sensitivity", "simulate", "simulate_xpbd", "solve_problem",
    "sphere_triangles", "sweep", "tetrahedralize", "to_global", "view_run", "write_card", "write_fclib", "write_report",
]  # fmt: skip


def _check_siblings(root: Path) -> None:
    """Make sure that our generically named packages are ours and not another's that Python finds first.

    Raises
    ------
    ImportError
        Names the file that is in the way.
    """
    for name in _SIBLINGS:
        spec = importlib.util.find_spec(name)
        if spec is None:
            raise ImportError(
                f"femsim's own package {name!r} is missing from {root}; install femsim again, in an environment of its own."
            )
        found = Path(spec.origin or next(iter(spec.submodule_search_locations or ()), "?"))
        folder = found.parent if spec.origin else found
        if os.path.realpath(folder) != os.path.realpath(root / name):
            raise ImportError(
                f"femsim needs its own package {name!r} from {root / name}, but Python found {found} first; "
                "install femsim in a virtual environment of its own, and start Python where no such file is."
            )


def __getattr__(name: str) -> Any:
    """Load the module of a public name when the name is first used."""
    module = _MODULE_OF.get(name)
    if module is None:
        raise AttributeError(f"module 'femsim' has no attribute {name!r}")
    value = globals()[name] = getattr(importlib.import_module(module), name)
    return value


def __dir__() -> list[str]:
    """List the public names, loaded or not."""
    return sorted({*globals(), *__all__})


_check_siblings(_ROOT)
use_source_digest(_ROOT / name for name in ("femsim", *_SIBLINGS))
