"""Words of the format MJCF: attributes of what is read, also those that are read past, and flags that would change a robot."""

from __future__ import annotations

PLACED = {"pos", "quat", "axisangle", "xyaxes", "zaxis", "euler"}
#: Attributes of elements, also those of older versions; "option flag" is <flag> within <option>.
ATTRIBUTES = {
    "body": PLACED | {"name", "childclass", "mocap", "gravcomp", "user", "sleep", "fuse", "simple"},
    "frame": PLACED | {"name", "childclass"},
    "replicate": {"count", "sep", "offset", "euler", "childclass"},
    "inertial": PLACED | {"mass", "diaginertia", "fullinertia"},
    "joint": set(
        "name class type group pos axis springdamper limited actuatorfrclimited solreflimit solimplimit solreffriction "
        "solimpfriction springyield stiffness range actuatorfrcrange actuatorgravcomp margin ref springref armature damping "
        "frictionloss user".split()
    ),
    "freejoint": {"name", "class", "group", "align"},
    "geom": PLACED | set(
        "name class type contype conaffinity condim group priority size material friction mass density shellinertia solmix "
        "solref solimp margin gap fromto hfield mesh fitscale rgba fluidshape fluidcoef user "
        "adhesion castshadow surfacevel".split()
    ),
    "mesh": set(
        "name class content_type file vertex normal texcoord face refpos refquat scale smoothnormal maxhullvert inertia "
        "builtin params material".split()
    ),
    "compiler": set(
        "alignfree angle assetdir autolimits balanceinertia boundinertia boundmass conflict convexhull coordinate discardvisual "
        "eulerseq exactmeshinertia fitaabb fusestatic inertiafromgeom inertiagrouprange meshdir passthrough savecanonical "
        "savecompiled saveinertial settotalmass strippath texturedir usethread".split()
    ),
    "option": set(
        "actuatorgroupdisable apirate ccd_iterations ccd_tolerance collision cone density gravity impratio integrator "
        "iterations jacobian ls_iterations ls_tolerance magnetic mpr_iterations mpr_tolerance noslip_iterations "
        "noslip_tolerance o_friction o_margin o_solimp o_solref sdf_initpoints sdf_iterations sleep_tolerance solver timestep "
        "tolerance viscosity wind".split()
    ),
    "option flag": set(
        "actuation autoreset clampctrl constraint contact damper diagexact energy equality eulerdamp filterparent frictionloss "
        "fwdinv gravity invdiscrete ipc island limit midphase multiccd nativeccd override passive refsafe sensor sensornoise "
        "sleep speculative spring warmstart".split()
    ),
    "pair": set("name class geom1 geom2 condim friction solref solreffriction solimp gap margin adhesion".split()),
    "exclude": {"name", "body1", "body2"},
    "equality": {"class", "active", "solref", "solimp"},
    "equality joint": {"name", "class", "active", "joint1", "joint2", "polycoef", "solref", "solimp"},
}  # fmt: skip
#: What <default> may hold, and what <equality>.
DEFAULTS = set(
    "default mesh texture material hfield joint geom site camera light pair equality tendon general motor position velocity "
    "intvelocity damper cylinder muscle adhesion dcmotor pid orientation plugin".split()
)
EQUALITIES = {"connect", "weld", "joint", "tendon", "flex", "flexvert", "flexstrain", "distance"}
#: Flags that would change a robot where they are off, and what to do, or what stays all the same.
FLAGS = {
    "gravity": "give gravity=(0, 0, 0) to fs.Scene",
    "contact": "say scene.ignore_contact",
    "filterparent": "neighbours have no contact",
    "limit": "joints keep their stops",
    "equality": "joints keep following others",
    "frictionloss": "joints keep their dry friction",
    "damper": "joints keep their damping",
    "passive": "joints keep their damping",
    "constraint": "contact, stops, dry friction and mimics stay",
}
