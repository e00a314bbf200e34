"""One rule per file; each registers itself in rule.RULES and has a page and a golden test of the same name."""
