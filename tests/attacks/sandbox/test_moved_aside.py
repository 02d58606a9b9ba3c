"""What was mounted read-only or covered inside the work tree cannot be got round by moving the folders above it."""

import json

from tests.sandbox.launching import Place

MOVE = """
import json, os, sys
found = {}
for name in ("keep", "secret"):
    folder = os.path.join(sys.argv[1], "above", name)
    try:
        os.rename(os.path.join(sys.argv[1], "above"), os.path.join(sys.argv[1], "aside"))
        os.makedirs(folder)
        found[name] = "moved"
        os.rename(os.path.join(sys.argv[1], "aside"), os.path.join(sys.argv[1], "gone"))
    except OSError as error:
        found[name] = error.strerror
found["file"] = open(os.path.join(sys.argv[1], "above", "beside"), "w").write("x")
print(json.dumps(found))
"""


def test_a_folder_above_a_mount_of_the_tree_cannot_be_moved(here: Place) -> None:
    keep, secret = here.work / "above" / "keep", here.work / "above" / "secret"
    keep.mkdir(parents=True)
    secret.mkdir()
    here.own()
    spec = {"binds": [[str(keep), str(keep), False]], "hidden": [str(secret)]}
    found = json.loads(here.launch("{python}", "-c", MOVE, str(here.work), spec=spec)["out"])
    assert found == {"keep": "Device or resource busy", "secret": "Device or resource busy", "file": 1}
    assert sorted(path.name for path in here.work.iterdir()) == ["above"]
