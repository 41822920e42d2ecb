"""Contact problems as files, in the HDF5 layout of FCLib (the Frictional Contact Library of Siconos and LMGC90).

Two forms are read and written, normal first in each contact::

    /fclib_local    W, q, mu       u = W r + q                        a LocalProblem
    /fclib_global   M, H, f, w, mu M v = H r + f,  u = H^T v + w      a ContactProblem: A = M, J = H^T, b = f, phi = w, lam = r

Equalities (joints) are the matrix G and the vector b of the global form, ``G^T v + b = 0``, and V, R, s of the local one,
``u = W r + V l + q`` with ``V^T r + R l + s = 0``; they become rows of a problem, and are eliminated in the local form.

The space has three dimensions (``spacedim`` 3) or two. A plane problem is lifted: its contacts get a second tangent whose rows
are zero.
Our own files of the global form hold a group ``/femsim`` besides, which other readers ignore, with what FCLib has no place for.
"""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, get_args

import numpy as np
import scipy.sparse as sp

import foreign
from contact.errors import ContactError
from contact.local import ROUNDING, SYMMETRY, LocalProblem, eliminate_rows, make_local_problem
from contact.problem import ContactProblem, Group, GroupKind, make_problem
from contact.rows import Rows, make_rows
from foreign.hdf5 import read_groups
from foreign.whole import replacing

#: Compressed columns and rows in FCLib's field nz; zero and more is the number of triplets.
_COLUMNS, _ROWS = -1, -2
_OURS = "femsim"
#: Stands for the parent of a row whose group is no tree.
_NO_TREE = -2
#: Softness of contacts, three numbers each.
_SOFTNESS = f"{_OURS}/softness"
#: Fields of rows beside G, in the order of ``make_rows``.
_BOUNDS = ("offset", "low", "high", "softness")
#: Memory of W as a full matrix: not more than this many times the file, and these bytes.
DENSE_TIMES_FILE, DENSE_BYTES = 20, 200_000_000
_MOST_DENSE = 2000


@dataclass(frozen=True)
class FclibProblem:
    """A problem read from a file.

    Attributes
    ----------
    problem : ContactProblem or LocalProblem
        From the global or the local form; always with three rows a contact.
    spacedim : {2, 3}
        Dimension of the file. 2: the second tangents of ``problem`` have zero rows.
    info : dict of str to str
        What the file says of itself: ``title``, ``description``, ``math_info``, as far as they are there.
    asymmetry : float
        Largest difference of W to its transpose over its largest entry; 0 in the global form.
    """

    problem: ContactProblem | LocalProblem
    spacedim: int
    info: dict[str, str] = field(default_factory=dict)
    asymmetry: float = 0.0

    def flatten(self, values: np.ndarray) -> np.ndarray:
        """Contact forces or velocities, (nc, 3), in the dimension and order of the file, (spacedim * nc,)."""
        return np.ascontiguousarray(values.reshape(-1, 3)[:, : self.spacedim]).ravel()


def import_h5py() -> Any:
    """Import h5py, which reads and writes HDF5.

    Raises
    ------
    ContactError
        It is not installed.
    """
    try:
        import h5py
    except ImportError as error:
        raise ContactError('FCLib files need the package h5py, which is not installed; pip install "femsim[hdf]".') from error
    return h5py


# ---------------------------------------------------------------------- reading


def read_fclib(path: str | Path) -> FclibProblem:
    """Read a contact problem in the HDF5 layout of FCLib.

    All storages of matrices are read: compressed columns (nz = -1), compressed rows (-2) and triplets (nz >= 0). Siconos writes
    triplets with ``i`` the row and ``p`` the column, the header fclib.h says the reverse: the former is taken where both fit.
    Values that stand twice are added.

    Parameters
    ----------
    path : path
        File with a group ``fclib_local`` or ``fclib_global``.

    Returns
    -------
    FclibProblem
        Of the global form without our group ``femsim``: v is one group, of nodes where its length is a multiple of three, else
        generalized, and dt, which only reports use, is 1 s. With it: exactly the problem that was written.

    Raises
    ------
    ContactError
        No HDF5 file, groups or fields that are missing, sizes that do not match, values that are not finite, negative friction,
        an M that is not symmetric, or h5py is missing.
    """
    import_h5py()
    path = Path(path)
    if not path.is_file():
        raise ContactError(f"{path} {'is a folder' if path.is_dir() else 'does not exist'}; name an FCLib file (.hdf5).")
    try:
        full = path.resolve()
        found = foreign.call(
            read_groups, full.stat().st_size, libraries=["h5py"], path=str(full), wanted=["fclib_local", "fclib_global", _OURS]
        )
        return _Reader(path, found).problem()
    except ContactError:
        raise
    except (OSError, RuntimeError, KeyError, TypeError, ValueError) as error:  # what is no HDF5, or damaged
        why = "is no HDF5 file" if "signature not found" in str(error) else f"cannot be read as an HDF5 file ({error})"
        raise ContactError(f"{path} {why}; name an FCLib file (.hdf5).") from error
    except MemoryError as error:
        raise ContactError(f"{path} holds a problem that does not fit into the memory of this machine ({error}).") from error


class _Reader:
    """Makes a problem of what a file holds, see :func:`foreign.hdf5.read_groups`; every message names the file and the field."""

    def __init__(self, path: Path, found: dict[str, Any]) -> None:
        self.path, self.found, self.strings, self.asymmetry = path, found, dict(found["texts"]), 0.0
        #: More rows than this a matrix cannot have: each has a number in some vector of the file, or two or three share one.
        self.most_rows = 3 * max((value.size for name, value in found.items() if name.startswith("=")), default=0)
        self.group = next((name for name in ("fclib_local", "fclib_global") if name in found["groups"]), "")

    def holds(self, place: str) -> bool:
        """Whether the file has a group or a field."""
        found = self.found
        return place in found["groups"] or f"={place}" in found or place in self.strings or place in found["kinds"]

    def error(self, field: str, text: str) -> ContactError:
        return ContactError(f"{self.path}, {field}: {text}")

    def problem(self) -> FclibProblem:
        if not self.group:
            found = ", ".join(self.found["top"]) or "nothing"
            raise ContactError(
                f"{self.path} has no group fclib_local or fclib_global (it has {found}); such files are written "
                "by FCLib, Siconos and femsim."
            )
        spacedim = self.integer(f"{self.group}/spacedim")
        if spacedim not in (2, 3):
            raise self.error(f"{self.group}/spacedim", f"is {spacedim}; allowed are 2 and 3.")
        friction = self.vector("mu", None)
        if (friction < 0).any():
            worst = int(np.argmin(friction))
            raise self.error(f"{self.group}/vectors/mu", f"is {friction[worst]} for contact {worst}; allowed are values >= 0.")
        make = self.local_problem if self.group == "fclib_local" else self.global_problem
        try:
            problem = make(spacedim, friction)
            return FclibProblem(problem, spacedim, self.info(), self.asymmetry)
        except ContactError as error:
            if str(error).startswith(str(self.path)):
                raise
            raise self.error(self.group, str(error)) from error

    def local_problem(self, spacedim: int, friction: np.ndarray) -> LocalProblem:
        nc = len(friction)
        W = self.matrix("W")
        if W.shape != (spacedim * nc, spacedim * nc):
            raise self.error(f"{self.group}/W", f"has shape {W.shape}; {nc} contacts (vectors/mu) in {spacedim}D ask for "
                             f"({spacedim * nc}, {spacedim * nc}).")  # fmt: skip
        needed, allowed = 8 * (3 * nc) ** 2, DENSE_TIMES_FILE * self.path.stat().st_size + DENSE_BYTES
        if needed > allowed:
            raise self.error(f"{self.group}/W", f"takes {needed / 1e6:.0f} MB as the full matrix that solvers use, far more than "
                             f"the {W.nnz} entries of the file; write the problem in the global form.")  # fmt: skip
        lift = _lift(nc, spacedim)
        full, q = (lift @ W @ lift.T).toarray(), lift @ self.vector("q", spacedim * nc)
        equalities = self.holds_equalities("V", "R", "s")
        problem = self.condensed(full, q, friction, lift) if equalities else make_local_problem(full, q, friction)
        self.check_definite(W)
        return problem

    def holds_equalities(self, *fields: str) -> bool:
        """Whether the file has equalities; an error where only some of their fields are there."""
        places = [f"{self.group}/{'vectors/' * name.islower()}{name}" for name in fields]
        there = [self.holds(place) for place in places]
        if any(there) and not all(there):
            raise self.error(places[there.index(False)], f"is missing; equalities need {', '.join(fields)}.")
        return all(there)

    def condensed(self, W: np.ndarray, q: np.ndarray, friction: np.ndarray, lift: sp.csr_matrix) -> LocalProblem:
        """Eliminate the equalities of the local form."""
        V, R, s = self.matrix("V"), self.matrix("R"), self.vector("s", None)
        for name, matrix, size in (("V", V, (lift.shape[1], len(s))), ("R", R, (len(s), len(s)))):
            if matrix.shape != size:
                raise self.error(f"{self.group}/{name}", f"has shape {matrix.shape}; contacts (vectors/mu) and equalities "
                                 f"(vectors/s) ask for {size}.")  # fmt: skip
        allowed = DENSE_TIMES_FILE * self.path.stat().st_size + DENSE_BYTES
        if 8 * len(s) * (len(s) + lift.shape[0]) > allowed:
            raise self.error(f"{self.group}/R", f"takes {8 * len(s) ** 2 / 1e6:.0f} MB as a full matrix; write the problem in "
                             "the global form.")  # fmt: skip
        return eliminate_rows(W, q, friction, (lift @ V).toarray(), R.toarray(), s)

    def check_definite(self, W: sp.csc_matrix) -> None:
        """Refuse a W with a negative eigenvalue beyond rounding, and note how far it is from symmetric."""
        largest = float(abs(W).max()) if W.nnz else 0.0
        if not largest:
            return
        self.asymmetry = float(abs(W - W.T).max()) / largest
        symmetric = (0.5 / largest) * (W + W.T)
        top = float(abs(symmetric).sum(axis=0).max())  # not below the largest eigenvalue
        lowest = _lowest_eigenvalue(symmetric, ROUNDING * top)
        if lowest < -ROUNDING * top:
            said = f" (it is not symmetric, by {self.asymmetry:.1e} of its largest entry; this is of (W + W^T)/2)"
            raise self.error(f"{self.group}/W", f"has the eigenvalue {lowest * largest:.3g}"
                             f"{said if self.asymmetry > SYMMETRY else ''}; a Delassus operator has no negative ones. Check its "
                             "sign and the order of its rows.")  # fmt: skip

    def global_problem(self, spacedim: int, friction: np.ndarray) -> ContactProblem:
        nc = len(friction)
        M, H = self.matrix("M"), self.matrix("H")
        n = M.shape[0]
        if M.shape != (n, n):
            raise self.error(f"{self.group}/M", f"has shape {M.shape}; it must be square.")
        if H.shape != (n, spacedim * nc):
            raise self.error(f"{self.group}/H", f"has shape {H.shape}; {n} rows of M and {nc} contacts (vectors/mu) in "
                             f"{spacedim}D ask for ({n}, {spacedim * nc}).")  # fmt: skip
        lower, upper = sp.tril(M, -1).count_nonzero(), sp.triu(M, 1).count_nonzero()
        if (lower == 0) != (upper == 0):
            raise self.error(f"{self.group}/M", f"holds its {'upper' if upper else 'lower'} triangle only, so it is not "
                             "symmetric; complete the file (M + M^T less the diagonal).")  # fmt: skip
        lift = _lift(nc, spacedim)
        J = (H @ lift.T).T if spacedim == 2 else H.T
        phi = (lift @ self.vector("w", spacedim * nc)).reshape(-1, 3)
        dt, groups, second = self.extras(n, nc)
        friction = friction if second is None else np.column_stack([friction, second])
        rows = self.rows(n)
        soft = self.sized(_SOFTNESS, 3 * nc).reshape(nc, 3) if self.holds(_SOFTNESS) else None
        try:
            return make_problem(M, self.vector("f", n), J, phi, friction, dt=dt, groups=groups, rows=rows, softness=soft)
        except ContactError as error:
            raise self.error(self.group, f"{error} (Here A is M, b is f, J is H^T, phi is w.)") from error

    def rows(self, n: int) -> Rows | None:
        """Equalities of the file, and the rows with bounds or softness of our own group, in the order that it gives."""
        parts: list[Rows] = []
        if self.holds_equalities("G", "b"):
            G, b = self.matrix("G"), self.vector("b", None)
            if G.shape != (n, len(b)):
                raise self.error(f"{self.group}/G", f"has shape {G.shape}; {n} rows of M and {len(b)} equalities (vectors/b) ask "
                                 f"for ({n}, {len(b)}).")  # fmt: skip
            parts.append(make_rows(sp.csr_matrix(G.T), b))
        own = f"{_OURS}/rows"
        if self.holds(own):
            G = self.matrix("rows", _OURS)
            if G.shape[0] != n:
                raise self.error(own, f"has {G.shape[0]} rows; {n} are needed, as M has.")
            values = [self.numbers(f"{own}/{name}", np.float64) for name in _BOUNDS]
            try:
                parts.append(make_rows(sp.csr_matrix(G.T), *values))
            except ContactError as error:
                raise self.error(own, str(error)) from error
        if not parts:
            return None
        p = sum(part.n_rows for part in parts)
        place = self.numbers(f"{own}/place", np.int64) if self.holds(own) else np.arange(p)
        if not np.array_equal(np.sort(place), np.arange(p)):
            raise self.error(f"{own}/place", f"must hold each number from 0 to {p - 1} once.")
        back = np.argsort(place)
        return make_rows(
            sp.vstack([part.G for part in parts], format="csr")[back],
            *(np.concatenate([getattr(part, name) for part in parts])[back] for name in _BOUNDS),
        )

    def extras(self, n: int, nc: int) -> tuple[float, list[Group], np.ndarray | None]:
        """Time step, groups and second friction coefficients of our own group, or what stands for them."""
        if not self.holds(_OURS):
            return 1.0, [Group("all", 0, n, "generalized" if n % 3 else "nodes")], None
        names, kinds = self.texts(f"{_OURS}/groups/name"), self.texts(f"{_OURS}/groups/kind")
        spans = [self.numbers(f"{_OURS}/groups/{name}", np.int64) for name in ("start", "stop")]
        if len({len(names), len(kinds), *map(len, spans)}) > 1:
            raise self.error(f"{_OURS}/groups", "name, kind, start and stop have different lengths; one entry a group is needed.")
        groups, place = [], f"{_OURS}/groups/parents"
        parents = self.numbers(place, np.int64) if self.holds(place) else np.full(n, _NO_TREE)
        if len(parents) != n:
            raise self.error(place, f"has {len(parents)} entries; one for each of {n} rows of M is needed.")
        for name, kind, start, stop in zip(names, kinds, *(span.tolist() for span in spans), strict=True):
            if kind not in get_args(GroupKind):
                raise self.error(f"{_OURS}/groups/kind", f"is {kind!r}; allowed are {', '.join(map(repr, get_args(GroupKind)))}.")
            own = tuple(parents[max(start, 0) : max(stop, 0)].tolist())
            groups.append(Group(name, start, stop, kind, own if any(parent != _NO_TREE for parent in own) else None))
        dt = self.numbers(f"{_OURS}/dt", np.float64)
        second = f"{_OURS}/friction_second"
        if dt.size != 1:
            raise self.error(f"{_OURS}/dt", f"has {dt.size} entries; one number of seconds is needed.")
        return float(dt[0]), groups, self.sized(second, nc) if self.holds(second) else None

    def info(self) -> dict[str, str]:
        start = f"{self.group}/info/"
        return {place.removeprefix(start): "".join(texts) for place, texts in self.strings.items() if place.startswith(start)}

    # ------------------------------------------------------------------ fields

    def numbers(self, field: str, dtype: type) -> np.ndarray:
        values = self.found.get(f"={field}")
        if values is None and not (field in self.strings or self.found["kinds"].get(field, "nothing") != "nothing"):
            raise self.error(field, "is missing.")
        kinds = "iu" if dtype is np.int64 else "iuf"
        if values is None or values.dtype.kind not in kinds:
            holds = self.found["kinds"].get(field, "text") if values is None else values.dtype
            raise self.error(field, f"holds {holds}; allowed are {'whole numbers' if kinds == 'iu' else 'numbers'}.")
        return np.asarray(values, dtype=dtype).ravel()

    def integer(self, field: str) -> int:
        values = self.numbers(field, np.int64)
        if values.size != 1:
            raise self.error(field, f"has {values.size} entries; one whole number is needed.")
        return int(values[0])

    def texts(self, field: str) -> list[str]:
        if field not in self.strings:
            raise self.error(field, "is missing.")
        return list(self.strings[field])

    def sized(self, field: str, size: int | None) -> np.ndarray:
        """Finite numbers, as many as asked for."""
        values = self.numbers(field, np.float64)
        if size is not None and len(values) != size:
            raise self.error(field, f"has {len(values)} entries; {size} are needed.")
        bad = np.flatnonzero(~np.isfinite(values))
        if len(bad):
            raise self.error(field, f"is {values[bad[0]]} at entry {bad[0]}; every value must be finite.")
        return values

    def vector(self, name: str, size: int | None) -> np.ndarray:
        return self.sized(f"{self.group}/vectors/{name}", size)

    def matrix(self, name: str, group: str = "") -> sp.csc_matrix:
        """Sparse matrix of any storage of FCLib, with what stands twice added."""
        where = f"{group or self.group}/{name}"
        if not self.holds(where):
            raise self.error(where, "is missing.")
        m, n, nz = (self.integer(f"{where}/{field}") for field in ("m", "n", "nz"))
        if m < 0 or n < 0 or nz < _ROWS:
            raise self.error(where, f"has m = {m}, n = {n}, nz = {nz}; allowed are sizes >= 0 and nz of -2, -1 or more.")
        if max(m, n) > self.most_rows:
            raise self.error(where, f"has m = {m}, n = {n}, but no other field of the file has so many entries.")
        p, i = (self.numbers(f"{where}/{field}", np.int64) for field in ("p", "i"))
        x = self.numbers(f"{where}/x", np.float64)
        if nz >= 0:
            if min(len(p), len(i), len(x)) < nz:
                raise self.error(where, f"has {len(p)}, {len(i)} and {len(x)} entries in p, i and x; nz asks for {nz}.")
            first, second, x = i[:nz], p[:nz], x[:nz]
            if not (_within(first, m) and _within(second, n)):
                first, second = second, first
        else:
            major = n if nz == _COLUMNS else m
            counts = np.diff(p[: major + 1])
            if len(p) <= major or p[0] != 0 or (counts < 0).any() or p[major] > min(len(i), len(x)):
                raise self.error(f"{where}/p", f"must rise from 0 to the number of entries, in {major + 1} values.")
            inner, outer, x = i[: p[major]], np.repeat(np.arange(major), counts), x[: p[major]]
            first, second = (inner, outer) if nz == _COLUMNS else (outer, inner)
        if not (_within(first, m) and _within(second, n)):
            raise self.error(where, f"has an index outside its {m} rows and {n} columns.")
        if not np.isfinite(x).all():
            bad = int(np.flatnonzero(~np.isfinite(x))[0])
            raise self.error(f"{where}/x", f"is {x[bad]} at entry {bad}; every value must be finite.")
        return sp.csc_matrix((x, (first, second)), shape=(m, n))


def _lowest_eigenvalue(symmetric: sp.csc_matrix, tolerance: float) -> float:
    """Lowest eigenvalue where it is below minus the tolerance; anything not below where it is not."""
    n = symmetric.shape[0]
    if n > _MOST_DENSE:  # Lanczos: what it gives is never below the lowest eigenvalue
        from scipy.sparse.linalg import ArpackError, ArpackNoConvergence, eigsh

        try:
            return float(eigsh(symmetric, k=1, which="SA", tol=1e-3, maxiter=200, v0=np.ones(n), return_eigenvectors=False)[0])
        except (ArpackNoConvergence, ArpackError):
            return 0.0
    dense = symmetric.toarray()
    try:
        np.linalg.cholesky(dense + tolerance * np.eye(n))
    except np.linalg.LinAlgError:
        return float(np.linalg.eigvalsh(dense)[0])
    return 0.0


def _within(index: np.ndarray, size: int) -> bool:
    return not len(index) or bool(index.min() >= 0 and index.max() < size)


def _lift(nc: int, spacedim: int) -> sp.csr_matrix:
    """Matrix from contact vectors in the dimension of a file to those with three components, (3 nc, spacedim nc)."""
    return sp.kron(sp.identity(nc), np.eye(3, spacedim), format="csr")


# ---------------------------------------------------------------------- writing


def write_fclib(
    path: str | Path,
    problem: ContactProblem | LocalProblem,
    *,
    title: str = "",
    description: str = "",
    spacedim: int = 3,
) -> None:
    """Write a contact problem in the HDF5 layout of FCLib, matrices by compressed columns.

    A :class:`ContactProblem` takes the global form and keeps its time step, its groups, its second friction coefficients, the
    softness of its contacts and its rows with bounds or softness in a group ``femsim``, so that :func:`read_fclib` returns the
    same arrays bit for bit. Other readers see the first coefficients, hard contacts and the rigid equalities. A
    :class:`LocalProblem` takes the local form, with the equalities that were eliminated from it. An existing file is replaced
    only when the new one is complete.

    Parameters
    ----------
    path : path
        File to write; its folder must exist.
    problem : ContactProblem or LocalProblem
        What to write.
    title, description : str
        Free text about the problem.
    spacedim : {2, 3}
        2 writes a plane problem, whose second tangents must be zero. Default 3.

    Raises
    ------
    ContactError
        The file cannot be written, a plane problem has second tangents, or h5py is missing.
    """
    h5py = import_h5py()
    path = Path(path)
    nc = problem.n_contacts
    if spacedim not in (2, 3):
        raise ContactError(f"spacedim is {spacedim}; allowed are 2 and 3.")
    drop = _lift(nc, spacedim).T.tocsr()
    if isinstance(problem, LocalProblem):
        before = problem.rows or problem
        form, matrices = "fclib_local", {"W": sp.csc_matrix(before.W)}
        vectors = {"q": before.q, "mu": problem.friction}
        if problem.rows is not None:
            matrices |= {"V": sp.csc_matrix(problem.rows.V), "R": sp.csc_matrix(problem.rows.R)}
            vectors["s"] = problem.rows.s
        extras: dict[str, Any] = {}
        own = None
    else:
        form, matrices = "fclib_global", {"M": problem.A, "H": problem.J.T}
        first = problem.friction if problem.friction.ndim == 1 else problem.friction[:, 0]
        vectors = {"f": problem.b, "w": problem.phi, "mu": first}
        extras = _extras(problem, h5py)
        own = _split_rows(problem.rows, matrices, vectors, extras)
    contact_matrix, contact_vector = ("W", "q") if form == "fclib_local" else ("H", "w")
    if spacedim == 2:
        full = matrices[contact_matrix]
        if full[:, 2::3].count_nonzero() or (form == "fclib_local" and full[2::3].count_nonzero()):
            raise ContactError(f"{path}: the problem has second tangents that are not zero; write it with spacedim 3.")
        if vectors[contact_vector][:, 2].any():
            raise ContactError(f"{path}: {contact_vector} has second tangents that are not zero; write it with spacedim 3.")
        cut = full @ drop.T
        matrices[contact_matrix] = (drop @ cut if form == "fclib_local" else cut).tocsc()
        if "V" in matrices:
            matrices["V"] = (drop @ matrices["V"]).tocsc()
        vectors[contact_vector] = vectors[contact_vector][:, :2]
    texts = {"title": title, "description": description, "math_info": ""}
    # in memory first: HDF5 itself ends the process when the disk is full
    with h5py.File("problem", "w", driver="core", backing_store=False) as file:
        group = file.create_group(form)
        group["spacedim"] = np.array([spacedim], dtype=np.int32)
        for name, text in texts.items():
            data = text.encode()
            group[f"info/{name}"] = np.array(data, dtype=f"S{len(data) + 1}")  # C readers need the zero at its end
        for name, matrix in matrices.items():
            _write_matrix(group.create_group(name), matrix)
        for name, values in vectors.items():
            group[f"vectors/{name}"] = values.ravel()
        for name, values in extras.items():
            file[f"{_OURS}/{name}"] = values
        if own is not None:
            _write_matrix(file.require_group(f"{_OURS}/rows"), own)
        file.flush()
        image = file.id.get_file_image()
    try:
        with replacing(path) as temporary:
            Path(temporary).write_bytes(image)
    except OSError as error:
        reason = os.strerror(error.errno) if error.errno else error
        raise ContactError(f"{path} cannot be written ({reason}); free the disk or choose another place.") from error


def _split_rows(
    rows: Rows | None, matrices: dict[str, sp.csc_matrix], vectors: dict[str, np.ndarray], extras: dict[str, Any]
) -> sp.csc_matrix | None:
    """Add rigid equalities as FCLib has them; of the others return G^T, and add what else they are to our own group."""
    if rows is None:
        return None
    plain = rows.is_equality & (rows.softness == 0)
    if plain.any():
        matrices["G"], vectors["b"] = sp.csc_matrix(rows.G[plain].T), rows.offset[plain]
    if plain.all():
        return None
    extras |= {f"rows/{name}": getattr(rows, name)[~plain] for name in _BOUNDS}
    extras["rows/place"] = np.concatenate([np.flatnonzero(plain), np.flatnonzero(~plain)]).astype(np.int64)
    return sp.csc_matrix(rows.G[~plain].T)


def _write_matrix(group: Any, matrix: sp.csc_matrix) -> None:
    m, n = matrix.shape
    for name, value in (("m", m), ("n", n), ("nz", _COLUMNS), ("nzmax", matrix.nnz)):
        group[name] = np.array([value], dtype=np.int32)
    group["p"], group["i"] = matrix.indptr.astype(np.int32), matrix.indices.astype(np.int32)
    group["x"] = matrix.data


def _extras(problem: ContactProblem, h5py: Any) -> dict[str, Any]:
    """Content of our own group: what FCLib has no place for."""
    text = h5py.string_dtype("utf-8")
    extras = {
        "dt": np.array([problem.dt]),
        "groups/name": np.array([g.name for g in problem.groups], dtype=text),
        "groups/kind": np.array([g.kind for g in problem.groups], dtype=text),
        "groups/start": np.array([g.start for g in problem.groups], dtype=np.int64),
        "groups/stop": np.array([g.stop for g in problem.groups], dtype=np.int64),
    }
    if any(group.parents is not None for group in problem.groups):
        own = [(_NO_TREE,) * (g.stop - g.start) if g.parents is None else g.parents for g in problem.groups]
        extras["groups/parents"] = np.concatenate(own).astype(np.int64)
    if problem.friction.ndim == 2:
        extras["friction_second"] = np.ascontiguousarray(problem.friction[:, 1])
    if problem.softness is not None:
        extras["softness"] = problem.softness.ravel()
    return extras
