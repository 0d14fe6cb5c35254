"""Measures candidates one by one, and puts those that help together."""

from __future__ import annotations

import shlex
import textwrap
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from davinci.advice.candidates import Candidate, Settings, arguments
from davinci.errors import CheckFailed, CompileError, InputError

WORTH = 0.002
"""Gains of a smaller share of the time are left out."""

SECONDS = 120.0
"""How long candidates are tried, if nothing else is asked for."""

FOR_SINGLES = 0.6
"""Share of the time after which no further single change is begun, so that those that help can be
put together."""

BEST = "to see the best: "

TEXT_AT = 24
"""Where the lines of a gain go on, if it takes several: behind its time."""

Errors = Mapping[str, float]
"""`max_rel_err` and `cosine` of outputs, as `davinci.reference.check` finds them."""

Measure = Callable[[Settings], float]
"""The time of a run with some arguments, in us; raises what keeps it from running."""

FindErrors = Callable[[Settings], Errors | None]
"""Errors of the outputs of a run with some arguments; None where they are not asked for."""


@dataclass(frozen=True)
class Measured:
    """A run.

    Attributes:
        time_us: that it takes.
        samples: that it computes.
    """

    time_us: float
    samples: int = 1

    @property
    def sample_us(self) -> float:
        """Time of a sample."""
        return self.time_us / self.samples


@dataclass(frozen=True)
class Gain:
    """A change that was measured.

    Attributes:
        candidate: the change.
        run: the run with it.
        saved_ratio: of the time that a sample takes without it.
        errors: of its outputs, of a change that changes numbers; None where they were not measured.
    """

    candidate: Candidate
    run: Measured
    saved_ratio: float
    errors: Errors | None = None

    @property
    def arguments(self) -> str:
        """What is added to the command line of npu-run."""
        return shlex.join(arguments(self.candidate.settings))


@dataclass(frozen=True)
class Advice:
    """What was found.

    Attributes:
        command: the words of the run as it was asked for.
        settings: arguments of that run; those of a gain take their places.
        base: that run.
        errors: of its outputs; None where they were not measured.
        gains: of single changes, the largest first.
        together: of those that help together; None where fewer than two do.
        useless: changes that take as long or longer, as words of a command line.
        untried: changes for which there was no time, as words of a command line.
        failed: changes with which the model cannot run, with the reason.
    """

    command: Sequence[str]
    settings: Settings
    base: Measured
    errors: Errors | None
    gains: tuple[Gain, ...]
    together: Gain | None
    useless: tuple[str, ...] = ()
    untried: tuple[str, ...] = ()
    failed: tuple[tuple[str, str], ...] = ()

    def command_of(self, gain: Gain | None) -> str:
        """The command that shows a gain, None for the run as it was asked for."""
        settings = {**self.settings, **(gain.candidate.settings if gain else {})}
        return shlex.join([*self.command, *arguments(settings)])

    def record(self) -> dict[str, Any]:
        """For `--json`."""

        def of_gain(gain: Gain) -> dict[str, Any]:
            return {
                "arguments": gain.arguments,
                "command": self.command_of(gain),
                "time_us": gain.run.time_us,
                "samples": gain.run.samples,
                "saved_ratio": gain.saved_ratio,
                "exact": gain.candidate.exact,
                "errors": dict(gain.errors) if gain.errors is not None else None,
            }

        return {
            "command": self.command_of(None),
            "time_us": self.base.time_us,
            "errors": dict(self.errors) if self.errors is not None else None,
            "gains": [of_gain(gain) for gain in self.gains],
            "together": of_gain(self.together) if self.together else None,
            "useless": list(self.useless),
            "untried": list(self.untried),
            "failed": [{"arguments": words, "reason": reason} for words, reason in self.failed],
        }

    def text(self, width: int | None = None) -> str:
        """A line for each gain, and the command of the best.

        Args:
            width: letters of a line, if lines are to be broken: at spaces, and in a command in such
                a way that a shell takes it as it stands.
        """
        if width is None:
            return "\n".join(self._lines())
        return "\n".join(_broken(line, width) for line in self._lines())

    def _lines(self) -> list[str]:
        as_it_is = f"{'as it is':>10}  {self.base.time_us:9.1f} us{_error_text(self.errors)}"
        lines = [f"{as_it_is}  {self.command_of(None)}"]
        for gain in self.gains:
            lines.append(_line(gain, gain.arguments))
        if self.together is not None:
            lines.append(_line(self.together, f"together: {self.together.arguments}"))
        best = self.together or (self.gains[0] if self.gains else None)
        if best is None:
            lines.append("nothing that was tried takes less time")
        else:
            lines.append(f"{BEST}{self.command_of(best)}")
        if self.useless:
            lines.append(f"no gain: {', '.join(self.useless)}")
        if self.untried:
            lines.append(f"no time to try: {', '.join(self.untried)} (--advise-seconds)")
        return lines + [f"not possible: {words}: {reason}" for words, reason in self.failed]


def _broken(line: str, width: int) -> str:
    """A line of `Advice.text` as several that are no longer than `width`, if it has spaces."""
    command = line.startswith(BEST)
    if command:
        # A word of the command that has spaces stays whole.
        words = map(shlex.quote, shlex.split(line.removeprefix(BEST)))
        line = BEST + " ".join(word.replace(" ", "\0") for word in words)
    pieces = textwrap.wrap(
        line,
        max(1, width - 2 * command),
        subsequent_indent=" " * (TEXT_AT if line.startswith(" ") else 4),
        break_long_words=False,
        break_on_hyphens=False,
    )
    return (" \\\n" if command else "\n").join(pieces).replace("\0", " ")


def _line(gain: Gain, words: str) -> str:
    several = f" a sample, {gain.run.samples} in {gain.run.time_us:.1f} us"
    samples = several if gain.run.samples > 1 else ""
    return (
        f"{-gain.saved_ratio:+10.1%}  {gain.run.sample_us:9.1f} us{samples}"
        f"{_error_text(gain.errors)}  {words}"
    )


def _error_text(errors: Errors | None) -> str:
    if errors is None:
        return ""
    return f"  error {errors['max_rel_err']:.1e}, cosine {errors['cosine']:.6f}"


@dataclass
class _Trials:
    """Candidates of one run, measured against it.

    Attributes:
        stop: `time.monotonic` at which no further one is begun.
    """

    measure: Measure
    find_errors: FindErrors
    settings: Settings
    base: Measured
    progress: Callable[[str], None]
    untried: list[str] = field(default_factory=list)
    failed: list[tuple[str, str]] = field(default_factory=list)

    def gain(self, candidate: Candidate, stop: float) -> Gain | None:
        """The gain of a change, None where there is no time for it or it is not possible."""
        words = shlex.join(arguments(candidate.settings))
        if time.monotonic() >= stop:
            self.untried.append(words)
            return None
        self.progress(f"trying {words}")
        try:
            time_us = self.measure({**self.settings, **candidate.settings})
        except (CompileError, InputError) as error:
            self.failed.append((words, str(error).splitlines()[0]))
            return None
        run = Measured(time_us, candidate.samples)
        saved = (self.base.sample_us - run.sample_us) / self.base.sample_us
        return Gain(candidate, run, saved)

    def with_errors(self, gain: Gain) -> Gain | None:
        """The gain with the errors of its outputs; None if these are no numbers."""
        if gain.candidate.exact:
            return gain
        self.progress(f"computing outputs with {gain.arguments}")
        try:
            errors = self.find_errors({**self.settings, **gain.candidate.settings})
        except CheckFailed as error:
            self.failed.append((gain.arguments, str(error).splitlines()[0]))
            return None
        return Gain(gain.candidate, gain.run, gain.saved_ratio, errors)


def advise(
    measure: Measure,
    tried: Iterable[Candidate],
    base: Measured,
    *,
    command: Sequence[str] = (),
    settings: Settings | None = None,
    errors: Errors | None = None,
    find_errors: FindErrors = lambda settings: None,
    seconds: float = SECONDS,
    progress: Callable[[str], None] = lambda text: None,
) -> Advice:
    """Measures every candidate, and those that help together.

    Args:
        measure: compiles and simulates.
        tried: changes, in the order in which they are measured.
        base: the run as it was asked for.
        command: words of that run without its `settings`.
        errors: of its outputs.
        find_errors: of the outputs of another run.
        seconds: after which nothing more is begun.
        progress: called with what is done next.
    """
    begun = time.monotonic()
    trials = _Trials(measure, find_errors, settings or {}, base, progress)
    singles, end = begun + FOR_SINGLES * seconds, begun + seconds
    found = [g for candidate in tried if (g := trials.gain(candidate, singles)) is not None]
    worth = [gain for gain in found if gain.saved_ratio > WORTH]
    checked = [known for gain in worth if (known := trials.with_errors(gain)) is not None]
    gains = sorted(checked, key=lambda gain: gain.run.sample_us)
    best = together = gains[0] if gains else None
    for other in gains[1:]:
        assert together is not None, "there is a first gain wherever there are others"
        first, second = together.candidate, other.candidate
        if first.settings.keys() & second.settings.keys():
            continue
        both = Candidate(
            {**first.settings, **second.settings},
            first.samples * second.samples,
            first.exact and second.exact,
        )
        gain = trials.gain(both, end)
        if gain is not None and gain.run.sample_us < together.run.sample_us:
            together = gain
    if together is best:
        together = None
    elif together is not None:
        together = trials.with_errors(together)
    return Advice(
        command,
        settings or {},
        base,
        errors,
        tuple(gains),
        together,
        tuple(gain.arguments for gain in found if gain not in worth),
        tuple(trials.untried),
        tuple(trials.failed),
    )
