"""Schedules and choices as plain data: how they are read from what a user wrote."""

from __future__ import annotations

from typing import Annotated

import pydantic

CONFIG = pydantic.ConfigDict(extra="forbid", strict=True)
"""How dataclasses are read from JSON: with their fields only, of exactly their types."""

Size = Annotated[int, pydantic.Field(ge=1, le=1 << 48)]
Place = Annotated[int, pydantic.Field(ge=0, le=64)]
