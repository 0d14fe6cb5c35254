"""The instruction records: one description per instruction, read by everything that needs it."""
