"""Logs of experiments in every format, read to the same numbers; broken ones named."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from experiment import write_csv
from log_files import COUNT, RATE, TIME, VALUES, write_c3d, write_mcap

import femsim as fs
from femsim.base.table import read_table

AXES = ("fx", "fy", "fz", "tx", "ty", "tz")


def lines(separator: str = ",", comma: bool = False, scale: float = 1.0, time: bool = True) -> list[str]:
    out = []
    for t, row in zip(TIME, VALUES * scale, strict=True):
        cells = [f"{x:.9g}" for x in ([t, *row] if time else row)]
        out.append(separator.join(c.replace(".", ",") if comma else c for c in cells))
    return out


def text(path: Path, *above: str, rows: list[str] | None = None) -> Path:
    path.write_text("\n".join([*above, *(rows if rows is not None else lines())]) + "\n", encoding="utf-8")
    return path


def check(log: fs.Log, atol: float = 1e-9) -> None:
    assert tuple(c.name for c in log.channels) == AXES
    np.testing.assert_allclose(log.time, TIME, atol=1e-9)
    np.testing.assert_allclose(log.values, VALUES, atol=atol)
    assert log.rate == pytest.approx(RATE)


# ------------------------------------------------------------------------------------------------------------ text tables


@pytest.mark.parametrize(
    ("above", "rows"),
    [
        (["time,Fx,Fy,Fz,Tx,Ty,Tz"], lines()),
        (["t/s;Force X / N;Fy/N;Fz / N;Mx/N m;My/Nm;Mz / N·m"], lines(";")),
        (["Time (s);Fx (N);Fy (N);Fz (N);Mx (Nm);My (Nm);Mz (Nm)"], lines(";")),
        (["t [s];Fx [N];Fy [N];Fz [N];Tx [N·m];Ty [N·m];Tz [N·m]"], lines(";", comma=True)),
        (["# t\tfx\tfy\tfz\ttx\tty\ttz"], lines("\t")),
        (["% time fx fy fz tx ty tz"], lines("   ")),
        (["time_s,wrist_fx_N,wrist_fy_N,wrist_fz_N,wrist_tx_Nm,wrist_ty_Nm,wrist_tz_Nm"], lines()),
        (['"Time","Force X (N)","Force Y (N)","Force Z (N)","Torque X (Nm)","Torque Y (Nm)","Torque Z (Nm)"'], lines()),
        (["%time,field.wrench.force.x,field.wrench.force.y,field.wrench.force.z,field.wrench.torque.x,field.wrench.torque.y,"
          "field.wrench.torque.z"], lines()),
        (["Bench 3", "", "operator:, A. B.", "time,Fx,Fy,Fz,Tx,Ty,Tz", "s,N,N,N,Nm,Nm,Nm"], lines()),
        (["time,Fx,Fy,Fz,Tx,Ty,Tz"], [line + "," for line in lines()]),
        (["time;Fx;Fy;Fz;Tx;Ty;Tz;"], [line + ";" for line in lines(";")]),
        (["time,Fx (mN),Fy (mN),Fz (mN),Tx (N mm),Ty (N mm),Tz (N mm)"],
         [",".join([f"{t:.9g}", *(f"{1e3 * x:.9g}" for x in row)]) for t, row in zip(TIME, VALUES, strict=True)]),
        (["Start Time:,4/4/2024 3:36:46 PM", f"RDT Sample Rate:,{RATE:g}", "Force Units:,N", "Torque Units:,Nm",
          "Status (hex),RDT Sequence,F/T Sequence,Fx,Fy,Fz,Tx,Ty,Tz,Time"],
         [f"0x00000000,{k},{k},{line},4/4/2024 3:36:46 PM" for k, line in enumerate(lines(time=False))]),
    ],
)  # fmt: skip
def test_tables_are_recognised_without_a_card(tmp_path: Path, above: list[str], rows: list[str]) -> None:
    log = fs.read_log(text(tmp_path / "log.csv", *above, rows=rows), sensors=["wrist"])
    check(log)
    assert log.sensor == "wrist" and log.warnings == ()


@pytest.mark.parametrize(
    "above",
    [
        ["t,Fx,Fy,Fz,Mx,My,Mz,Box", "(ms),(mN),(mN),(mN),(N mm),(N mm),(N mm),(°C)"],
        ["t,Fx,Fy,Fz,Mx,My,Mz,Box", "ms,mN,mN,mN,N mm,N mm,N mm,-"],
        ["t,Fx,Fy,Fz,Mx,My,Mz,Box", "[ms],[mN],[mN],[mN],[Nmm],[Nmm],[Nmm],"],
        ['"Time, ms","Fx, mN","Fy, mN","Fz, mN","Mx, N mm","My, N mm","Mz, N mm","Box, inside"'],
        ["Time in ms,Fx in mN,Fy in mN,Fz in mN,Mx in N mm,My in N mm,Mz in N mm,Box"],
        ["Time ms,Fx mN,Fy mN,Fz mN,Mx N mm,My N mm,Mz Nmm,Fx min"],
        ["Time [\u03bcs],Fx [uN],Fy [uN],Fz [uN],Mx [N mm],My [N mm],Mz [N mm],Box"],
    ],
)
def test_units_count_however_a_header_states_them(tmp_path: Path, above: list[str]) -> None:
    """A card could name such columns, and their numbers then were taken for s and N; μ written in Greek was no unit."""
    scale = 1e3 * np.array([1e3, *[1e3] * 3, *[1.0] * 3]) if "uN" in above[0] else np.full(7, 1e3)
    rows = [",".join([*(f"{x:.12g}" for x in np.array([t, *row]) * scale), "21"]) for t, row in zip(TIME, VALUES, strict=True)]
    check(fs.read_log(text(tmp_path / "log.csv", *above, rows=rows), {"accept_large": True}))


def test_numbers_with_a_decimal_comma_may_be_quoted(tmp_path: Path) -> None:
    rows = [",".join(f'"{cell}"' for cell in row.split(";")) for row in lines(";", comma=True)]
    check(fs.read_log(text(tmp_path / "log.csv", '"t","Fx","Fy","Fz","Tx","Ty","Tz"', rows=rows)))


def test_brackets_that_hold_no_known_unit_are_spoken_of(tmp_path: Path) -> None:
    """A log in ounces was taken in N without a word, a factor of 3.6 that a fit takes for stiffness."""
    path = text(tmp_path / "log.csv", "t,F (ozf),b,c,d,e,f")
    card: dict[str, Any] = {"axes": {"fx": "F (ozf)"}}
    (said,) = fs.read_log(path, card).warnings
    assert "'F (ozf)' is taken in N" in said and "set units.force in the card" in said
    assert fs.read_log(path, {**card, "units": {"force": 0.278}}).warnings == ()
    card = {"axes": {"fx": "fx"}, "time": {"column": "Time (d)"}}
    path = text(tmp_path / "days.csv", "Time (d),fx,b,c,d,e,f")
    (said,) = fs.read_log(path, card).warnings
    assert "'Time (d)' is taken in s" in said and "set time.unit in the card" in said
    assert fs.read_log(path, {**card, "time": {"column": "Time (d)", "unit": "min"}}).warnings == ()


@pytest.mark.parametrize(
    ("name", "unit"), [("Time (h)", 3600.0), ("t_h", 3600.0), ("time [minutes]", 60.0), ("Time hrs", 3600.0)]
)
def test_hours_and_minutes_are_read(name: str, unit: float, tmp_path: Path) -> None:
    """A card that named a column "Time (h)" had its numbers taken for s without a word; F_h is still a force."""
    rows = [",".join(f"{x:.12g}" for x in (t / unit, *row)) for t, row in zip(TIME, VALUES, strict=True)]
    path = text(tmp_path / "log.csv", f"{name},F_h,b,c,d,e,f", rows=rows)
    for card in ({}, {"time": {"column": name}}):
        log = fs.read_log(path, {"axes": {"fx": "F_h"}} | card)
        np.testing.assert_allclose(log.time, TIME - TIME[0], atol=1e-9)
        np.testing.assert_allclose(log.values[:, 0], VALUES[:, 0], rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("names", ["sec,nanosec", "header.stamp.sec,header.stamp.nanosec", "stamp_secs,stamp_nsecs"])
def test_seconds_and_nanoseconds_are_one_clock(tmp_path: Path, names: str) -> None:
    """Their seconds alone repeat, and the advice was to keep the first of equal stamps."""
    stamps = [round(t * 1e9) + 1_700_000_000_500_000_000 for t in TIME]
    rows = [f"{s // 10**9},{s % 10**9},{row}" for s, row in zip(stamps, lines(time=False), strict=True)]
    check(fs.read_log(text(tmp_path / "log.csv", f"{names},Fx,Fy,Fz,Tx,Ty,Tz", rows=rows)))


@pytest.mark.parametrize(
    ("noted", "rate"),
    [("2000", 2000.0), ("2000 Hz", 2000.0), ("2 kHz", 2000.0), ("0.5kHz", 500.0), ("1e3 1/s", 1000.0), ("250 samples/s", 250.0),
     ("2 furlongs", None), ("2.0.0", None), ("0 Hz", None), ("-5 Hz", None), ("fast", None)],
)  # fmt: skip
def test_a_sample_rate_in_the_preamble_has_a_unit(tmp_path: Path, noted: str, rate: float | None) -> None:
    path = text(tmp_path / "log.csv", f"Sample Rate: {noted}", "Fx (N),Fy (N),Fz (N),Tx,Ty,Tz", rows=lines(time=False))
    if rate is not None:
        assert fs.read_log(path).rate == pytest.approx(rate)
        return
    with pytest.raises(fs.InputError, match=re.escape(f"notes the sample rate {noted!r}; allowed are a number with Hz, kHz")):
        fs.read_log(path)


def test_a_card_of_a_material_is_named_and_what_reads_it() -> None:
    card = Path(__file__).resolve().parent.parent / "data" / "materials" / "dragon_skin_30.toml"
    for given, named in ((card, str(card)), ({"density": 1.0}, "the card")):
        with pytest.raises(
            fs.InputError, match=r"is the card of a material \(it has density.*, which fs\.load_card reads"
        ) as error:
            fs.read_log(card, given)
        assert str(error.value).startswith(named)


def test_a_card_names_any_columns(tmp_path: Path) -> None:
    card = tmp_path / "card.toml"
    card.write_text(
        'sensor = "wrist"\n[axes]\nfz = "load"\nfx = "Kraft quer (N)"\n[units]\nforce = "kg"\n'
        '[time]\ncolumn = "clock"\nunit = "ms"\n'
    )
    rows = [f"{5 + 1e3 * t:.9g},x,{row[0] / 9.80665:.12g},{row[2] / 9.80665:.12g}" for t, row in zip(TIME, VALUES, strict=True)]
    log = fs.read_log(text(tmp_path / "log.txt", "clock,note,Kraft quer (N),load", rows=rows), card, sensors=["wrist", "other"])
    assert [c.name for c in log.channels] == ["fx", "fz"] and log.sensor == "wrist"
    np.testing.assert_allclose(log.values, VALUES[:, [0, 2]], atol=1e-9)
    np.testing.assert_allclose(log.time, TIME, atol=1e-9)
    counts = fs.read_log(text(tmp_path / "raw.csv", rows=lines(scale=1e6)), {
        "axes": {"fx": "2"}, "units": {"force": 1e-6}, "time": {"rate": 100.0}, "accept_large": True,
    })  # fmt: skip
    np.testing.assert_allclose(counts.values[:, 0], VALUES[:, 0], atol=1e-6)
    assert counts.rate == pytest.approx(100.0)


def test_markers_in_a_table(tmp_path: Path) -> None:
    rows = [",".join(f"{x:.9g}" for x in [t, *(1e3 * row[:3])]) for t, row in zip(TIME, 0.1 * VALUES, strict=True)]
    path = text(tmp_path / "log.csv", "time,Ball X,Ball Y,Ball Z", rows=rows)
    log = fs.read_log(path, {"markers": {"tip": "Ball"}, "units": {"length": "mm"}, "frame": {"translation": [1.0, 2.0, 3.0]}})
    np.testing.assert_allclose(log.values, 0.1 * VALUES[:, :3] + (1.0, 2.0, 3.0), atol=1e-9)
    assert [(c.name, c.group, c.unit) for c in log.channels][1] == ("tip.y", "tip", "m") and log.sensor is None
    text(path, "time_s,tip_x_m,tip_y_m,tip_z_m", rows=rows)
    check_names = fs.read_log(path, {"accept_large": True}, markers=["tip"], sensors=["wrist"])
    assert check_names.sensor is None and check_names.channels == log.channels


@pytest.mark.parametrize(
    ("content", "card", "words"),
    [
        ("", {}, "is empty"),
        ("time,Fx\n", {}, "has no line with two or more numbers"),
        ("\0\1\2" * 50, {}, "is no text"),
        ("time,Fx\n" + "0.1,1\n" * 3, {}, "has 3 samples; at least 10"),
        ("time,Fx\n" + "".join(f"{k},1\n" for k in range(20)) + "3,4,5\n21,2\n", {}, "line 22 has 3 cells, but the table has 2"),
        ("time,Fx\n" + "".join(f"{k},1\n" for k in range(20)) + "21,abc\n22,3\n", {}, "line 22: column 'Fx' holds 'abc'"),
        ("time,Fx\n" + "".join(f"{k // 2},1\n" for k in range(20)), {}, "repeat at 10 places, first from sample 1 to 2"),
        ("time,Fx\n" + "".join(f"{k - 4 * (k == 7)},1\n" for k in range(20)), {}, "run backwards at 1 places, first from"),
        ("time,Fx\n" + "".join(f"{k},1e5\n" for k in range(20)), {}, "reaches 1e+05 N in fx: is the unit right? Set units.force"),
        ("time,Tx\n" + "".join(f"{k},2e3\n" for k in range(20)), {}, "reaches 2e+03 N m in tx"),
        ("time,Fx\n" + "".join(f"{k},1\n" for k in range(20)), {"axes": {"fy": "Fy"}}, "has no column 'Fy' for fy; there are Fx"),
        ("time,Fx\n" + "".join(f"{k},1\n" for k in range(20)), {"frame": {"rotation": [0, 0, 1]}}, "only fx of the force"),
        ("time,Fx\n" + "".join(f"{k},\n" for k in range(20)), {}, "no line with two or more numbers"),
        ("time,a,Fx,b\n" + "".join(f"{k},1,,2\n" for k in range(20)), {}, "has no number for fx"),
        ("time,load\n" + "".join(f"{k},1\n" for k in range(20)), {}, "no column is recognised as a force or torque"),
        ("time,Fx,force_x\n" + "".join(f"{k},1,2\n" for k in range(20)), {}, "each of which may be fx"),
        ("n,Fx\n" + "".join(f"{k},1\n" for k in range(20)), {}, "the time column"),
        ("time (h),Fx\n" + "".join(f"{k},1\n" for k in range(20)), {"time": {"column": "clock"}}, "no time column 'clock'"),
        ("time,Fx (Pa)\n" + "".join(f"{k},1\n" for k in range(20)), {"axes": {"fx": "Fx"}}, "has no column 'Fx'"),
        ("time,Fx (mm)\n" + "".join(f"{k},1\n" for k in range(20)), {}, "has the unit 'mm', which is none of a force"),
    ],
)  # fmt: skip
def test_broken_tables_are_refused_with_words(tmp_path: Path, content: str, card: dict[str, Any], words: str) -> None:
    path = tmp_path / "log.csv"
    path.write_text(content)
    with pytest.raises(fs.InputError, match=re.escape(words)) as caught:
        fs.read_log(path, card, sensors=["wrist"])
    assert str(path) in str(caught.value)


def test_names_of_two_columns_are_said_and_refused_where_they_matter(tmp_path: Path) -> None:
    """Both lose their name, so an axis went missing without a word."""
    rows = [f"{0.01 * k:g},{k},{2 * k},{3 * k},7" for k in range(20)]
    with pytest.raises(
        fs.InputError, match=re.escape("has 2 columns 'Fx' (columns 2, 3), each of which may be fx; name one by its")
    ):
        fs.read_log(text(tmp_path / "log.csv", "time,Fx (N),Fx (mN),Fz,n", rows=rows))
    chosen = fs.read_log(tmp_path / "log.csv", {"axes": {"fx": "3", "fz": "Fz"}})
    assert chosen.values[2].tolist() == [4e-3, 6.0] and "2 columns have the name 'Fx'; they are called 2, 3" in chosen.warnings[0]
    with pytest.raises(fs.InputError, match=re.escape("2 columns 'Fx'")):
        fs.read_log(tmp_path / "log.csv", {"axes": {"fx": "Fx"}})
    other = fs.read_log(text(tmp_path / "log.csv", "time,Fx,note,Fz,note", rows=rows))
    assert [c.name for c in other.channels] == ["fx", "fz"] and "2 columns have the name 'note'" in other.warnings[0]
    with pytest.raises(fs.InputError, match=re.escape("2 columns 'time'")):
        fs.read_log(text(tmp_path / "log.csv", "time,Fx,time,Fz,note", rows=rows))
    with pytest.raises(fs.InputError, match=re.escape("2 columns 'tip_x'")):
        fs.read_log(text(tmp_path / "log.csv", "time,tip_x,tip_x,tip_y,tip_z", rows=rows), markers=["tip"])


def test_forces_beside_markers_are_said_to_be_unused(tmp_path: Path) -> None:
    """A log of both was compared by one of them alone, without a word."""
    rows = [f"{0.01 * k:g},{k},{2 * k},{3 * k},{4 * k}" for k in range(20)]
    names: dict[str, Any] = {"sensors": ["pull"], "markers": ["dot"]}
    log = fs.read_log(text(tmp_path / "log.csv", "time,Fx,dot_x,dot_y,dot_z", rows=rows), **names)
    assert log.sensor is None and log.warnings[0].startswith("columns Fx look like a force or torque and are not used beside")
    asked = fs.read_log(tmp_path / "log.csv", {"sensor": "pull"}, **names)
    assert [c.name for c in asked.channels] == ["fx"] and asked.warnings == ()
    log = fs.read_log(text(tmp_path / "log.csv", "time,pull_fx,dot_x,dot_y,dot_z", rows=rows), **names)
    assert log.sensor == "pull" and log.warnings[0].startswith("columns dot_x, dot_y, dot_z look like markers and are not used")
    card = {"markers": {"dot": ["dot_x", "dot_y", "dot_z"]}}
    assert fs.read_log(tmp_path / "log.csv", card, **names).warnings == ()


@pytest.mark.parametrize("value", [0.0, None])
def test_readings_that_freeze_or_drop_to_zero_are_said(value: float | None, tmp_path: Path) -> None:
    """All channels at 0, or at their last reading, for 0.2 s counted as measured without a word."""
    time = np.arange(600) / 100.0
    values = np.column_stack([(3.0 + k + np.sin(2.0 * time + k)) for k in range(6)])
    values += 1e-3 * np.random.default_rng(0).standard_normal(values.shape)
    head = "time,Fx,Fy,Fz,Tx,Ty,Tz"

    def read(name: str) -> tuple[str, ...]:
        rows = [",".join(f"{x:.9g}" for x in (t, *row)) for t, row in zip(time, values, strict=True)]
        return fs.read_log(text(tmp_path / name, head, rows=rows)).warnings

    assert read("well.csv") == ()
    values[200:220] = values[199] if value is None else value
    (said,) = read("out.csv")
    start = 1.99 if value is None else 2.0
    assert (
        said.startswith(f"fx, fy, fz, tx, ty, tz: not one digit changes from {start:g} to 2.19 s") and "empty these cells" in said
    )
    values[:] = np.round(values, 1)  # few digits repeat anywhere
    assert read("coarse.csv") == ()


def test_other_refusals(tmp_path: Path) -> None:
    good = text(tmp_path / "log.csv", "time,Fx,Fy,Fz,Tx,Ty,Tz")
    with pytest.raises(fs.InputError, match="nothing says which"):
        fs.read_log(good, sensors=["left", "right"])
    assert fs.read_log(good, {"sensor": "left"}, sensors=["left", "right"]).sensor == "left"
    with pytest.raises(fs.InputError, match=r"kind that is not read; allowed are text tables"):
        fs.read_log(text(tmp_path / "log.xlsx"))
    with pytest.raises(fs.InputError, match=r"card.toml is no log but a card, .* give it as --card .*card.toml"):
        fs.read_log(text(tmp_path / "card.toml"))
    with pytest.raises(fs.InputError, match="does not exist"):
        fs.read_log(tmp_path / "none.csv")
    for card, words in (
        ({"time": {"unit": "day"}}, "time.unit 'day' is unknown"),
        ({"axes": {"fx": "Fx"}, "markers": {"a": "A"}}, "keep one kind"),
        ({"tare": {"start": 2.0, "end": 1.0}}, "the end must lie behind the start"),
        ({"gravity": {"mas": 1.0}}, "gravity.mas: the key is unknown; did you mean 'mass'"),
        ({"axes": {"gx": "Fx"}}, "axes.gx"),
        (tmp_path / "no.toml", "cannot be read"),
        (text(tmp_path / "bad.toml", "a = ", rows=[]), "is not valid TOML"),
    ):
        with pytest.raises(fs.InputError, match=re.escape(words)):
            fs.read_card(card)


def test_a_table_may_have_one_line(tmp_path: Path) -> None:
    """A run of one step has such a table; its line was called cut off, since no line before it ends otherwise."""
    for name, ends in (("plain", ""), ("trailing", ",")):
        path = tmp_path / f"{name}.csv"
        path.write_text(f"time,Fx,Fy{ends}\n0,1,2{ends}\n")
        table = read_table(path)
        assert table.columns == ("time", "Fx", "Fy") and table.rows == [["0", "1", "2"]] and not table.warnings


def test_truncated_last_line_and_repair(tmp_path: Path) -> None:
    rows = lines()
    log = fs.read_log(text(tmp_path / "cut.csv", "time,Fx,Fy,Fz,Tx,Ty,Tz", rows=[*rows[:40], rows[40][:9]]))
    assert len(log.time) == 40 and "last line (42) is cut off" in log.warnings[0]
    mixed = [rows[3], *rows[:3], *rows[4:], rows[50].replace(rows[50].split(",")[1], "77")]
    log = fs.read_log(text(tmp_path / "mixed.csv", "time,Fx,Fy,Fz,Tx,Ty,Tz", rows=mixed), {"time": {"repair": True}})
    check(log)
    assert "time stamps were repaired: 2 ran backwards, 1 repeated" in log.warnings[0]


def test_a_rate_of_the_card_that_is_not_that_of_the_stamps_is_said(tmp_path: Path) -> None:
    """A log of 2 s was one of 20 s without a word; rounded stamps, gaps and counts of rows are no other rate."""
    k = np.arange(200)
    cases = [
        ("time", 0.01 * k, 10.0, True), ("time", 0.01 * k, 100.5, False), ("time_ms", np.round(0.5 * k), 2000.0, False),
        ("time", 0.01 * k + 5.0 * (k > 60), 100.0, False), ("t", 1.0 * k, 100.0, False), ("stamp_ms", 10.0 * k, 50.0, True),
    ]  # fmt: skip
    for name, stamps, rate, odd in cases:
        rows = [f"{stamp!r},{np.sin(0.01 * n):.6f}" for n, stamp in enumerate(stamps.tolist())]
        log = fs.read_log(text(tmp_path / "log.csv", f"{name},Fx", rows=rows), {"time": {"rate": rate}})
        said = f"time.rate = {rate:g} Hz of the card is taken, but the stamps beside it, column '{name.split('_')[0]}"
        assert [one.startswith(said) and "are 100 Hz" in one for one in log.warnings] == [True] * odd, (name, log.warnings)
        assert log.rate == pytest.approx(rate)


@pytest.mark.parametrize(("rate", "rounded"), [(2000.0, np.round), (1500.0, np.floor), (1200.0, np.round)])
def test_stamps_of_a_clock_that_is_too_coarse_are_refused_with_the_rate(rate: float, rounded: Any, tmp_path: Path) -> None:
    """The advice was to keep the first of equal stamps, which takes half of the rows away."""
    stamps = rounded(1e3 * np.arange(3000) / rate) + 100_000.0
    rows = [f"{stamp:.0f},{np.sin(0.01 * k):.6f}" for k, stamp in enumerate(stamps)]
    log = text(tmp_path / "log.csv", "time_ms,Fx", rows=rows)
    with pytest.raises(fs.InputError, match=r"even samples whose clock is rounded to 0\.001 s: set time\.rate") as told:
        fs.read_log(log)
    found = re.search(r"time\.rate = ([0-9.]+)", str(told.value))
    assert found is not None and float(found[1]) == pytest.approx(rate, rel=2e-4)
    read = fs.read_log(log, {"time": {"rate": float(found[1])}})
    assert len(read.time) == 3000 and read.rate == pytest.approx(rate, rel=2e-4)
    twice = [f"{2 * k - 2 * (k > 50)},{k}" for k in range(500)]
    for wrong in (rows[:1000] + rows[1600:], twice):  # a gap, a row twice: no even clock
        with pytest.raises(fs.InputError, match=r"time\.repair = true in the card to sort them"):
            fs.read_log(text(tmp_path / "log.csv", "time_ms,Fx", rows=wrong))
    with pytest.raises(fs.InputError, match=r"time has column 'time' and rate 2000; keep one"):
        fs.read_card({"time": {"column": "time", "rate": 2000.0}})


def test_small_gaps_stay_nan(tmp_path: Path) -> None:
    rows = lines()
    rows[5] = ",".join([*rows[5].split(",")[:-1], ""])
    log = fs.read_log(text(tmp_path / "log.csv", "time,Fx,Fy,Fz,Tx,Ty,Tz", rows=rows))
    assert np.isnan(log.values[5, 5]) and np.isfinite(log.values).sum() == 6 * COUNT - 1


# ------------------------------------------------------------------------------------------------------- C3D and ROS bags


def test_c3d_round_trip(tmp_path: Path) -> None:
    points = np.random.default_rng(4).normal(0.0, 100.0, (3, 2, COUNT))
    path = write_c3d(tmp_path / "log.c3d", points, ["Tip - 1", "Base"], "mm", hidden=(0, 7))
    log = fs.read_log(path, markers=["tip_1", "other"])  # labels are recognised by their letters
    assert [c.name for c in log.channels] == ["tip_1.x", "tip_1.y", "tip_1.z"] and log.rate == pytest.approx(RATE)
    seen = np.arange(COUNT) != 7
    np.testing.assert_allclose(log.values[seen], 1e-3 * points[:, 0, seen].T, atol=1e-7)  # the file holds float32
    assert np.isnan(log.values[7]).all()
    both = fs.read_log(path, {"markers": {"a": "Base", "b": "Tip - 1"}, "units": {"length": "cm"}})
    np.testing.assert_allclose(both.values[:, :3], 1e-2 * points[:, 1].T, atol=1e-6)
    for card, markers, words in (
        ({"markers": {"a": "Bse"}}, [], "no marker 'Bse' for a; did you mean 'Base'"),
        ({}, ["x"], "no marker of the run (x) is a label of"),
        ({"markers": {"a": ["X", "Y", "Z"]}}, [], "name one label"),
    ):
        with pytest.raises(fs.InputError, match=re.escape(words)):
            fs.read_log(path, card, markers=markers)
    (tmp_path / "cut.c3d").write_bytes(path.read_bytes()[:300])
    with pytest.raises(fs.InputError, match="cannot be read as C3D"):
        fs.read_log(tmp_path / "cut.c3d", markers=["tip_1"])


def test_mcap_round_trip(tmp_path: Path) -> None:
    path = write_mcap(tmp_path / "log.mcap")
    check(fs.read_log(path), atol=0.0)  # by the stamps of the header, not by those of the recorder
    two = write_mcap(tmp_path / "two.mcap", ("/left", "/right"))
    check(fs.read_log(two, {"topic": "/left"}))
    with pytest.raises(fs.InputError, match=re.escape("has 2 topics with geometry_msgs/WrenchStamped (/left, /right)")):
        fs.read_log(two)
    with pytest.raises(fs.InputError, match="no WrenchStamped on topic '/lef'; did you mean '/left'"):
        fs.read_log(two, {"topic": "/lef"})
    (tmp_path / "cut.mcap").write_bytes(path.read_bytes()[:2000])
    with pytest.raises(fs.InputError, match=r"cut\.mcap (has no summary|cannot be read)"):
        fs.read_log(tmp_path / "cut.mcap")


def test_wrenches_of_two_frames_are_no_log_of_one_sensor(tmp_path: Path) -> None:
    path = write_mcap(tmp_path / "log.mcap", frames=("left_ft", "right_ft"))
    with pytest.raises(
        fs.InputError, match=r"has wrenches in the frames 'left_ft', 'right_ft' on one topic; record those of one"
    ):
        fs.read_log(path)


def test_rosbag2_round_trip(tmp_path: Path) -> None:
    rosbag2 = pytest.importorskip("rosbags.rosbag2")
    from rosbags.typesys import Stores, get_typestore

    store = get_typestore(Stores.LATEST)
    types = store.types
    with rosbag2.Writer(tmp_path / "bag", version=9) as bag:
        connection = bag.add_connection("/ft", "geometry_msgs/msg/WrenchStamped", typestore=store)
        for t, row in zip(TIME, VALUES, strict=True):
            stamp = 1_700_000_000_000_000_000 + round(t * 1e9)
            header = types["std_msgs/msg/Header"](
                stamp=types["builtin_interfaces/msg/Time"](sec=stamp // 10**9, nanosec=stamp % 10**9), frame_id="tool0"
            )
            vector = types["geometry_msgs/msg/Vector3"]
            wrench = types["geometry_msgs/msg/Wrench"](force=vector(*row[:3]), torque=vector(*row[3:]))
            message = types["geometry_msgs/msg/WrenchStamped"](header=header, wrench=wrench)
            bag.write(connection, stamp, store.serialize_cdr(message, "geometry_msgs/msg/WrenchStamped"))
    check(fs.read_log(tmp_path / "bag"), atol=0.0)
    (database,) = (tmp_path / "bag").glob("*.db3")
    check(fs.read_log(database), atol=0.0)
    with pytest.raises(fs.InputError, match="kind that is not read"):
        (tmp_path / "bag" / "metadata.yaml").unlink()
        fs.read_log(tmp_path / "bag")


def test_write_csv_is_what_the_tests_take_it_for(tmp_path: Path) -> None:
    check(fs.read_log(write_csv(tmp_path / "log.csv", TIME, VALUES)), atol=0.0)
