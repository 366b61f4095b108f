"""Callbacks for training frameworks, one file each, imported when it is used: `integrations.keras.Foresail(run)`.

All do the same: report what the framework measures, leave at a step boundary where the study wishes it, save through
the framework's own checkpoints into the run's, and hand them back where the trial resumes. docs/frameworks.md has an
example of each.
"""
