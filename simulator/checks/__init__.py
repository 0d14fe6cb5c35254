"""What a real machine would let pass silently: races, and who waits for whom for ever."""
