"""One file per command; a new file that registers itself in COMMANDS is a new command."""
