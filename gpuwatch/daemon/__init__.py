"""The evaluation loop and what it shows. Reads sources, never answers a client; knows nothing of HTTP."""
