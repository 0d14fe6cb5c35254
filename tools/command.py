"""What the command lines share: usage errors with a hint, and errors without tracebacks."""

from __future__ import annotations

import argparse
import difflib
import functools
import os
import sys
import traceback
from collections.abc import Callable
from typing import NoReturn

from davinci import errors
from davinci.errors import DavinciError, InputError

EXIT_INTERRUPTED = 130
"""What shells report for a command ended by Ctrl-C."""


class Parser(argparse.ArgumentParser):
    """An argument parser that raises `InputError` and takes no abbreviations."""

    def __init__(self, **settings: object) -> None:
        super().__init__(add_help=False, allow_abbrev=False, **settings)  # type: ignore[arg-type]

    def error(self, message: str) -> NoReturn:
        raise InputError(message, where=self.prog, hint=f"{self.prog} --help lists the options")

    def reject(self, unknown: str) -> NoReturn:
        """Reports an option that does not exist, with the nearest one that does."""
        name = unknown.partition("=")[0]
        known = [text for action in self._actions for text in action.option_strings]
        near = difflib.get_close_matches(name, known, n=1)
        hint = f"did you mean {near[0]}?" if near else f"{self.prog} --help lists the options"
        raise InputError("unknown argument", where=self.prog, found=repr(name), hint=hint)


def guarded(main: Callable[..., int]) -> Callable[..., int]:
    """Turns exceptions of a command into one message on stderr and its exit code."""

    @functools.wraps(main)
    def run(argv: list[str] | None = None) -> int:
        try:
            code = main(argv)
            sys.stdout.flush()
            return code
        except DavinciError as error:
            print(f"error: {error}", file=sys.stderr)
            return error.exit_code
        except KeyboardInterrupt:
            print("interrupted", file=sys.stderr)
            return EXIT_INTERRUPTED
        except BrokenPipeError:
            # The reader of our output has gone; the interpreter must not flush into it at exit.
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            return errors.EXIT_OK
        except Exception as error:
            if os.environ.get("DAVINCI_DEBUG"):
                traceback.print_exc()
            print(
                f"internal error: {type(error).__name__}: {error}; "
                "please report it; DAVINCI_DEBUG=1 shows where it comes from",
                file=sys.stderr,
            )
            return errors.EXIT_CANNOT_COMPILE

    return run
