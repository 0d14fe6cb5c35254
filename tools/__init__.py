"""Command lines only; the logic lies in the packages they call."""
