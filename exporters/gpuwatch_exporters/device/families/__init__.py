"""The catalogue of families, one file per topic. Names carry the unit; ratios are 0 to 1; what is missing is absent."""
