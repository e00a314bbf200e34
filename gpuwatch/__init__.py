"""gpuwatch: sees a heterogeneous GPU cluster, counts it honestly and advises what to do next.

It advises; it never acts. Importing this package must stay cheap: heavy libraries are imported by the command that
needs them.
"""

__version__ = "0.1.0"
