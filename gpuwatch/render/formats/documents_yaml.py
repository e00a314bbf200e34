"""The document as YAML, in the order of its fields."""

from __future__ import annotations

from gpuwatch.errors import MissingExtraError
from gpuwatch.render.report import FORMATS, Report, Style


@FORMATS.register("yaml")
def render_yaml(report: Report, style: Style) -> str:
    """The whole document; no anchors, no wrapping."""
    try:
        import yaml
    except ModuleNotFoundError as err:
        raise MissingExtraError("YAML output needs PyYAML", todo="pip install 'gpuwatch-stack[cli]'") from err

    class Plain(yaml.SafeDumper):
        def ignore_aliases(self, data: object) -> bool:
            return True

    def dumped(unicode: bool) -> str:
        text: str = yaml.dump(
            report.document, Dumper=Plain, sort_keys=False, allow_unicode=unicode, default_flow_style=False, width=10**6
        )
        return text

    text = dumped(True)
    # PyYAML leaves marks that turn the direction of writing as they are: then everything beyond ASCII is written out.
    return text if text.replace("\n", "").isprintable() else dumped(False)
