"""femsim simulates deformable bodies that are manipulated, in exact Signorini-Coulomb contact.

A tour: a scene is described by plain calls, simulated, and gives a run.

    import femsim as fs

    scene = fs.Scene("drop", dt=0.01, duration=0.5)
    scene.add_floor()
    scene.add_soft("ball", fs.mesh_file("ball_r30.vtu"), "ecoflex_00_50", position=(0, 0, 0.05))
    scene.sensor("floor", "floor")
    run = fs.simulate(scene, out="runs/drop")
    run.sensors["floor"].force  # (n_steps, 3) N, world frame

- Build: `Scene`, `Finger`, `Motion`, `Profile`; shapes `Box`, `Capsule`, `Cone`, `Cylinder`, `Mesh`, `Plane`, `Revolved`,
  `Sphere`, `Thread`, several as one by `Compound`; meshes by `load_tetmesh`, `box_tets`, `ball_tets` ...; materials by name, or
  `Elastic` for values of your own.
- Run: `simulate` gives a `Run` with tables, sensors and a status, `load_run(folder)` one that is on disk; `SOLVERS` lists the
  contact solvers.
- Step yourself: `Simulation(scene)` takes steps, targets and forks.
- Contact problems: `read_fclib`, `solve_problem` for files; `make_problem`, `make_rows`, `make_solver`, `measure` for arrays
  of your own; `bench` compares solvers.
- Scene files: `load_scene(path, **parameters)`, `scene_parameters(path)`, `list_scenes()`.
- Sweeps: `sweep` runs the cases of a sweep file and gives a `SweepResult`; `sensitivity` says which parameters matter.
- See: `render_run`, `plot_run`; ParaView opens `frames.pvd` of a run folder.
- Compare with an experiment: `compare(run, log, card)`; `read_log`, `read_card` for its parts.
- Calibrate: `calibrate` finds parameters of a scene from logs and gives a `CalibrationResult`.
- Wrong input raises `InputError`, `MeshError`, `MaterialError`, `ContactError` or `VizError`, all of them ValueErrors.

Units are SI, arrays (n, 3), frames world unless a name says otherwise. This is all a user imports. Names load their module when
they are first used, so that ``import femsim`` costs nothing.
"""

from __future__ import annotations

import ast
import importlib
import importlib.util
import os
from pathlib import Path
from typing import Any

from femsim.base.errors import no_attribute
from femsim.base.numba_cache import use_source_digest_with_numba
from femsim.base.place import ROOT, __version__ as __version__

#: What public names are called elsewhere.
_OTHER_WORDS = {"read_run": "load_run", "open_run": "load_run", "load_results": "load_run", "read_results": "load_run"}
_OTHER_WORDS |= dict.fromkeys(("load_urdf", "read_urdf", "load_mjcf", "read_mjcf"), "load_robot")
_OTHER_WORDS |= dict.fromkeys(("load_stl", "load_obj", "read_stl", "read_obj"), "mesh_shape")
_OTHER_WORDS |= dict.fromkeys(("soft", "softbody", "soft_body", "deformable"), "Scene.add_soft")
_OTHER_WORDS |= dict.fromkeys(("rigid", "rigidbody", "rigid_body"), "Scene.add_rigid")
_OTHER_WORDS |= dict.fromkeys(("rod", "cable", "rope", "cosseratrod"), "Scene.add_rod")
_SIBLINGS = ("foreign", "materials", "meshes", "contact", "viz")


def _public_names() -> dict[str, str]:
    """Read the public names and the module that has each from ``__init__.pyi``, where they are written once."""
    tree = ast.parse(Path(__file__).with_suffix(".pyi").read_text(encoding="utf-8"))
    imports = [node for node in tree.body if isinstance(node, ast.ImportFrom)]
    return {alias.name: node.module or "" for node in imports for alias in node.names}


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
        raise no_attribute("module 'femsim'", name, _MODULE_OF, _OTHER_WORDS)
    value = globals()[name] = getattr(importlib.import_module(module), name)
    return value


def __dir__() -> list[str]:
    """List the public names, loaded or not, and nothing else."""
    return [*__all__, "__version__"]


_MODULE_OF = _public_names()
__all__ = sorted(_MODULE_OF)
_check_siblings(ROOT)
use_source_digest_with_numba(ROOT / name for name in ("femsim", *_SIBLINGS))
