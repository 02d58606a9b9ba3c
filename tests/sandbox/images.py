"""A root file system in small: a shell and a few programs of this machine, laid out as an image has them."""

import re
import shutil
import subprocess
import tarfile
from pathlib import Path

PROGRAMS = ("sh", "cat", "ls", "id", "touch", "readlink", "env", "sleep")
RELEASE = 'PRETTY_NAME="a small image"\n'


def lay_out(target: Path, *programs: str) -> Path:
    """Make it in a folder that is not there yet."""
    for folder in ("usr/bin", "usr/lib", "etc/ssl/certs", "opt/amem"):
        (target / folder).mkdir(parents=True)
    for name in ("bin", "lib", "lib64", "sbin"):
        (target / name).symlink_to("usr/bin" if name in ("bin", "sbin") else "usr/lib")
    for name in (*PROGRAMS, *programs):
        source = shutil.which(name)
        assert source is not None, name
        shutil.copy(source, target / "usr/bin" / name)
        said = subprocess.run(["ldd", source], capture_output=True, text=True, check=False).stdout
        for library in re.findall(r"(/\S+) \(0x", said):
            shutil.copy(library, target / "usr/lib" / Path(library).name)
    (target / "usr/lib/os-release").write_text(RELEASE)
    (target / "etc/os-release").symlink_to("../usr/lib/os-release")
    (target / "etc/timezone").write_text("Etc/UTC\n")
    (target / "etc/ssl/certs/ca.pem").write_text("a certificate\n")
    return target


def archive(folder: Path, target: Path) -> Path:
    """The archive of a root file system, as `podman export` and mmdebstrap make one."""
    with tarfile.open(target, "w") as made:
        for path in sorted(folder.iterdir()):
            made.add(path, path.name)
    return target
