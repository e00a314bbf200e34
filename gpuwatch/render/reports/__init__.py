"""One report per command: which sections people see and which flat rows a spreadsheet gets."""
