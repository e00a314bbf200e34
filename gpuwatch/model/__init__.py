"""Values, units and the GPU catalogue: the words in which every other floor speaks. Imports nothing above it."""
