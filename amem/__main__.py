"""`python -m amem` is the same as the `amem` program."""

from amem.cli.main import main

if __name__ == "__main__":
    main()
