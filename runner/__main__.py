"""The command `nightkeep`."""

from runner.token import shed_tokens


def main() -> None:
    """Run the command line of this process."""
    held = shed_tokens()
    from runner.cli import app

    app(prog_name="nightkeep", obj=held)


if __name__ == "__main__":
    main()
