"""One file per public trace format: files in, nodes and a job stream out. Strict: odd rows are errors."""
