"""Scalar forms of fit, fragment and policies, compiled by numba where it is installed: what makes replays fast.

One-shot answers use the NumPy forms and need no numba. Both give equal results: weights are multiples of 2**-30, so
that no sum depends on its order. Everything here is plain Python that also runs uncompiled.
"""
