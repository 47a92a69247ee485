"""What `benchmarks.sites` compares is the same cameras over the same capacity."""

import pytest

from benchmarks.sites import KINDS, PROXY, SEPARATE, SHARED, made_up, scenario_of

LINKS = {link.name: link for link in made_up()}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", LINKS)
def test_every_kind_has_the_same_cameras_over_the_same_capacity(name: str, kind: str) -> None:
    link = LINKS[name]
    scenario = scenario_of(link, kind, 1, declared=True)
    assert [spec.camera.slo_ns for spec in scenario.cameras] == [150_000_000] * 4
    sites = {spec.site for spec in scenario.cameras}
    if kind in SHARED:
        [site] = sites
        assert site is not None
        assert (site.trace, site.queueing) == (link.trace, kind)
        assert {spec.camera.site for spec in scenario.cameras} == {site.name}
        return
    assert sites == {None}
    rates = [spec.trace.rates_bps for spec in scenario.cameras]
    assert sum(rate[0] for rate in rates) == pytest.approx(link.trace.rates_bps[0])
    addresses = {spec.from_address for spec in scenario.cameras}
    assert len(addresses) == {SEPARATE: 4, PROXY: 1}[kind]
