"""Time: a rule for each instruction, queues of pipes, shared memory and L2; the profile."""
