"""The cases of a sweep: the product of its axes, lists, samples and seeds; each named by a digest of what its numbers need."""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np

from femsim.base.errors import InputError, did_you_mean
from femsim.base.files import is_file
from femsim.base.place import ROOT, __version__
from femsim.scene.scene_file import Parameter, convert_parameter, find_scene, scene_parameters
from femsim.studies.sweeps.file import Axis, Sampling, SweepFile

#: The user must confirm more cases than this.
MANY_CASES = 10_000
_ROOMS = ("femsim", "foreign", "contact", "materials", "meshes")


@dataclass(frozen=True)
class Case:
    """One run of a sweep.

    Attributes
    ----------
    number : int
        From 1, in the order of the file.
    id : str
        16 hexadecimal digits: a digest of the scene file, all parameters, settings, stop conditions and the source of femsim.
    parameters : dict of str to object
        Values that the sweep sets, converted to the types of the scene.
    """

    number: int
    id: str
    parameters: dict[str, Any]


@dataclass(frozen=True)
class Cases:
    """All cases of a sweep.

    Attributes
    ----------
    scene : Path
        Scene file, absolute.
    cases : list of Case
        Without duplicates.
    varied : list of str
        Names of the parameters that differ between cases.
    duplicates : int
        Cases left out because they equal an earlier one.
    order : list of str
        Ids of all combinations in the order of the file, including those left out.
    """

    scene: Path
    cases: list[Case]
    varied: list[str]
    duplicates: int
    order: list[str]


def make_cases(sweep: SweepFile, path: str | Path, *, many: bool = False) -> Cases:
    """Make the cases of a sweep.

    Parameters
    ----------
    sweep : SweepFile
        What the file says.
    path : path
        The file; paths in it are relative to its folder.
    many : bool
        Allow more than ``MANY_CASES`` cases.

    Raises
    ------
    InputError
        A missing scene, unknown or missing parameters, values of the wrong type, too many cases.
    """
    path = Path(path)
    beside = path.parent / sweep.scene
    scene = (beside if is_file(beside) else find_scene(sweep.scene)).resolve()
    known = {parameter.name: parameter for parameter in scene_parameters(scene)}
    _check_names(sweep, known, path, scene)
    count = _count(sweep)
    if count > MANY_CASES and not many:
        raise InputError(
            f"{path}: the sweep has {count} cases, more than {MANY_CASES}; make it smaller, or confirm the number by --yes."
        )
    varied = [name for name, axis in sweep.parameters.items() if isinstance(axis, Axis)]
    varied += [name for name in (sweep.cases[0] if sweep.cases else ())] + (["seed"] if sweep.seeds else [])
    fixed = {name: value for name, value in sweep.parameters.items() if not isinstance(value, Axis)}
    common = _common_identity(sweep, scene)
    cases: dict[str, Case] = {}
    order = []
    for values in _combinations(sweep, known):
        given = {name: _converted(value, known[name], scene, path.parent) for name, value in {**fixed, **values}.items()}
        case_id = _identity(common, {p.name: given.get(p.name, _beside(scene, p.default)) for p in known.values()})
        cases.setdefault(case_id, Case(len(cases) + 1, case_id, given))
        order.append(case_id)
    return Cases(scene, list(cases.values()), varied, count - len(cases), order)


def _check_names(sweep: SweepFile, known: dict[str, Parameter], path: Path, scene: Path) -> None:
    named = [*sweep.parameters, *(sweep.cases[0] if sweep.cases else ())]
    for name in named:
        if name not in known:
            raise InputError(
                f"{path}: parameters.{name}: the scene {scene.name} has no such parameter{did_you_mean(name, known)}"
            )
    if sweep.seeds and "seed" not in known:
        raise InputError(
            f"{path}: seeds are given, but the scene {scene.name} has no parameter 'seed' to take them; remove them, or let "
            "build have one."
        )
    if sweep.seeds and "seed" in named:
        raise InputError(f"{path}: both seeds and the parameter 'seed' are given; leave one.")
    missing = [p.name for p in known.values() if p.required and p.name not in (*named, *(["seed"] if sweep.seeds else []))]
    if missing:
        raise InputError(f"{path}: the scene {scene.name} needs {', '.join(missing)}; add them to [parameters].")
    for name, axis in sweep.parameters.items():
        if isinstance(axis, Axis) and axis.sampled and known[name].number is None:
            raise InputError(f"{path}: parameters.{name} is sampled, but is no number in {scene.name}; list its values.")
        if isinstance(axis, Axis) and axis.between and known[name].number is int and _whole(axis.between) is None:
            raise InputError(
                f"{path}: parameters.{name} is between {list(axis.between)}, where there is no whole number, which "
                f"{scene.name} takes; widen it."
            )


def _whole(between: tuple[float, float]) -> tuple[int, int] | None:
    """Least and largest whole number within bounds; None where there is none."""
    low, high = math.ceil(between[0]), math.floor(between[1])
    return (low, high) if low <= high else None


def _seeds(sweep: SweepFile) -> list[int]:
    return list(range(sweep.seeds)) if isinstance(sweep.seeds, int) else sweep.seeds


def _count(sweep: SweepFile) -> int:
    axes = [axis for axis in sweep.parameters.values() if isinstance(axis, Axis)]
    lengths = [len(axis.values) if axis.values is not None else axis.count or 1 for axis in axes if not axis.sampled]
    draws = sweep.sampling.count if sweep.sampling else 1
    if sweep.sampling and sweep.sampling.method == "saltelli":
        draws *= sum(axis.sampled for axis in axes) + 2
    return math.prod(lengths) * max(1, len(sweep.cases)) * draws * max(1, len(_seeds(sweep)))


def _combinations(sweep: SweepFile, known: dict[str, Parameter]) -> Iterator[dict[str, Any]]:
    """All combinations, the last axis fastest, then samples, then seeds."""
    axes = {name: axis for name, axis in sweep.parameters.items() if isinstance(axis, Axis)}
    listed = {name: _listed(axis) for name, axis in axes.items() if not axis.sampled}
    sampled = {name: axis for name, axis in axes.items() if axis.sampled}
    draws = _draw(sweep, sampled, known) if sampled else [{}]
    seeds = [{"seed": seed} for seed in _seeds(sweep)] or [{}]
    rows: list[dict[str, Any]] = list(sweep.cases) or [{}]
    for row, values, draw, seed in product(rows, product(*listed.values()), draws, seeds):
        yield {**row, **dict(zip(listed, values, strict=True)), **draw, **seed}


def _listed(axis: Axis) -> list[Any]:
    if axis.range is None:
        return list(axis.values or ())
    space = np.linspace if axis.scale == "linear" else np.geomspace
    return [float(value) for value in space(*axis.range, axis.count or 1)]


def _draw(sweep: SweepFile, axes: dict[str, Axis], known: dict[str, Parameter]) -> list[dict[str, Any]]:
    """Draw all sampled parameters at once from the unit cube."""
    from scipy.stats import norm

    assert sweep.sampling is not None
    columns: dict[str, list[Any]] = {}
    for (name, axis), u in zip(axes.items(), unit_samples(sweep.sampling, len(axes)).T, strict=True):
        if axis.normal is not None:
            mean, deviation = axis.normal
            x = norm.ppf(np.clip(u, 1e-12, 1 - 1e-12), mean, deviation)
            columns[name] = [round(value) if known[name].number is int else float(value) for value in x]
            continue
        low, high = axis.between or (0.0, 1.0)
        whole = _whole((low, high)) if known[name].number is int else None
        if whole and axis.scale == "linear":  # every whole number equally likely
            columns[name] = [min(math.floor(whole[0] + v * (whole[1] - whole[0] + 1)), whole[1]) for v in u]
        else:
            x = low + u * (high - low) if axis.scale == "linear" else low * (high / low) ** u
            columns[name] = [min(max(round(value), whole[0]), whole[1]) if whole else float(value) for value in x]
    return [dict(zip(columns, values, strict=True)) for values in zip(*columns.values(), strict=True)]


def unit_samples(sampling: Sampling, dimension: int) -> np.ndarray:
    """Points of the unit cube, (n, dimension)."""
    from scipy.stats import qmc

    rng = np.random.default_rng(sampling.seed)
    if sampling.method == "random":
        return rng.random((sampling.count, dimension))
    if sampling.method == "latin_hypercube":
        return np.asarray(qmc.LatinHypercube(dimension, rng=rng).random(sampling.count))
    if sampling.method == "sobol":
        return np.asarray(qmc.Sobol(dimension, rng=rng).random(sampling.count))
    first, second = np.hsplit(qmc.Sobol(2 * dimension, rng=rng).random(sampling.count), 2)
    mixed = [np.where(np.arange(dimension) == k, second, first) for k in range(dimension)]
    return np.stack([first, *mixed, second], axis=1).reshape(-1, dimension)


def _converted(value: Any, parameter: Parameter, scene: Path, folder: Path) -> Any:
    """Value of the type of the parameter; the name of a file beside the sweep file becomes absolute."""
    if isinstance(value, str) and value and is_file(folder / value):
        value = str((folder / value).resolve())
    return convert_parameter(value, parameter, scene)


def _beside(scene: Path, default: Any) -> Any:
    """Return the default of a parameter; where it names a file beside the scene, the whole path, so that its content counts."""
    beside = isinstance(default, str | Path) and str(default) and is_file(scene.parent / default)
    return str((scene.parent / default).resolve()) if beside else default


def _common_identity(sweep: SweepFile, scene: Path) -> str:
    return json.dumps(
        {
            "scene": hashlib.blake2b(scene.read_bytes()).hexdigest(),
            "settings": sweep.settings.model_dump(),
            "stop": [str(condition) for condition in sweep.parsed_stop()],
            "femsim": source_version(),
        },
        sort_keys=True,
    )


def _identity(common: str, parameters: dict[str, Any]) -> str:
    digest = hashlib.blake2b(common.encode(), digest_size=8)
    for name, value in sorted(parameters.items()):
        if isinstance(value, str | Path) and str(value) and Path(value).is_absolute() and is_file(Path(value)):
            content = hashlib.blake2b(Path(value).read_bytes()).hexdigest()
            digest.update(f"\n{name} {Path(value).name} {content}".encode())
        else:
            digest.update(f"\n{name} {value!r}".encode())
    return digest.hexdigest()


@cache
def source_version() -> str:
    """Version of femsim with a digest of the sources that numbers come from, e.g. "0.1.0+1f37aef0"."""
    digest = hashlib.blake2b(digest_size=4)
    for room in _ROOMS:
        for path in sorted((ROOT / room).rglob("*")):
            if path.suffix in (".py", ".toml"):
                digest.update(f"{path.relative_to(ROOT)}\n".encode())
                digest.update(path.read_bytes())
    return f"{__version__}+{digest.hexdigest()}"
