"""One small JSON document of the root's state that several processes change: read whole, replaced whole, one writer at a time."""

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from amem.errors import IntegrityError
from amem.typed import Any


def read(path: Path) -> dict[str, Any]:
    """The document; empty where it was never written. Raises IntegrityError for one that is no JSON object."""
    try:
        data = path.read_bytes()
    except FileNotFoundError:
        return {}
    import json

    try:
        found = json.loads(data)
    except ValueError as error:
        raise IntegrityError(f"{path}: not a JSON document: {error}", hint=f"restore {path} from a backup") from error
    if not isinstance(found, dict):
        raise IntegrityError(f"{path}: not a JSON object", hint=f"restore {path} from a backup")
    return found


@contextmanager
def changing(path: Path) -> Iterator[dict[str, Any]]:
    """The document to change; kept when the block ends well, and nobody else changes it meanwhile. Raises IntegrityError."""
    with open(os.open(path.with_name(path.name + ".lock"), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600), "wb") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        document = read(path)
        yield document
        import json

        new = path.with_name(f".{path.name}.{os.getpid()}")
        with open(os.open(new, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600), "w") as file:
            json.dump(document, file, indent=1, sort_keys=True)
            file.flush()
            os.fsync(file.fileno())
        os.replace(new, path)
