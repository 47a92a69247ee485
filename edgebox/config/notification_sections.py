"""Owns the sections that say which events happen and where they go: MQTT and webhooks.

Secrets are named here (a file, an environment variable), never held: a configuration may be shown.
Of a webhook's URL, which can hold a token in its path, only scheme and host are.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from urllib.parse import SplitResult, urlsplit

from edgebox.config.keys import key
from edgebox.domain.notifications import NotificationType

_OVERFLOWS = ("oldest", "newest")
_QUEUE_DOC = "Events that wait while it is away"
_OVERFLOW_DOC = "Which event is lost when more would wait"


@dataclass(frozen=True, slots=True)
class EventParameters:
    """When a camera's deadlines count as breached and as kept again."""

    slo_window_s: float = key(
        30.0, "Seconds over which the share of frames on time is taken", low=1, high=3600
    )
    slo_breached_below: float = key(
        0.9, "A share of frames on time below this is a breach", low=0, high=1
    )
    slo_margin: float = key(
        0.05, "A breach is over once the share is this much above that", low=0, high=0.5
    )
    slo_frames_min: int = key(
        10, "Frames of the window before its share says anything", low=1, high=100_000
    )


@dataclass(frozen=True, slots=True)
class DetectionParameters:
    """What makes an event when a camera sees it. The first that fits the camera counts.

    Without any, everything that scores 0.5 does.
    """

    cameras: tuple[str, ...] = key(
        (), 'Names of cameras, with * and ? as in file names ("gate-*"); empty: all'
    )
    classes: tuple[str, ...] = key((), "Classes that count; empty: all the model knows")
    score_min: float = key(0.5, "Detections that score less do not count", low=0, high=1)
    hold_s: float = key(
        5.0, "Seconds without being seen after which a class is gone", low=0.1, high=300
    )
    interval_s: float = key(
        10.0, "Seconds that a class stays at least once it was seen: no more events than that",
        low=0, high=300,
    )  # fmt: skip


@dataclass(frozen=True, slots=True)
class MqttParameters:
    """The MQTT broker that is told; needs edgebox[mqtt]."""

    host: str = key("", "The broker's name or address; empty: no MQTT", may_be_empty=True)
    port: int = key(1883, "Its port; 8883 is usual with TLS", low=1, high=65535)
    username: str = key("", "Who the box is to the broker; empty: nobody", may_be_empty=True)
    password_file: str = key(
        "", "A file with the password, relative to this file", may_be_empty=True
    )
    password_env: str = key(
        "", "Or the environment variable that has the password", may_be_empty=True
    )
    tls: bool = key(False, "Whether to speak TLS")
    ca_file: str = key(
        "",
        "Certificates to trust instead of the system's, relative to this file",
        may_be_empty=True,
    )
    topic: str = key("edgebox", "What all topics begin with; each box of a broker needs its own")
    discovery: str = key(
        "homeassistant",
        "Where Home Assistant looks for devices; empty: it is not told of any",
        may_be_empty=True,
    )
    metrics_s: float = key(
        10.0, "Seconds between two messages with a camera's figures", low=1, high=3600
    )
    queue_max: int = key(1000, _QUEUE_DOC, low=1, high=100_000)
    overflow: str = key("oldest", _OVERFLOW_DOC, choices=_OVERFLOWS)


@dataclass(frozen=True, slots=True)
class WebhookParameters:
    """An address that each event is posted to."""

    url: str = key("", "Where to post, http or https", secret="path")
    name: str = key("", "What people are told it is; empty: the URL's host", may_be_empty=True)
    secret_file: str = key(
        "", "A file with the secret that signs, relative to this file", may_be_empty=True
    )
    secret_env: str = key(
        "", "Or the environment variable that has the secret; neither: not signed",
        may_be_empty=True,
    )  # fmt: skip
    ca_file: str = key(
        "",
        "Certificates to trust instead of the system's, relative to this file",
        may_be_empty=True,
    )
    events: tuple[str, ...] = key(
        (), "Kinds of events to send, see docs/reference/events.md; empty: all"
    )
    cameras: tuple[str, ...] = key((), "Cameras whose events to send, with * and ?; empty: all")
    classes: tuple[str, ...] = key((), "Classes whose detections to send; empty: all")
    timeout_s: float = key(10.0, "Seconds that an answer may take", low=0.1, high=300)
    give_up_s: float = key(
        3600.0, "Seconds after which an event that was never taken is given up", low=1, high=604_800
    )
    queue_max: int = key(1000, _QUEUE_DOC, low=1, high=100_000)
    overflow: str = key("oldest", _OVERFLOW_DOC, choices=_OVERFLOWS)

    @property
    def shown_name(self) -> str:
        """The name with the default filled in."""
        return self.name or urlsplit(self.url).netloc


PATHS = {
    "mqtt": ("password_file", "ca_file"),
    "webhooks": ("secret_file", "ca_file"),
}
"""Keys of these sections that hold a path."""


def contradictions(mqtt: MqttParameters, webhooks: Sequence[WebhookParameters]) -> Iterator[str]:
    """Yield what is wrong although each key alone is right."""
    yield from _of_mqtt(mqtt)
    names: set[str] = set()
    for number, webhook in enumerate(webhooks):
        path = f"webhooks[{number}]"
        yield from (f"{path}.{problem}" for problem in _of_webhook(webhook))
        if webhook.shown_name in names:
            yield f'{path}.name: another webhook is called "{webhook.shown_name}", too'
        names.add(webhook.shown_name)


def _of_mqtt(mqtt: MqttParameters) -> Iterator[str]:
    if mqtt.password_file and mqtt.password_env:
        yield "mqtt.password_env: there is a password_file, too; keep one of them"
    if (mqtt.password_file or mqtt.password_env) and not mqtt.username:
        yield "mqtt.username: is needed with a password"
    for name, topic in (("topic", mqtt.topic), ("discovery", mqtt.discovery)):
        if set(topic) & set("+#\0") or topic.startswith(("/", "$")) or topic.endswith("/"):
            yield f"mqtt.{name}: must be a topic without + and #, and no / at its ends"


def _of_webhook(webhook: WebhookParameters) -> Iterator[str]:
    if not webhook.url:
        yield "url: is needed"
        return
    parts = _split(webhook.url)
    if parts is None or parts.scheme not in ("http", "https") or not parts.hostname:
        yield "url: must be an address that begins with http:// or https://"
    elif parts.username or parts.password:
        yield "url: must hold no user and password: a configuration may be shown to people"
    if webhook.secret_file and webhook.secret_env:
        yield "secret_env: there is a secret_file, too; keep one of them"
    unknown = sorted(set(webhook.events) - set(NotificationType))
    if unknown:
        yield f"events: there is no {', '.join(unknown)} (there are: {', '.join(NotificationType)})"


def _split(url: str) -> SplitResult | None:
    try:
        parts = urlsplit(url)
        parts.port  # noqa: B018 - looking at it checks it
    except ValueError:
        return None
    return parts
