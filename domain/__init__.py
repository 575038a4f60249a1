"""The rules of memory, pure: what is remembered, matched, rested, evicted and sent. No I/O, no clock, no settings."""
