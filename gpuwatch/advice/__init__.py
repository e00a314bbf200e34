"""Advice: rules, one file each, that say what to do next with evidence, price, commands and undo. Runs nothing."""
