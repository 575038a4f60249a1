"""From events to tables that can be asked: one file a projection, the runner, the rebuild."""
