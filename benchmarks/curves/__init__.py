"""Quality and speed of `foresail.curves` on recorded learning curves."""
