"""Demand forecasts: forecasters one file each, rolling-origin backtest, conformal intervals, honest skill."""
