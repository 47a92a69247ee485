"""Configuration: every error at once and named, and documents that cannot fall behind."""

from pathlib import Path
from typing import Any

import pytest

from edgebox.config.config_file import Config, keys, load
from edgebox.config.executor_section import KEYS_BY_KIND, RAY
from edgebox.domain.errors import ConfigError
from edgebox.planning.planner_parameters import PlanningParameters
from edgebox.scheduling.scheduler_parameters import SchedulerParameters

_DEVICES = '"auto", "cpu", "cuda", "tensorrt" or one GPU ("cuda:0", "tensorrt:0")'


def written(tmp_path: Path, text: str) -> Path:
    path = tmp_path / "edgebox.toml"
    path.write_text(text, encoding="utf-8")
    return path


def errors(tmp_path: Path, text: str, overrides: dict[str, Any] | None = None) -> list[str]:
    path = written(tmp_path, text)
    with pytest.raises(ConfigError) as caught:
        load(path, overrides)
    first, *rest = str(caught.value).splitlines()
    assert first.startswith(f"{path}:")
    return [line.strip() for line in rest] or [first]


def test_nothing_means_the_defaults(tmp_path: Path) -> None:
    assert load(None) == Config()
    assert load(written(tmp_path, "")) == Config()
    assert Config().server.host == "127.0.0.1"


def test_the_defaults_are_those_of_the_rooms_they_configure() -> None:
    assert Config().scheduler_parameters() == SchedulerParameters()
    assert Config().planning_parameters() == PlanningParameters()


def test_values_arrive_typed(tmp_path: Path) -> None:
    config = load(
        written(
            tmp_path,
            """
            [server]
            host = "0.0.0.0"
            port = 0
            [limits]
            silent_s = 5          # a whole number where a number is wanted
            pending_per_camera_max = 3
            [planner]
            interval_ms = 250
            utilisation_max = 0.6
            [[executors]]
            device = "cuda:1"
            cores = [0, 2]
            families = ["street"]
            """,
        )
    )
    assert (config.server.host, config.server.port) == ("0.0.0.0", 0)
    assert isinstance(config.limits.silent_s, float)
    assert config.scheduler_parameters().planning_interval_ns == 250_000_000
    assert config.scheduler_parameters().camera_pending_max == 3
    assert config.planning_parameters().utilisation_max == 0.6
    assert config.planning_parameters().utilisation_upgrade < 0.6
    assert config.planning_parameters().cycle_utilisation_max == 0.6
    (executor,) = config.executors
    assert (executor.device, executor.streams) == ("cuda:1", 1)
    assert (executor.cores, executor.families) == ((0, 2), ("street",))
    assert config.storage == Config().storage


def test_all_errors_come_at_once(tmp_path: Path) -> None:
    found = errors(
        tmp_path,
        """
        planner = 3
        [server]
        prot = 1
        port = 70000
        host = ""
        [limits]
        cameras_max = true
        frame_bytes_max = 1.5
        silent_s = nan
        [inferense]
        [[executors]]
        device = "gpu"
        streams = 9
        [[executors]]
        device = "cpu:1"
        cores = [0, -1]
        threads = "most"
        [inference]
        families = ["a", 1]
        xyzzy = 1
        executors = []
        """,
    )
    assert sorted(found) == sorted(
        [
            "planner: must be a table, [planner], not 3",
            "server.prot: there is no such key; did you mean port?",
            "server.port: must be a whole number from 0 to 65535, not 70000",
            'server.host: must be a text that is not empty, not ""',
            "limits.cameras_max: must be a whole number from 1 to 10000, not true",
            "limits.frame_bytes_max: must be a whole number from 1024 to 67108864, not 1.5",
            "limits.silent_s: must be a number from 1 to 3600, not nan",
            "inferense: there is no such section; did you mean inference?",
            f'executors[0].device: must be {_DEVICES}, not "gpu"',
            "executors[0].streams: must be a whole number from 1 to 8, not 9",
            f'executors[1].device: must be {_DEVICES}, not "cpu:1"',
            "executors[1].cores: must be a list of whole numbers, 0 or more (how many compute is "
            "threads), not [0, -1]",
            'executors[1].threads: must be "auto", "all" or a whole number from 0 to 512, not '
            '"most"',
            'inference.families: must be a list of texts, not ["a", 1]',
            "inference.executors: this is no key, but tables of their own, each begins with "
            "[[executors]]",
            "inference.xyzzy: there is no such key (there are: families, models, bundled, family, "
            "pipeline, memory_limit_mb, batch_size_max, decode_threads, profile_s)",
        ]
    )


def test_workers_of_a_cluster_that_cannot_be_meant_are_named(tmp_path: Path) -> None:
    tables = """
        [[executors]]
        kind = "ray"
        resources = ["line-3"]
        device = "cpu"

        [[executors]]
        kind = "ray"
        count = "all"
        num_cpus = 0
        """
    wrong = """
        [[executors]]
        kind = "ray"
        address = "gate:1:2"
        """
    assert errors(tmp_path, wrong + tables) == [
        'executors[0].address: must be "auto" or "HOST:PORT", not "gate:1:2"',
    ]
    assert errors(tmp_path, tables) == [
        'executors[0].device: is for kind = "local", but kind is "ray"; leave it out',
        'executors[0].resources: "line-3" is not of the form "NAME=AMOUNT", like "line-3=1"',
        'executors[1].count: "all" workers that need nothing are without number; give them '
        "num_cpus",
    ]


def test_executors_that_contradict_themselves_are_named(tmp_path: Path) -> None:
    found = errors(
        tmp_path,
        """
        [[executors]]
        families = ["other"]
        cores = [3, 1, 3]
        [[executors]]
        threads = 3
        cores = [0, 1]
        families = ["another"]
        [[executors]]
        device = "cuda:0"
        threads = "auto"
        """,
    )
    assert found == [
        "executors[0].cores: 3 is there twice",
        "executors[1].threads: 3 is more than the 2 of executors[1].cores; name more cores, or "
        "leave threads out: one for each core",
        'executors[2].threads: "auto" is for CPUs, but device is "cuda:0"; leave threads out',
    ]
    (error,) = errors(tmp_path, '[[executors]]\ndevice = "cuda:\u0663"\n')
    assert error.startswith(f"executors[0].device: must be {_DEVICES}")
    (error,) = errors(tmp_path, 'executors = "all"\n')
    assert error == 'executors: must be tables, [[executors]], not "all"'


def test_what_became_of_keys_of_earlier_versions_is_said(tmp_path: Path) -> None:
    text = """
        [inference]
        providers = ["cpu"]
        cpu_threads = 2
        executors_per_device = 2
        """
    assert errors(tmp_path, text) == [
        "inference.providers: it is device in [[executors]] now",
        "inference.cpu_threads: it is threads in [[executors]] now",
        "inference.executors_per_device: it is streams in [[executors]] now",
    ]


_NEEDED = {
    "cameras": 'name = "gate"\nurl = "rtsp://camera/stream"\n',
    "webhooks": 'url = "http://localhost"\n',
    "zones": 'name = "gate"\npoints = [[0, 0], [1, 0], [1, 1]]\n',
}


def test_both_ends_of_every_range_are_taken_and_nothing_beyond(tmp_path: Path) -> None:
    ranged = [
        key
        for key in keys()
        if key.expected.startswith(("a number from", "a whole number from"))
        and key.name not in ("share", "threshold")  # only beside others: test_cascade_keys.py
    ]
    assert len(ranged) > 10
    for key in ranged:
        table = f"[[{key.section}]]" if key.repeated else f"[{key.section}]"
        where = f"{key.section}[0]" if key.repeated else key.section
        needed = _NEEDED.get(key.section, "")
        if key.name == "min_rate_hz":
            needed += "rate_hz = 1000\n"  # which it may not exceed
        if key.section == "executors" and key.name in KEYS_BY_KIND[RAY]:
            needed = 'kind = "ray"\n'
        if key.section == "pipelines.stages":
            table, where = f'[[pipelines]]\nname = "p"\n{table}', "pipelines[0].stages[0]"
            needed = 'name = "s"\nfamily = "street"\n'
        low, high = (float(end) for end in key.expected.split(" from ")[1].split(" to "))
        step = 1 if key.expected.startswith("a whole") else 0.001
        whole = int if step == 1 else float
        for value in (whole(low), whole(high)):
            load(written(tmp_path, f"{table}\n{needed}{key.name} = {value}\n"))
        for value in (whole(low - step), whole(high + step)):
            (error,) = errors(tmp_path, f"{table}\n{needed}{key.name} = {value}\n")
            assert error.startswith(f"{where}.{key.name}: must be {key.expected}, not ")


def test_broken_toml_is_reported_with_its_line(tmp_path: Path) -> None:
    (error,) = errors(tmp_path, "[server]\nport = = 3\n")
    assert "is not valid TOML" in error
    assert "line 2" in error


def test_files_that_cannot_be_read(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="there is no such file"):
        load(tmp_path / "nowhere.toml")
    with pytest.raises(ConfigError, match="cannot be read"):
        load(tmp_path)
    path = tmp_path / "binary.toml"
    path.write_bytes(b"\xff\xfe")
    with pytest.raises(ConfigError, match="UTF-8"):
        load(path)


def test_overrides_win_and_are_checked_alike(tmp_path: Path) -> None:
    path = written(tmp_path, "[server]\nport = 9000\nname = 'gate'\n")
    config = load(path, {"server.port": 9001, "planner.quality": 70})
    assert (config.server.port, config.server.name) == (9001, "gate")
    assert config.planner.quality == 70
    (error,) = errors(tmp_path, "", {"server.port": -1})
    assert error == "server.port: must be a whole number from 0 to 65535, not -1"
    with pytest.raises(ConfigError, match=r"the command line:\n  server\.port"):
        load(None, {"server.port": "x"})


def test_paths_are_relative_to_the_file(tmp_path: Path) -> None:
    path = written(
        tmp_path,
        '[storage]\npath = "data/box.sqlite3"\n[inference]\nfamilies = ["mine", "/opt/theirs"]\n'
        'models = "imported"\n',
    )
    config = load(path)
    assert config.storage.file == str(tmp_path / "data/box.sqlite3")
    assert config.inference.families == (str(tmp_path / "mine"), "/opt/theirs")
    assert config.inference.models_folder == tmp_path / "imported"
    assert load(path, {"storage.path": "here.sqlite3"}).storage.file == "here.sqlite3"
    assert load(written(tmp_path, '[storage]\npath = ":memory:"')).storage.file == ":memory:"


def test_the_default_database_follows_xdg(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_DATA_HOME", "/data")
    assert Config().storage.file == "/data/edgebox/edgebox.sqlite3"
    assert Config().inference.models_folder == Path("/data/edgebox/models")
    monkeypatch.delenv("XDG_DATA_HOME")
    monkeypatch.setenv("HOME", "/home/me")
    assert Config().storage.file == "/home/me/.local/share/edgebox/edgebox.sqlite3"


# Events out.


def test_sections_may_come_several_times(tmp_path: Path) -> None:
    config = load(
        written(
            tmp_path,
            """
            [[detections]]
            cameras = ["gate-*"]
            classes = ["person"]
            score_min = 0.7
            [[detections]]
            [[webhooks]]
            url = "https://one.example/hook"
            [[webhooks]]
            url = "http://one.example:8123/other"
            secret_file = "key"
            """,
        )
    )
    assert [rule.score_min for rule in config.detections] == [0.7, 0.5]
    assert config.detections[0].cameras == ("gate-*",)
    assert [hook.shown_name for hook in config.webhooks] == ["one.example", "one.example:8123"]
    assert config.webhooks[1].secret_file == str(tmp_path / "key")


def test_errors_in_repeated_sections_say_which_one(tmp_path: Path) -> None:
    found = errors(
        tmp_path,
        """
        mqtt = 1
        detections = 3
        [[webhooks]]
        url = "http://fine.example"
        [[webhooks]]
        uri = "http://fine.example"
        timeout_s = 0
        overflow = "both"
        """,
    )
    assert sorted(found) == sorted(
        [
            "mqtt: must be a table, [mqtt], not 1",
            "detections: must be tables, [[detections]], not 3",
            "webhooks[1].uri: there is no such key; did you mean url?",
            "webhooks[1].timeout_s: must be a number from 0.1 to 300, not 0",
            'webhooks[1].overflow: must be one of "oldest", "newest", not "both"',
        ]
    )


def test_the_address_of_a_webhook_that_is_none_is_reported(tmp_path: Path) -> None:
    found = errors(tmp_path, '[[webhooks]]\nurl = "http://[::1"\n')
    assert found == ["webhooks[0].url: must be an address that begins with http:// or https://"]


def test_keys_that_contradict_each_other_are_reported(tmp_path: Path) -> None:
    found = errors(
        tmp_path,
        """
        [mqtt]
        topic = "boxes/#"
        discovery = "/home"
        password_file = "a"
        password_env = "B"
        [[webhooks]]
        [[webhooks]]
        url = "ftp://host/x"
        [[webhooks]]
        url = "http://user:word@host/x"
        name = "ha"
        events = ["detection", "nonsense"]
        [[webhooks]]
        url = "http://host:99999/x"
        name = "ha"
        secret_file = "a"
        secret_env = "B"
        """,
    )
    kinds = (
        "detection, detection_ended, zone_dwell, zone_left, line_crossed, camera_up, camera_down, "
        "slo_breached, slo_recovered, "
        "executor_lost, executor_recovered, box_online, box_offline"
    )
    assert found == [
        "mqtt.password_env: there is a password_file, too; keep one of them",
        "mqtt.username: is needed with mqtt.password_file",
        "mqtt.topic: must be a topic without + and #, and no / at its ends",
        "mqtt.discovery: must be a topic without + and #, and no / at its ends",
        "webhooks[0].url: is needed",
        "webhooks[1].url: must be an address that begins with http:// or https://",
        "webhooks[2].url: must hold no user and password: a configuration may be shown to people",
        f"webhooks[2].events: there is no nonsense (there are: {kinds})",
        "webhooks[3].url: must be an address that begins with http:// or https://",
        "webhooks[3].secret_env: there is a secret_file, too; keep one of them",
        'webhooks[3].name: another webhook is called "ha", too',
    ]


def test_bad_zones_and_lines_are_named_with_their_key(tmp_path: Path) -> None:
    found = errors(
        tmp_path,
        """
        [[zones]]
        name = "gate"
        points = [[0, 0], [1, 1]]
        [[zones]]
        name = "gate"
        points = [[0, 0], [1, 1], [1, 0], [0, 1]]
        [[zones]]
        camera = "door"
        name = "gate"
        points = [[0, 0], [1, 1.5], [1, 0]]
        [[lines]]
        name = "gate"
        points = [[0, 0]]
        """,
    )
    assert found == [
        "zones[0].points: a zone needs 3 to 64 points, not 2",
        "zones[1].points: its sides cross each other; list the points in their order around the "
        "zone",
        'zones[1].name: zones[0] of this camera is called "gate", too',
        "zones[2].points: [1, 1.5] is outside the picture, whose sides go from 0 to 1",
        'zones[2].name: zones[0] of "*" is called "gate", too',
        "lines[0].points: a line needs 2 points, not 1",
        'lines[0].name: zones[0] of this camera is called "gate", too',
    ]
    (wrong,) = errors(tmp_path, '[[zones]]\nname = "gate"\npoints = [[0, "a"]]\n')
    assert wrong == 'zones[0].points: must be a list of points, each [x, y], not [[0, "a"]]'


def test_every_value_knows_where_it_is_from(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("XDG_DATA_HOME")
    monkeypatch.setenv("HOME", str(tmp_path))
    file = written(tmp_path, '[server]\nport = 1\nname = "hall"\n[storage]\npath = "a.sqlite3"\n')
    origins = load(file, {"server.port": 2}).origins
    assert origins == {
        "server.port": "option", "server.name": "file", "storage.path": "file",
    }  # fmt: skip
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    config = load(file)
    assert config.origins["inference.models"] == "environment"
    assert config.origins["storage.path"] == "file"
    assert load(None).origins["storage.path"] == "environment"


def test_values_of_sections_that_repeat_know_it_one_by_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("XDG_DATA_HOME")
    monkeypatch.setenv("HOME", str(tmp_path))
    text = '[[webhooks]]\nurl = "http://a"\n[[webhooks]]\nurl = "http://b"\nname = "b"\n'
    assert load(written(tmp_path, text)).origins == {
        "webhooks[0].url": "file", "webhooks[1].url": "file", "webhooks[1].name": "file",
    }  # fmt: skip
