"""Serves a cluster that is not there: the pages that its exporters would print, so that the whole chain runs on it."""
