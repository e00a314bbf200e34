"""The advisory API over HTTP. Answers from memory only: no request ever waits for a source."""
