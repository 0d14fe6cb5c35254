"""Which candidates of a kernel are measured, and what is known of them already.

Optuna keeps a study a kernel, in a SQLite database: processes that tune at the same time share it,
and one that is killed leaves what it had measured. A study belongs to a version of the compiler.
"""

from __future__ import annotations

import contextlib
import os
import tempfile
import warnings
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import optuna
from optuna.samplers import TPESampler
from optuna.storages import BaseStorage, InMemoryStorage, RDBStorage
from optuna.trial import TrialState

from davinci.errors import CompileError, DeviceFault, InputError
from davinci.tuning.kernels import TunedKernel
from davinci.version import compiler_version

DATABASE = "tuning.db"

FIRST = 8
"""Candidates that are measured at first, by the cost model's order; the sampler learns of them."""

LOCKED_SECONDS = 120
"""How long a process waits for others that write to the database."""

Measure = Callable[[Sequence[int]], Sequence[int | CompileError | DeviceFault]]
"""Measures candidates by number, several at a time: their cycles, or why there are none."""


def open_storage(folder: Path | None) -> BaseStorage:
    """The database in a folder, which is made if there is none; one in memory without a folder.

    Raises:
        InputError: the folder cannot be made, or holds another thing of that name.
    """
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    if folder is None:
        return InMemoryStorage()
    path = folder / DATABASE
    try:
        folder.mkdir(parents=True, exist_ok=True)
        if not path.exists():
            _make_database(path)
        return _database(path)
    except OSError as error:
        raise InputError(
            "cannot make the cache's folder", where=str(folder), found=error.strerror or ""
        ) from None
    except Exception as error:  # of SQLAlchemy and of Optuna, which have no class in common
        raise InputError(
            "not a database of the tuner",
            where=str(path),
            found=type(error).__name__,
            hint="remove the file, or choose another folder",
        ) from None


def _database(path: Path) -> RDBStorage:
    """The database in a file, whose tables are made if there are none."""
    waiting = {"connect_args": {"timeout": LOCKED_SECONDS}}
    return RDBStorage(f"sqlite:///{path.absolute()}", engine_kwargs=waiting)


def _make_database(path: Path) -> None:
    """Makes a database beside its place and then puts it there, if nobody else has by then."""
    with tempfile.TemporaryDirectory(dir=path.parent) as folder:
        made = Path(folder) / path.name
        _database(made).engine.dispose()
        with contextlib.suppress(FileExistsError):
            os.link(made, path)


def search(
    kernel: TunedKernel,
    storage: BaseStorage,
    trials: int,
    together: int,
    measure: Measure,
    go_on: Callable[[Mapping[int, int | None]], bool] = lambda cycles: True,
) -> dict[int, int]:
    """Cycles of the candidates that have been measured, now or before, by number.

    Args:
        trials: candidates to have measured in the end; all, if there are fewer.
        together: candidates that are measured at the same time.
        go_on: whether to measure more, by what is known in the order in which it was measured; None
            of candidates that failed.
    """
    sampler = TPESampler(seed=0)
    study = optuna.create_study(
        storage=storage,
        study_name=f"{compiler_version()} {kernel.key}",
        sampler=sampler,
        load_if_exists=True,
    )
    count = len(kernel.candidates)
    known = _known(study)
    wanted = min(trials, count)
    first = range(count if count <= trials else min(FIRST, trials))
    for number in first:
        if number not in known:
            study.enqueue_trial({"candidate": number}, skip_if_exists=True)
    asked = 0
    while len(known) < wanted and asked < 2 * trials and go_on(known):
        batch = [study.ask() for _ in range(min(together, wanted - len(known)))]
        asked += len(batch)
        numbers = [trial.suggest_int("candidate", 0, count - 1) for trial in batch]
        fresh = list(dict.fromkeys(number for number in numbers if number not in known))
        for number, found in zip(fresh, measure(fresh), strict=True):
            if isinstance(found, (CompileError, DeviceFault)):
                warnings.warn(f"{kernel.name}, candidate {number}: {found}", stacklevel=2)
            known[number] = None if isinstance(found, (CompileError, DeviceFault)) else found
        for trial, number in zip(batch, numbers, strict=True):
            cycles = known[number]
            state = TrialState.FAIL if cycles is None else TrialState.COMPLETE
            study.tell(trial, cycles, state)
    return {number: cycles for number, cycles in known.items() if cycles is not None}


def _known(study: optuna.Study) -> dict[int, int | None]:
    """Cycles of candidates by number; None of those that failed."""
    found: dict[int, int | None] = {}
    for trial in study.get_trials(deepcopy=False):
        if trial.state.is_finished() and "candidate" in trial.params:
            value = trial.value if trial.state == TrialState.COMPLETE else None
            found[trial.params["candidate"]] = None if value is None else int(value)
    return found
