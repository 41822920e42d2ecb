"""``python -m femsim`` is the command ``femsim`` of that Python, for people who have several."""

from femsim.cli import main

if __name__ == "__main__":
    main()
