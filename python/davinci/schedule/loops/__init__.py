"""Loops that stay on a core: `group` says what a step is, `schedule` which rows a core has."""
