"""Prony terms of a soft body: springs and dashpots beside its elastic law, and what they remember.

See :mod:`femsim.model.bodies.viscous_kernels` for the law. With z = dt/tau, a = exp(-z), phi = (1 - a)/z and a strain that
changes at a constant rate by D = dev(U1 - U0), the strain x of a spring is exactly

    at the end a x0 + phi D,    on average phi x0 + (1 - phi)/z D.

Backward Euler takes the stress of the end, the mid-point rule and the energy-momentum step the mean, theta between them what lies
between. By the mean, the work of the stress is the change of the energy of the springs and what the dashpots take,
2 g mu x : x / tau, which is never negative.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from femsim.model.bodies import viscous_kernels as kernels
from femsim.model.bodies.body import StepSettings
from materials import Prony

# z below which (1 - phi)/z is its series
_SMALL_TIME = 1e-3
# weights of xx, yy, zz, xy, yz, zx in A : B
_DOUBLE = np.array([1.0, 1.0, 1.0, 2.0, 2.0, 2.0])


class Branches:
    """The branches of generalised Maxwell solids at the integration points of a body.

    Parameters
    ----------
    prony : sequence of sequences of (g, tau)
        Terms of each of r materials: part of the shear modulus of its law, and relaxation time (s). All have as many branches as
        the one with the most terms; those that a material lacks carry nothing.
    of : ndarray of int64, (m,)
        Which material each element has.
    points : callable
        Gives elements (m, k), gradients (m, p, k, 3) 1/m, weights (m, p) m^3 and shear moduli (m,) Pa.

    Attributes
    ----------
    strain : ndarray, (b, m, p, 6)
        Strain of the spring of each branch at the end of the last step, deviatoric, in the frame of the rest shape: xx, yy, zz,
        xy, yz, zx. A step makes a new array.
    stress : ndarray, (m, p, 6), Pa
        Second Piola-Kirchhoff stress of the last :meth:`add_forces`: 00, 11, 22, 01, 02, 12.
    energy, loss : float, J
        Energy of the springs there, and what the dashpots have taken since the start.
    """

    def __init__(
        self,
        prony: Sequence[Prony],
        of: np.ndarray,
        points: Callable[[], tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]],
    ) -> None:
        self._g = np.zeros((max(map(len, prony)), len(prony)))
        self._tau = np.ones_like(self._g)
        for material, terms in enumerate(prony):
            for branch, (g, tau) in enumerate(terms):
                self._g[branch, material], self._tau[branch, material] = g, tau
        self._of = of
        self._points = points
        self.reset()

    def __repr__(self) -> str:
        return f"<Branches: {len(self._tau)} terms>"

    def reset(self) -> None:
        """Relax all branches."""
        self.strain = np.zeros((len(self._g), *self._points()[2].shape, 6))
        self.stress = np.zeros(self.strain.shape[1:])
        self.energy = self.loss = 0.0
        self._begun_at: np.ndarray | None = None

    def memory(self) -> dict[str, np.ndarray]:
        """Strain of the branches and what the dashpots have taken."""
        return {"branch_strain": self.strain, "viscous_loss": np.array(self.loss)}

    def recall(self, strain: np.ndarray, loss: float) -> None:
        """Go back to where these were, from :meth:`memory`."""
        self.strain, self.loss = strain, loss
        self.energy = self._stored(strain)

    # ---- a step

    def begin(self, q: np.ndarray, settings: StepSettings) -> None:
        """Begin a step at coordinates q (3 n,), m; nothing is remembered of a step that was begun before and not ended."""
        if self._begun_at is None or not np.array_equal(q, self._begun_at):
            self._before = self._stretch(q)
            self._begun_at = q.copy()
        theta = 1.0 if settings.conserving else settings.theta
        end, mean = (2.0 * theta - 1.0, 2.0 - 2.0 * theta) if not settings.conserving else (0.0, 1.0)
        a, phi, rest = self._factors(settings.dt)
        self._left = self._total(self._g * (end * a + mean * phi), self.strain)
        gain = (self._g * (end * phi + mean * rest)).sum(axis=0) / theta
        self._gain = gain[self._of]
        #: shear modulus of the branches of each material in the derivative of the stress by the velocity, over that of the law
        #: and theta dt, (r,)
        self.stiffness = gain if not settings.conserving else 2.0 * gain

    def add_forces(self, moved: np.ndarray, end: np.ndarray | None, force: np.ndarray) -> None:
        """Add the forces of the branches (n, 3), N, in the step that was begun.

        Parameters
        ----------
        moved : ndarray, (n, 3), m
            Positions at theta.
        end : ndarray, (n, 3), m, or None
            Positions at the end of an energy-momentum step; None for one by theta.
        force : ndarray, (n, 3), N
            Added to.
        """
        reach = moved if end is None else end
        kernels.branch_forces(
            moved, reach, *self._points(), self._before, self._left, self._gain, end is not None, force, self.stress
        )

    def end(self, q: np.ndarray, q_new: np.ndarray, dt: float) -> None:
        """End a step of length dt (s) from q to q_new, (3 n,) m."""
        before = self._before if self._begun_at is not None and np.array_equal(q, self._begun_at) else self._stretch(q)
        after = self._stretch(q_new)
        change = after - before
        change[..., :3] -= change[..., :3].mean(axis=-1, keepdims=True)
        a, phi, rest = (factor[:, self._of, None, None] for factor in self._factors(dt))
        mean = phi * self.strain + rest * change
        self.strain = a * self.strain + phi * change
        stored = self.energy
        self.energy = self._stored(self.strain)
        self.loss += 2.0 * self._sum(mean * change) - (self.energy - stored)
        self._before, self._begun_at = after, q_new.copy()

    # ---- readings where the last step ended

    def energy_density(self) -> np.ndarray:
        """Energy of the springs by volume at rest, (m, p), J/m^3."""
        squares = (self.strain**2) @ _DOUBLE
        return np.asarray(self._points()[3][:, None] * self._total(self._g, squares))

    def add_cauchy(self, x: np.ndarray, stress: np.ndarray) -> None:
        """Add the true stress of the branches at positions x (n, 3), m, to ``stress`` (m, p, 6), Pa."""
        elements, gradient, _, lame_mu = self._points()
        kernels.branch_cauchy(x, elements, gradient, lame_mu, self._total(self._g, self.strain), stress)

    # ---- parts

    def _factors(self, dt: float) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Factors a, phi and (1 - phi)/z of each branch of each material, (b, r)."""
        z = dt / self._tau
        phi = -np.expm1(-z) / z
        rest = np.where(z < _SMALL_TIME, 0.5 - z / 6.0 + z * z / 24.0, (1.0 - phi) / z)
        return np.exp(-z), phi, rest

    def _total(self, factor: np.ndarray, values: np.ndarray) -> np.ndarray:
        """Sum over branches of a factor of each material, (b, r), times values (b, m, ...)."""
        return np.asarray(np.einsum("bm,bm...->m...", factor[:, self._of], values))

    def _stretch(self, q: np.ndarray) -> np.ndarray:
        """U at coordinates q, (m, p, 6)."""
        elements, gradient, weight, _ = self._points()
        out = np.empty((*weight.shape, 6))
        kernels.stretch_tensors(q.reshape(-1, 3), elements, gradient, out)
        return out

    def _stored(self, strain: np.ndarray) -> float:
        """Energy of the springs, J."""
        return self._sum(strain * strain)

    def _sum(self, products: np.ndarray) -> float:
        """Sum of w mu g products over components, points and branches; products (b, m, p, 6)."""
        _, _, weight, lame_mu = self._points()
        return float(np.einsum("bm,mp,bmp->", self._g[:, self._of], weight * lame_mu[:, None], products @ _DOUBLE))
