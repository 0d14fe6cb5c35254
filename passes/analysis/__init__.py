"""Analyses that several passes share; none of them changes IR."""
