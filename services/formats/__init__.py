"""Files that memories come in and go out as: our own lines, and what other products write."""
