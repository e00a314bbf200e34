"""Doors through which a cluster is read. Each gives whole snapshots, or says why it cannot."""
