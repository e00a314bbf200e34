"""A heterogeneous cluster that exists nowhere: seeded, repeatable, with every case that the product claims to find.

Standard library only, so that the replay exporter can serve it from the base installation.
"""
