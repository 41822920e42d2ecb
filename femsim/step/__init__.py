"""One time step: a state in, the next state and a report out.

`state`
    `State`: what moves.
`system`
    All bodies in one sparse matrix A and right-hand side b.
`contacts`, `deforming_contacts`
    From shapes and surfaces to the rows of the contact problem and back to forces.
`stepper`
    `Stepper.attempt`: the step on one screen.
`report`
    `StepReport`: what a step did.
`advance`
    Steps that fail are taken again in halves.
"""
