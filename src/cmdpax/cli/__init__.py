"""The command line: parse, call the library once, print.

Results go to standard output, messages and progress to standard error. Exit codes: 0 done, 1 an
error (one sentence says which), 2 wrong usage, 130 interrupted.
"""

from cmdpax.cli.application import main

__all__ = ["main"]
