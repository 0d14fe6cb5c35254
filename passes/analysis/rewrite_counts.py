"""How often each rewrite was applied, noted on the module: `ascend.rewrites = {gelu = 12 : i64}`.

Passes add to it, the record of a run takes it from there; see `davinci.passes.pipeline.rewrites`.
"""

from __future__ import annotations

from davinci.dialects.base import attribute
from davinci.mlir import Op
from davinci.passes import builder

APPLIED = "ascend.rewrites"


def note(module: Op, name: str, count: int = 1) -> None:
    """Adds to how often a rewrite was applied."""
    if count:
        found = applied(module)
        found[name] = found.get(name, 0) + count
        with module.context:
            module.attributes[APPLIED] = builder.as_attribute(dict(sorted(found.items())))


def applied(module: Op) -> dict[str, int]:
    """How often each rewrite was applied to a module, at any level; without those that were not."""
    found = attribute(module, APPLIED, {})
    return dict(found) if isinstance(found, dict) else {}
