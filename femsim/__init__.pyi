"""The public names of femsim, each once, with its home: read by type checkers, and by ``__init__.py`` at run time."""

from contact import (
    SOLVERS as SOLVERS,
    Box as Box,
    Capsule as Capsule,
    Cone as Cone,
    ContactError as ContactError,
    ContactProblem as ContactProblem,
    Cylinder as Cylinder,
    FclibProblem as FclibProblem,
    Group as Group,
    LocalProblem as LocalProblem,
    Mesh as Mesh,
    Plane as Plane,
    Revolved as Revolved,
    Rows as Rows,
    Sphere as Sphere,
    Thread as Thread,
    condense as condense,
    make_local_problem as make_local_problem,
    make_problem as make_problem,
    make_rows as make_rows,
    make_solver as make_solver,
    measure as measure,
    measure_local as measure_local,
    read_fclib as read_fclib,
    register_solver as register_solver,
    to_global as to_global,
    write_fclib as write_fclib,
)
from femsim.base.errors import InputError as InputError
from femsim.model.bodies.body import Body as Body, StepSettings as StepSettings
from femsim.model.bodies.body_defaults import BodyDefaults as BodyDefaults
from femsim.model.bodies.rod_end import RodEnd as RodEnd
from femsim.model.drives import (
    Motion as Motion,
    Profile as Profile,
)
from femsim.model.joint_springs import RobotSpring as RobotSpring
from femsim.model.paths import (
    ToolPath as ToolPath,
    load_path as load_path,
)
from femsim.model.robot_paths import JointPath as JointPath
from femsim.model.robots import (
    Robot as Robot,
    RobotJoint as RobotJoint,
    RobotLink as RobotLink,
)
from femsim.model.solids import (
    Compound as Compound,
    Piece as Piece,
)
from femsim.model.urdf import load_robot as load_robot
from femsim.run.loading import load_run as load_run
from femsim.run.repair import repair as repair
from femsim.run.result import (
    ChamberSeries as ChamberSeries,
    GaugeSeries as GaugeSeries,
    MarkerSeries as MarkerSeries,
    Run as Run,
    SensorSeries as SensorSeries,
    TendonSeries as TendonSeries,
)
from femsim.run.resume import resume as resume
from femsim.run.saved import Saved as Saved
from femsim.run.simulate import simulate as simulate
from femsim.run.simulation import (
    Simulation as Simulation,
    StepFailedError as StepFailedError,
)
from femsim.scene.checks import (
    Finger as Finger,
    Handle as Handle,
)
from femsim.scene.health_bounds import HealthBounds as HealthBounds
from femsim.scene.reading import Reading as Reading
from femsim.scene.scene import (
    Scene as Scene,
    mesh_file as mesh_file,
    mesh_shape as mesh_shape,
)
from femsim.scene.scene_file import (
    Parameter as Parameter,
    list_scenes as list_scenes,
    load_scene as load_scene,
    scene_parameters as scene_parameters,
)
from femsim.studies.calibration.calibrate import calibrate as calibrate
from femsim.studies.calibration.result import CalibrationResult as CalibrationResult
from femsim.studies.comparison.card import read_card as read_card
from femsim.studies.comparison.compare import compare as compare
from femsim.studies.comparison.comparison import Comparison as Comparison
from femsim.studies.comparison.log import (
    Log as Log,
    read_log as read_log,
)
from femsim.studies.material_fit.card import write_card as write_card
from femsim.studies.material_fit.fit import (
    FIT_LAWS as FIT_LAWS,
    LawFit as LawFit,
    MaterialFit as MaterialFit,
    fit_material as fit_material,
)
from femsim.studies.material_fit.plot import (
    plot_fit as plot_fit,
    plot_viscous_fit as plot_viscous_fit,
)
from femsim.studies.material_fit.tensile_test import (
    TensileTest as TensileTest,
    read_tensile_test as read_tensile_test,
)
from femsim.studies.material_fit.viscous_fit import (
    ViscousFit as ViscousFit,
    fit_viscous as fit_viscous,
)
from femsim.studies.problems.bench import (
    BenchRow as BenchRow,
    bench as bench,
)
from femsim.studies.problems.redraw import (
    redraw_bench as redraw_bench,
)
from femsim.studies.problems.solve import (
    SolvedProblem as SolvedProblem,
    solve_problem as solve_problem,
)
from femsim.studies.reproduction.command import (
    Reproduction as Reproduction,
    reproduce as reproduce,
)
from femsim.studies.sweeps.many import (
    CaseRun as CaseRun,
    ManyRuns as ManyRuns,
    run_many as run_many,
)
from femsim.studies.sweeps.sensitivity import (
    SensitivityResult as SensitivityResult,
    sensitivity as sensitivity,
)
from femsim.studies.sweeps.sweep import (
    SweepResult as SweepResult,
    sweep as sweep,
)
from materials import (
    LAWS as LAWS,
    Corotational as Corotational,
    Elastic as Elastic,
    FrictionTable as FrictionTable,
    Law as Law,
    MaterialError as MaterialError,
    MooneyRivlin as MooneyRivlin,
    Ogden as Ogden,
    RodSection as RodSection,
    StableNeoHookean as StableNeoHookean,
    StVenantKirchhoff as StVenantKirchhoff,
    circular_section as circular_section,
    complex_modulus as complex_modulus,
    creep as creep,
    damping_ratio as damping_ratio,
    friction as friction,
    load_card as load_card,
    loss_factor as loss_factor,
    material as material,
    materials as materials,
    prony_of_loss_factor as prony_of_loss_factor,
    rayleigh_from_ratios as rayleigh_from_ratios,
    rectangular_section as rectangular_section,
    relaxation as relaxation,
)
from meshes import (
    MeshError as MeshError,
    TetMesh as TetMesh,
    TriMesh as TriMesh,
    ball_tets as ball_tets,
    box_tets as box_tets,
    box_triangles as box_triangles,
    capsule_triangles as capsule_triangles,
    chamfered_box_triangles as chamfered_box_triangles,
    cylinder_tets as cylinder_tets,
    cylinder_triangles as cylinder_triangles,
    length_scale as length_scale,
    load_surface as load_surface,
    load_tetmesh as load_tetmesh,
    load_volume as load_volume,
    make_tetmesh as make_tetmesh,
    make_trimesh as make_trimesh,
    quality as quality,
    save_tetmesh as save_tetmesh,
    sphere_triangles as sphere_triangles,
    tetrahedralize as tetrahedralize,
)
from viz import (
    VizError as VizError,
    open_frames as open_frames,
    plot_convergence as plot_convergence,
    plot_run as plot_run,
    plot_sweep as plot_sweep,
    probe_rendering as probe_rendering,
    read_part as read_part,
    read_pvd as read_pvd,
    render_run as render_run,
    view_run as view_run,
    write_report as write_report,
)

__version__: str
