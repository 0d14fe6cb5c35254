"""What the tables of a machine file are made of: a strict base, and kinds of numbers."""

from __future__ import annotations

from typing import Annotated

import pydantic


class Section(pydantic.BaseModel):
    """A table of a machine file: frozen, no unknown keys, no silent conversion of types."""

    model_config = pydantic.ConfigDict(extra="forbid", frozen=True, strict=True)


MOST = 10**9
"""The largest number that is no size: products of two such numbers are exact in 64 bits."""

Positive = Annotated[int, pydantic.Field(gt=0, le=MOST)]
Rate = Annotated[float, pydantic.Field(gt=0, le=MOST)] | Positive
Cycles = Annotated[int, pydantic.Field(ge=0, le=MOST)]
Amount = Annotated[float, pydantic.Field(ge=0, le=MOST)] | Cycles
MemoryBytes = Annotated[int, pydantic.Field(gt=0, le=1 << 48)]
BufferBytes = Annotated[int, pydantic.Field(gt=0, le=1 << 26)]
Ids = Annotated[int, pydantic.Field(gt=0, le=16)]
"""Events and flags: their instructions have four bits for the number."""
