"""Identify parameters of a scene from logs: search, refine, say how certain, check on held-out logs, write a folder."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Literal

from femsim.base.errors import InputError, naming_parameters
from femsim.base.files import write_json
from femsim.base.status import Status
from femsim.scene.scene_file import scene_parameters
from femsim.studies.calibration.evaluate import Evaluation, Evaluator
from femsim.studies.calibration.file import read_calibration
from femsim.studies.calibration.fit import Fit
from femsim.studies.calibration.readings import check_names
from femsim.studies.calibration.report import write_results
from femsim.studies.calibration.result import CalibrationResult, compare_finally, make_result
from femsim.studies.sweeps.engine import Engine, SchedulerLost
from femsim.studies.sweeps.folder import begun_folder, check_folder, hold_results


@naming_parameters
def calibrate(
    path: str | Path,
    *,
    out: str | Path | None = None,
    resume: bool = False,
    cases: str | Path | None = None,
    scheduler: str | None = None,
    workers: int | None = None,
    on_evaluation: Callable[[Evaluation], None] | None = None,
) -> CalibrationResult:
    """Identify parameters of a scene from logs of experiments.

    Parameters
    ----------
    path : path
        Calibration file.
    out : path, optional
        Folder of results; default runs/NAME. All workers must see it.
    resume : bool
        Continue in a folder that exists: the same points are asked for again, and cases that are there do not run again.
    cases : path, optional
        Folder of the cases, to share them between calibrations; default ``out/cases``.
    scheduler, workers
        As for :func:`~femsim.studies.sweeps.sweep.sweep`.
    on_evaluation : callable, optional
        ``on_evaluation(evaluation)`` after each evaluation.

    Returns
    -------
    CalibrationResult
        Also when runs failed, the user pressed Ctrl-C, or the scheduler was lost: read ``status``.

    Raises
    ------
    InputError
        Anything wrong with the file, its scene, its logs, the folder, or the scheduler.
    """
    path = Path(path)
    file = read_calibration(path)
    folder = (Path(out) if out is not None else Path("runs") / (file.name or path.stem)).resolve()
    check_folder(folder, "calibration", resume=resume)
    there = folder.exists()
    place = Path(cases).resolve() if cases is not None else folder / "cases"
    if place.exists() and not place.is_dir():
        raise InputError(f"the folder of cases {place} is a file; choose another by --cases.")
    with ExitStack() as stack:
        if there:
            stack.enter_context(hold_results(folder))
        evaluator = stack.enter_context(Evaluator(path, file, place, Engine(scheduler, workers), on_evaluation))
        check_names(file, scene_parameters(evaluator.scene), str(path))
        with begun_folder(folder, None if there else stack):
            place.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(path, folder / "calibration.toml")
            shutil.copyfile(evaluator.scene, folder / "scene.py")
            write_json(folder / "calibration.json", {"status": "running", "message": "", "file": str(path)})
        fit = Fit(evaluator)
        ended: Literal["", "interrupted", "failed"] = ""
        message, final = "", None
        try:
            message = fit.run()
            if fit.found is not None:
                final = compare_finally(evaluator, fit)
        except KeyboardInterrupt:
            ended, message = "interrupted", "Interrupted; --resume goes on."
        except SchedulerLost as error:
            ended, message = "failed", f"{error} --resume goes on."
        except InputError as error:
            if not there and not any((folder / "cases").glob("*")):  # nothing ran that is kept here
                shutil.rmtree(folder, ignore_errors=True)
            else:
                with suppress(OSError):  # the disk may be what is wrong
                    write_json(folder / "calibration.json", {"status": "failed", "message": str(error), "file": str(path)})
            raise
        if not ended and fit.found is None:
            ended = "failed"
        status: Status = ended or ("converged" if fit.converged else "not converged")
        result = make_result(status, message, folder, evaluator, fit, final)
        write_results(result, path, evaluator, fit, final)
    return result
