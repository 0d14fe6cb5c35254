"""What the command lines share: usage errors with a hint, and errors without tracebacks."""

from __future__ import annotations

import argparse
import atexit
import difflib
import functools
import gc
import os
import signal
import sys
import threading
import traceback
from collections.abc import Callable, Collection, Iterable, Iterator
from contextlib import contextmanager, suppress
from importlib import metadata
from types import FrameType
from typing import NoReturn

from davinci import errors, files
from davinci.errors import DavinciError, InputError
from davinci.garbage import rare_search

EXIT_INTERRUPTED = 130
"""What shells report for a command ended by Ctrl-C."""


class Parser(argparse.ArgumentParser):
    """An argument parser that raises `InputError` and takes no abbreviations."""

    def __init__(self, **settings: object) -> None:
        super().__init__(add_help=False, allow_abbrev=False, **settings)  # type: ignore[arg-type]

    def error(self, message: str) -> NoReturn:
        raise InputError(message, where=self.prog, hint=f"{self.prog} --help lists the options")

    def add_help_and_version(self, what: str = "print this") -> None:
        """Adds the two options that all commands have; `what` is the help text of `--help`."""
        self.add_argument(
            "--version", action="store_true", help="print the versions of davinci and of MLIR"
        )
        self.add_argument("-h", "--help", action="store_true", help=what)

    def require(self, options: argparse.Namespace, **shown: str) -> None:
        """Reports the first argument that was not given, by name and as the usage line shows it."""
        for name, argument in shown.items():
            if getattr(options, name) is None:
                self.error(f"{argument} is missing")

    def options(self, argv: list[str] | None) -> argparse.Namespace | None:
        """The arguments of a command that has `--help` and `--version` and takes no others than it
        declares; None where help or versions were asked for, and are printed."""
        options, unknown = self.parse_known_args(argv)
        if options.help:
            print(self.format_help())
        elif options.version:
            print(version(self.prog))
        elif unknown:
            self.reject(unknown[0])
        else:
            return options
        return None

    def reject(self, unknown: str, others: Iterable[str] = ()) -> NoReturn:
        """Reports an option that does not exist, with the nearest one that does.

        Args:
            unknown: the argument as it was given.
            others: what is taken beside the parser's own options.
        """
        name = unknown.partition("=")[0]
        kind = "unknown option" if name.startswith("-") else "one argument too many"
        known = [*(text for action in self._actions for text in action.option_strings), *others]
        near = difflib.get_close_matches(name, known, n=1)
        hint = f"did you mean {near[0]}?" if near else f"{self.prog} --help lists the options"
        raise InputError(kind, where=self.prog, found=repr(name), hint=hint)


def refuse_others(
    options: argparse.Namespace,
    defaults: argparse.Namespace,
    taken: Collection[str],
    message: str,
    **told: str,
) -> None:
    """Fails at the first option that was given and is none of those that are taken.

    Args:
        taken: names of options, as attributes.
        told: what `InputError` says besides: what is expected, a hint.
    """
    for name, value in vars(options).items():
        if name not in taken and value != getattr(defaults, name):
            raise InputError(message, where=f"--{name.replace('_', '-')}", **told)


def version(command: str) -> str:
    """What `--version` prints."""
    from davinci import __version__, mlir

    bindings = mlir.PACKAGE.replace("_", "-")
    with suppress(metadata.PackageNotFoundError):  # as of a build tree of MLIR
        bindings += f" {metadata.version(bindings)}"
    return f"{command} {__version__}, MLIR of {bindings}"


@contextmanager
def stoppable() -> Iterator[None]:
    """Lets Ctrl-C end the process at once, with nothing half-written.

    Not by `KeyboardInterrupt`: it may come up in a verifier that MLIR calls, and an exception that
    crosses MLIR's code aborts the process. Nor in the main thread alone, which runs no handlers
    while it is in native code, and a kernel may loop there for ever: a thread waits for the byte
    that the interpreter writes when a signal arrives.
    """
    main = threading.current_thread() is threading.main_thread()
    if not main or signal.getsignal(signal.SIGINT) is not signal.default_int_handler:
        # Only the main thread may set handlers, and who ignores Ctrl-C (nohup) is to be left alone.
        yield
        return
    reader, writer = os.pipe()
    os.set_blocking(writer, False)
    threading.Thread(target=_watch, args=(reader,), daemon=True).start()
    before = signal.set_wakeup_fd(writer, warn_on_full_buffer=False)
    signal.signal(signal.SIGINT, _stop)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, signal.default_int_handler)
        signal.set_wakeup_fd(before)
        os.close(writer)  # ends the thread


def _watch(reader: int) -> None:
    """Reads numbers of signals until the pipe is closed."""
    while received := os.read(reader, 1):
        if received[0] == signal.SIGINT:
            _stop(signal.SIGINT, None)
    os.close(reader)


_STOPPING = threading.Lock()


def _stop(number: int, frame: FrameType | None) -> None:
    if not _STOPPING.acquire(blocking=False):
        return  # the other thread ends the process
    files.remove_temporaries()
    # The progress display hides the cursor.
    os.write(2, b"\x1b[?25h\ninterrupted\n" if os.isatty(2) else b"interrupted\n")
    os._exit(EXIT_INTERRUPTED)


def open_standard_streams() -> None:
    """Gives the numbers of closed standard streams to the null device, not to the next file."""
    while (number := os.open(os.devnull, os.O_RDWR)) <= 2:
        pass
    os.close(number)
    sys.stdout = sys.stdout or os.fdopen(1, "w", closefd=False)
    sys.stderr = sys.stderr or os.fdopen(2, "w", closefd=False)


def guarded(main: Callable[..., int]) -> Callable[..., int]:
    """Turns exceptions of a command into one message on stderr and its exit code."""
    atexit.register(gc.freeze)  # all goes with the process: garbage needs no last search

    @functools.wraps(main)
    def run(argv: list[str] | None = None) -> int:
        open_standard_streams()
        try:
            with stoppable(), rare_search():
                code = main(argv)
                sys.stdout.flush()
                return code
        except DavinciError as error:
            print(f"error: {error}", file=sys.stderr)
            return error.exit_code
        except BrokenPipeError:
            # The reader of our output has gone; the interpreter must not flush into it at exit.
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            return errors.EXIT_OK
        except OSError as error:
            # A name that is too long, a disk that is full.
            place = f"{str(error.filename)[:200]}: " if error.filename else ""
            print(f"error: {place}{error.strerror or error}", file=sys.stderr)
            return errors.EXIT_BAD_INPUT
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
