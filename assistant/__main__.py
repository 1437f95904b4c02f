"""`python -m assistant` is the command `assistant`."""

from assistant.cli import main

if __name__ == "__main__":
    main()
