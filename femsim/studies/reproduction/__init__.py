"""The evaluations of papers from runs of our own: parts are measured and stored, a page is made of them.

- `cond`: papers/001 (COND), section V. Parts: `box`, `soft_scenes`, `stiffness`, `cable`, `scaling`, `position_based` (by `xpbd`,
  `xpbd_kernels`), `invertible`, `anisotropic`, each with what it measures and what it writes; `acceleration` writes about the
  rows of others.
- `measuring`: scenes in three sizes and solvers on their steps; `trials` runs the randomised trials, `trial_tables` writes them.
- `admm`: papers/003, section 8. Parts: `column`, `wall`, `robot`, `bars`; `splittings` has the methods on one problem.
- `canal`: papers/000 and 002, section VII. Parts: `single_step` (nuts and dishes), `tasks` (of robot arms), `pouring`,
  `quadrupeds`; `budgets` stops solvers after a number of iterations.
- `dual`: the solvers of papers/004. Part: `suite`.
- `paper`: the published figures, from `data/reference`; `text`: numbers, tables and figures; `page`: what an evaluation is, and
  the page of its sections.
- `command`: runs the parts, stores each result in `data/results/reproduction`, and makes the page.
"""
