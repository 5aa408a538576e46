"""`python -m cmdpax`: the command line."""

from cmdpax.cli import main

if __name__ == "__main__":
    main()
