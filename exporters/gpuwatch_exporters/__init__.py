"""What runs on or near GPU nodes and is scraped. Needs only the base installation."""
