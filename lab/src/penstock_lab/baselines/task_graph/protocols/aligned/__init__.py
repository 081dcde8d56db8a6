"""The protocol `aligned`: its task, its store of checkpoints, and who sends the barriers."""
