"""`python -m assistant` is the command `assistant`."""

import gc


def main() -> None:
    """Run the command line."""
    gc.set_threshold(50_000)  # from 700: modules stay, and to look through them for garbage took a tenth of the time
    from assistant.cli import main as run  # noqa: PLC0415 - see above

    run()


if __name__ == "__main__":
    main()
