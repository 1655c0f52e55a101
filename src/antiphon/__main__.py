"""`python -m antiphon`: the `antiphon` command of the interpreter that runs it."""

from antiphon.cli import main

if __name__ == "__main__":
    main()
