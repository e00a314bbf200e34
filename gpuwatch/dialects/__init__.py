"""One file per exporter vocabulary: samples in, canonical Observations out. No join, no decision, no input or output.

A fault in what an exporter says (a unit, a sentinel, a label that changed its spelling) is corrected here, in the
dialect that caused it.
"""
