"""The gateway's compose file, as far as it can be judged without a container runtime."""

import re
from pathlib import Path
from typing import Any

import pytest
import yaml

FOLDER = Path(__file__).resolve().parents[2] / "packaging" / "compose"
COMPOSE: dict[str, Any] = yaml.safe_load((FOLDER / "compose.yaml").read_text())
SERVICES: dict[str, dict[str, Any]] = COMPOSE["services"]
KNOWN = {"image", "restart", "security_opt", "environment", "volumes", "ports", "healthcheck", "network_mode", "depends_on", "command"}
REQUIRED = ("POSTGRES_PASSWORD", "LITELLM_MASTER_KEY")
SECRET = re.compile(r"KEY|PASSWORD|TOKEN|SECRET")


@pytest.mark.parametrize("name", SERVICES)
def test_a_service_is_published_on_loopback_alone_and_comes_as_a_named_version(name: str) -> None:
    service = SERVICES[name]
    assert set(service) <= KNOWN
    assert all(str(port).startswith("127.0.0.1:") for port in service.get("ports", []))
    assert "network_mode" not in service or service["network_mode"].removeprefix("service:") in SERVICES
    assert re.fullmatch(r"[a-z0-9.-]+\.[a-z]+/[a-z0-9/_.-]+:v?\d+\.\d[\w.-]*(@sha256:[0-9a-f]{64})?", service["image"])
    assert service["security_opt"] == ["no-new-privileges:true"]
    assert set(service.get("depends_on", {})) <= set(SERVICES)


@pytest.mark.parametrize("name", SERVICES)
def test_a_service_has_no_key_in_the_file_and_mounts_only_what_is_there_and_read_only(name: str) -> None:
    service = SERVICES[name]
    for variable, value in service["environment"].items():
        assert not SECRET.search(variable) or re.fullmatch(r"\$\{[A-Z_]+:[?-][^}]*\}", str(value)), variable
    for volume in service["volumes"]:
        source, *_, how = volume.split(":")
        if source.startswith("."):
            assert (FOLDER / source).is_file()
            assert how == "ro"
        else:
            assert source in COMPOSE["volumes"]


def test_the_image_of_litellm_is_the_version_that_is_installed_without_containers() -> None:
    pinned = re.search(r"^litellm(?:\[proxy\])?==(\S+)", (FOLDER.parents[1] / "requirements" / "gateway.txt").read_text(), re.MULTILINE)
    assert pinned is not None and SERVICES["litellm"]["image"].endswith(f":v{pinned[1]}")


def test_a_password_that_nobody_gave_stops_the_start_rather_than_being_empty() -> None:
    given = [value for service in SERVICES.values() for name, value in service["environment"].items() if name in REQUIRED]
    assert len(given) == len(REQUIRED)
    assert all(":?" in value for value in given)
