"""What a kernel computes and how, as plain data without MLIR.

* `graph`: the operators of a group and their values; `space`: the axes that they are iterated over.
* `tile_program`: what the vector unit does for one tile; `vector_schedule`: tiles, cores and
  buffers, chosen by cost, with `tile_layout` and `tile_buffers` for what lies in UB.
* `phases`: where the reduced axis comes in pieces, what is done in each turn over them;
  `phased_layout` and `phased_schedule`: the same for these.
* `vector_steps`, `row_statistics`, `row_places`, `row_tables`: reductions of rows, statistics and
  tables of a row as vector operations on buffers in UB.
* `product`: products of matrices, and what a schedule of one says; `product_order` makes the order
  of its work of it, `product_events`, and `product_rolls` loops of what repeats itself there;
  `product_cost` and `product_estimate` say how many cycles, `product_choice` chooses.
"""
