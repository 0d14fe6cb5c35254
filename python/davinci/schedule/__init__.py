"""What a kernel computes and how, as plain data without MLIR.

* `vector_steps`: operations of the vector unit on buffers, and what they take.
* `row_statistics`: reductions of rows, and their results spread over lanes again.
* `row_places`: where results lie for the operations that combine them with rows.
"""
