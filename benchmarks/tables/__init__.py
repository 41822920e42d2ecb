"""The tables of the pages on solvers, one module each; run by ``benchmarks/solver_tables.py``.

A module has ``make(settings) -> dict`` from the name of a block of that page to its text in Markdown.
"""
