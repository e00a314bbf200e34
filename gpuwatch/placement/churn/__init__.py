"""Replays with departures: jobs arrive, wait, run and leave, and may lose their place. A protocol of our own.

Times are whole milliseconds, so that every run of the same seed is the same to the last event. The event loop is plain
code: numba compiles it over arrays where it is installed, else it runs over the NumPy placer. Both give equal results.
"""
