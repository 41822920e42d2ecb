"""Which soft body a material and a kind of element need."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import numpy as np

from femsim.model.bodies.corotational import CorotationalBody
from femsim.model.bodies.hyperelastic import HyperelasticBody
from femsim.model.bodies.mixture import Mixture, Region
from femsim.model.bodies.soft import Load, SoftBody
from materials import Corotational, Elastic
from meshes import TetMesh
from meshes.quadratic import quadratic

#: Kinds of finite elements.
ElementKind = Literal["linear", "quadratic"]


def make_soft_body(
    name: str,
    mesh: TetMesh,
    elastic: Elastic,
    *,
    element: ElementKind = "linear",
    velocity: np.ndarray,
    angular_velocity: np.ndarray | None = None,
    load: Load | None = None,
    regions: Sequence[Region] = (),
) -> tuple[SoftBody, TetMesh]:
    """Make the body that laws and a kind of element need, and the mesh of its nodes.

    Parameters
    ----------
    name : str
        Name in outputs.
    mesh : TetMesh
        Rest shape, in the world, m.
    elastic : Elastic
        Material with its law, of what no region has.
    element : {"linear", "quadratic"}
        Quadratic elements add a node to every edge.
    velocity, angular_velocity, load
        As in :class:`~femsim.model.bodies.soft.SoftBody`.
    regions : sequence of Region
        Parts with other materials.

    Returns
    -------
    SoftBody, TetMesh
        The mesh has all nodes of the body; for quadratic elements it is cut into eighths.
    """
    mixture = Mixture(elastic, regions, len(mesh.tets))
    plain = mixture.damps_evenly and all(isinstance(one.law, Corotational) for one in mixture.materials)
    if element == "linear" and plain:
        body: SoftBody = CorotationalBody(
            name, mesh.points, mesh.tets, elastic, velocity=velocity, angular_velocity=angular_velocity, load=load,
            regions=regions,
        )  # fmt: skip
        return body, mesh
    elements = mesh.tets
    if element == "quadratic":
        mesh, elements = quadratic(mesh)
    body = HyperelasticBody(
        name, mesh.points, mesh.tets, elastic, elements=elements, velocity=velocity, angular_velocity=angular_velocity, load=load,
        regions=regions,
    )  # fmt: skip
    return body, mesh
