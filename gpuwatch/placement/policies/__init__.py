"""Placement policies, one file each; each registers itself in POLICIES."""
