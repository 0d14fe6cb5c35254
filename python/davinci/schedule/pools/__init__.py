"""Reductions over windows of images: `group` finds one in a graph, `pool` chooses its tiles."""
