"""Files are written completely or not at all, by any number of writers; temporary files have their space on disk."""

import errno
import os
import pickle
import re
import shutil
import stat
import subprocess
import sys
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path

import pytest
from small_disks import small_disk

import calibrant as cb
from calibrant import InputError
from calibrant._support import file_writing
from calibrant._support.file_writing import FileWriteError, new_file, reserve, temporary_writes, write_file

ROOT = Path(__file__).resolve().parents[2]
WORKERS = 8
AS_ROOT = hasattr(os, "geteuid") and os.geteuid() == 0
needs_root = pytest.mark.skipif(not AS_ROOT, reason="mounting and changing users needs root")
needs_posix = pytest.mark.skipif(os.name != "posix", reason="permissions, links and FIFOs of POSIX")


def whole_names(folder):
    return sorted(path.name for path in Path(folder).iterdir())


def test_a_failing_block_keeps_the_old_file_and_removes_the_new_one(tmp_path):
    path = tmp_path / "a.txt"
    path.write_text("old")

    def write_half(error):
        with new_file(path) as file:
            file.write_text("half")
            raise error

    for error in (RuntimeError, KeyboardInterrupt, MemoryError):
        with pytest.raises(error):
            write_half(error)
        assert path.read_text() == "old"
        assert whole_names(tmp_path) == ["a.txt"]


def test_the_content_is_on_disk_before_the_file_gets_its_name(tmp_path, monkeypatch):
    steps = []

    def watch(name):
        before = getattr(os, name)
        monkeypatch.setattr(os, name, lambda *args: (steps.append(name), before(*args))[1])

    watch("fsync")
    watch("replace")
    write_file(tmp_path / "a.txt", "content")
    assert steps == (["fsync", "replace", "fsync"] if hasattr(os, "O_DIRECTORY") else ["fsync", "replace"])


def test_a_failing_fsync_keeps_the_old_file(tmp_path, monkeypatch):
    def fail(handle):
        raise OSError(errno.EIO, os.strerror(errno.EIO))

    write_file(tmp_path / "a.txt", "old")
    monkeypatch.setattr(os, "fsync", fail)
    with pytest.raises(FileWriteError, match=r"'a.txt' cannot be written: Input/output error\."):
        write_file(tmp_path / "a.txt", "new")
    assert (tmp_path / "a.txt").read_text() == "old"
    assert whole_names(tmp_path) == ["a.txt"]


def test_text_keeps_its_line_ends_and_lone_surrogates_are_escaped(tmp_path):
    write_file(tmp_path / "a.txt", "é\r\n\n\ud800")
    assert (tmp_path / "a.txt").read_bytes() == "é\r\n\n\\ud800".encode()


@needs_posix
def test_a_new_file_has_the_permissions_of_the_umask_and_a_replaced_one_keeps_its_own(tmp_path):
    path = tmp_path / "a.txt"
    before = os.umask(0o027)
    try:
        write_file(path, "new")
        assert stat.S_IMODE(path.stat().st_mode) == 0o640
        path.chmod(0o604)
        write_file(path, "newer")
        assert stat.S_IMODE(path.stat().st_mode) == 0o604
    finally:
        os.umask(before)


@needs_posix
def test_private_files_are_never_readable_by_others_while_they_are_replaced(tmp_path):
    path = tmp_path / "a.txt"
    path.write_text("secret")
    path.chmod(0o600)
    with new_file(path) as file:
        assert stat.S_IMODE(file.stat().st_mode) == 0o600


@needs_root
def test_a_file_that_root_replaces_keeps_its_owner(tmp_path):
    path = tmp_path / "a.txt"
    path.write_text("old")
    os.chown(path, 65534, 65534)
    write_file(path, "new")
    assert (path.stat().st_uid, path.stat().st_gid) == (65534, 65534)


@needs_posix
def test_the_target_of_a_link_is_replaced_and_the_link_kept(tmp_path):
    (tmp_path / "folder").mkdir()
    target, link = tmp_path / "folder" / "a.txt", tmp_path / "link.txt"
    link.symlink_to(target)
    write_file(link, "new")  # the target does not exist yet
    write_file(link, "newer")
    assert link.is_symlink()
    assert target.read_text() == "newer"
    assert whole_names(tmp_path / "folder") == ["a.txt"]
    write_file(link, "own", follow_links=False)
    assert not link.is_symlink()
    assert target.read_text() == "newer"


@needs_posix
def test_devices_pipes_and_folders_are_not_replaced(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "link").symlink_to("/dev/null")
    for path, text in (
        (tmp_path / "pipe", "'pipe' is not a regular file"),
        (tmp_path, "is a folder"),
        ("/dev/null", "'null' is not a regular file"),
        (tmp_path / "link", "'null' is not a regular file"),
    ):
        with pytest.raises(cb.InputError, match=text):
            write_file(path, "text")
    assert stat.S_ISCHR(os.stat("/dev/null").st_mode)
    assert whole_names(tmp_path) == ["link", "pipe"]


@pytest.mark.parametrize("path", [None, 3.5, ["a"], "a\0b"])
def test_paths_of_other_types_are_input_errors(path):
    with pytest.raises(cb.InputError, match="path must be the name of a file"):
        write_file(path, "text")


def test_a_name_as_long_as_the_system_allows_can_be_written(tmp_path):
    name = "é" * 120 + ".txt"
    write_file(tmp_path / name, "text")
    assert whole_names(tmp_path) == [name]
    with pytest.raises(OSError, match="too long"):
        write_file(tmp_path / ("a" * 300), "text")


@pytest.mark.parametrize(
    ("number", "text"),
    [
        (errno.ENOSPC, "the disk is full. Free space, or name a file on another disk."),
        (errno.EACCES, "permission is denied. Name a file that you may write to."),
        (errno.EROFS, "the file system is read-only. Name a file on another one."),
        (errno.EMFILE, "too many files are open. Close files, or raise the limit (ulimit -n)."),
        (errno.EPIPE, "the reader has closed the pipe. Name a file."),
    ],
)
def test_errors_say_what_happened_and_what_to_do(tmp_path, number, text):
    with pytest.raises(FileWriteError) as caught, new_file(tmp_path / "a.txt"):
        raise OSError(number, os.strerror(number))
    assert str(caught.value) == f"'a.txt' cannot be written: {text}"
    assert caught.value.errno == number
    assert isinstance(caught.value, cb.InputError)
    again = pickle.loads(pickle.dumps(caught.value))
    assert (str(again), again.errno) == (str(caught.value), number)


def test_errors_about_other_files_keep_their_name(tmp_path):
    with pytest.raises(FileNotFoundError, match="source.csv"), new_file(tmp_path / "a.txt"):
        (tmp_path / "source.csv").read_text()


def test_a_missing_folder_is_named(tmp_path):
    with pytest.raises(OSError, match="'a.txt' cannot be written: its folder does not exist. Create it first."):
        write_file(tmp_path / "missing" / "a.txt", "text")


def writers():
    """Each function of the library that writes a file, by the ending of the file."""
    found = {".txt": lambda path: write_file(path, "text" * 100_000)}
    try:
        import pyarrow.parquet  # noqa: F401

        table = cb.ScoreTable.from_arrays([0, 1] * 20_000, [i / 40_001 for i in range(40_000)])
        found[".parquet"] = table.to_parquet
    except ModuleNotFoundError:
        pass
    try:
        venn = cb.calibrators.VennAbers().fit([i / 5000 for i in range(5000)], [0, 1] * 2500)
        found[".json"] = lambda path: cb.save(venn, path)
    except ModuleNotFoundError:
        pass
    try:
        import jinja2  # noqa: F401

        from calibrant import plots

        y, p = [0, 1] * 50, [i / 100 for i in range(100)]
        found[".html"] = cb.evaluate(y, p, n_resamples=39).to_html
        for ending in (".svg", ".png", ".pdf"):
            found[ending] = lambda path: plots.save(plots.ReliabilityDisplay.from_predictions(y, p), path)
    except ModuleNotFoundError:
        pass
    return found


@pytest.fixture(scope="module")
def each_writer():
    return writers()


@pytest.fixture
def mounted(tmp_path):
    """Mount a file system of 64 kB."""
    with small_disk(tmp_path / "disk", "64k") as folder:
        yield folder


@needs_root
def test_a_full_disk_keeps_the_old_file_and_no_temporary_one(mounted, each_writer):
    for ending, write in each_writer.items():
        path = mounted / f"a{ending}"
        path.write_text("old")
        fill = mounted / "fill"
        with suppress(OSError), fill.open("wb", buffering=0) as out:
            while True:
                out.write(b"0" * 4096)
        with pytest.raises(OSError, match=rf"'a{ending}' cannot be written: the disk is full\. Free space") as caught:
            write(path)
        assert caught.value.errno == errno.ENOSPC
        assert path.read_text() == "old"
        assert whole_names(mounted) == [f"a{ending}", "fill"]
        fill.unlink()
        path.unlink()


@needs_root
def test_a_read_only_disk_is_named(mounted, each_writer):
    subprocess.run(["mount", "-o", "remount,ro", str(mounted)], check=True)
    for ending, write in each_writer.items():
        with pytest.raises(OSError, match=rf"'a{ending}' cannot be written: the file system is read-only"):
            write(mounted / f"a{ending}")


@needs_root
def test_missing_permission_is_named(tmp_path):
    """Another user may write neither to a folder of root nor to a file of root in a folder of everyone."""
    if shutil.which("setpriv") is None:
        pytest.skip("setpriv is not installed")
    closed, open_ = tmp_path / "closed", tmp_path / "open"
    closed.mkdir(mode=0o755)
    open_.mkdir()
    open_.chmod(0o777)
    (open_ / "kept.txt").write_text("old")
    # The module is passed as text: the other user may not be able to read this folder.
    module = re.sub(r"from calibrant\S+ import .*", "", Path(file_writing.__file__).read_text())
    code = (
        "class InputError(ValueError):\n"
        "    def __init__(self, problem, *, hint='', **data): self.write = lambda: f'{problem} {hint}'\n"
        f"{module}\n"
        f"for path in ({str(closed / 'a.txt')!r}, {str(open_ / 'kept.txt')!r}):\n"
        "    try: write_file(path, 'new')\n"
        "    except OSError as error: print(error)\n"
        f"write_file({str(open_ / 'own.txt')!r}, 'new')\n"
    )
    for folder in tmp_path.parents:
        if not folder.stat().st_mode & 0o001:
            folder.chmod(folder.stat().st_mode | 0o011)
    (tmp_path).chmod(0o755)
    switch = ["setpriv", "--reuid", "65534", "--regid", "65534", "--clear-groups"]
    python = os.path.realpath(sys.executable)
    if subprocess.run([*switch, python, "-I", "-c", ""], check=False, capture_output=True, cwd="/").returncode:
        pytest.skip("another user cannot run this Python")
    done = subprocess.run([*switch, python, "-I", "-c", code], check=False, capture_output=True, text=True, cwd="/")
    assert done.returncode == 0, done.stderr
    denied = "cannot be written: permission is denied. Name a file that you may write to."
    assert done.stdout.splitlines() == [f"'a.txt' {denied}", f"'kept.txt' {denied}"]
    assert (open_ / "kept.txt").read_text() == "old"
    assert whole_names(open_) == ["kept.txt", "own.txt"]


@needs_posix
def test_too_many_open_files_are_named(tmp_path):
    code = (
        "import os, resource, sys\n"
        "from calibrant._support.file_writing import write_file\n"
        "write_file('a.txt', 'old')\n"
        "resource.setrlimit(resource.RLIMIT_NOFILE, (32, 32))\n"
        "held = []\n"
        "try:\n"
        "    while True: held.append(os.open('a.txt', os.O_RDONLY))\n"
        "except OSError: pass\n"
        "try: write_file('a.txt', 'new')\n"
        "except OSError as error: print(error, file=sys.stderr)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=tmp_path, check=True)
    assert "'a.txt' cannot be written: too many files are open. Close files, or raise the limit" in done.stderr
    assert whole_names(tmp_path) == ["a.txt"]
    assert (tmp_path / "a.txt").read_text() == "old"


# What may open a file for writing: the writer, the maker of temporary files, readers of rows for files that they
# remove, `apply`, which writes rows to the temporary file of the writer, and the demo of the monitor, whose service
# writes its log. Examples do not count.
WRITING = re.compile(r"""\.write_(?:text|bytes)\(|open\([^)]*["'][wax]b?\+?["']|os\.replace|mkstemp|NamedTemp""")
MAY_WRITE = {"_support/file_writing.py", "cli/command_files.py", "export/scored_files.py", "ingest/files.py"}
MAY_WRITE |= {"cli/serve.py"}


def test_no_other_module_writes_files():
    source = ROOT / "src" / "calibrant"
    code = {f: re.sub(r"(?m)^ +(>>>|\.\.\.).*$", "", f.read_text(encoding="utf-8")) for f in source.rglob("*.py")}
    found = {str(file.relative_to(source)) for file, text in code.items() if WRITING.search(text)}
    assert {name.replace(os.sep, "/") for name in found} <= MAY_WRITE


def counted(outputs):
    counts = Counter()
    for output in outputs:
        whole, damaged = map(int, output.split())
        counts.update(whole=whole, damaged=damaged)
    return counts


def run_processes(path, reads, before=()):
    """Return the numbers of reads of processes that write and read one path."""
    script = ROOT / "tests" / "_support" / "concurrent_writers.py"
    started = [
        subprocess.Popen(
            [*before, sys.executable, str(script), str(path), str(reads // WORKERS), str(seed)],
            stdout=subprocess.PIPE,
            text=True,
        )
        for seed in range(WORKERS)
    ]
    outputs = [process.communicate(timeout=550)[0] for process in started]
    assert [process.returncode for process in started] == [0] * WORKERS
    return counted(outputs)


@pytest.fixture(params=[".parquet", ".html"])
def shared_path(request, tmp_path):
    if request.param == ".parquet":
        pytest.importorskip("pyarrow", reason="pyarrow is not installed")
    from tests._support.concurrent_writers import KINDS

    path = tmp_path / f"shared{request.param}"
    KINDS[request.param][0](path, 0)
    yield path
    assert whole_names(tmp_path) == [path.name]


MANY = pytest.param(10_000, marks=pytest.mark.slow)


@pytest.mark.parametrize("reads", [800, MANY])
def test_no_read_is_damaged_while_threads_write(shared_path, reads):
    from tests._support.concurrent_writers import write_and_read

    with ThreadPoolExecutor(WORKERS) as pool:
        found = pool.map(lambda seed: write_and_read(shared_path, reads // WORKERS, seed), range(WORKERS))
        counts = sum(found, Counter())
    assert counts["whole"] >= reads
    assert counts["damaged"] == 0


@pytest.mark.parametrize("reads", [400, MANY])
def test_no_read_is_damaged_while_processes_write(shared_path, reads):
    counts = run_processes(shared_path, reads)
    assert counts["whole"] >= reads
    assert counts["damaged"] == 0


@needs_root
@pytest.mark.parametrize("shared_path", [".parquet"], indirect=True)  # one function names all temporary files
@pytest.mark.parametrize("reads", [400, MANY])
def test_no_read_is_damaged_while_processes_with_equal_ids_write(shared_path, reads):
    """Two containers on one volume: each process is number 1 of its own namespace."""
    own = ["unshare", "--pid", "--fork", "--kill-child"]
    ask = [*own, sys.executable, "-c", "import os; print(os.getpid())"]
    if (
        shutil.which("unshare") is None
        or subprocess.run(ask, check=False, capture_output=True, text=True).stdout != "1\n"
    ):
        pytest.skip("namespaces of processes cannot be made here")
    counts = run_processes(shared_path, reads, own)
    assert counts["whole"] >= reads
    assert counts["damaged"] == 0


SIZES = (1, 4096, 3 * 2**20 + 5)


def unsupported(handle, start, size):
    raise OSError(errno.EOPNOTSUPP, os.strerror(errno.EOPNOTSUPP))


@pytest.fixture(params=["allocated", "not supported", "written"])
def way(request, monkeypatch):
    """Reserve as this system does, on a file system that cannot allocate, and on a system that has no such call."""
    if request.param == "not supported":
        monkeypatch.setattr(os, "posix_fallocate", unsupported, raising=False)
    elif request.param == "written":
        monkeypatch.delattr(os, "posix_fallocate", raising=False)


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.skipif(os.name != "posix", reason="blocks of files are counted on POSIX only")
def test_a_reserved_file_holds_zeros_and_has_its_space(tmp_path, way, size):
    path = tmp_path / "a"
    reserve(path, size)
    assert path.read_bytes() == bytes(size)
    with path.open("rb") as file:
        os.fsync(file.fileno())
    assert path.stat().st_blocks * 512 >= size


def test_a_full_disk_is_an_error_of_the_system(tmp_path, way):
    with small_disk(tmp_path / "disk", "64k") as folder, pytest.raises(OSError, match="No space left on device"):
        reserve(folder / "a", 2**20)


def test_a_full_disk_of_temporary_files_names_their_folder(tmp_path):
    def write(number):
        with temporary_writes(tmp_path / "calibrant-1"):
            raise OSError(number, os.strerror(number))

    expected = f"Temporary files cannot be written to {str(tmp_path)!r}: the disk is full. Free space there"
    with pytest.raises(InputError) as caught:
        write(errno.ENOSPC)
    assert str(caught.value).startswith(expected)
    with pytest.raises(OSError, match="Too many open files"):
        write(errno.EMFILE)
