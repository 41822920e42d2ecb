"""Single columns of a run beside columns of a log: what was planted is found again, what does not fit is said."""

from __future__ import annotations

import csv
import json
import math
import re
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from driven_joint import as_logged, write_scene, write_table
from log_files import write_bag_of_joints, write_mcap_of_joints, write_ros1_bag_of_joints

import femsim as fs
from femsim.base.units import COLUMN_UNITS
from femsim.scene.sensor_kinds import SENSOR_KINDS
from femsim.studies.calibration.file import Noise
from femsim.studies.comparison.agreement import agreement
from femsim.studies.comparison.card import UnitsCard
from femsim.studies.comparison.columns import single_column
from femsim.studies.comparison.readers import Channel
from femsim.studies.comparison.run_series import RunSeries, make_run_series
from femsim.studies.comparison.words import sentence
from viz.comparison import SHOWN_UNITS

START, RATE = 0.06, 1000.0
BIAS, GAIN = 0.03, 1.2
#: Column of the run, that of the log with its sign, how many of the log's units an SI unit has, and the card's unit.
CHANNELS = {
    "elbow_torque_Nm": ("-effort", -1e3, {"torque": "mN m"}),
    "elbow_angle_rad": ("q [deg]", 180.0 / math.pi, {}),
    "elbow_rate_radps": ("qd", 30.0 / math.pi, {"rate": "rpm"}),
    "wire_force_N": ("pull_lbf", 1.0 / 4.4482216152605, {}),
    "wire_length_m": ("cable (mm)", 1e3, {}),
    "air_pressure_Pa": ("p_kPa", 1e-3, {}),
    "air_volume_m3": ("content [ml]", 1e6, {}),
}
CARD = {
    "columns": {own: there for own, (there, _, _) in CHANNELS.items()},
    "units": {kind: unit for _, _, units in CHANNELS.values() for kind, unit in units.items()},
}


@pytest.fixture(scope="module")
def simulated(tmp_path_factory: pytest.TempPathFactory) -> fs.Run:
    folder = tmp_path_factory.mktemp("columns")
    run = fs.simulate(fs.load_scene(write_scene(folder), soft=True), out=folder / "run", fps=1.0)
    assert run.status == "converged"
    return run


@pytest.fixture(scope="module")
def run(simulated: fs.Run) -> Path:
    assert simulated.folder is not None
    return simulated.folder


@pytest.fixture(scope="module")
def log(simulated: fs.Run, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Columns of the run in other units, the torque with the other sign and a bias, the pressure with a gain, shifted in time."""
    table, path = simulated.table(), tmp_path_factory.mktemp("log") / "log.csv"
    values = {own: as_logged(table, own, START, RATE) for own in CHANNELS}
    values["elbow_torque_Nm"] = values["elbow_torque_Nm"] + BIAS
    values["air_pressure_Pa"] = values["air_pressure_Pa"] * GAIN
    columns = [factor * values[own] for own, (_, factor, _) in CHANNELS.items()]
    header = ",".join(["time", *(there.removeprefix("-") for there, _, _ in CHANNELS.values())])
    rows = np.column_stack([np.arange(len(columns[0])) / RATE, *columns])
    np.savetxt(path, rows, delimiter=",", header=header, comments="", fmt="%.12g")
    return path


def write_card(path: Path, columns: dict[str, str], units: dict[str, str] | None = None) -> Path:
    lines = ["[columns]", *(f'{own} = "{there}"' for own, there in columns.items())]
    lines += ["[units]", *(f'{kind} = "{unit}"' for kind, unit in (units or {}).items())]
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path


def series(**columns: np.ndarray) -> RunSeries:
    time = 0.01 * np.arange(1, 101)
    return make_run_series("bench", {"time_s": time, **columns}, (0.0, 0.0, -9.81))


def table(path: Path, **columns: np.ndarray) -> Path:
    time = 0.01 * np.arange(1, 101)
    return write_table(path, ",".join(["time", *columns]), np.column_stack([time, *columns.values()]))


# ------------------------------------------------------------------------------------------------ what was planted is found


def test_lag_sign_units_bias_and_gain_are_found(simulated: fs.Run, run: Path, log: Path) -> None:
    """By the folder and by the run in memory."""
    result = fs.compare(run, log, CARD)
    assert [c.name for c in result.channels] == [own.rpartition("_")[0] for own in CHANNELS]
    assert [c.column for c in result.channels] == list(CHANNELS)
    assert result.trials[0].offset == pytest.approx(START, abs=5e-4)
    torque = result.axes["elbow_torque"]
    assert torque.rmse == pytest.approx(BIAS, rel=0.06) and torque.bias == pytest.approx(-BIAS, rel=0.02)
    assert torque.gain == pytest.approx(1.0, abs=0.01)
    assert result.axes["air_pressure"].gain == pytest.approx(GAIN, abs=0.01)
    measured = dict(zip(CHANNELS, result.measured.T, strict=True))
    for own in CHANNELS:
        if own not in ("elbow_torque_Nm", "air_pressure_Pa"):
            assert result.axes[own.rpartition("_")[0]].nrmse < 0.01, own
    assert np.ptp(measured["air_volume_m3"]) == pytest.approx(np.ptp(simulated.table()["air_volume_m3"]), rel=0.02)
    assert result.sensor is None and result.what == "columns" and result.warnings == ()
    words = "; ".join(result.words())
    assert re.match(r"elbow_torque agrees within 0\.03[0-9]* N m RMS", words)
    assert re.search(r"air_volume agrees within [0-9.e-]+ ml RMS", words)
    assert (
        not result.summary().endswith("\n") and "error vector" not in result.summary() and "columns, 0.060 to" in result.summary()
    )
    in_memory = fs.compare(simulated, log, CARD)
    assert (np.abs(in_memory.simulated - result.simulated).max(axis=0) < 1e-7 * np.ptp(result.simulated, axis=0)).all()


def test_a_wrong_sign_is_said_with_its_remedy(run: Path, log: Path) -> None:
    result = fs.compare(run, log, {"columns": {"elbow_torque_Nm": "effort"}, "units": {"torque": "mN m"}})
    assert result.axes["elbow_torque"].gain == pytest.approx(-1.0, abs=0.02)
    (warning,) = result.warnings
    assert warning.startswith("elbow_torque of the log is -") and "is its sign right ('-' before its column" in warning
    # a column whose own name begins with a dash is that column
    wave = np.sin(0.2 * np.arange(100.0))
    path = write_table(
        run.parent / "dash.csv", "time,-effort,effort", np.column_stack([0.01 * np.arange(1, 101), wave, 0.5 * wave])
    )
    same = fs.compare(series(elbow_torque_Nm=wave), path, {"columns": {"elbow_torque_Nm": "-effort"}})
    assert same.axes["elbow_torque"].rmse < 1e-12


def test_a_tare_takes_the_bias_of_a_column(run: Path, log: Path) -> None:
    result = fs.compare(run, log, {**CARD, "tare": {"start": 0.0, "end": 0.03}, "time": {"offset": START}})
    assert result.axes["elbow_torque"].rmse < 0.01
    assert result.axes["wire_length"].nrmse < 0.01  # of the run its own mean is taken, 58 mm


def test_a_log_that_is_read_before_knows_its_columns(run: Path, log: Path) -> None:
    read = fs.read_log(log, CARD)
    assert read.sensor is None and [c.unit for c in read.channels] == ["N m", "rad", "rad/s", "N", "m", "Pa", "m^3"]
    assert fs.compare(run, read).axes["elbow_torque"].rmse == fs.compare(run, log, CARD).axes["elbow_torque"].rmse


def test_energies_and_numbers_are_columns_too(tmp_path: Path) -> None:
    wave = 5.0 + np.sin(0.2 * np.arange(100.0))
    run = series(grip_contacts=wave, cube_kinetic_J=wave)
    path = table(tmp_path / "log.csv", taxels=100.0 * wave, E_mJ=1e3 * wave)
    result = fs.compare(run, path, {"columns": {"grip_contacts": "taxels", "cube_kinetic_J": "E_mJ"}, "units": {"number": "%"}})
    assert max(axis.rmse for axis in result.axes.values()) < 1e-9
    assert result.words()[0].endswith("RMS") and " 1 RMS" not in result.words()[0]
    assert [c.kind for c in result.channels] == ["number", "energy"] and result.channels[0].column == "grip_contacts"


def test_of_two_columns_of_a_name_the_unit_tells_which(tmp_path: Path) -> None:
    wave = np.sin(0.2 * np.arange(100.0))
    path = write_table(
        tmp_path / "log.csv", "time,t [Nm],t [mNm]", np.column_stack([0.01 * np.arange(1, 101), wave[::-1], 1e3 * wave])
    )
    result = fs.compare(series(a_torque_Nm=wave), path, {"columns": {"a_torque_Nm": "t [mNm]"}})
    assert result.axes["a_torque"].rmse < 1e-9
    with pytest.raises(fs.InputError, match=r"has 2 columns 't' \(columns 2, 3\), each of which may be a_torque_Nm"):
        fs.compare(series(a_torque_Nm=wave), path, {"columns": {"a_torque_Nm": "t"}})


@pytest.mark.parametrize(
    ("unit", "bias", "said"),
    [("Pa", 3e4, "30 kPa"), ("m^3", 5e-7, "0.5 ml"), ("m^2", 2e-6, "2 mm²"), ("m/s", 0.25, "250 mm/s"), ("1", 4.0, "4"),
     ("rad", 0.5, "0.5 rad"), ("rad/s", 2.0, "2 rad/s"), ("J", 0.1, "0.1 J"), ("N m", 0.02, "0.02 N m")],
)  # fmt: skip
def test_words_have_units_of_the_size_of_things(unit: str, bias: float, said: str) -> None:
    wave = bias * np.sin(0.2 * np.arange(100.0))
    words = sentence(Channel("a", "a", unit), agreement(wave + bias, wave), 0.0, float(np.ptp(wave)))
    assert words == f"a of the run reads {said} too high; its shape is right"


def test_all_columns_that_sensors_have_can_be_compared_and_fitted_to() -> None:
    """A sensor of a new unit asks for an entry in each of these tables."""
    units = dict(COLUMN_UNITS.values())
    for column in (column for declared in SENSOR_KINDS.values() for column in declared.columns):
        name, kind = single_column(f"x_{column.name}")
        channel = Channel(name, name, column.unit)
        assert units[kind] == column.unit and channel.column == f"x_{column.name}"
        assert column.unit in SHOWN_UNITS and kind in UnitsCard.model_fields and channel.kind in Noise.model_fields


# ------------------------------------------------------------------------------------------------ the command


def test_the_command_compares_writes_and_draws(
    run: Path, log: Path, tmp_path: Path, call: Callable[..., tuple[int, str, str]]
) -> None:
    card = write_card(tmp_path / "card.toml", CARD["columns"], CARD["units"])
    status, out, err = call("compare", str(run), str(log), "--card", str(card), "--out", str(tmp_path / "out"))
    assert (status, err) == (0, "") and "columns, 0.060 to" in out and "elbow_torque" in out
    content = json.loads((tmp_path / "out" / "comparison.json").read_text())
    assert content["what"] == "columns" and content["sensor"] is None
    assert content["axes"]["elbow_torque"]["rmse"] == pytest.approx(BIAS, rel=0.06)
    assert content["axes"]["air_volume"]["unit"] == "m^3" and content["logs"][0]["offset_s"] == pytest.approx(START, abs=5e-4)
    with open(tmp_path / "out" / "comparison.csv", encoding="utf-8") as stream:
        assert next(csv.reader(stream)) == ["time_s", *(f"{who}.{own}" for who in ("run", "log1") for own in CHANNELS)]
    page = (tmp_path / "out" / "report.html").read_text(encoding="utf-8")
    assert ", columns</h1>" in page and "Error vectors" not in page and "air pressure [kPa]" in page and "air volume [ml]" in page
    words = ["--log", str(log), "--card", str(card), "--axes", "elbow_torque_Nm,air_pressure", "--formats", "svg"]
    status, out, err = call("plot", str(run), *words, "--out", str(tmp_path / "paper"))
    assert (status, err) == (0, "") and "elbow_torque" in out and "elbow_angle" not in out
    svg = (tmp_path / "paper" / "comparison.svg").read_text(encoding="utf-8")
    assert ">elbow torque [N m]<" in svg and ">air pressure [kPa]<" in svg and "elbow angle" not in svg


def test_columns_of_one_unit_share_a_row_of_three(tmp_path: Path) -> None:
    wave = np.sin(0.2 * np.arange(100.0))
    names = [f"j{k}_torque_Nm" for k in range(4)]
    run = series(**dict.fromkeys([*names, "j0_angle_rad"], wave))
    path = table(tmp_path / "log.csv", **dict.fromkeys(["t0", "t1", "t2", "t3", "q0"], wave))
    columns = dict(zip([*names[:2], "j0_angle_rad", *names[2:]], ["t0", "t1", "q0", "t2", "t3"], strict=True))
    folder = fs.compare(run, path, {"columns": columns}).write(tmp_path / "out")
    svg = (folder / "overlay.svg").read_text(encoding="utf-8")
    corners = {}
    for panel in svg.split('<g id="axes_')[1:]:
        label = re.search(r">(j[0-9] [a-z]+) \[[A-Za-z ]+\]<", panel)
        corner = re.search(r'<path d="M ([0-9.]+) ([0-9.]+)', panel)
        if label and corner:
            corners[label[1]] = (float(corner[1]), float(corner[2]))
    assert set(corners) == {"j0 torque", "j1 torque", "j2 torque", "j3 torque", "j0 angle"}
    rows = {name: round(y) for name, (_, y) in corners.items()}
    assert rows["j0 torque"] == rows["j1 torque"] == rows["j2 torque"] != rows["j3 torque"]
    assert rows["j0 angle"] not in (rows["j0 torque"], rows["j3 torque"])
    assert len({round(x) for name, (x, _) in corners.items() if rows[name] == rows["j0 torque"]}) == 3


# ------------------------------------------------------------------------------------------------ joints of ROS bags


FIELDS = {"torque_Nm": "-arm.pin.effort", "angle_rad": "arm.pin.position", "rate_radps": "arm.pin.velocity"}
JOINT_CARD = {"columns": {f"elbow_{column}": there for column, there in FIELDS.items()}}


def states(simulated: fs.Run) -> list[tuple[float, dict[str, list[float]]]]:
    """What a robot says of the elbow, which stands first in one message and last in the next, and a gripper between them."""
    table = simulated.table()
    own = [as_logged(table, f"elbow_{what}", START, 500.0) for what in ("angle_rad", "rate_radps", "torque_Nm")]
    out: list[tuple[float, dict[str, list[float]]]] = []
    for k, (angle, rate, torque) in enumerate(zip(*own, strict=True)):
        joints = {"arm.pin": [float(angle), float(rate), -float(torque)], "arm.other": [0.1, 0.2, 0.3]}
        out.append((k / 500.0, dict(reversed(joints.items())) if k % 2 else joints))
        out.append((k / 500.0 + 0.0007, {"finger": [0.01, 0.0, 5.0]}))
    return out


@pytest.mark.parametrize("write", [write_mcap_of_joints, write_bag_of_joints, write_ros1_bag_of_joints])
def test_joint_states_of_a_bag_are_compared(simulated: fs.Run, tmp_path: Path, write: Callable[..., Path]) -> None:
    bag = write(tmp_path / "log.mcap" if write is write_mcap_of_joints else tmp_path / "bag", states(simulated))
    result = fs.compare(simulated, bag, JOINT_CARD)
    assert result.trials[0].offset == pytest.approx(START, abs=5e-4) and result.warnings == ()
    assert result.sensor is None and [c.unit for c in result.channels] == ["N m", "rad", "rad/s"]
    assert all(axis.nrmse < 0.01 for axis in result.axes.values())
    assert all(axis.gain == pytest.approx(1.0, abs=0.01) for axis in result.axes.values())
    late = fs.read_log(bag, JOINT_CARD | {"time": {"rate": 250.0}})
    assert len(late.warnings) == 1 and "those of its messages, are 500 Hz: the log lasts 2 times as long" in late.warnings[0]
    assert late.time[-1] == pytest.approx((len(late.time) - 1) / 250.0) and len(late.time) == 500


@pytest.mark.parametrize(
    ("there", "words"),
    [
        ("arm.pim.effort", "has no joint 'arm.pim'; did you mean 'arm.pin'"),
        ("finger.effort", ""),
        ("bare.effort", "has no effort of joint 'bare'; its publisher leaves it out"),
        ("arm.pin.position", "but position is none of a torque; allowed are columns of angle and length"),
        ("effort", "of JointState, name JOINT.position, JOINT.velocity or JOINT.effort"),
        ("arm.pin.torque", "of JointState, name JOINT.position, JOINT.velocity or JOINT.effort"),
    ],
)
def test_joints_that_a_bag_does_not_have_are_named(tmp_path: Path, there: str, words: str) -> None:
    messages = [(0.01 * k, {"arm.pin": [0.0, 0.0, 0.1 * k]}) for k in range(30)]
    others = [(0.01 * k + 0.001, {"finger": [0.0, 0.0, 0.2 * k]}) for k in range(30)]
    bare = [(0.01 * k + 0.002, {"bare": [0.1 * k]}) for k in range(30)]
    log = write_mcap_of_joints(tmp_path / "log.mcap", [*messages, *others, *bare])
    if words:
        with pytest.raises(fs.InputError, match=re.escape(words)):
            fs.read_log(log, {"columns": {"elbow_torque_Nm": there}})
    else:
        read = fs.read_log(log, {"columns": {"elbow_torque_Nm": there}})
        np.testing.assert_allclose(read.values[:, 0], 0.2 * np.arange(30), atol=1e-12)
    with pytest.raises(fs.InputError, match=r"no message with all of arm\.pin, finger; compare those of one publisher"):
        fs.read_log(log, {"columns": {"a_torque_Nm": "arm.pin.effort", "b_torque_Nm": "finger.effort"}})
    with pytest.raises(fs.InputError, match=r"maps two columns 'a' of different units"):
        fs.read_log(log, {"columns": {"a_Nm": "arm.pin.effort", "a_N": "arm.pin.effort"}})
    two = write_mcap_of_joints(tmp_path / "two.mcap", messages, ("/a", "/b"))
    with pytest.raises(fs.InputError, match=r"has 2 topics with sensor_msgs/JointState \(/a, /b\); name one as 'topic'"):
        fs.read_log(two, {"columns": {"a_Nm": "arm.pin.effort"}})
    assert len(fs.read_log(two, {"topic": "/b", "columns": {"a_Nm": "arm.pin.effort"}}).time) == 30
    with pytest.raises(fs.InputError, match="has no JointState on topic '/c'"):
        fs.read_log(two, {"topic": "/c", "columns": {"a_Nm": "arm.pin.effort"}})


def test_messages_that_do_not_fit_are_refused(tmp_path: Path) -> None:
    log = write_mcap_of_joints(tmp_path / "log.mcap", [(0.01 * k, {"a": [0.0, 0.0, 0.1], "b": [0.0]}) for k in range(30)])
    with pytest.raises(fs.InputError, match="message 1 names a joint twice, or has other numbers than joints"):
        fs.read_log(log, {"columns": {"a_Nm": "a.effort"}})


# ------------------------------------------------------------------------------------------------ what does not fit


def test_columns_are_those_of_sensors_also_in_memory_and_of_logs_that_are_read(simulated: fs.Run, run: Path, log: Path) -> None:
    for one in (simulated, run):
        with pytest.raises(
            fs.InputError, match=r"'kinetic_energy_J', which \[columns\] of the card names, is not in sensors\.csv"
        ):
            fs.compare(one, log, {"columns": {"kinetic_energy_J": "qd"}})
        with pytest.raises(fs.InputError, match=r"did you mean 'elbow_rate_radps'"):
            fs.compare(one, fs.read_log(log, {"columns": {"elbow_rat_radps": "qd"}}))


@pytest.mark.parametrize(
    ("card", "words"),
    [
        (
            {"columns": {"elbow_torqe_Nm": "-effort"}},
            "column 'elbow_torqe_Nm', which [columns] of the card names, is not in sensors.csv of",
        ),
        ({"columns": {"elbow_torqe_Nm": "-effort"}}, "did you mean 'elbow_torque_Nm'"),
        ({"columns": {"elbow_torque": "-effort"}}, "did you mean 'elbow_torque_Nm'"),
        ({"columns": {"elbow_torque_Nm": "-efort"}}, "log.csv has no column 'efort' for elbow_torque_Nm; did you mean 'effort'"),
        ({"columns": {"elbow_torque_Nm": "q [deg]"}}, "'q' has the unit 'deg', which is none of a torque; set units.torque"),
        ({"columns": {"elbow_torque_Nm": "content [ml]"}}, "has the unit 'ml', which is none of a torque; set units.torque"),
        ({"columns": {"air_pressure_Pa": "cable (mm)"}}, "has the unit 'mm', which is none of a pressure; set units.pressure"),
        ({"columns": {"elbow_torque_Nm": "effort"}, "units": {"torque": "kPa"}}, "units.torque 'kPa' is unknown; there are"),
        ({"columns": {"elbow_rate_radps": "qd"}, "units": {"rate": "rmp"}}, "units.rate 'rmp' is unknown; did you mean 'rpm'"),
        (
            {"columns": {"elbow_torque_Nm": "effort"}, "sensor": "elbow"},
            "has columns, which are compared one by one, beside markers, sensor, axes, gravity or frame; keep one kind",
        ),
        ({"columns": {"elbow_torque_Nm": "effort"}, "frame": {"sign": -1}}, "for the opposite sign write '-' before the column"),
        ({"columns": {"elbow_torque_Nm": "effort"}, "marker_values": "displacement"}, "keep one kind"),
        ({"columns": {"elbow_torque_Nm": ["effort"]}}, "columns.elbow_torque_Nm"),
        ({"columns": {"air_pressure_Pa": "effort"}, "units": {"pressure": "MPa"}}, "is the unit right? Set units.pressure"),
        ({}, "has only elbow (revolute), wire (tendon), air (chamber); a comparison takes markers"),
        ({}, "Or name columns of its sensors.csv under [columns] in a card."),
    ],
)  # fmt: skip
def test_a_card_that_does_not_fit_is_refused_with_words(run: Path, log: Path, card: dict, words: str) -> None:
    with pytest.raises(fs.InputError, match=re.escape(words)):
        fs.compare(run, log, card)


def test_the_command_says_which_column_is_unknown(
    run: Path, log: Path, tmp_path: Path, call: Callable[..., tuple[int, str, str]]
) -> None:
    card = write_card(tmp_path / "card.toml", {"elbow_torqe_Nm": "-effort"})
    status, out, err = call("compare", str(run), str(log), "--card", str(card), "--json")
    assert (status, out) == (2, "") and "did you mean 'elbow_torque_Nm'" in err
    status, _, err = call("compare", str(run), str(log), "--card", str(card), "--sensor", "elbow")
    assert status == 2 and "sensor 'elbow' is asked for, but the card maps columns" in err


def test_columns_are_of_text_tables_and_bags(run: Path, tmp_path: Path) -> None:
    path = tmp_path / "log.c3d"
    path.write_bytes(b"")
    with pytest.raises(
        fs.InputError, match=r"the card maps columns, which text tables \(\.csv.*but the log is .*log\.c3d; write"
    ):
        fs.compare(run, path, {"columns": {"elbow_torque_Nm": "effort"}})


def test_letters_in_brackets_are_no_units_of_other_kinds(tmp_path: Path) -> None:
    """(l) is left, and mean_bar no pressure; but a pressure is no torque."""
    wave = np.sin(0.2 * np.arange(100.0))
    run, time = series(a_torque_Nm=wave, b_torque_Nm=wave), 0.01 * np.arange(1, 101)
    path = write_table(tmp_path / "log.csv", "time,tau (l),mean_bar,tau [kPa]", np.column_stack([time, wave, wave, wave]))
    result = fs.compare(run, path, {"columns": {"a_torque_Nm": "tau (l)", "b_torque_Nm": "mean_bar"}})
    assert max(axis.rmse for axis in result.axes.values()) < 1e-12
    with pytest.raises(fs.InputError, match="unit 'kPa', which is none of a torque"):
        fs.compare(run, path, {"columns": {"a_torque_Nm": "tau [kPa]"}})


def test_two_columns_that_differ_by_their_unit_are_compared_one_by_one(tmp_path: Path) -> None:
    wave = np.sin(0.2 * np.arange(100.0))
    run, path = series(a_x_N=wave, a_x_Nm=wave), table(tmp_path / "log.csv", f=wave, t=wave)
    with pytest.raises(fs.InputError, match="the card maps two columns 'a_x' of different units; compare one at a time"):
        fs.compare(run, path, {"columns": {"a_x_N": "f", "a_x_Nm": "t"}})


def test_a_gap_beyond_reach_is_named(tmp_path: Path) -> None:
    wave = np.sin(0.2 * np.arange(100.0))
    run = series(near_gap_m=np.where(np.arange(100) > 39, np.inf, wave))
    path = table(tmp_path / "log.csv", d=wave)
    with pytest.raises(fs.InputError, match=r"first near_gap at 0\.41 s; see its status\. A gap beyond `reach`"):
        fs.compare(run, path, {"columns": {"near_gap_m": "d"}})


def sheared_scene(theta: float | None, cells: int = 1) -> fs.Scene:
    """A light block whose top goes to and fro at 2 Hz: the force is that of a spring."""
    scene = fs.Scene("sheared", dt=0.01, duration=0.5, theta=theta, gravity=(0, 0, 0))
    block = scene.add_soft("block", fs.box_tets((0.02, 0.02, 0.02), cells), fs.Elastic(1e5, 0.3, 10.0))
    scene.hold(block, lambda x: x[:, 2] < 0.0, lambda t: ((0, 0, 0), (0, 0, 0)), name="below")
    scene.hold(block, lambda x: x[:, 2] > 0.0, lambda t: ((1e-3 * np.sin(4.0 * np.pi * t), 0, 0), (0, 0, 0)), name="above")
    scene.sensor("pull", "above", kind="mount")
    scene.sensor("top", "block", kind="marker", at=(0.01, 0.01, 0.01))
    return scene


def sheared(theta: float | None) -> fs.Run:
    return fs.simulate(sheared_scene(theta), quiet=True)


def test_forces_count_in_the_middle_of_a_step_and_places_at_its_end(tmp_path: Path) -> None:
    """Against forces at the end of steps, which backward Euler reads, means of steps are half a step early; 4 % of the range."""
    exact = sheared(1.0)
    time, force, place = exact.steps["time_s"], exact.sensors["pull"].force[:, 0], exact.markers["top"].position[:, 0]
    log = tmp_path / "log.csv"
    rows = [f"{t:.9g},{f:.9g},{x:.9g}" for t, f, x in zip(time, force, place, strict=True)]
    log.write_text("\n".join(["time (s),Fx (N),way (m)", *rows]) + "\n")
    known = {"time": {"offset": float(time[0])}}
    run = sheared(None)
    for card, axis in (({"axes": {"fx": "Fx"}}, "fx"), ({"columns": {"pull_fx_N": "Fx (N)", "top_x_m": "way (m)"}}, "pull_fx")):
        axes = fs.compare(run, log, known | card).axes
        assert axes[axis].rmse < 5e-3 * np.ptp(force), axes
        assert "top_x" not in axes or axes["top_x"].rmse < 1e-9


def test_rows_of_many_steps_count_where_these_act(tmp_path: Path) -> None:
    """Of steps as long as the motion asks for a row reads the mean: of one step at its end, of many in its middle, 13 % of f."""
    row, parts = 0.02, np.random.default_rng(4).choice([1, 2, 4, 8, 16], 100)
    acted = [row * (k + np.arange(1, n + 1) / n) for k, n in enumerate(parts)]
    force = np.array([np.sin(4.0 * np.pi * times).mean() for times in acted])
    table = {"time_s": row * np.arange(1.0, 101.0), "pull_fx_N": force, "substeps": parts.astype(float)}
    zero = {f"pull_{end}": np.zeros(100) for end in ("fy_N", "fz_N", "tx_Nm", "ty_Nm", "tz_Nm")}
    run = make_run_series("rows", table | zero, (0.0, 0.0, 0.0))
    time = np.arange(0.0, 2.0, 0.01)
    log = tmp_path / "log.csv"
    log.write_text("\n".join(["time (s),Fx (N)", *(f"{t:.9g},{np.sin(4.0 * np.pi * t):.9g}" for t in time)]) + "\n")
    for card, axis in (({"axes": {"fx": "Fx"}}, "fx"), ({"columns": {"pull_fx_N": "Fx (N)"}}, "pull_fx")):
        assert fs.compare(run, log, {"time": {"offset": 0.0}} | card).axes[axis].rmse < 0.01


def test_a_run_knows_the_steps_of_its_rows_in_memory_and_in_its_folder(tmp_path: Path) -> None:
    scene = sheared_scene(1.0, cells=2)  # nodes in the middle are free
    scene.dt, scene.dt_bounds, scene.time_tolerance = "auto", (1e-3, 2e-2), 1e-12  # as short as they may be
    run = fs.simulate(scene, quiet=True, out=tmp_path / "run", fps=1.0)
    exact = fs.simulate(sheared_scene(1.0, cells=2), quiet=True)
    assert (run.steps["substeps"] > 8).all()
    time, force = exact.steps["time_s"], exact.sensors["pull"].force[:, 0]
    log = tmp_path / "log.csv"
    log.write_text("\n".join(["time (s),Fx (N)", *(f"{t:.9g},{f:.9g}" for t, f in zip(time, force, strict=True))]) + "\n")
    card = {"axes": {"fx": "Fx"}, "time": {"offset": float(time[0])}}
    there = fs.compare(run, log, card)
    assert there.axes["fx"].rmse < 1e-2 * np.ptp(force), there.axes
    assert fs.compare(tmp_path / "run", log, card).axes["fx"].rmse == pytest.approx(there.axes["fx"].rmse, rel=1e-6)
