"""Turns evaluations into documents, tables, pages and metrics. Prints what the stages found and adds no judgment."""
