"""Honest counting: which devices are installed, healthy, schedulable, allocated and active, and who holds idle ones."""
