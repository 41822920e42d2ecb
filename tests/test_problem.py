"""Stage contact: the door of the contact problem, where everything is validated once."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp

from contact import (
    ContactError,
    ContactProblem,
    Group,
    condense,
    make_local_problem,
    make_problem,
    make_rows,
    make_solver,
    measure,
    measure_local,
    to_global,
)
from contact.problem import from_isotropic, isotropic, to_isotropic


def arrays(**changes: Any) -> dict[str, Any]:
    """Two nodes, two contacts: a good problem, with some arguments replaced."""
    good: dict[str, Any] = {
        "A": 2.0 * np.eye(6),
        "b": np.arange(6.0),
        "J": np.eye(6),
        "phi": np.array([0.1, 0.2]),
        "friction": np.array([0.3, 0.4]),
        "dt": 0.01,
    }
    return good | changes


def build(**changes: Any) -> ContactProblem:
    return make_problem(**arrays(**changes))


def entry(array: np.ndarray, place: Any, value: float) -> np.ndarray:
    out = np.array(array, dtype=np.float64)
    out[place] = value
    return out


def test_a_good_problem_is_taken_over_unchanged() -> None:
    problem = build()
    assert (problem.n, problem.n_contacts, problem.dt) == (6, 2, 0.01)
    assert isinstance(problem.A, sp.csc_matrix) and isinstance(problem.J, sp.csr_matrix)
    assert np.array_equal(problem.A.toarray(), 2.0 * np.eye(6)) and np.array_equal(problem.J.toarray(), np.eye(6))
    assert np.array_equal(problem.b, np.arange(6.0)) and np.array_equal(problem.friction, [0.3, 0.4])
    assert np.array_equal(problem.phi, [[0.1, 0, 0], [0.2, 0, 0]])  # a vector is the normal offset
    assert problem.groups == (Group("all", 0, 6, "nodes"),)


def test_one_coefficient_serves_all_contacts_and_full_offsets_are_kept() -> None:
    phi = np.arange(6.0).reshape(2, 3)
    problem = build(friction=0.7, phi=phi)
    assert np.array_equal(problem.friction, [0.7, 0.7]) and problem.friction.flags.c_contiguous
    assert np.array_equal(problem.phi, phi)


@pytest.mark.parametrize("change", ["none", "unsorted", "missing"])
def test_the_diagonal_is_that_of_the_dense_matrix(change: str) -> None:
    """Also where rows of a column stand in any order, and where an entry is missing, as in no problem that was validated."""
    rng = np.random.default_rng(3)
    dense = np.where(rng.random((30, 30)) < 0.2, rng.standard_normal((30, 30)), 0.0) + np.diag(rng.uniform(1.0, 2.0, 30))
    dense[4, 4] = dense[4, 4] if change != "missing" else 0.0
    A = sp.csc_matrix(dense)
    if change == "unsorted":
        for first, last in itertools.pairwise(A.indptr):
            order = first + rng.permutation(last - first)
            A.indices[first:last], A.data[first:last] = A.indices[order], A.data[order]
        A.has_sorted_indices = False
    problem = ContactProblem(
        A, np.zeros(30), sp.csr_matrix((0, 30)), np.zeros((0, 3)), np.zeros(0), 0.01, (Group("a", 0, 30, "nodes"),)
    )
    assert np.array_equal(problem.diagonal, np.diag(dense))


def test_two_coefficients_a_contact() -> None:
    """Kept as they are, or as one column where the two are equal; the isotropic problem scales tangents by N = mu / mean."""
    mu = np.array([[0.8, 0.2], [0.0, 0.0]])
    problem = build(friction=mu, phi=np.arange(6.0).reshape(2, 3), J=np.arange(1.0, 37.0).reshape(6, 6))
    assert np.array_equal(problem.friction, mu) and np.array_equal(problem.coefficients, mu) and not problem.is_isotropic
    np.testing.assert_allclose(problem.tangent_stretch, [[2.0, 0.5], [1.0, 1.0]], rtol=1e-15)
    same = isotropic(problem)
    np.testing.assert_allclose(same.friction, [0.4, 0.0], rtol=1e-15)
    stretch = np.array([1.0, 2.0, 0.5, 1.0, 1.0, 1.0])
    np.testing.assert_allclose(same.J.toarray(), stretch[:, None] * problem.J.toarray(), rtol=1e-15)
    np.testing.assert_allclose(same.phi.ravel(), stretch * problem.phi.ravel(), rtol=1e-15)
    assert problem.J.toarray()[1, 0] == 7.0 and same.A is problem.A and same.groups == problem.groups
    lam = np.arange(6.0).reshape(2, 3)
    np.testing.assert_allclose(from_isotropic(problem, lam).ravel(), stretch * lam.ravel(), rtol=1e-15)
    np.testing.assert_allclose(to_isotropic(problem, from_isotropic(problem, lam)), lam, rtol=1e-15)
    equal = build(friction=np.array([[0.3, 0.3], [0.4, 0.4]]))
    assert np.array_equal(equal.friction, [0.3, 0.4]) and equal.is_isotropic and isotropic(equal) is equal
    assert np.array_equal(equal.coefficients, [[0.3, 0.3], [0.4, 0.4]]) and from_isotropic(equal, lam) is lam


def test_sparse_input_is_brought_into_order() -> None:
    """Duplicates are summed and indices sorted: the kernels walk the rows of J in order of columns."""
    rows, columns = np.array([0, 0, 1, 2, 0]), np.array([2, 0, 1, 2, 2])
    J = sp.coo_array((np.array([1.0, 2.0, 3.0, 4.0, 5.0]), (rows, columns)), shape=(3, 3))
    A = sp.csc_matrix((np.array([1.0, 4.0, 1.0, 4.0, 2.0]), np.array([1, 0, 0, 1, 2]), np.array([0, 2, 4, 5])))
    assert not A.has_sorted_indices
    problem = make_problem(A, np.zeros(3), J, np.zeros(1), 0.1, dt=1.0)
    assert np.array_equal(problem.J.toarray(), [[2, 0, 6], [0, 3, 0], [0, 0, 4]])
    assert problem.J.nnz == 4 and problem.J.has_sorted_indices
    assert problem.A.has_sorted_indices and np.array_equal(problem.A.toarray(), [[4, 1, 0], [1, 4, 0], [0, 0, 2]])


@pytest.mark.parametrize("given", [0.3, np.array([0.3])])
def test_kernels_meet_one_kind_of_array_however_numbers_are_given(given: Any) -> None:
    """An array that cannot be written is another kind, for which they are compiled again."""
    if isinstance(given, np.ndarray):
        given.flags.writeable = False
    rows = make_rows(np.eye(6)[:1], offset=given, low=given, high=given, softness=given)
    problem = build(J=np.eye(6)[:3], phi=np.zeros(1), friction=given, rows=rows, softness=given)
    assert problem.softness is not None and problem.rows is not None
    made = [problem.friction, problem.softness, make_local_problem(np.eye(3), np.zeros(3), given).friction]
    made += [problem.rows.offset, problem.rows.low, problem.rows.high, problem.rows.softness]
    assert all(array.flags.writeable and array.flags.c_contiguous for array in made)


def test_integers_become_floats() -> None:
    problem = build(A=2 * np.eye(6, dtype=int), b=np.arange(6), J=np.eye(6, dtype=int), phi=np.array([1, 2]), friction=1)
    for array in (problem.A.data, problem.b, problem.J.data, problem.phi, problem.friction):
        assert array.dtype == np.float64


def test_no_contacts_and_no_rows_are_problems_too() -> None:
    assert build(J=np.zeros((0, 6)), phi=np.zeros(0), friction=0.3).n_contacts == 0
    empty = build(A=np.zeros((0, 0)), b=np.zeros(0), J=np.zeros((0, 0)), phi=np.zeros(0), friction=0.3)
    assert (empty.n, empty.n_contacts) == (0, 0)


def test_groups_are_kept() -> None:
    groups = [Group("ball", 0, 3, "nodes"), Group("slider", 3, 4, "generalized"), Group("pair", 4, 6, "generalized")]
    assert build(groups=groups).groups == tuple(groups)


def test_rounding_is_no_asymmetry() -> None:
    assert build(A=entry(2.0 * np.eye(6), (0, 1), 1e-10)).n == 6


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        # sizes: the field and its shape
        ({"A": np.eye(5)}, r"A has shape \(5, 5\) and b has shape \(6,\)"),
        ({"A": np.ones((6, 5))}, r"A has shape \(6, 5\)"),
        ({"b": np.zeros((6, 1))}, r"b has shape \(6, 1\).*b \(n,\)"),
        ({"J": np.eye(5, 6)}, r"J has shape \(5, 6\).*three rows a contact and 6 columns"),
        ({"J": np.ones((6, 5))}, r"J has shape \(6, 5\)"),
        ({"phi": np.zeros(3)}, r"phi has shape \(3,\).*\(2,\) or \(2, 3\) for 2 contacts"),
        ({"phi": np.zeros((3, 2))}, r"phi has shape \(3, 2\)"),
        # values: the field, the value and its place
        ({"A": entry(2.0 * np.eye(6), (2, 2), np.nan)}, "A holds nan at entry 2"),
        ({"b": entry(np.zeros(6), 4, np.inf)}, "b holds inf at entry 4"),
        ({"J": entry(np.eye(6), (1, 1), -np.inf)}, "J holds -inf at entry 1"),
        ({"phi": entry(np.zeros((2, 3)), (1, 0), np.nan)}, "phi holds nan at entry 3"),
        ({"friction": np.array([0.1, np.nan])}, "friction holds nan at entry 1"),
        ({"friction": np.array([0.1, -0.25])}, r"friction of contact 1 is -0\.25; allowed are values >= 0"),
        ({"friction": np.array([0.1, 0.2, 0.3])}, r"friction has shape \(3,\).*\(2,\) or \(2, 2\) for 2 contacts"),
        ({"friction": np.array([[0.1, 0.2], [0.3, -0.4]])}, r"friction of contact 1 is \[ 0\.3 -0\.4\]"),
        (
            {"friction": np.array([[0.1, 0.2], [0.0, 0.4]])},
            r"friction of contact 1 is \[0\.\s+0\.4\]; two coefficients must both",
        ),
        ({"dt": 0.0}, r"dt is 0\.0 s; it must be a positive"),
        ({"dt": -0.5}, r"dt is -0\.5 s"),
        ({"dt": np.nan}, "dt is nan s"),
        ({"dt": np.inf}, "dt is inf s"),
        # A: symmetric with a positive diagonal
        ({"A": entry(2.0 * np.eye(6), (0, 1), 0.5)}, r"A is not symmetric.*0\.5 beside a largest entry of 2"),
        ({"A": entry(2.0 * np.eye(6), (0, 1), 1e-8)}, r"A is not symmetric.*1e-08"),
        ({"A": entry(2.0 * np.eye(6), (3, 3), -1.0)}, r"A\[3, 3\] is -1; A must be positive definite"),
        ({"A": entry(2.0 * np.eye(6), (5, 5), 0.0)}, r"A\[5, 5\] is 0"),
    ],
)
def test_each_refusal_names_the_field_and_the_value(changes: dict, says: str) -> None:
    with pytest.raises(ContactError, match=says):
        build(**changes)


@pytest.mark.parametrize(
    ("groups", "says"),
    [
        ([("one", 0, 3, "nodes")], "cover 3 of 6 rows"),
        ([], "cover 0 of 6 rows"),
        ([("one", 0, 9, "nodes")], "cover 9 of 6 rows"),
        ([("one", 0, 3, "nodes"), ("two", 4, 6, "generalized")], "'two' covers rows 4 to 6.*next free row is 3"),
        ([("one", 0, 3, "nodes"), ("two", 2, 6, "generalized")], "'two' covers rows 2 to 6.*next free row is 3"),
        ([("one", 3, 6, "nodes"), ("two", 0, 3, "nodes")], "'one' covers rows 3 to 6.*next free row is 0"),
        ([("one", 0, -1, "generalized"), ("two", -1, 6, "generalized")], "'one' covers rows 0 to -1"),
        ([("one", 0, 4, "nodes"), ("two", 4, 6, "generalized")], "'one' has 4 rows.*generalized"),
        ([("one", 0, 6, "generalized", (-1, 0, 1, 1, 0))], "'one' of 6 rows .*the parents .*earlier row of the group, or -1"),
        ([("one", 0, 6, "generalized", (-1, 0, 1, 1, 0, 5))], "'one' of 6 rows of kind 'generalized' has the parents"),
        ([("one", 0, 6, "generalized", (-2, 0, 1, 1, 0, 0))], "'one' of 6 rows of kind 'generalized' has the parents"),
        ([("one", 0, 6, "generalized", [-1, 0, 1, 1, 0, 0])], "'one' of 6 rows .*the parents .*a tuple"),
        ([("one", 0, 6, "nodes", (-1, 0, 1, 1, 0, 0))], "'one' of 6 rows of kind 'nodes' has the parents"),
    ],
)
def test_groups_must_cover_the_rows_once(groups: list, says: str) -> None:
    with pytest.raises(ContactError, match=says):
        build(groups=[Group(*group) for group in groups])


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"A": "x"}, "A is a str; give a matrix of real numbers"),
        ({"A": 1j * sp.eye(6)}, "A is a dia_matrix of complex numbers; give a matrix of real numbers"),
        ({"J": np.ones((1, 6, 6))}, "J is an array of float64 with shape (1, 6, 6); give a matrix of real numbers"),
        ({"b": "abc"}, "b is a str; give real numbers."),
        ({"b": np.arange(6) + 1j}, "b is an array of complex numbers with shape (6,); give real numbers."),
        ({"phi": [[0.1], [0.1, 0.2]]}, "phi is a list; give real numbers."),
        ({"friction": 1j}, "friction is a complex; give real numbers."),
        ({"softness": "a"}, "softness is a str; give real numbers."),
        ({"points": "a"}, "points is a str; give real numbers."),
        ({"dt": None}, "dt is None s; it must be a positive number of seconds."),
        ({"dt": "a"}, "dt is a s; it must be a positive number of seconds."),
        ({"dt": [0.1]}, "dt is [0.1] s; it must be a positive number of seconds."),
        ({"rows": np.ones((1, 6))}, "rows is a ndarray; make them by make_rows."),
        ({"groups": Group("a", 0, 6, "nodes")}, "groups is one Group; give a list of Group"),
        ({"groups": ["a"]}, "groups holds a str; give Group(name, start, stop, kind)"),
        ({"groups": [Group("a", 0, 6, "nodez")]}, "has the kind 'nodez'; allowed are 'nodes', 'links', 'generalized'."),  # type: ignore[arg-type]
        ({"groups": [Group("a", 0, 2.5, "nodes")]}, "group 'a' goes from 0 to 2.5; allowed are whole numbers."),  # type: ignore[arg-type]
    ],
)
def test_arguments_of_another_kind_are_named(changes: dict[str, Any], says: str) -> None:
    """Each ended in an error of numpy, scipy or Python, or lost its imaginary part."""
    with pytest.raises(ContactError) as caught:
        build(**changes)
    assert says in str(caught.value), caught.value


def test_rows_and_local_problems_of_another_kind_are_named() -> None:
    for call, says in (
        (lambda: make_rows("abc"), "G of the rows is a str; give a matrix"),  # type: ignore[arg-type]
        (lambda: make_rows(np.ones((1, 1, 3))), "G of the rows is an array of float64 with shape (1, 1, 3)"),
        (lambda: make_rows(np.ones((1, 3)), low="x"), "low of the rows is a str; give real numbers."),
        (lambda: make_local_problem("a", np.zeros(3), 0.5), "W is a str; give real numbers."),  # type: ignore[arg-type]
        (lambda: make_local_problem(np.eye(3), np.zeros(3) + 1j, 0.5), "q is an array of complex numbers"),
        (lambda: make_local_problem(np.eye(3), np.zeros(3), "a"), "friction is a str"),  # type: ignore[arg-type]
    ):
        with pytest.raises(ContactError) as caught:
            call()
        assert says in str(caught.value), caught.value


def test_a_problem_of_another_kind_is_named_by_what_takes_it() -> None:
    problem, local, none = build(), make_local_problem(np.eye(3), np.zeros(3), 0.5), None
    solver: Any = make_solver("exact")
    v, lam, r = np.zeros(6), np.zeros((2, 3)), np.zeros((1, 3))
    calls: tuple[tuple[Any, str], ...] = (
        (lambda: solver.solve(none), "solve takes a ContactProblem, not a NoneType"),
        (lambda: solver.solve(local), "solve takes a ContactProblem, not a LocalProblem"),
        (lambda: solver.solve_local(problem), "solve_local takes a LocalProblem, not a ContactProblem"),
        (lambda: measure(local, v, lam), "measure takes a ContactProblem, not a LocalProblem"),  # type: ignore[arg-type]
        (lambda: measure_local(problem, r), "measure_local takes a LocalProblem, not a ContactProblem"),  # type: ignore[arg-type]
        (lambda: to_global(problem), "to_global takes a LocalProblem, not a ContactProblem"),  # type: ignore[arg-type]
        (lambda: condense(none), "condense takes a ContactProblem or a LocalProblem, not a NoneType"),  # type: ignore[arg-type]
        (lambda: measure_local(local, np.zeros((2, 3))), "r has shape (2, 3); it must hold 3 numbers"),
        (lambda: measure(problem, v, lam, regularization=-1.0), "regularization is -1.0; allowed are numbers >= 0"),
        (lambda: measure(problem, v, lam, regularization=np.nan), "regularization is nan; allowed are numbers >= 0"),
        (lambda: measure(problem, none, lam), "v has shape (); it must be (6,)"),  # type: ignore[arg-type]
    )
    for call, says in calls:
        with pytest.raises(ContactError) as caught:
            call()
        assert says in str(caught.value), caught.value


def test_lists_are_measured_as_arrays() -> None:
    problem, rows = build(), make_rows(np.ones((1, 6)))
    v, lam = np.arange(6.0), np.ones((2, 3))
    assert measure(problem, v.tolist(), lam.tolist()) == measure(problem, v, lam)  # type: ignore[arg-type]
    joined = build(rows=rows)
    assert measure(joined, v, lam, row_forces=[2.0]) == measure(joined, v, lam, row_forces=np.array([2.0]))  # type: ignore[arg-type]
    local = make_local_problem(np.eye(3), np.array([-1.0, 0.5, 0.0]), 0.5)
    assert measure_local(local, [[1.0, 0.0, 0.0]]) == measure_local(local, np.array([[1.0, 0.0, 0.0]]))  # type: ignore[arg-type]


def test_the_error_is_a_value_error() -> None:
    assert issubclass(ContactError, ValueError)


def test_contact_that_nothing_can_move_along_its_normal_is_refused_when_it_approaches() -> None:
    """Such a problem has no solution: a force would grow without end and hide the approach in every relative residual."""
    J = np.array([[0.0, 0.0, 0.0], [1.0, 0.0, 0.0], [0.0, 0.0, 0.0]])
    with pytest.raises(ContactError, match=r"contact 0 approaches at phi_n = -0\.001 m/s.*no solution"):
        make_problem(2.0 * sp.eye(3), np.array([1.0, 0.0, 0.0]), J, np.array([-1e-3]), 0.5, dt=0.01)
    open_one = make_problem(2.0 * sp.eye(3), np.array([1.0, 0.0, 0.0]), J, np.array([1e-3]), 0.5, dt=0.01)
    assert open_one.n_contacts == 1


def test_a_problem_about_a_velocity_has_the_same_forces_and_what_lies_beyond_it() -> None:
    rng = np.random.default_rng(4)
    root, J = rng.normal(size=(9, 9)), rng.normal(size=(6, 9))
    rows = make_rows(rng.normal(size=(1, 9)), offset=0.3, low=-5.0, high=0.1)
    problem = make_problem(
        root @ root.T + np.eye(9), rng.normal(size=9), J, rng.normal(size=(2, 3)), [0.3, 0.6], dt=0.01, rows=rows,
        softness=[0.1, 0.0],
    )  # fmt: skip
    place = rng.normal(size=9)
    solver = make_solver("exact", tolerance=1e-10)
    whole, beyond = solver.solve(problem), solver.solve(problem.about(place))
    assert whole.converged
    assert beyond.converged
    np.testing.assert_allclose(place + beyond.v, whole.v, atol=1e-8)
    np.testing.assert_allclose(beyond.lam, whole.lam, atol=1e-8)
    np.testing.assert_allclose(beyond.row_forces, whole.row_forces, atol=1e-8)
    assert np.abs(whole.lam).max() > 0.1
