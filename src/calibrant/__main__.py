"""``python -m calibrant`` is the command line."""

from calibrant.cli.entry_point import main

if __name__ == "__main__":
    main()
