"""What is asked for: the mix of shapes, what waits, and demand over time. Pure."""
