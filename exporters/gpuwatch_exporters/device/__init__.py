"""What an exporter knows of the GPUs of its node, whichever library told it: families, one cycle's frame, its text.

Nothing here talks to a library, a socket or a file; backends fill a Frame, this room prints it.
"""
