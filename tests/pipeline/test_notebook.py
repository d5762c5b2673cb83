"""docs/pipeline.ipynb runs, and shows what it shows here."""

from __future__ import annotations

import os
import shutil
from typing import TYPE_CHECKING, Any

import pytest

from tests.helpers import ROOT
from tests.pipeline.conftest import QUICK_JAVA

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    import fixtures

NOTEBOOK = ROOT / "docs" / "pipeline.ipynb"
SECONDS = 240

pytestmark = pytest.mark.filterwarnings("default")


def prepare(directory: Path, primary: Path) -> None:
    """The two stores that the notebook is about: the backup lacks the last segment."""
    shutil.copytree(primary, directory / "stores" / "primary")
    shutil.copytree(primary, directory / "stores" / "backup")
    max((directory / "stores" / "backup" / "commitlog").iterdir()).unlink()


def executed(directory: Path) -> Any:
    """The notebook with the outputs of a run in `directory`."""
    import nbformat
    from nbclient import NotebookClient

    notebook = nbformat.read(NOTEBOOK, as_version=4)
    for cell in notebook.cells:
        if cell.cell_type == "code":
            cell.outputs, cell.execution_count = [], None
    resources = {"metadata": {"path": str(directory)}}
    NotebookClient(notebook, timeout=SECONDS, kernel_name="python3", resources=resources).execute()
    for cell in notebook.cells:
        cell.metadata.pop("execution", None)
    return notebook


def shown(notebook: Any) -> list[list[str]]:
    """What stands below each cell; notes on standard error are left out."""
    return [
        [_content(one) for one in cell.outputs if one.get("name") != "stderr"]
        for cell in notebook.cells
        if cell.cell_type == "code"
    ]


def _content(output: Any) -> str:
    data: dict[str, Any] = output.get("data", {})
    found = output.get("text") or data.get("image/svg+xml") or data.get("text/plain")
    return "".join(found).replace("\n", " ").strip() if isinstance(found, list) else str(found).strip()


@pytest.mark.full
def test_the_notebook_shows_what_it_says(
    fresh_golden: Callable[[str], fixtures.Golden], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import nbformat

    if shutil.which("java") is None and "JAVA_HOME" not in os.environ:
        pytest.skip("Spark needs Java")
    for name, value in {"PYTHONPATH": str(ROOT), "JUPYTER_PLATFORM_DIRS": "1", **QUICK_JAVA}.items():
        monkeypatch.setenv(name, value)
    prepare(tmp_path, fresh_golden("v498-basic").path)
    found = shown(executed(tmp_path))
    assert found == shown(nbformat.read(NOTEBOOK, as_version=4))
    assert sum(map(bool, found)) >= 5


def test_the_notebook_is_small_and_names_no_machine() -> None:
    text = NOTEBOOK.read_text()
    assert len(text) < 20_000
    for word in ("/tmp", "/home", "/root", str(ROOT), "Traceback"):
        assert word not in text
