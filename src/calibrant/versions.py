"""Versions of the package and its dependencies, for bug reports."""

# The build reads it here: asking for the metadata of the installation would take longer than `calibrant --help`.
__version__ = "0.2.0"

_CORE = ("numpy", "scipy", "narwhals")
# Frames, then the libraries of the extras.
_OPTIONAL = (
    *("pandas", "polars", "pyarrow", "duckdb", "pyspark", "torch", "scikit-learn", "lightgbm", "onnx", "mlflow"),
    *("matplotlib", "jinja2", "click", "rich", "sqlalchemy", "psycopg", "starlette", "uvicorn", "prometheus-client"),
)


def show_versions() -> None:
    """Print the versions of Calibrant, its kernel, Python and the dependencies.

    See Also
    --------
    InputError

    Examples
    --------
    >>> import calibrant as cb
    >>> cb.show_versions()  # doctest: +SKIP
    """
    import platform

    from calibrant._support.kernel_choice import describe_kernel

    rows = {
        "calibrant": __version__,
        "kernel": describe_kernel(),
        "python": platform.python_version(),
        "platform": platform.platform(),
        **{name: _version(name) for name in (*_CORE, *_OPTIONAL)},
    }
    width = max(map(len, rows))
    print("\n".join(f"{name:<{width}}  {value}" for name, value in rows.items()))


def _version(name: str) -> str:
    from importlib.metadata import PackageNotFoundError, version

    try:
        return version(name)
    except PackageNotFoundError:
        return "not installed"
