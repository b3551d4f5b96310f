"""`python -m autograder`: the command where the folder of scripts is not in PATH."""

from autograder.cli import main

if __name__ == "__main__":
    main()
