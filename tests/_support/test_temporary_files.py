"""Temporary files have their space on disk before they are used."""

import errno
import os

import pytest
from small_disks import small_disk

from calibrant import InputError
from calibrant._support.file_writing import reserve, temporary_writes

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
