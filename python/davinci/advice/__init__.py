"""What to try with a model: changes of a run that are measured one by one, and together.

Each candidate (`candidates`) is a change of the arguments of npu-run. It is compiled and simulated
(`bench`), so a gain is what a run with that change shows. The best are put together one after the
other, and each stays where it shortens the time further (`search`).
"""

from __future__ import annotations

from davinci.advice.bench import Bench
from davinci.advice.candidates import Candidate, RunFacts, candidates
from davinci.advice.search import Advice, Gain, Measured, advise

__all__ = ["Advice", "Bench", "Candidate", "Gain", "Measured", "RunFacts", "advise", "candidates"]
