"""Calls of a scene about the contact of pairs: friction, rebound, softness, who has none; `pairs` does the work."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from femsim.base.errors import naming_all_parameters
from femsim.scene import pairs
from femsim.scene.checks import Handle, Vector
from femsim.scene.contents import SceneContents


@partial(naming_all_parameters, at_once=True)
class ContactCalls(SceneContents):
    """Calls of :class:`femsim.scene.scene.Scene` about the contact of pairs."""

    def set_friction(
        self,
        a: Handle | str,
        b: Handle | str,
        coefficient: float | tuple[float, float],
        *,
        direction: Vector | None = None,
    ) -> None:
        """Set the Coulomb coefficient of a pair, or its two coefficients where friction differs by direction.

        Parameters
        ----------
        a, b : Handle or str
            Two bodies (or one twice, for contact with itself), or names of surfaces. What is said of two bodies comes before
            what is said of a body and a surface, and that before two surfaces; the last word on the same two counts. A region
            of a soft body is ``"body.region"``, and comes before its body.
        coefficient : float or (float, float), 1
            Coulomb coefficient, >= 0; or those along and across ``direction``, both > 0 (papers/001 eq. 12).
        direction : (3,), optional
            With two coefficients: direction of the first. It is in the frame of ``b`` where that is a rigid body, which takes it
            along, and in the world frame where it is an obstacle, also a turned one. Its part in the tangent plane of a contact
            counts; a contact whose normal it lies along has the root of the product of both coefficients in all directions.

        Raises
        ------
        InputError
            Two coefficients without a direction or on a soft body, values out of range, or a name that means a body and the
            surface of others. Where a body and a surface are named, two of them may quarrel about a pair: then the run does not
            start, and says which.
        """
        pairs.set_friction(self, a, b, coefficient, direction)

    def set_restitution(self, a: Handle | str, b: Handle | str, coefficient: float) -> None:
        """Set the share of the approach speed with which the contacts of a pair separate; 0 where nothing is said.

        Rigid bodies rebound by it. Soft bodies rebound by their elasticity: there it is about the nodes of their surface alone.
        With friction and several contacts at once this law of Newton's would add energy: bodies rebound with less then, unless a
        contact among these is soft, which gives back what it stored. All contacts of a step act at once: balls that touch share
        a blow, where those of Newton's cradle hand it on one by one; leave gaps that take some steps to close, or make them soft.

        Parameters
        ----------
        a, b : Handle or str
            As in :meth:`set_friction`.
        coefficient : float, 1
            From 0 to 1.

        Raises
        ------
        InputError
            A value out of range, or a name that means a body and the surface of others.
        """
        pairs.set_restitution(self, a, b, coefficient)

    def set_softness(self, a: Handle | str, b: Handle | str, softness: float) -> None:
        """Set how far each contact of a pair gives way to its normal force (papers/003: compliance); 0 where nothing is said.

        A contact that presses with the force f is c f deep, as if a spring of 1/c N/m were in it; friction stays Coulomb's. So
        a body on n contacts sinks by c m g / n: c is that of one contact, and a finer mesh has more of them. A soft contact
        rebounds by its elasticity, damped as by backward Euler.

        Parameters
        ----------
        a, b : Handle or str
            As in :meth:`set_friction`.
        softness : float, m/N
            Depth by normal force c, >= 0.

        Raises
        ------
        InputError
            A value out of range, or a name that means a body and the surface of others. A pair with a restitution beside it is
            refused when the run starts.
        """
        pairs.set_softness(self, a, b, softness)

    def contact_group(self, name: str, members: Sequence[Handle | str]) -> str:
        """Give bodies or links a common name, for :meth:`ignore_contact`.

        Parameters
        ----------
        name : str
            Name of the group, none of a body or surface.
        members : sequence of Handle or str
            Bodies, links of a gripper ("gripper.left"), other groups; those added later do not belong to it.

        Returns
        -------
        str
            The name.

        Raises
        ------
        InputError
            A name that is taken, or a member that does not exist.
        """
        return pairs.contact_group(self, name, members)

    def ignore_contact(self, a: Handle | str, b: Handle | str | None = None) -> None:
        """Leave out the contact of a pair: they pass through each other, and no measure of depth speaks of it.

        Parameters
        ----------
        a, b : Handle or str
            Two bodies, links, obstacles, names of surfaces (all that have one) or of groups. The name of a robot means all its
            links; its base alone is named like the others, ``robot.base`` or what the file calls it. ``b`` left out: the members
            of the group or surface ``a`` have none with each other; of a body and itself see ``self_contact``.

        Raises
        ------
        InputError
            A name that nothing has, or one body alone.
        """
        pairs.ignore_contact(self, a, b)

    def contact_by_faces(self, *bodies: Handle | str, on: bool = True) -> None:
        """Let soft bodies and rods have contact with the corners, edges and faces of rigid parts, as they have with each other.

        Otherwise they have contact with shapes at their own nodes alone: the corner of a box sinks between the nodes of a coarse
        mesh, its side ploughs those ahead where it slides, and a cable lies on an edge only where the centre of a link does. By
        default free rigid bodies and obstacles have it with soft bodies where a `Box` or `Mesh` of theirs has edges that turn by
        more than 0.5 rad, and with rods where one is a mesh, unless it is smooth, convex and sampled by cells below half the
        rod's radius. They have it with both where they are small: where a shape is thinner than an element of the soft body's
        surface (its median edge; of a rod a link), or narrower than four in the middle one of its three extents. A `Sphere`,
        `Capsule`, `Cylinder` or `Cone` counts with soft bodies where it is less than three elements across, or shorter than one:
        its centre line keeps its radius off their faces, caps are polygons of 16 corners with the point of the rim that is
        closest to a face, and a cone is a pyramid of 24 sides. Pairs whose friction differs by direction never have it.

        Parameters
        ----------
        *bodies : Handle or str
            Rigid bodies, obstacles, links of grippers and robots, surfaces or groups, made of `Box`, `Mesh`, `Sphere`,
            `Capsule`, `Cylinder` and `Cone`. Contact of rigid parts with each other stays what it is.
        on : bool
            Whether by faces; False: at the nodes alone, always.

        Raises
        ------
        InputError
            No name, one that nothing has, a body that deforms, a part without a shape, or, with ``on``, made otherwise.
        """
        pairs.contact_by_faces(self, bodies, on=on)
