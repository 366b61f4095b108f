"""Recorded curves played through the live engine: traces in, comparable records of policies out."""
