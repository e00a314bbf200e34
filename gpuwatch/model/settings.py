"""Everything a person may tune about the analysis, with the reason for each default."""

from __future__ import annotations

from dataclasses import field

from gpuwatch.model.values import value


@value
class AnalysisSettings:
    """Bounds and prices that the stages read. Nothing here is measured; every number is a choice."""

    mix_coverage_ratio: float = 0.95  # commonest shapes until this share of members is covered (published protocol)
    idle_window_seconds: int = 1800  # shorter windows flag data loading as idleness
    idle_peak_ratio: float = 0.01  # a device whose peak stays under this did no work
    idle_min_samples_ratio: float = 0.95  # fewer samples than this give no verdict
    warm_up_seconds: int = 1800  # no verdict on younger jobs
    loaded_memory_ratio: float = 0.3  # idle but this full: a model is resident, its own advice
    tier_mean_ratio: float = 0.3  # a job busier than this earns its card
    tier_memory_margin_ratio: float = 1.25  # head room over the peak memory seen, on the smaller card
    consolidate_min_free_ratio: float = 0.25  # nodes freer than this may be emptied
    consolidate_max_moves: int = 8  # more moves than this for one node are not worth proposing
    checkpoint_unknown_lost_seconds: int = 7200  # work at risk when nobody says when a job was last saved
    gpu_hour_price: dict[str, float] = field(default_factory=dict)  # catalogue id or "default" -> price per GPU-hour
    currency: str = "USD"
    forecast_horizon_hours: int = 24
    forecast_season_hours: int = 24
    forecast_min_seasons: int = 4  # fewer whole seasons than this: insufficient_data
    # Forecasters that may lead, beside the two naive rules. The ones that cost more than a few ms are opt-in.
    forecast_models: tuple[str, ...] = ("fourier_ar", "last_value", "median", "seasonal_naive", "weekly_naive")
    recommendation_valid_seconds: int = 3600
    max_source_age_seconds: int = 300  # older snapshots are served as stale
