"""One forecaster per file; each registers itself in forecaster.FORECASTERS."""
