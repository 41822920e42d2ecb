"""One time step: a state in, the next state and a report out.

`state`, `force_memory`
    `State`: all that a step changes and the next one reads; saved, restored, compared.
`system`, `layout`, `prescribed`, `joints`
    All bodies in one sparse matrix A and right-hand side b; where each stands in it; rows whose velocity is prescribed; those
    that joints hold.
    `residual_kernels` measure what the equations lack, `joint_rows_kernels` write the rows of joints.
`contacts`
    All contacts: one list of families, whose rows and forces are joined once.
`contact_family`
    What every family answers; `point_contacts` (points and shapes), `deforming_contacts` (surfaces and strands) and
    `joint_limits` (joints at the ends of their ranges), their kernels in `point_rows_kernels`, `point_pairs_kernels`,
    `turning_kernels` (what turns together), `curved_kernels`, `deforming_rows_kernels` and, shared, `rows_kernels` and
    `leaning_kernels` (forces at edges do the work of gaps);
    `turned_axes` how normals lie to the axes of turned shapes, `placed` where parts are, `by_faces` which rigid ones are
    surfaces too, `flat_ends` what of the contacts of cylinders counts then, `seams` which edges others cover, `whole_joints`
    what has no contact until a joint breaks.
`stepper`, `newton`, `following`
    `Stepper.step`: the step on one screen; its equations solved, not only linearised; contacts that follow the bodies meanwhile.
`whole_tangents`, `whole_kernels`
    Where the next linearisation of a step of rods is: Newton's method by derivatives that are not symmetric.
`push`
    Forces from outside the scene on points of its parts.
`predict`
    Where a step is thought to lead, by the steps before it.
`end_velocity`, `rebounds`, `joint_velocity`, `mobility`
    What the contact law says of the velocities at the end of a step, rest and restitution, and what joints allow of them; the
    inverse masses by which impulses act.
`free_flight`
    What rounding took of the momentum of bodies without contact is given back.
`measure`, `report`
    `StepReport`: what a step did, read without changing anything.
`vitals`, `vitals_kernels`, `led_pairs`, `thin_shapes`, `thin_rods`, `soft_pairs`, `snags`, `start`, `deep_inside`
    What a step says about the health of a run; how deep parts that nothing can push, shapes thinner than elements or links, and
    pairs whose contacts give way, are in others (`thin_kernels`); what is caught at an edge; what there is to say before the
    first step.
`advance`, `adaptive`, `locked`
    `take_step`: steps that fail are taken again in halves; steps whose length follows the motion; contacts that friction locks,
    whose overlaps no bounded force undoes.
"""
