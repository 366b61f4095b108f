"""`python -m foresail`: the command line where its script is not on the path."""

from foresail.cli.main import main

if __name__ == "__main__":
    main()
