"""How an exporter is served: the cycle, the pages, HTTP with TLS and passwords, text files, options, signals.

Knows nothing of GPUs. A scrape never waits for a device: it gets the bytes of the last cycle. A subcommand declares
`add_serving_arguments(parser)` beside its own options and ends in `run(exporter, options)`.
"""

from gpuwatch_exporters.serving.options import add_serving_arguments
from gpuwatch_exporters.serving.process import run

__all__ = ["add_serving_arguments", "run"]
