"""``python -m calibrant`` is the command line."""

from calibrant.cli.main import main

if __name__ == "__main__":
    main()
