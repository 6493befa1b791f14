"""What a user reads where another tool is not installed."""

import sys

import pytest

from calibrant.integrations import mlflow as integration


@pytest.mark.parametrize(
    "call", [lambda: integration.log_evaluation(None), lambda: integration.load_model("models:/a/1")]
)
def test_a_missing_mlflow_is_named_with_the_command_that_installs_it(monkeypatch, call):
    for name in [name for name in sys.modules if name.partition(".")[0] == "mlflow"]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "mlflow", None)
    with pytest.raises(ModuleNotFoundError, match=r'needs mlflow: pip install "calibrant\[mlflow\]"'):
        call()
