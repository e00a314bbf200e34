"""The page's sections but for the advice: tiles, waterfall, fragmentation, pools, forecasts, sources."""

from __future__ import annotations

from gpuwatch.model.evaluation import Evaluation, Forecast, FragmentationScope, Waterfall
from gpuwatch.model.history import History
from gpuwatch.model.units import MILLI
from gpuwatch.render.metrics import Operation
from gpuwatch.render.page.charts import bar, composition, demand_chart, legend
from gpuwatch.render.page.html import Content, Markup, table, tag

_CAUSES = {
    "no_access": "the model asked for is not the free one",
    "gpu_lacking": "too few or too small free shares on one node",
    "cpu_lacking": "GPUs are free, CPU or memory is not",
    "both_lacking": "neither GPUs nor CPU suffice",
}
_MOST_SHAPES = 13
_MOST_CHARTS = 12


def _gpus(milligpu: float) -> str:
    """GPUs to one decimal: the page is for a glance, the API has thousandths."""
    return f"{milligpu / MILLI:,.1f}".removesuffix(".0")


def _idle(fall: Waterfall) -> str:
    """Idle-held GPUs; a dash where nothing that is allocated was measured, which is not a zero."""
    unmeasured = 0 < fall.allocated_milligpu == fall.activity_unknown_milligpu
    return "–" if unmeasured else _gpus(fall.idle_held_milligpu)


def _measured(fall: Waterfall) -> str:
    unknown = fall.activity_unknown_milligpu
    return f"activity of {_gpus(unknown)} unknown" if unknown else "allocated, measured idle"


def tiles(evaluation: Evaluation) -> Markup:
    """The headline numbers; a number that is not known is a dash with its reason."""
    fall = evaluation.waterfall
    overall = evaluation.fragmentation.overall if evaluation.fragmentation else None
    index = overall.fragmentation_index if overall else None
    # The kind "all" already holds the others; without it the kinds are added up.
    whole = [each for each in evaluation.demand if each.kind == "all"] or list(evaluation.demand)
    pending = sum(each.pending_milligpu for each in whole)
    shown: list[tuple[str, str, str]] = []
    if fall:
        share = (
            f"{fall.allocated_milligpu / fall.schedulable_milligpu:.0%} of schedulable"
            if fall.schedulable_milligpu
            else ""
        )
        shown += [
            (_gpus(fall.installed_milligpu), "GPUs installed", f"{_gpus(fall.schedulable_milligpu)} schedulable"),
            (_gpus(fall.allocated_milligpu), "allocated", share),
            (_idle(fall), "idle-held", _measured(fall)),
            (_gpus(fall.free_milligpu), "free", f"{_gpus(overall.stranded_milligpu)} stranded" if overall else ""),
        ]
    why = (overall.reason if overall else None) or "% of free GPUs that demand cannot take"
    shown.append(("–" if index is None else f"{index:.1f}", "fragmentation index", why.replace("_", " ")))
    shown.append((_gpus(pending), "GPUs waiting for", "asked for by pending jobs"))
    shown.append(_recovery(evaluation))
    return tag(
        "div",
        [tag("div", [tag("b", n), tag("span", w), tag("small", s)], class_="tile") for n, w, s in shown],
        class_="tiles",
    )


def _recovery(evaluation: Evaluation) -> tuple[str, str, str]:
    """What all advice would free. Rules promise different capacity, so that theirs adds up; an exchange frees none."""
    back: dict[str, float] = {}
    exchanged = 0.0
    for each in evaluation.recommendations:
        if each.recoverable.exchanged:
            exchanged += each.recoverable.gpus
        else:
            back[each.rule] = back.get(each.rule, 0.0) + each.recoverable.gpus
    parts = [f"{rule.replace('_', ' ')} {amount:,.4g}" for rule, amount in back.items()]
    told = f"at most: {', '.join(parts)}" if parts else "no advice frees any"
    if exchanged:
        told += f"; {exchanged:,.4g} more to exchange for lower cards"
    return f"{sum(back.values()):,.4g}", "GPUs to recover", told


def waterfall_section(fall: Waterfall | None) -> Markup:
    """Installed down to active, each step with what it loses."""
    if fall is None:
        return tag("section", [tag("h2", "Waterfall"), tag("p", "The count could not be made; see findings.")])
    whole = fall.installed_milligpu
    allocated = [
        ("active", fall.active_milligpu),
        ("idle", fall.idle_held_milligpu),
        ("unknown", fall.activity_unknown_milligpu),
    ]
    lost = ", ".join(f"{_gpus(milli)} {cause.replace('_', ' ')}" for cause, milli in sorted(fall.blocked.items()))
    steps: list[tuple[str, int, list[tuple[str, float]], str]] = [
        ("installed", whole, [("count", whole)], ""),
        ("healthy", fall.healthy_milligpu, [("count", fall.healthy_milligpu)], _vouched(fall)),
        (
            "schedulable",
            fall.schedulable_milligpu,
            [("count", fall.schedulable_milligpu)],
            f"blocked: {lost}" if lost else "",
        ),
        ("allocated", fall.allocated_milligpu, [(name, float(part)) for name, part in allocated], ""),
        ("active", fall.active_milligpu, [("active", fall.active_milligpu)], ""),
    ]
    rows: list[Content] = []
    for name, milligpu, parts, why in steps:
        rows += [tag("span", name), bar(parts, whole), tag("b", _gpus(milligpu))]
        if why:
            rows.append(tag("span", why, class_="why"))
    key = legend("active", "idle", "unknown")
    return tag("section", [tag("h2", "Waterfall, in GPUs"), tag("div", rows, class_="fall"), key], id="waterfall")


def _vouched(fall: Waterfall) -> str:
    unknown = fall.health_unknown_milligpu
    return f"nobody vouches for the health of {_gpus(unknown)} of them" if unknown else ""


def fragmentation_section(evaluation: Evaluation) -> Markup:
    """The causes of stranding, and what fits now."""
    report = evaluation.fragmentation
    if report is None:
        return tag("section", [tag("h2", "Fragmentation"), tag("p", "It could not be computed; see findings.")])
    overall = report.overall
    inner: list[Content] = [tag("h2", "Fragmentation")]
    if overall.fragmentation_index is None:
        inner.append(tag("p", f"No index: {(overall.reason or 'nothing is free').replace('_', ' ')}."))
    else:
        free, stranded = _gpus(overall.free_milligpu), _gpus(overall.stranded_milligpu)
        mig = ", MIG devices left out" if report.excluded_mig_gpus else ""
        told = f"Of {free} free GPUs{mig}, {stranded} cannot be taken by what is usually asked for."
        inner.append(tag("p", told))
        causes = sorted(overall.by_cause.items(), key=lambda pair: -pair[1])
        rows = [
            (_CAUSES.get(cause, cause), bar([("stranded", part)], max(overall.stranded_milligpu, 1)), _gpus(part))
            for cause, part in causes
            if part > 0
        ]
        if rows:
            inner.append(table(("stranded because", "", "GPUs"), rows, numbers_from=2))
    inner.append(tag("p", f"Demand: {report.mix_basis}", class_="soft") if report.mix_basis else None)
    return tag("section", inner, id="fragmentation")


def shapes_section(evaluation: Evaluation) -> Markup:
    """Which of the commonest shapes fit now."""
    report = evaluation.fragmentation
    shapes = sorted(report.shapes, key=lambda fit: -fit.share_ratio) if report else []
    rows = [
        (fit.shape.label, f"{fit.share_ratio:.1%}", f"{fit.fits_now:,}", _gpus(fit.stranded_milligpu))
        for fit in shapes[:_MOST_SHAPES]
    ]
    head = ("shape of one member", "share", "fit now", "stranded for it")
    inner: list[Content] = [tag("h2", "Which shapes fit now")]
    inner.append(table(head, rows) if rows else tag("p", "No demand is known.", class_="soft"))
    if len(shapes) > _MOST_SHAPES:
        inner.append(tag("p", f"and {len(shapes) - _MOST_SHAPES} rarer shapes", class_="soft"))
    return tag("section", inner, id="shapes")


def scopes_section(evaluation: Evaluation) -> Markup:
    """Every pool and every model on one line each."""
    report = evaluation.fragmentation
    scopes = {(each.pool, each.gpu_model): each for each in (report.scopes if report else ())}
    wide = [each for each in evaluation.waterfall_scopes if not each.is_cell]
    rows = [_scope_row(each, scopes.get((each.pool, each.gpu_model))) for each in wide]
    head = ("scope", "", "installed", "allocated", "idle-held", "free", "stranded", "blocked", "index")
    body = table(head, rows, numbers_from=2) if rows else tag("p", "Nothing is installed.", class_="soft")
    return tag("section", [tag("h2", "Pools and models, in GPUs"), body, legend()], id="pools")


def _scope_row(each: Waterfall, scope: FragmentationScope | None) -> tuple[Content, ...]:
    kind, name = ("pool", each.pool) if each.gpu_model is None else ("model", each.gpu_model)
    index = scope.fragmentation_index if scope else None
    blocked = each.installed_milligpu - each.schedulable_milligpu
    return (
        tag("span", [tag("small", f"{kind} "), name], class_="scope"),
        composition(each, scope),
        _gpus(each.installed_milligpu),
        _gpus(each.allocated_milligpu),
        _idle(each),
        _gpus(each.free_milligpu),
        _gpus(scope.stranded_milligpu) if scope else "–",
        _gpus(blocked),
        "–" if index is None else f"{index:.1f}",
    )


def forecast_section(evaluation: Evaluation, history: History) -> Markup:
    """Demand ahead, whole pools first."""
    past = {(each.pool, each.kind): each for each in history.series}
    good = [each for each in evaluation.forecasts if each.status == "ok" and each.steps]
    poor = [each for each in evaluation.forecasts if each not in good]
    # Whole pools first and, among equals, the larger demand: those are looked at.
    good.sort(key=lambda f: (f.kind != "all", -max(step.mean_gpus for step in f.steps), f.pool, f.kind))
    charts = [
        tag("figure", [_caption(f), demand_chart(f, past.get((f.pool, f.kind)), evaluation.snapshot_taken_at)])
        for f in good[:_MOST_CHARTS]
    ]
    inner: list[Content] = [tag("h2", "Demand ahead, in GPUs")]
    if charts:
        inner.append(tag("div", charts, class_="charts"))
        note = "Grey: observed. Blue: expected, inside its 80% and 95% intervals."
        inner.append(tag("p", note, class_="soft"))
    if len(good) > _MOST_CHARTS:
        inner.append(tag("p", f"and {len(good) - _MOST_CHARTS} more: /api/v1/forecasts", class_="soft"))
    if poor:
        rows = [(each.pool, each.kind, each.reason or each.status) for each in poor]
        listed = table(("pool", "kind", "why there is none"), rows, numbers_from=3)
        inner.append(tag("details", [tag("summary", f"{len(poor)} targets have no forecast"), listed]))
    if not evaluation.forecasts:
        inner.append(tag("p", "No demand history yet.", class_="soft"))
    return tag("section", inner, id="forecasts")


def _caption(forecast: Forecast) -> Markup:
    skill = forecast.skill_vs_seasonal_naive
    told = forecast.model or ""
    told += "" if skill is None else f" · skill {skill:+.2f}"
    pool = "no pool named" if forecast.pool == "*" else forecast.pool
    return tag("figcaption", [tag("b", f"{pool} · {forecast.kind}"), tag("small", told)])


def health_section(evaluation: Evaluation, operation: Operation | None) -> Markup:
    """Sources, broken stages and oddities."""
    sources = (operation.sources if operation else ()) or evaluation.sources
    rows: list[tuple[Content, ...]] = [
        (
            each.name,
            tag("span", "ok" if each.ok else each.cause or "failed", class_="good" if each.ok else "critical"),
            each.detail or "",
        )
        for each in sources
    ]
    rows += [(f"stage {f.stage}", tag("span", f.code, class_="critical"), f.detail) for f in evaluation.failures]
    own = operation.findings if operation else ()
    rows += [(each.subject, tag("span", each.code, class_=each.severity), each.detail) for each in own]
    inner: list[Content] = [tag("h2", "Sources and findings")]
    inner.append(table(("source", "state", ""), rows, numbers_from=3) if rows else None)
    if evaluation.findings:
        listed = [
            (tag("span", f.severity, class_=f.severity), f.code, f.subject, f.detail, f.count)
            for f in evaluation.findings[:100]
        ]
        body = table(("severity", "finding", "subject", "detail", "times"), listed, numbers_from=4)
        inner.append(tag("details", [tag("summary", f"{len(evaluation.findings)} findings in the data"), body]))
    return tag("section", inner, id="health")
