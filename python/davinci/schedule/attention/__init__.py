"""Two products and the softmax between them, whose scores stay on the core.

`group` finds an `attention` in a graph, `choice` chooses its schedule by `cost`. `fold`, `terms`
and `blocks` are steps of the softmax: a maximum, what is added to scores, keys block by block.
"""
