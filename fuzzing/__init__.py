"""Fuzzers: inputs that nobody would write, for every place where cmdpax reads something.

    python -m fuzzing --seconds 600 --seed 7        as `make fuzz`
    python -m fuzzing replay build/fuzz/FAILURE.json

A case is a number of a seed: it is the same input on every machine and for any number of workers.
Each runs in a folder of its own, in a process that is watched. `docs/robustness.md` says what is
asserted.
"""
