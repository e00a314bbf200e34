"""XID errors, counted once each, from two witnesses: the library's events and the kernel log."""
