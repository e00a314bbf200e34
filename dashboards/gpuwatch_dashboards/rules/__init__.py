"""Recording and alerting rules: built from one table of metrics and the templates in alert_rules/templates."""
