"""Output formats, one file each; a new file that registers itself in FORMATS is a new choice of -o."""
