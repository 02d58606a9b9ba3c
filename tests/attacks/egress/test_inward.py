"""A destination's public name that leads inward, by any spelling or at the second look, is not dialled."""

import asyncio
import socket
from pathlib import Path
from typing import Any

import aiohappyeyeballs
import pytest
from aiohttp import ThreadedResolver

from amem.egress.upstream import InwardAddressError, _Resolver
from amem.model.call import Dialect
from tests.egress.support import call, session

PUBLIC = "93.184.216.34"
INWARD = [
    "127.0.0.1", "10.0.0.7", "169.254.169.254", "192.168.1.1", "100.64.0.1", "0.0.0.0", "::1", "::ffff:127.0.0.1", "::ffff:169.254.169.254",
    "fe80::1%eth0", "fd00::1", "64:ff9b::a9fe:a9fe", "2002:7f00:1::", "::7f00:1",
]  # fmt: skip


def leading(monkeypatch: pytest.MonkeyPatch, *answers: list[str]) -> list[str]:
    """Names resolve to these, one answer a time, the last for good; returns the names that were looked up."""
    asked: list[str] = []

    async def resolve(self: ThreadedResolver, host: str, port: int = 0, family: socket.AddressFamily = socket.AF_INET) -> list[Any]:
        asked.append(host)
        found = answers[min(len(asked), len(answers)) - 1]
        return [{"hostname": host, "host": one, "port": port, "family": socket.AF_INET, "proto": 0, "flags": 0} for one in found]

    monkeypatch.setattr(ThreadedResolver, "resolve", resolve)
    return asked


@pytest.mark.parametrize("address", INWARD)
@pytest.mark.parametrize("beside", [[], [PUBLIC]], ids=["alone", "beside a public one"])
def test_a_public_name_that_leads_inward_is_refused_and_nothing_is_dialled(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, address: str, beside: list[str]
) -> None:
    asked = leading(monkeypatch, [*beside, address])
    dialled: list[object] = []
    real = aiohappyeyeballs.start_connection

    async def dial(addr_infos: Any, **how: Any) -> socket.socket:
        if all(address[-1][1] != 443 for address in addr_infos):
            return await real(addr_infos=addr_infos, **how)  # the harness to the egress
        dialled.append(addr_infos)
        raise OSError("dialled")

    monkeypatch.setattr("aiohttp.connector.aiohappyeyeballs.start_connection", dial)

    async def run() -> None:
        async with session(tmp_path, base_url="https://provider.example") as s:
            status, told, _ = await s.post(*call(Dialect.ANTHROPIC))
            assert (status, b"leads to an inward address" in told) == (502, True)
            [row] = s.rows()
            assert (row["unmetered_reason"], row["input"]) == ("upstream_inward", None)

    asyncio.run(run())
    assert asked == ["provider.example"] and dialled == []


def test_a_name_that_flips_is_looked_at_each_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """What was looked at is what is dialled: the addresses of this very answer, not those of another look-up."""
    leading(monkeypatch, [PUBLIC], ["127.0.0.1"])

    async def run() -> None:
        resolver = _Resolver(frozenset({"litellm.local"}))
        assert [one["host"] for one in await resolver.resolve("provider.example", 443)] == [PUBLIC]
        with pytest.raises(InwardAddressError):
            await resolver.resolve("provider.example", 443)
        with pytest.raises(InwardAddressError):
            await resolver.resolve("PROVIDER.example.", 443)
        assert [one["host"] for one in await resolver.resolve("LiteLLM.local", 443)] == ["127.0.0.1"]  # grants.toml put it there

    asyncio.run(run())
