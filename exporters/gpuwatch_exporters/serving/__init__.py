"""How an exporter is served: the cycle, the pages, HTTP with TLS and passwords, text files, options, signals.

Knows nothing of GPUs. A scrape never waits for a device: it gets the bytes of the last cycle.
"""
