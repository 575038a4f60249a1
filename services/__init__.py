"""What users call, and what reaches the outside world: the store, the models, the faces."""
