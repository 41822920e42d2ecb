"""Elastic laws fitted to a tensile test.

The tour, in the order of use:

`tensile_test`
    `read_tensile_test` reads a curve of stress over strain from a CSV file: a `TensileTest`.
`fit`
    `fit_material` fits the laws of ``FIT_LAWS`` to it by least squares and says how well each does and how far it is stable:
    a `MaterialFit` with a `LawFit` for each law.
`viscous_fit`
    `fit_viscous` fits a law together with Prony terms, where tests have a time and tell relaxation from the curve of the law: a
    `ViscousFit`.
`plot`
    `plot_fit` draws the curve, the laws and their differences; `plot_viscous_fit` stress over time.
`card`
    `write_card` writes one of the laws as a material card that scenes can read.
"""
