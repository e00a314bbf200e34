"""The first page as one HTML text: no script, no outside file, nothing computed that the Evaluation does not say."""

from gpuwatch.render.page.page import page

__all__ = ["page"]
