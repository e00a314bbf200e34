"""Which jobs to move and which then start: a plan under a budget, each step feasible after those before it."""
