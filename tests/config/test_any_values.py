"""Any value of any key: a configuration, or an error that names the key and nothing else."""

from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from edgebox.config.config_file import keys, load
from edgebox.domain.errors import ConfigError

SINGLE = sorted(f"{key.section}.{key.name}" for key in keys() if not key.repeated)
values = st.recursive(
    st.one_of(
        st.booleans(),
        st.integers(-(2**63), 2**63 - 1),
        st.floats(),
        st.text(max_size=20),
        st.dates(),
        st.sampled_from(["", "auto", "cpu", "0.0.0.0", "/nowhere", "*", "\0", "x" * 5000]),
    ),
    lambda inner: st.one_of(
        st.lists(inner, max_size=3), st.dictionaries(st.text(max_size=8), inner, max_size=3)
    ),
    max_leaves=6,
)


@settings(max_examples=400, deadline=None)
@given(st.dictionaries(st.sampled_from(SINGLE), values, min_size=1, max_size=3))
def test_any_value_is_taken_or_refused_by_name(given_values: dict[str, Any]) -> None:
    try:
        config = load(None, given_values)
    except ConfigError as error:
        assert any(key in str(error) for key in given_values), str(error)
        return
    config.scheduler_parameters(4)
    config.planning_parameters()
    config.storage.limits()
