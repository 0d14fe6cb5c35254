"""Groups that only move elements: transposes, slices, joins, pads, changes of layout, gathers.

An output is put together of pieces: `index_maps` and `piece_rules` say which, `choice` the way of
each. The ways: `transfers`, `squares`, `word_moves`, `fractal_moves`, and `gathers` by known rows.
"""
