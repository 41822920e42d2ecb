"""Many runs from Python: order, seeds, errors of their own, limits, and the same bits however they are run."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

import femsim as fs

ROOT = Path(fs.__file__).resolve().parent.parent


def build(height: float = 0.011, mode: str = "", seed: int = 0) -> fs.Scene:
    if mode == "raise":
        raise RuntimeError(f"no scene of {height:g} m")
    if mode == "input":
        raise fs.InputError("height is wrong; take another.")
    if mode == "die":
        os._exit(3)
    if mode == "hang":
        time.sleep(1e6)
    if mode == "none":
        return None  # type: ignore[return-value]
    scene = fs.Scene("drop", dt=0.01, duration=0.05, theta=1.0)
    scene.add_floor()
    scene.add_rigid("box", fs.Box((0.01, 0.01, 0.01)), mass=0.1, position=(0, 0, height))
    scene.sensor("box", "box", reading=fs.Reading(noise=(0.01, 0.0), seed=seed))
    return scene


def lowest(run: fs.Run) -> dict[str, float]:
    return {"force": run.sensors["box"].force[-1, 2], "pid": os.getpid()}


def test_cases_keep_their_order_errors_and_bits() -> None:
    table = [{"height": 0.012}, {"mode": "raise"}, {"height": 0.011}, {"mode": "die"}, {"mode": "hang"}, {"mode": "input"}]
    table += [{"mode": "none"}, {"height": 0.012}]
    own = fs.simulate(build(0.012), duration=0.03).table()  # also compiles what they need
    seen: list[int] = []
    runs = fs.run_many(
        build, table, measure=lowest, workers=2, time_limit=5.0, duration=0.03, on_case=lambda c: seen.append(c.number)
    )
    assert sorted(seen) == list(range(8)) and [case.number for case in runs] == list(range(8))
    assert [case.status for case in runs] == [
        "converged",
        "failed",
        "converged",
        "failed",
        "timed out",
        *["failed"] * 2,
        "converged",
    ]
    assert runs[1].message == "RuntimeError: no scene of 0.011 m" and "in build" in runs[1].error
    assert "Its process died (exit status 3)" in runs[3].message and "time limit of 5 s; raise time_limit" in runs[4].message
    assert runs[5].message == "height is wrong; take another." and "must return an fs.Scene" in runs[6].message
    assert [case.number for case in runs.failed] == [1, 3, 4, 5, 6]
    assert os.getpid() not in {case.values.get("pid") for case in runs}
    for case in (runs[0], runs[7]):
        assert list(case.table) == list(own) and case.verdict == "good"
        for name in own:
            assert name.startswith("ms_") or np.array_equal(case.table[name], own[name]), name
        assert sorted(case.table()) == sorted(own) and list(case.to_pandas()["box_fz_N"]) == list(own["box_fz_N"])
    with pytest.raises(KeyError, match=r"column of case 0 \(converged\) 'box_fz' is unknown; did you mean 'box_fz_N'"):
        runs[0].table["box_fz"]
    with pytest.raises(fs.InputError, match=r"case 1 .*no scene of 0.011 m> has no table; see its message and error"):
        runs[1].to_pandas()
    assert list(runs.table["status"]) == [case.status for case in runs]
    assert list(runs.table()) == ["height", "force", "pid", "status", "verdict", "message", "mode"]
    np.testing.assert_array_equal(runs.table["height"][:3], [0.012, np.nan, 0.011])
    assert runs.table["force"].dtype == float and np.isnan(runs.table["force"]).sum() == 5 and runs.table["mode"][0] is None
    with pytest.raises(KeyError, match="column of these runs 'forces' is unknown; did you mean 'force'"):
        runs.table["forces"]
    frame = runs.to_pandas()
    assert list(frame["status"]) == [case.status for case in runs] and frame["force"][0] == own["box_fz_N"][-1]
    assert "8 runs: 3 converged, 4 failed, 1 timed out" in repr(runs) and "timed out" in runs._repr_html_()


def plate(height: float = 0.02) -> fs.Scene:
    """A plate on a compliant hand above a fixed block."""
    scene = fs.Scene("plate", dt=0.01, duration=5.0, gravity=(0.0, 0.0, 0.0), theta=1.0)
    scene.add_obstacle("block", fs.Box((0.02, 0.02, 0.01)), position=(0.0, 0.0, 0.01))
    hand = scene.add_rigid("hand", fs.Box((0.01, 0.01, 0.01)), mass=0.1, position=(0.0, 0.0, height + 0.01))
    scene.drive(hand, fs.Motion([0.0], [(0.0, 0.0, 0.0)], name="way"), stiffness=(500.0, 10.0))
    scene.sensor("block", "block")
    return scene


def press(sim: fs.Simulation, gain: float, aim: float = 2.0) -> None:
    """Go down until the block bears the force that is asked for, N."""
    depth = 0.0
    while sim.time < 0.5 - 1e-9:
        depth += gain * (aim + sim.step().read("block").force[2])
        sim.set("way", (0.0, 0.0, -depth))


def pressed_block(depth: float) -> fs.Scene:
    scene = fs.Scene("press", dt=0.01, duration=0.05, theta=1.0)
    scene.add_floor()
    rubber = fs.Elastic(2e5, 0.4, 1300.0)
    scene.add_soft("block", fs.box_tets((0.04, 0.04, 0.02), (4, 4, 2)), rubber, position=(0, 0, 0.01), element="quadratic")
    plate = scene.add_rigid("plate", fs.Box((0.03, 0.03, 0.005)), mass=0.2, position=(0, 0, 0.025))
    scene.drive(plate, fs.Motion([0.0, 0.05], [(0, 0, 0), (0, 0, -depth)]))
    scene.sensor("block", "block")
    return scene


def test_bits_of_factored_systems_are_those_of_a_run() -> None:
    """Workers leave the mode of the library that factorizes as it is; another one rounds otherwise."""
    own = fs.simulate(pressed_block(0.002)).sensors["block"]
    many = fs.run_many(pressed_block, {"depth": [0.002]}, workers=1)[0].table
    assert np.array_equal(many["block_fz_N"], own.force[:, 2]) and np.array_equal(many["block_tx_Nm"], own.torque[:, 0])


def test_a_loop_steps_each_case_with_the_parameters_that_it_names() -> None:
    """A controller of force that integrates: it comes to 2 N by its gain, and too small a gain is on its way."""
    table = [{"gain": 5e-4}, {"gain": 1e-5}, {"gain": 5e-4, "height": 0.025, "aim": 3.0}]
    with fs.Simulation(plate(), record=True) as sim:
        press(sim, 5e-4)
    own = sim.close()
    assert own is not None
    there, here = (fs.run_many(plate, table, loop=press, workers=workers) for workers in (2, 0))
    for one, other in zip(there, here, strict=True):
        assert one.status == "converged" and one.verdict == "good" and len(one.table["time_s"]) == 50
        np.testing.assert_array_equal(one.table["block_fz_N"], other.table["block_fz_N"])
    np.testing.assert_array_equal(there[0].table["block_fz_N"], own.table["block_fz_N"])
    last = [-case.table["block_fz_N"][-1] for case in there]
    assert last[0] == pytest.approx(2.0, rel=1e-3) and last[1] < 0.5 and last[2] == pytest.approx(3.0, rel=1e-3)


def test_loops_that_fail_do_not_affect_others() -> None:
    def loop(sim: fs.Simulation, mode: str = "") -> None:
        if mode == "error":
            raise RuntimeError("no hand")
        if mode != "none":
            sim.step(3)

    runs = fs.run_many(plate, {"mode": ["error", "none", ""]}, loop=loop, workers=0)
    assert [case.status for case in runs] == ["failed", "failed", "converged"] and len(runs[2].table["time_s"]) == 3
    assert runs[0].message == "RuntimeError: no hand" and "loop took no step" in runs[1].message


def test_seeds_belong_to_rows() -> None:
    runs = fs.run_many(build, {"height": [0.011, 0.011, 0.012]}, seed=7, workers=0, duration=0.02)
    again = fs.run_many(build, {"height": [0.011, 0.011]}, seed=7, workers=0, duration=0.02)
    noise = [case.table["box_measured_fz_N"] for case in runs]
    assert not np.array_equal(noise[0], noise[1]) and np.array_equal(runs[0].table["box_fz_N"], runs[1].table["box_fz_N"])
    assert all(
        np.array_equal(a.table["box_measured_fz_N"], b.table["box_measured_fz_N"]) for a, b in zip(runs, again, strict=False)
    )
    assert len({case.parameters["seed"] for case in runs}) == 3
    given = fs.run_many(build, [{"seed": 5}], seed=7, workers=0, duration=0.01)
    assert given[0].parameters == {"seed": 5}


def test_what_a_table_of_pandas_lacks_is_none() -> None:
    """Texts and whole numbers without a value are None as in a list of rows; NaN of numbers is a value."""
    pandas = pytest.importorskip("pandas")
    table = {"mode": ["", None], "seed": pandas.array([1, None], dtype="Int64"), "height": [0.011, np.nan]}
    tables = [pandas.DataFrame(table), pandas.DataFrame(table).astype({"mode": "string", "height": "Float64"})]
    for table in tables:
        first, second = fs.run_many(lambda mode, seed, height: build(), table, workers=0)
        assert first.status == second.status == "converged", second.message
        assert first.parameters == {"mode": "", "seed": 1, "height": 0.011}
        assert second.parameters["mode"] is None and second.parameters["seed"] is None
        assert isinstance(second.parameters["height"], float) and np.isnan(second.parameters["height"])


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("height", "measure gave 'height', which is a parameter of the scene already; choose another name."),
        ("verdict", "measure gave 'verdict', which is a column of every table already; choose another name."),
    ],
)
def test_what_is_measured_has_a_name_of_its_own(name: str, said: str) -> None:
    """A value named like a parameter replaced it in the table, and one named "verdict" was gone."""
    runs = fs.run_many(build, [{"height": 0.011}], measure=lambda run: {name: 99.0}, workers=0, duration=0.01)
    assert runs[0].status == "failed" and runs[0].message == said and runs.to_pandas()["height"][0] == 0.011


def test_a_parameter_named_like_a_column_of_every_table_stays() -> None:
    runs = fs.run_many(lambda status: build(), [{"status": 3}], workers=0, duration=0.01)
    frame = runs.to_pandas()
    assert frame["parameter_status"][0] == 3 and frame["status"][0] == "converged"
    runs = fs.run_many(lambda place: build(), [{"place": (0, 0, k)} for k in (1, 2)], workers=0, duration=0.01)
    assert runs.table["place"].tolist() == [(0, 0, 1), (0, 0, 2)]


SCRIPT = """
import femsim as fs
from beside import mass
def build(height):
    scene = fs.Scene("drop", dt=0.01, duration=0.01, theta=1.0)
    scene.add_floor()
    scene.add_rigid("box", fs.Box((0.01, 0.01, 0.01)), mass=mass(), position=(0, 0, height))
    scene.sensor("box", "box")
    return scene
runs = fs.run_many(build, [{"height": 0.01}], measure=lambda run: {"fz": run.sensors["box"].force[-1, 2]}, workers=1)
print(runs, round(runs[0].values.get("fz", -1), 3), runs[0].message)
"""


def test_functions_of_a_script_and_of_modules_beside_it_travel(tmp_path: Path) -> None:
    """As a notebook's do: they live in no module; and without `if __name__ == "__main__"`."""
    (tmp_path / "script.py").write_text(SCRIPT)
    (tmp_path / "beside.py").write_text("def mass():\n    return 2.0\n")
    done = subprocess.run(
        [sys.executable, "script.py"], cwd=tmp_path, env=os.environ | {"PYTHONPATH": str(ROOT)}, capture_output=True, text=True
    )
    assert done.stdout.startswith("<1 runs: 1 converged> 19.62"), done.stdout + done.stderr


def test_a_scene_file_and_ctrl_c(tmp_path: Path) -> None:
    def stop(case: fs.CaseRun) -> None:
        raise KeyboardInterrupt

    file = tmp_path / "drop.py"
    plain = SCRIPT.split("runs =")[0].replace("from beside import mass", "mass = lambda: 1.0")
    file.write_text(plain.replace("(height)", "(height: float = 0.01) -> fs.Scene"))
    runs = fs.run_many(file, [{"height": 0.01}, {"height": 0.02}], workers=0, on_case=stop)
    assert [case.status for case in runs] == ["converged", "not run"]


def test_what_has_ended_when_ctrl_c_comes_is_kept() -> None:
    def stop(case: fs.CaseRun) -> None:
        time.sleep(3.0)  # the others end meanwhile, and the last one has begun
        raise KeyboardInterrupt

    runs = fs.run_many(build, [{"height": 0.01}] * 3 + [{"mode": "hang"}], workers=1, duration=0.03, on_case=stop)
    assert [case.status for case in runs] == ["converged"] * 3 + ["not run"]
    np.testing.assert_array_equal(runs[2].table["box_fz_N"], runs[0].table["box_fz_N"])


@pytest.mark.parametrize(
    ("call", "match"),
    [
        (lambda: fs.run_many(build, []), "has no row"),
        (lambda: fs.run_many(build, {}), "has no row"),
        (lambda: fs.run_many(build, 3), "the table is none; give a list of dicts"),  # type: ignore[arg-type]
        (lambda: fs.run_many(build, {"height": [1.0], "mode": ["a", "b"]}), r"columns .*'height': 1, 'mode': 2"),
        (lambda: fs.run_many(build, [{"hight": 1.0}]), r"'hight' of row 0 is none of the scene; did you mean 'height'"),
        (lambda: fs.run_many(build, [{}], solvr="cond"), r"option 'solvr' is unknown; did you mean 'solver'"),
        (lambda: fs.run_many(build, [{}], out="runs"), r"option 'out' is unknown"),
        (lambda: fs.run_many(build, [{}], workers=-1), "workers is -1"),
        (lambda: fs.run_many(build, [{}], measure="peak"), "measure is 'peak'; allowed are functions"),  # type: ignore[arg-type]
        (
            lambda: fs.run_many(plate, [{"gian": 1.0}], loop=press),
            "'gian' of row 0 is none of the scene or the loop; did you .*'gain'",
        ),
        (lambda: fs.run_many(plate, [{"gain": 1.0}], loop=press, duration=1.0), "a loop ends by itself; leave 'duration' out"),
        (lambda: fs.run_many(plate, [{"gain": 1.0}], loop=press, fps=10.0), "option 'fps' is unknown"),
        (lambda: fs.run_many(plate, [{}], loop="press"), "loop is 'press'; allowed are functions"),  # type: ignore[arg-type]
        (lambda: fs.run_many(build, [{}], on_case=1), "on_case is 1"),  # type: ignore[arg-type]
        (lambda: fs.run_many(build, [{}], seed=-1), "seed is -1"),
        (lambda: fs.run_many(build, [{}], seed="a"), "seed is 'a'"),  # type: ignore[arg-type]
        (lambda: fs.run_many(build, {"height": 1.0}), "column 'height' of the table is 1.0; allowed are lists"),  # type: ignore[dict-item]
        (lambda: fs.run_many(build, {"mode": "ab"}), "column 'mode' of the table is 'ab'"),
        (lambda: fs.run_many(3, [{}]), "build is 3, but must be a function or a text or a path"),  # type: ignore[arg-type]
        (lambda: fs.run_many(build, [{}], workers=0, time_limit=1.0), "time_limit is 1.0.*with processes"),
        (lambda: fs.run_many(lambda: (_ for _ in ()), [{"x": (k for k in ())}]), "parameter 'x' of row 0"),
        (lambda: fs.run_many(build, [{"mode": (k for k in ())}]), "cannot be sent to another process"),
        (lambda: fs.run_many("nothing.py", [{}]), "nothing.py"),
    ],
)
def test_wrong_calls_are_refused(call: object, match: str) -> None:
    assert callable(call)
    with pytest.raises(fs.InputError, match=match):
        call()


def test_measures_must_be_numbers() -> None:
    runs = fs.run_many(build, [{}], measure=lambda run: {"force": "high"}, workers=0, duration=0.01)
    assert runs[0].status == "failed" and "must give numbers by name" in runs[0].message
