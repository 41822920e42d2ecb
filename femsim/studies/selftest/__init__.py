"""Stress scenes: what femsim must bear, or must name when it cannot.

`stress`
    what a stress scene is, and how a run of it is judged: by bounds measured here from the run, not by the verdict of the run
    itself, which is only read for the reasons that it names.
`scenes`
    the scenes.
`command`
    runs them and prints a table.
"""
