"""The evaluation of papers/001 (COND), section V, from runs of our own: parts are measured and stored, a page is made of them.

- Parts: `box`, `soft_scenes`, `stiffness`, `cable`, `scaling`, `position_based` (by `xpbd`), `invertible`, `anisotropic`, each
  with what it measures and what it writes; `acceleration` writes about the rows of others.
- `measuring`: scenes in three sizes and solvers on their steps; `trials` runs the randomised trials, `trial_tables` writes them.
- `paper`: the published figures, from `data/reference`; `text`: numbers, tables and figures; `page`: the order of the sections.
- `command`: runs the parts, stores each result in `data/results/reproduction`, and makes the page.
"""
