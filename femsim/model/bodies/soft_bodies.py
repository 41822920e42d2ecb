"""Which soft body a material and a kind of element need."""

from __future__ import annotations

from typing import Literal

import numpy as np

from femsim.model.bodies.corotational import CorotationalBody
from femsim.model.bodies.hyperelastic import HyperelasticBody
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
) -> tuple[SoftBody, TetMesh]:
    """Make the body that a law and a kind of element need, and the mesh of its nodes.

    Parameters
    ----------
    name : str
        Name in outputs.
    mesh : TetMesh
        Rest shape, in the world, m.
    elastic : Elastic
        Material with its law.
    element : {"linear", "quadratic"}
        Quadratic elements add a node to every edge.
    velocity, angular_velocity, load
        As in :class:`~femsim.model.bodies.soft.SoftBody`.

    Returns
    -------
    SoftBody, TetMesh
        The mesh has all nodes of the body; for quadratic elements it is cut into eighths.
    """
    if element == "linear" and isinstance(elastic.law, Corotational):
        body: SoftBody = CorotationalBody(
            name, mesh.points, mesh.tets, elastic, velocity=velocity, angular_velocity=angular_velocity, load=load
        )
        return body, mesh
    elements = mesh.tets
    if element == "quadratic":
        mesh, elements = quadratic(mesh)
    body = HyperelasticBody(
        name, mesh.points, mesh.tets, elastic, elements=elements, velocity=velocity, angular_velocity=angular_velocity, load=load
    )
    return body, mesh
