"""Stage contact: problems as files in the layout of FCLib, read in every storage, written bit for bit, refused in a sentence."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Callable
from dataclasses import fields, is_dataclass, replace
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest
import scipy.sparse as sp
from branched import two_robots
from full_sets import CHECKERS, DATA, checker, full_set, needs_full_sets
from random_problems import random_global, random_local
from slow_twins import random_spd

from contact import (
    ContactError,
    ContactProblem,
    Group,
    LocalProblem,
    make_local_problem,
    make_problem,
    make_rows,
    make_solver,
    measure,
    measure_local,
    read_fclib,
    write_fclib,
)
from contact.local import eliminate_rows


def assert_same(a: Any, b: Any) -> None:
    """Every array bit for bit, sparse ones with their structure."""
    assert type(a) is type(b)
    for field in fields(a):
        name, value, other = field.name, getattr(a, field.name), getattr(b, field.name)
        if is_dataclass(value):
            assert_same(value, other)
        elif sp.issparse(value):
            assert type(value) is type(other) and value.shape == other.shape
            for part in ("indptr", "indices", "data"):
                assert np.array_equal(getattr(value, part), getattr(other, part)), f"{name}.{part}"
        else:
            assert np.array_equal(value, other) if isinstance(value, np.ndarray) else value == other, name


# ---------------------------------------------------------------------- there and back


@pytest.mark.parametrize("plane", [False, True])
@pytest.mark.parametrize("anisotropic", [False, True])
def test_a_global_problem_comes_back_bit_for_bit(tmp_path: Path, plane: bool, anisotropic: bool) -> None:
    problem = random_global(0, plane=plane, anisotropic=anisotropic)
    write_fclib(tmp_path / "p.hdf5", problem, title="Ein Würfel", description="step 3", spacedim=2 if plane else 3)
    found = read_fclib(tmp_path / "p.hdf5")
    assert found.spacedim == (2 if plane else 3)
    assert found.info == {"title": "Ein Würfel", "description": "step 3", "math_info": ""}
    if plane:  # explicit zeros of the second tangents are not kept
        problem.J.eliminate_zeros()
    assert_same(problem, found.problem)
    assert [path.name for path in tmp_path.iterdir()] == ["p.hdf5"]


def test_trees_come_back_beside_other_bodies(tmp_path: Path) -> None:
    problem = two_robots(0)
    write_fclib(tmp_path / "p.hdf5", problem)
    found = read_fclib(tmp_path / "p.hdf5").problem
    assert found.groups == problem.groups and found.groups[1].parents is not None and found.groups[2].parents is None
    write_fclib(tmp_path / "q.hdf5", replace(problem, groups=(Group("all", 0, 17, "generalized"),)))
    with h5py.File(tmp_path / "p.hdf5", "r") as one, h5py.File(tmp_path / "q.hdf5", "r") as other:
        assert one["femsim/groups/parents"][-4:].tolist() == [5, -2, -2, -2] and "parents" not in other["femsim/groups"]


@pytest.mark.parametrize("plane", [False, True])
def test_a_local_problem_comes_back_bit_for_bit(tmp_path: Path, plane: bool) -> None:
    problem = random_local(np.random.default_rng(1), 4, plane=plane, asymmetry=0.1)
    write_fclib(tmp_path / "p.hdf5", problem, spacedim=2 if plane else 3)
    found = read_fclib(tmp_path / "p.hdf5")
    assert_same(problem, found.problem)
    assert found.info["title"] == ""
    with h5py.File(tmp_path / "p.hdf5") as file:
        assert list(file) == ["fclib_local"] and file["fclib_local/W/m"][0] == (8 if plane else 12)


def test_without_contacts_or_dynamics(tmp_path: Path) -> None:
    for number, problem in enumerate(
        (
            make_problem(random_spd(np.random.default_rng(0), 6), np.ones(6), np.zeros((0, 6)), np.zeros(0), 0.3, dt=0.5),
            make_local_problem(np.zeros((0, 0)), np.zeros(0), 0.3),
        )
    ):
        write_fclib(tmp_path / f"{number}.hdf5", problem)
        assert_same(problem, read_fclib(tmp_path / f"{number}.hdf5").problem)


def with_rows(problem: ContactProblem) -> ContactProblem:
    """Add joints, one of which repeats another, a limit, a motor and a soft row, in mixed order."""
    G = np.random.default_rng(7).standard_normal((6, problem.n))
    G[3] = G[0]
    inf = np.inf
    low, high = [-inf, 0.0, -inf, -inf, -2.0, -inf], [inf, inf, inf, inf, 1.0, inf]
    offset = [0.1, 0.2, 0.3, 0.1, -0.4, 0.5]
    return replace(problem, rows=make_rows(sp.csr_array(G), offset, low, high, [0.0, 0.0, 0.0, 0.0, 0.0, 1e-3]))


@pytest.mark.parametrize("plane", [False, True])
def test_rows_come_back_bit_for_bit_and_others_see_the_equalities(tmp_path: Path, plane: bool) -> None:
    problem = with_rows(random_global(0, plane=plane))
    if plane:
        problem.J.eliminate_zeros()
    write_fclib(tmp_path / "p.hdf5", problem, spacedim=2 if plane else 3)
    assert_same(problem, read_fclib(tmp_path / "p.hdf5").problem)
    rows = problem.rows
    assert rows is not None
    with h5py.File(tmp_path / "p.hdf5", "a") as file:
        assert file["fclib_global/G/n"][0] == 3
        assert np.array_equal(file["fclib_global/vectors/b"][:], rows.offset[[0, 2, 3]])
        del file["femsim"]
    found = read_fclib(tmp_path / "p.hdf5").problem
    assert isinstance(found, ContactProblem)
    plain = make_rows(rows.G[[0, 2, 3]], rows.offset[[0, 2, 3]])
    assert_same(found.rows, plain)
    alone = replace(problem, rows=plain)
    write_fclib(tmp_path / "q.hdf5", alone, spacedim=2 if plane else 3)
    assert_same(alone, read_fclib(tmp_path / "q.hdf5").problem)


def local_of(problem: ContactProblem) -> LocalProblem:
    """Condense a problem whose rows are equalities, with the letters of FCLib."""
    rows = problem.rows
    assert rows is not None
    inverse, G, J = np.linalg.inv(problem.A.toarray()), rows.G.toarray(), problem.J.toarray()
    free = inverse @ problem.b
    q = (J @ free).reshape(-1, 3) + problem.phi
    return eliminate_rows(J @ inverse @ J.T, q, problem.friction, J @ inverse @ G.T, G @ inverse @ G.T, G @ free + rows.offset)


@pytest.mark.parametrize("plane", [False, True])
@pytest.mark.parametrize("solver", ["exact", "pgs", "apgd", "admm"])
def test_both_forms_of_equalities_give_the_same_velocities(tmp_path: Path, solver: str, plane: bool) -> None:
    problem = with_rows(random_global(3, plane=plane))
    assert problem.rows is not None
    problem = replace(problem, rows=make_rows(problem.rows.G[[0, 2, 3]], problem.rows.offset[[0, 2, 3]]))
    local = local_of(problem)
    write_fclib(tmp_path / "p.hdf5", local, spacedim=2 if plane else 3)
    found = read_fclib(tmp_path / "p.hdf5").problem
    assert_same(local, found)
    assert isinstance(found, LocalProblem) and found.rows is not None
    whole = make_solver(solver, tolerance=1e-10, max_iterations=20000).solve(problem)
    condensed = make_solver(solver, tolerance=1e-10, max_iterations=20000).solve_local(found)  # type: ignore[attr-defined]
    assert whole.converged and condensed.converged
    u = problem.moved(whole.v).reshape(-1, 3) + problem.phi
    assert found.contact_velocity(condensed.lam) == pytest.approx(u, abs=1e-8)
    push = problem.rows.G.T @ whole.row_forces  # type: ignore[union-attr]
    assert problem.rows.G.T @ found.rows.forces(condensed.lam) == pytest.approx(push, abs=1e-6)  # type: ignore[union-attr]


@pytest.mark.parametrize(
    "form, change, said",
    [
        ("global", lambda file: put_over(file, "fclib_global/vectors/b", np.zeros(2)), "fclib_global/G: has shape"),
        ("global", lambda file: put_over(file, "femsim/rows/low", np.full(3, 9.0)), "femsim/rows: row 1 has the bounds"),
        ("global", lambda file: put_over(file, "femsim/rows/place", np.zeros(6, dtype=int)), "must hold each number from 0 to 5"),
        ("global", lambda file: file.pop("femsim/rows/softness"), "femsim/rows/softness: is missing"),
        ("local", lambda file: put_over(file, "fclib_local/vectors/s", np.zeros(2)), "fclib_local/V: has shape"),
        ("local", lambda file: file.pop("fclib_local/vectors/s"), "fclib_local/vectors/s: is missing; equalities need V, R, s"),
    ],
)
def test_wrong_rows_of_a_file_are_a_sentence(tmp_path: Path, form: str, change: Callable[[Any], None], said: str) -> None:
    problem = with_rows(random_global(3))
    assert problem.rows is not None
    equalities = replace(problem, rows=make_rows(problem.rows.G[[0, 2, 3]], problem.rows.offset[[0, 2, 3]]))
    write_fclib(tmp_path / "p.hdf5", problem if form == "global" else local_of(equalities))
    with h5py.File(tmp_path / "p.hdf5", "a") as file:
        change(file)
    with pytest.raises(ContactError, match=said):
        read_fclib(tmp_path / "p.hdf5")


def put_over(file: Any, place: str, values: np.ndarray) -> None:
    """Replace a dataset."""
    del file[place]
    file[place] = values


def test_forces_are_flattened_in_the_dimension_of_the_file(tmp_path: Path) -> None:
    values = np.arange(12.0).reshape(4, 3)
    for plane, expected in ((False, values.ravel()), (True, [0, 1, 3, 4, 6, 7, 9, 10])):
        write_fclib(tmp_path / "p.hdf5", random_global(0, plane=plane), spacedim=2 if plane else 3)
        assert np.array_equal(read_fclib(tmp_path / "p.hdf5").flatten(values), expected)


def test_files_of_others_have_one_group_and_no_time_step(tmp_path: Path) -> None:
    for n, kind in ((6, "nodes"), (7, "generalized")):
        problem = make_problem(np.eye(n), np.ones(n), np.zeros((3, n)), np.zeros(1), 0.3, dt=0.5,
                               groups=[Group("a", 0, n, "generalized")])  # fmt: skip
        write_fclib(tmp_path / "p.hdf5", problem)
        with h5py.File(tmp_path / "p.hdf5", "a") as file:
            del file["femsim"]
            del file["fclib_global/info"]
        found = read_fclib(tmp_path / "p.hdf5")
        assert isinstance(found.problem, ContactProblem) and found.info == {}
        assert found.problem.groups == (Group("all", 0, n, kind),) and found.problem.dt == 1.0


@pytest.mark.parametrize("plane", [False, True])
@pytest.mark.parametrize("judge", CHECKERS)
def test_the_independent_checker_reads_our_files(tmp_path: Path, judge: str, plane: bool) -> None:
    check_fc, rng = checker(judge), np.random.default_rng(4)
    problem = random_global(2, plane=plane)
    condensed = random_local(rng, 4, plane=plane, asymmetry=0.1)
    lam, v = rng.standard_normal((4, 3)), rng.standard_normal(problem.n)
    lam[:, 2] *= not plane
    dim = 2 if plane else 3
    for case in (problem, condensed):
        write_fclib(tmp_path / "p.hdf5", case, spacedim=dim)
        is_local = isinstance(case, LocalProblem)
        ours = measure_local(case, lam) if is_local else measure(case, v, lam)
        theirs = check_fc.check(check_fc.read_problem(tmp_path / "p.hdf5"), lam[:, :dim].ravel(), None if is_local else v)
        assert ours.contact_residual == pytest.approx(theirs["natmap_si"], rel=1e-12)
        assert ours.as_dict().get("dynamics_residual_plain", 0.0) == pytest.approx(theirs["dyn"], rel=1e-12)


@pytest.mark.parametrize("which", ["ours", pytest.param("full", marks=needs_full_sets)])
@pytest.mark.parametrize("judge", CHECKERS)
def test_every_file_is_read_as_the_checker_reads_it(tmp_path: Path, judge: str, which: str) -> None:
    """All but the one with two friction coefficients, of which the checker knows the first only, and the one with joints."""
    check_fc, rng = checker(judge), np.random.default_rng(5)
    folder = full_set("fclib") if which == "full" else DATA / "problems"
    files = sorted(path for path in folder.glob("*.hdf5") if path.stem not in ("anisotropic_box", "arm"))
    assert len(files) >= 10
    for path in files:
        found = read_fclib(path)
        problem, nc = found.problem, found.problem.n_contacts
        lam = rng.standard_normal((nc, 3))
        lam[:, found.spacedim :] = 0.0
        if isinstance(problem, LocalProblem):
            v, ours = None, measure_local(problem, lam)
        else:
            v = rng.standard_normal(problem.n)
            ours = measure(problem, v, lam)
        theirs = check_fc.check(check_fc.read_problem(path), found.flatten(lam), v)
        assert ours.contact_residual == pytest.approx(theirs["natmap_si"], rel=1e-12), path.name
        assert ours.penetration_velocity == pytest.approx(theirs["pen_vel"], rel=1e-12), path.name
        assert ours.as_dict().get("dynamics_residual_plain", 0.0) == pytest.approx(theirs["dyn"], rel=1e-12), path.name
        assert found.info["title"]
        write_fclib(tmp_path / "copy.hdf5", problem, spacedim=found.spacedim)
        assert_same(problem, read_fclib(tmp_path / "copy.hdf5").problem)


# ---------------------------------------------------------------------- storages


def store(group: Any, matrix: sp.csc_array, storage: str, rng: np.random.Generator) -> None:
    """Write a matrix in one of the storages, with room behind its entries."""
    coo = matrix.tocoo()
    order = rng.permutation(coo.nnz)
    i, j, x = coo.row[order], coo.col[order], coo.data[order]
    room = np.full(3, 10**6)
    if storage == "columns":
        nz, p, i, x = -1, matrix.indptr, matrix.indices, matrix.data
    elif storage == "rows":
        csr = matrix.tocsr()
        nz, p, i, x = -2, csr.indptr, csr.indices, csr.data
    elif storage == "triplets of Siconos":
        nz, p = len(x), np.append(j, room)
    elif storage == "triplets of the header":
        nz, p, i = len(x), np.append(i, room), j
    else:  # every value as the sum of two
        nz, p, i, x = 2 * len(x), np.tile(j, 2), np.tile(i, 2), np.tile(0.5 * x, 2)
    for name, values in (("p", p), ("i", np.append(i, room)), ("x", np.append(x, np.full(3, np.nan)))):
        group[name] = values
    for name, value in (("m", matrix.shape[0]), ("n", matrix.shape[1]), ("nz", nz), ("nzmax", len(x) + 3)):
        group[name] = np.array([value], dtype=np.int32)


@pytest.mark.parametrize("storage", ["columns", "rows", "triplets of Siconos", "triplets of the header", "doubled triplets"])
@pytest.mark.parametrize("plane", [False, True])
def test_all_storages_are_read(tmp_path: Path, storage: str, plane: bool) -> None:
    rng, problem = np.random.default_rng(7), random_global(3, plane=plane)
    dim = 2 if plane else 3
    own = np.flatnonzero(np.arange(12) % 3 < dim)
    with h5py.File(tmp_path / "p.hdf5", "w") as file:
        group = file.create_group("fclib_global")
        store(group.create_group("M"), sp.csc_array(problem.A), storage, rng)
        store(group.create_group("H"), sp.csc_array(problem.J.T[:, own]), storage, rng)
        for name, values in (("f", problem.b), ("w", problem.phi[:, :dim].ravel()), ("mu", problem.friction)):
            group[f"vectors/{name}"] = values
        group["spacedim"] = dim  # a scalar, where FCLib has an array of one
    found = read_fclib(tmp_path / "p.hdf5").problem
    assert isinstance(found, ContactProblem)
    for name in ("A", "J"):
        assert np.array_equal(getattr(found, name).toarray(), getattr(problem, name).toarray()), name
    for name in ("b", "phi", "friction"):
        assert np.array_equal(getattr(found, name), getattr(problem, name)), name


@pytest.mark.parametrize("storage", ["columns", "rows", "triplets of Siconos"])
def test_a_nonsymmetric_operator_is_not_turned_over(tmp_path: Path, storage: str) -> None:
    problem = random_local(np.random.default_rng(8), 3, asymmetry=1.0)
    with h5py.File(tmp_path / "p.hdf5", "w") as file:
        group = file.create_group("fclib_local")
        store(group.create_group("W"), sp.csc_array(problem.W), storage, np.random.default_rng(9))
        group["vectors/q"], group["vectors/mu"], group["spacedim"] = problem.q.ravel(), problem.friction, [3]
    assert_same(problem, read_fclib(tmp_path / "p.hdf5").problem)


# ---------------------------------------------------------------------- refused


@pytest.fixture
def spoil(tmp_path: Path) -> Callable[..., str]:
    """Write a good file, change it, read it: the sentence that it is refused with."""

    def refused(form: str, change: Callable[[Any], None]) -> str:
        path = tmp_path / f"{form}.hdf5"
        write_fclib(path, random_global(1) if form == "global" else random_local(np.random.default_rng(2), 4))
        with h5py.File(path, "a") as file:
            change(file)
        with pytest.raises(ContactError) as caught:
            read_fclib(path)
        assert str(caught.value).startswith(str(path))
        return str(caught.value)

    return refused


def put(name: str, value: Any) -> Callable[[Any], None]:
    def change(file: Any) -> None:
        if name in file:
            del file[name]
        if value is not None:
            file[name] = value

    return change


def item(name: str, place: Any, value: Any) -> Callable[[Any], None]:
    def change(file: Any) -> None:
        file[name][place] = value

    return change


def triangle(file: Any) -> None:
    del file["fclib_global/M"]
    matrix = sp.csc_array(sp.triu(random_spd(np.random.default_rng(0), 21)))
    store(file.create_group("fclib_global/M"), matrix, "columns", np.random.default_rng(0))


@pytest.mark.parametrize(
    ("form", "change", "words"),
    [
        ("global", put("fclib_global", None), ("no group fclib_local or fclib_global", "it has femsim")),
        ("global", put("fclib_global/M", None), ("fclib_global/M", "missing")),
        ("global", put("fclib_global/M/x", None), ("fclib_global/M/x", "missing")),
        ("global", put("fclib_global/vectors/w", None), ("fclib_global/vectors/w", "missing")),
        ("global", put("fclib_global/spacedim", None), ("fclib_global/spacedim", "missing")),
        ("local", put("fclib_local/vectors", None), ("fclib_local/vectors/mu", "missing")),
        ("local", put("fclib_local/W", None), ("fclib_local/W", "missing")),
        ("local", put("fclib_local/spacedim", [5]), ("spacedim", "is 5", "2 and 3")),
        ("local", put("fclib_local/spacedim", [3, 3]), ("spacedim", "2 entries")),
        ("local", put("fclib_local/spacedim", [2.5]), ("spacedim", "float64", "whole numbers")),
        ("local", put("fclib_local/spacedim", b"three"), ("spacedim", "whole numbers")),
        ("local", put("fclib_local/spacedim", [2]), ("fclib_local/W", "(12, 12)", "4 contacts", "2D", "(8, 8)")),
        ("local", put("fclib_local/vectors/q", np.zeros(11)), ("vectors/q", "11 entries", "12")),
        ("global", put("fclib_global/vectors/f", np.zeros(3)), ("vectors/f", "3 entries", "21")),
        ("global", put("fclib_global/vectors/mu", np.zeros(5)), ("fclib_global/H", "5 contacts", "(21, 15)")),
        ("global", put("fclib_global/H/n", [9]), ("fclib_global/H",)),
        ("global", put("fclib_global/M/m", [20]), ("fclib_global/M", "index outside")),
        ("global", put("fclib_global/M/m", [30]), ("fclib_global/M", "square")),
        ("global", put("fclib_global/M/m", [-1]), ("fclib_global/M", "m = -1")),
        ("global", put("fclib_global/M/nz", [-3]), ("fclib_global/M", "nz = -3")),
        ("global", put("fclib_global/M/nz", [10**6]), ("fclib_global/M", "nz asks for 1000000")),
        ("global", put("fclib_global/M/p", np.arange(5)), ("fclib_global/M/p", "22 values")),
        ("global", item("fclib_global/M/p", 3, 10**6), ("fclib_global/M/p", "rise")),
        ("global", item("fclib_global/M/p", 0, 1), ("fclib_global/M/p", "rise from 0")),
        ("global", item("fclib_global/M/p", -1, 10**6), ("fclib_global/M/p", "number of entries")),
        ("global", item("fclib_global/M/i", 3, 99), ("fclib_global/M", "index outside its 21 rows")),
        ("global", item("fclib_global/H/i", 3, -1), ("fclib_global/H", "index outside")),
        ("global", item("fclib_global/M/x", 3, np.nan), ("fclib_global/M/x", "nan at entry 3")),
        ("global", item("fclib_global/H/x", 2, np.inf), ("fclib_global/H/x", "inf at entry 2")),
        ("global", item("fclib_global/vectors/f", 2, np.nan), ("vectors/f", "nan at entry 2")),
        ("local", item("fclib_local/vectors/q", 2, np.inf), ("vectors/q", "inf at entry 2")),
        ("local", item("fclib_local/vectors/mu", 2, -0.5), ("vectors/mu", "-0.5 for contact 2", ">= 0")),
        ("local", item("fclib_local/W/x", slice(None), -1.0), ("fclib_local", "trace -3")),
        ("global", item("fclib_global/M/x", 3, 1e3), ("fclib_global", "not symmetric", "A is M")),
        ("global", triangle, ("fclib_global/M", "upper triangle only", "complete")),
        ("global", item("fclib_global/M/x", 0, -1.0), ("fclib_global", "positive definite", "A is M")),
        ("global", lambda file: file.create_group("fclib_global/G"), ("fclib_global/vectors/b", "is missing; equalities need")),
        ("local", lambda file: file.create_group("fclib_local/V"), ("fclib_local/R", "is missing; equalities need V, R, s")),
        ("local", lambda file: file.create_group("fclib_local/R"), ("fclib_local/V", "is missing; equalities need V, R, s")),
        ("global", put("femsim/dt", [-1.0]), ("fclib_global", "dt is -1")),
        ("global", put("femsim/dt", [0.1, 0.2]), ("femsim/dt", "2 entries")),
        ("global", put("femsim/groups", None), ("femsim/groups/name", "missing")),
        ("global", item("femsim/groups/kind", 0, "joints"), ("femsim/groups/kind", "'joints'", "'nodes'")),
        ("global", item("femsim/groups/stop", 0, 14), ("group", "14")),
        ("global", put("femsim/groups/start", np.array([0])), ("femsim/groups", "different lengths")),
        ("global", put("femsim/groups/parents", np.array([0])), ("femsim/groups/parents", "1 entries")),
        ("global", put("femsim/groups/parents", np.arange(21)), ("group", "parents", "earlier row")),
        ("global", put("femsim/friction_second", np.ones(3)), ("femsim/friction_second", "3 entries", "4")),
        ("global", put("femsim/softness", np.ones(3)), ("femsim/softness", "3 entries", "12")),
        ("global", put("femsim/softness", -np.ones(12)), ("fclib_global", "softness of contact 0")),
    ],
)  # fmt: skip
def test_a_wrong_file_is_a_sentence(
    spoil: Callable[..., str], form: str, change: Callable[[Any], None], words: tuple[str, ...]
) -> None:
    message = spoil(form, change)
    for word in words:
        assert word in message, message


def test_what_is_no_problem_file_is_said(tmp_path: Path) -> None:
    (tmp_path / "text.hdf5").write_text("u = W r + q")
    write_fclib(tmp_path / "cut.hdf5", random_global(0))
    (tmp_path / "cut.hdf5").write_bytes((tmp_path / "cut.hdf5").read_bytes()[:2000])
    with h5py.File(tmp_path / "empty.hdf5", "w"):
        pass
    for name, words in (
        ("text.hdf5", "is no HDF5 file"),
        ("cut.hdf5", "cannot be read as an HDF5 file"),
        ("empty.hdf5", r"no group fclib_local or fclib_global \(it has nothing\)"),
        ("absent.hdf5", "does not exist"),
        (".", "is a folder"),
    ):
        with pytest.raises(ContactError, match=words):
            read_fclib(tmp_path / name)


@pytest.mark.parametrize("error", [KeyError, OSError, RuntimeError, TypeError, ValueError])  # all seen with random bytes changed
def test_damage_that_the_library_below_stumbles_over_is_a_sentence(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, error: type[Exception]
) -> None:
    write_fclib(tmp_path / "p.hdf5", random_global(0))
    monkeypatch.setattr("contact.fclib._Reader.texts", lambda *_: (_ for _ in ()).throw(error("unknown encoding")))
    with pytest.raises(ContactError, match=r"p\.hdf5 cannot be read as an HDF5 file \('?unknown encoding"):
        read_fclib(tmp_path / "p.hdf5")


def test_a_field_of_the_wrong_sort_is_missing(tmp_path: Path) -> None:
    write_fclib(tmp_path / "p.hdf5", random_global(0))
    for value in (np.dtype("f8"), None):  # a type, a group
        with h5py.File(tmp_path / "p.hdf5", "a") as file:
            del file["fclib_global/vectors/f"]
            if value is None:
                file.create_group("fclib_global/vectors/f")
            else:
                file["fclib_global/vectors/f"] = value
        with pytest.raises(ContactError, match=r"vectors/f: is missing"):
            read_fclib(tmp_path / "p.hdf5")


def test_an_old_file_survives_a_failure(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "p.hdf5"
    write_fclib(path, random_global(0))
    before = path.read_bytes()
    monkeypatch.setattr(Path, "write_bytes", lambda *_: (_ for _ in ()).throw(OSError(28, "No space left on device")))
    with pytest.raises(ContactError, match=r"p\.hdf5 cannot be written \(No space left on device\)"):
        write_fclib(path, random_global(1))
    assert path.read_bytes() == before and [p.name for p in tmp_path.iterdir()] == ["p.hdf5"]


def test_what_cannot_be_written_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for place in (tmp_path / "absent" / "p.hdf5", Path("/dev/null/p.hdf5"), tmp_path):
        with pytest.raises(ContactError, match="cannot be written"):
            write_fclib(place, random_global(0))
    path = tmp_path / "p.hdf5"
    with pytest.raises(ContactError, match="spacedim is 4"):
        write_fclib(path, random_global(0), spacedim=4)
    for problem in (random_global(0), random_local(np.random.default_rng(0), 2)):
        with pytest.raises(ContactError, match="second tangents that are not zero"):
            write_fclib(path, problem, spacedim=2)
    flat = random_local(np.random.default_rng(0), 2, plane=True)
    flat.q[1, 2] = 1.0
    with pytest.raises(ContactError, match="q has second tangents"):
        write_fclib(path, flat, spacedim=2)
    monkeypatch.setitem(sys.modules, "h5py", None)
    for call in (lambda: write_fclib(path, flat), lambda: read_fclib(path)):
        with pytest.raises(ContactError, match=r"h5py.*pip install \"femsim\[hdf\]\""):
            call()
    assert not path.exists() and not any(tmp_path.glob(".*"))
    shutil.rmtree(tmp_path)
