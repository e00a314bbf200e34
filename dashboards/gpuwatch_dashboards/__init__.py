"""Grafana dashboards as Python. Needs the `dashboards` extra."""
