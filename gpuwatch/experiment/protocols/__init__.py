"""Replay protocols, one file each; a new file that registers itself in PROTOCOLS is a new choice of --protocol."""
