"""``python -m laureate``: the command line, where its script is not on the path."""

from laureate.cli import main

if __name__ == "__main__":
    main()
