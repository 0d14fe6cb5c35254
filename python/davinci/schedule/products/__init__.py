"""Products of matrices and convolutions on the cube.

`group` finds a `product` and its `epilogue` in a graph. `choice` chooses a schedule by `cost` and
`estimate`, `legality` holds one that somebody gives against the machine. `order` makes the order of
its work, as `events`; `rolls` makes loops of what repeats itself there.
"""
