"""Chains of elementwise operators, broadcasts and reductions on the vector unit.

* `space`: the axes that all operators of a group are iterated over; `regions`: values that are
  computed region by region, so that slices and concatenations cost nothing.
* `tile_program`: what is done to one tile, whatever its sizes; `row_*`: rows, their statistics and
  their tables as `steps`, vector operations on buffers in UB.
* `schedule`: tiles, cores and buffers, chosen by cost (`step_costs`); `tile_layout` and
  `tile_buffers` say what lies in UB.
* `phases`, `phased_layout`, `phased_schedule`: rows of which UB holds pieces; `chunks`,
  `chunk_choice`: reduced axes of which it holds nothing.
"""
