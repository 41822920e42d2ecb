"""Solvers of users: a plain function of the problem under a name in the registry."""

from __future__ import annotations

import dataclasses
import inspect
import re
import time
from collections.abc import Callable, Iterator
from typing import Any, ClassVar

import numpy as np

from contact.delassus import DelassusOperator
from contact.errors import ContactError
from contact.linear import Factorization, make_factorization
from contact.local import LocalProblem, make_local_problem
from contact.problem import ContactProblem, from_isotropic, isotropic, to_isotropic
from contact.reduction import Reduction
from contact.solvers.base import Solution, SolverOptions, Told, WarmStart
from contact.solvers.judge import Judge, Row, drive
from contact.solvers.with_rows import takes_rows

#: Takes the problem and, by name, whatever else it has parameters for; returns or yields forces, or (v, forces).
SolverFunction = Callable[..., Any]
#: What a function may raise as it is: refusals, and what a time limit raises.
_THROUGH = (ContactError, np.linalg.LinAlgError, MemoryError, TimeoutError)
#: What stands for the end of a function that yields.
_END = object()
#: Parameters that are not options: the forces to start from.
_START = "start"


def condense(problem: ContactProblem | LocalProblem) -> LocalProblem:
    """Return W, q and friction of a problem, W = J A^-1 J^T and q = J A^-1 b + phi; a local problem is returned itself.

    Parameters
    ----------
    problem : ContactProblem or LocalProblem
        With two coefficients a contact the result is in the variables of :func:`contact.problem.isotropic`. With rows,
        equalities are eliminated, and limits and motors are contacts behind the others (``contact.reduction``). Softness of
        contacts is on the diagonal of W.

    Raises
    ------
    ContactError
        A is not positive definite, or something else than a problem.
    """
    if isinstance(problem, LocalProblem):
        return problem
    if not isinstance(problem, ContactProblem):
        raise ContactError(f"condense takes a ContactProblem or a LocalProblem, not a {type(problem).__name__}.")
    if not problem.is_plain:
        problem = Reduction(problem).reduced
    same, operator = isotropic(problem), DelassusOperator()
    operator.factorize(same)
    W = operator.operator(same.J)
    return make_local_problem(W, operator.begin(same.b) + same.phi.ravel(), same.friction)


class _Iterates:
    """What a function returns or yields, as a method for :func:`contact.solvers.judge.drive`."""

    def __init__(
        self, name: str, problem: ContactProblem | LocalProblem, found: Any, back: Callable[[np.ndarray], np.ndarray]
    ) -> None:
        self._back = back
        self.name, self.problem, self.best, self.over, self.failed = name, problem, -1, False, False
        self._once = not inspect.isgenerator(found)
        self._found: Iterator[Any] = iter([found]) if self._once else found
        self._factors: Factorization | None = None
        self._lam = np.zeros((problem.n_contacts, 3))
        self._v: np.ndarray | None = None

    def until(self, aim: float, limit: int) -> list[Row]:
        """Take the next iterate."""
        before = self._lam
        with _Named(self.name):
            found = next(self._found, _END)
        if found is _END:
            self.over = True
            return []
        self._v, lam = found if isinstance(found, tuple) and len(found) == 2 else (None, found)
        self._lam = self._checked("forces", lam, 3 * self.problem.n_contacts).reshape(-1, 3)
        if self._v is not None and isinstance(self.problem, ContactProblem):
            self._v = self._checked("velocities", self._v, self.problem.n)
        self.best, self.over = self.best + 1, self._once
        return [(None, None, float(np.linalg.norm(self._lam - before)))]

    def _checked(self, what: str, values: Any, size: int) -> np.ndarray:
        try:
            array = np.array(values, dtype=np.float64)
        except (TypeError, ValueError):
            array = np.zeros(size + 1)
        if array.size != size:
            shape = np.shape(values) if isinstance(values, np.ndarray) else type(values).__name__
            raise ContactError(
                f"solver {self.name!r} gave {what} {shape}; it must return, or yield, forces of {self.problem.n_contacts} "
                "contacts, three numbers each, or velocities and forces."
            )
        return array

    def answer(self) -> tuple[np.ndarray, np.ndarray]:
        """Velocities and forces; where the function gave forces alone, those velocities that follow from them."""
        if isinstance(self.problem, LocalProblem):
            return np.zeros(0), self._back(self._lam)
        if self._v is None:
            if self._factors is None:
                self._factors = make_factorization()
                self._factors.factorize(self.problem.A, np.zeros(0, dtype=np.int64))
            self._v = self._factors.solve(self.problem.b + self.problem.pushed(self._lam))
        return self._v, self._back(self._lam)


class _Named:
    """Errors of a function of a user as one of ours, with its name and line."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __enter__(self) -> None:
        return None

    def __exit__(self, kind: Any, error: BaseException | None, trace: Any) -> None:
        if not isinstance(error, Exception) or isinstance(
            error, (ContactError, np.linalg.LinAlgError, MemoryError, TimeoutError)
        ):
            return
        last = trace
        while last.tb_next is not None:
            last = last.tb_next
        place = f"line {last.tb_lineno} of {last.tb_frame.f_code.co_filename}"
        raise ContactError(f"solver {self._name!r} raised {type(error).__name__}: {error} ({place}); correct it.") from error


class FunctionSolver(Told):
    """A solver whose iterates come from a function; subclasses made by :func:`function_solver` name it.

    Parameters
    ----------
    options : SolverOptions, optional
        Tolerance, limit, and one option for each parameter of the function that has a default.
    """

    description: ClassVar[str] = ""
    name: ClassVar[str] = ""
    function: ClassVar[SolverFunction]
    options_type: ClassVar[type[SolverOptions]] = SolverOptions

    def __init__(self, options: SolverOptions | None = None) -> None:
        self.options = options or self.options_type()

    @takes_rows
    def solve(self, problem: ContactProblem, warm_start: WarmStart | None = None) -> Solution:
        """Solve the problem, which the function gets with one coefficient a contact; its iterates are judged one by one."""
        same = isotropic(problem)
        start = np.zeros((problem.n_contacts, 3)) if warm_start is None else to_isotropic(problem, warm_start.lam.reshape(-1, 3))
        judge = Judge(problem, self.options.tolerance)
        return self._run(same, start, judge, lambda lam: from_isotropic(problem, lam))

    def solve_local(self, problem: LocalProblem, warm_start: WarmStart | None = None) -> Solution:
        """Solve a problem given by W and q alone; v of the solution is empty."""
        start = np.zeros((problem.n_contacts, 3)) if warm_start is None else warm_start.lam.reshape(-1, 3).copy()
        return self._run(problem, start, Judge(problem, self.options.tolerance), lambda lam: lam)

    def _run(
        self,
        problem: ContactProblem | LocalProblem,
        start: np.ndarray,
        judge: Judge,
        back: Callable[[np.ndarray], np.ndarray],
    ) -> Solution:
        started, function = time.perf_counter(), type(self).function
        known = {f.name: getattr(self.options, f.name) for f in dataclasses.fields(self.options)} | {_START: start}
        asked = [name for name in list(inspect.signature(function).parameters)[1:] if name in known]
        with _Named(self.name):
            found = function(problem, **{name: known[name] for name in asked})
        iterates = _Iterates(self.name, problem, found, back)
        drive(iterates, judge, self.options.max_iterations)
        ended = "Its function ended after {} iterations" if iterates.over else ""
        return judge.solution({"iterate": time.perf_counter() - started}, {}, ended=ended)


def function_solver(name: str, function: SolverFunction) -> tuple[type[SolverOptions], type[FunctionSolver]]:
    """Return the options and the class of a solver made of a function; ContactError where it cannot be one."""
    if not isinstance(name, str) or not re.fullmatch(r"[A-Za-z][\w-]*", name):
        raise ContactError(f"the name {name!r} of a solver is not allowed; use letters, digits, '-' and '_', a letter first.")
    if not callable(function):
        raise ContactError(f"solver {name!r} is {type(function).__name__}; give a function of the problem.")
    parameters = list(inspect.signature(function).parameters.values())
    if not parameters or parameters[0].kind is inspect.Parameter.KEYWORD_ONLY:
        raise ContactError(f"the function of solver {name!r} takes no argument; the first one must be the problem.")
    base = {f.name for f in dataclasses.fields(SolverOptions)}
    own: list[tuple[str, Any, Any]] = []
    for parameter in parameters[1:]:
        if parameter.kind in (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD) or parameter.name == _START:
            continue
        if parameter.default is inspect.Parameter.empty:
            if parameter.name not in base:
                raise ContactError(
                    f"the parameter {parameter.name!r} of solver {name!r} has no default; give it one, or call it 'start', "
                    "'tolerance' or 'max_iterations'."
                )
            continue
        # a function judges its values itself; words for yes and no become flags
        kind = bool if isinstance(parameter.default, bool) else Any
        own.append((parameter.name, kind, dataclasses.field(default=parameter.default)))
    options = dataclasses.make_dataclass(
        f"{name}_options",
        own,
        bases=(SolverOptions,),
        frozen=True,
        namespace={"solver_name": name, "__doc__": f"Options of {name}."},
    )
    text = (inspect.getdoc(function) or f"{name}: a function of the user").splitlines()[0]
    values = {"description": text, "name": name, "function": staticmethod(function), "options_type": options}
    return options, type(name, (FunctionSolver,), values)
