"""Logs of studies: in memory, and in SQLite (the default). Both keep the contract of `foresail.ports.Store`."""
