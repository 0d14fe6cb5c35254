"""Random and damaged instruction streams, and what judges them apart from the simulator.

`stream_steps` decodes; `happens_before` works out what is ordered, and `interleaving` runs streams
in any order that is allowed. `random_programs` and `random_cores` write programs, which
`interleaving_fuzz` holds against them; `sync_mutation` and `cores_mutation` take flags and barriers
out, also of kernels of `group_kernels`, which `group_interleavings` runs in any order, as it does
launches of cube and vector cores that `recorded_launches` keeps;
`damaged_streams` has what no compiler would write.
`graph_fuzz` compiles random networks and holds them against StableHLO's interpreter.
"""
