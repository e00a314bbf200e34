"""What the node's kernel and this exporter's own memory know of its GPUs, without any GPU library.

Nothing here opens a device file: a sleeping GPU stays asleep, a lost one is still known.
"""
