"""What a kernel computes and how, as plain data without MLIR.

* `graph`: the operators of a group and their values; `group_plan`, `side_by_side`: how a group, or
  each of its parts that have nothing to do with each other, is computed.
* `choices`, `ranking`, `schedule_file`: what was decided of a kernel, by whom, and in which file.

A room for each kind of kernel; that of `davinci.passes.ascend_to_cce` with the same name builds it.
"""
