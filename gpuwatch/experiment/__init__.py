"""Runs many replays of public traces: in parallel, interruptible, each result kept as it comes."""
