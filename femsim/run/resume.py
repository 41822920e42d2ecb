"""Go on with a run that was killed, interrupted or failed, from its last good checkpoint, as if it had never stopped."""

from __future__ import annotations

import shutil
import warnings
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import fields
from pathlib import Path
from typing import Any

from pydantic import TypeAdapter, ValidationError

from femsim.base.errors import InputError, naming_parameters
from femsim.base.files import is_file, plain_json
from femsim.base.status import FINISHED
from femsim.base.threads import blas_threads
from femsim.base.versions import versions
from femsim.run.checkpoint import Checkpoint, found_checkpoints, read_checkpoint
from femsim.run.folder import digest_of, hold_folder, read_run_json, read_scene, refuse_busy, remove_halves
from femsim.run.info import describe_bodies, describe_friction
from femsim.run.loop import Course, OnStep, Until
from femsim.run.recorder import Recorder
from femsim.run.result import Run
from femsim.run.run_file import RunFile
from femsim.run.simulate import Begun, Call, begin, record
from femsim.scene.scene import Scene
from femsim.scene.scene_file import load_scene, scene_parameters
from viz import VizError, open_frames

#: Parts of run.json without which no run goes on.
_SECTIONS = ("call", "scene", "settings", "solver", "parameters")


@naming_parameters
def resume(
    folder: str | Path,
    *,
    scene: Scene | None = None,
    force: bool = False,
    quiet: bool = True,
    on_step: OnStep | None = None,
    until: Until | None = None,
) -> Run:
    """Go on with a run; its files end up as those of a run that was never stopped, but for the times in them.

    The scene is built again from its file with the same parameters, and the run goes on from the newest checkpoint that is whole.
    Without any it starts again from its first step. Tables and frames behind that point are taken away first.

    Parameters
    ----------
    folder : path
        Run folder.
    scene : Scene, optional
        The scene of a run that was not made from a scene file.
    force : bool
        Also where the scene file, the bodies or the versions of packages are not those of the run any more.
    quiet : bool
        No progress bar.
    on_step, until : callable, optional
        As for :func:`~femsim.run.simulate.simulate`.

    Returns
    -------
    Run
        Of the whole run, as :func:`~femsim.run.simulate.simulate` gives it.

    Raises
    ------
    InputError
        No run, one that is finished or still goes on, or one whose scene has changed.
    """
    folder = Path(folder)
    info = _read_info(folder)
    refuse_busy(folder)
    with hold_folder(folder) as handle:
        call = _call(folder, info)
        built = _scene(folder, info, force) if scene is None else scene
        begun = begin(built, call)
        info.update(_checked(folder, info, begun, built, force))
        remove_halves(folder)
        done = _last_good(folder)
        if done is None:
            _clear(folder, info)
        told = info.get("process")
        info["process"] = (told if isinstance(told, dict) else {}) | {"step": done.step if done else 0}
        for name in ("timings_s", "health", "problems"):  # of the end
            info.pop(name, None)
        info.update(status="running", message="")
        file = RunFile(folder, info, handle)
        recorder = Recorder(begun.stepper, folder, dump=begun.dump, done=done, **begun.frames)
        course = Course()
        if done is not None:
            course = Course.of(done.carried["course"])
            with blas_threads(call.threads):  # factors are made again
                begun.stepper.restore(done.state)
                begun.stepper.recall_solver(done.solver)
            begun.stepper.timings.update(course.timings)
        file.write()
        return record(begun, recorder, file, course, None, quiet=quiet, on_step=on_step, until=until, done=done)


def _read_info(folder: Path) -> dict[str, Any]:
    """run.json of a run that can go on; InputError where there is none."""
    info = read_run_json(folder)
    if not isinstance(info, dict) or not all(isinstance(info.get(name), dict) for name in _SECTIONS):
        raise InputError(f"{folder / 'run.json'} does not say what was asked for, as this femsim does; run the scene again.")
    if info.get("stepped"):
        raise InputError(f"the run in {folder} was stepped by a Simulation, whose targets no file has; step it again.")
    if info.get("status") in FINISHED:
        raise InputError(f"the run in {folder} is complete ({info['status']}), so there is nothing to go on with.")
    return info


def _call(folder: Path, info: Mapping[str, Any]) -> Call:
    """Take what was asked for out of run.json; InputError where that cannot be."""
    known = [field.name for field in fields(Call)]
    try:
        for name in info["call"]:
            if name not in known:
                raise ValueError(f"unknown {name!r}")
        return TypeAdapter(Call).validate_python(info["call"])
    except ValueError as error:
        reason = "; ".join(f"{e['loc'][0]}: {e['msg']}" for e in error.errors()) if isinstance(error, ValidationError) else error
        raise InputError(f"{folder / 'run.json'}: its call cannot be read ({reason}); run the scene again.") from None


def _scene(folder: Path, info: dict[str, Any], force: bool) -> Scene:
    """Build the scene of a run again from its file; from the copy in the run folder where the file is gone."""
    said = info["scene"]
    if not said.get("file"):
        raise InputError(
            f"the scene of {folder} was not made from a scene file; go on in Python: resume({str(folder)!r}, scene=...)."
        )
    places = [Path(name) for name in (said["file"], said.get("path")) if isinstance(name, str)]
    path = next((path for path in places if is_file(path)), folder / "scene.py")
    if digest_of(read_scene(path)) != said.get("digest") and not force:
        raise InputError(
            f"the scene file {path} is not the one that {folder} was started with; put that back (a copy is "
            f"{folder / 'scene.py'}), or go on with the changed one by --force."
        )
    values = {name: entry["value"] for name, entry in info["parameters"].items() if isinstance(entry, dict) and "value" in entry}
    known = {parameter.name: parameter for parameter in scene_parameters(path)}
    given = {
        name: value
        for name, value in values.items()
        if name in known and (known[name].required or plain_json(known[name].default) != value)
    }
    return load_scene(path, **given)


def _checked(folder: Path, info: dict[str, Any], begun: Begun, scene: Scene, force: bool) -> dict[str, Any]:
    """Refuse a scene that is not that of the run, unless forced to; warn of other versions of packages.

    Returns what run.json says of the scene: that of the rest of the run where it is another one.
    """
    now = {
        "parameters": scene.parameters, "settings": begun.settings, "bodies": describe_bodies(scene),
        "friction": describe_friction(scene),
    }  # fmt: skip
    changed = [name for name, value in now.items() if plain_json(value) != info.get(name)]
    if changed and not force:
        raise InputError(
            f"the scene has other {' and '.join(changed)} than when {folder} was started (run.json says which); put back what "
            "changed, or go on all the same by --force."
        )
    told, current = info.get("versions"), versions()
    before = told if isinstance(told, Mapping) else {}
    other = [f"{name} {before.get(name)} then, {version} now" for name, version in current.items() if before.get(name) != version]
    if other:
        warnings.warn(f"{'; '.join(other)}: the last bits may differ from those of an uninterrupted run.", stacklevel=3)
    return {name: now[name] for name in changed}


def _last_good(folder: Path) -> Checkpoint | None:
    """Newest checkpoint that is whole and whose frames are there; those that are not are said."""
    for path in found_checkpoints(folder):
        try:
            found = read_checkpoint(path)
            count = found.carried["recorder"]["frames"]["frames"]
            if count and len(open_frames(folder).times) < count:
                raise InputError(f"the checkpoint {path} cannot be used (the files hold fewer than its {count} frames).")
            return found
        except (InputError, VizError) as error:
            warnings.warn(f"{error} The one before is tried.", stacklevel=3)
    return None


def _clear(folder: Path, info: dict[str, Any]) -> None:
    """Take away what a run has written, since it starts again."""
    for name in ("frames", "checkpoints", "problems"):
        shutil.rmtree(folder / name, ignore_errors=True)
    for name in ("frames.pvd", "frames.vtkhdf", "steps.csv", "sensors.csv"):
        with suppress(FileNotFoundError):
            (folder / name).unlink()
    info.pop("process", None)
