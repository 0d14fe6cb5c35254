"""Schedules and choices as plain data: how they are read from what a user wrote."""

from __future__ import annotations

from typing import Annotated

import pydantic

CONFIG = pydantic.ConfigDict(extra="forbid", strict=True)
"""Of dataclasses that are read: nothing else than their fields, of just their types."""

Size = Annotated[int, pydantic.Field(ge=1, le=1 << 48)]
Place = Annotated[int, pydantic.Field(ge=0, le=64)]
