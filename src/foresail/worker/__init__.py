"""Inside the training process: the Run handle, reports, the spool, checkpoints, and the client for plain scripts."""
