"""Fuzzing: arbitrary bytes for everything that decodes bytes.

``targets.py`` has the functions, each with what it may raise. ``python -m tests.fuzz``
drives them by atheris, which follows the coverage (``nox -s fuzz``). ``corpus/`` has
what it found interesting, and every input that once broke something; the tests of every
change replay it.
"""
