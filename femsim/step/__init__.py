"""One time step: a state in, the next state and a report out.

`state`, `force_memory`
    `State`: all that a step changes and the next one reads; saved, restored, compared.
`system`, `prescribed`
    All bodies in one sparse matrix A and right-hand side b; rows whose velocity is prescribed.
`contacts`
    All contacts: one list of families, whose rows and forces are joined once.
`contact_family`
    What every family answers; `point_contacts` (points and shapes) and `deforming_contacts` (surfaces and strands), their
    kernels in `point_rows_kernels`, `deforming_rows_kernels` and, shared, `rows_kernels`; `placed` says where parts are.
`stepper`
    `Stepper.step`: the step on one screen.
`end_velocity`
    What the contact law says of the velocities at the end of a step: rest and restitution.
`free_flight`
    What rounding took of the momentum of bodies that nothing touches is given back.
`measure`, `report`
    `StepReport`: what a step did, read without changing anything.
`advance`
    `take_step`: steps that fail are taken again in halves.
"""
