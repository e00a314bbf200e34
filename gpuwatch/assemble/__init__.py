"""Observations become one ClusterSnapshot: joined, counted once, and with every contradiction listed as a Finding."""
