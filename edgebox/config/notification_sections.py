"""The sections that say which events happen and where they go: MQTT and webhooks.

Secrets are named here (a file, an environment variable), never held: a configuration may be shown.
Of a webhook's URL, which can hold a token in its path, only scheme and host are.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from urllib.parse import SplitResult, urlsplit

from edgebox.config.keys import key, one_too_many
from edgebox.domain.notifications import NotificationType

_OVERFLOWS = ("oldest", "newest")
_QUEUE_DOC = "Events queued while it is unreachable"
_OVERFLOW_DOC = "Which event an overflow of the queue drops"


@dataclass(frozen=True, slots=True)
class EventParameters:
    """When a camera's deadlines count as breached and as kept again."""

    slo_window_s: float = key(
        30.0, "Seconds of the window for the share of frames on time", low=1, high=3600
    )
    slo_breached_below: float = key(
        0.9, "A share of frames on time below this is a breach", low=0, high=1
    )
    slo_margin: float = key(
        0.05, "A breach ends when the share is this much above that threshold", low=0, high=0.5
    )
    slo_frames_min: int = key(10, "Fewest frames in the window for a decision", low=1, high=100_000)


@dataclass(frozen=True, slots=True)
class DetectionParameters:
    """What makes an event when a camera sees it. The first that fits the camera counts.

    Without any, everything that scores 0.5 does.
    """

    cameras: tuple[str, ...] = key(
        (), 'Names of cameras, with * and ? as in file names ("gate-*"); empty: all'
    )
    classes: tuple[str, ...] = key((), "Classes that make events; empty: all classes of the model")
    score_min: float = key(0.5, "Detections with lower scores are ignored", low=0, high=1)
    hold_s: float = key(
        5.0, "Seconds without detections after which a class is gone", low=0.1, high=300
    )
    interval_s: float = key(
        10.0, "Shortest duration of an episode in seconds, which limits the number of events",
        low=0, high=300,
    )  # fmt: skip


@dataclass(frozen=True, slots=True)
class MqttParameters:
    """The MQTT broker to publish to; needs edgebox[mqtt]."""

    host: str = key("", "The broker's name or address; empty: no MQTT", may_be_empty=True)
    port: int = key(1883, "Its port; 8883 is usual with TLS", low=1, high=65535)
    username: str = key("", "User name for the broker; empty: none", may_be_empty=True)
    password_file: str = key(
        "", "A file with the password, relative to this file", may_be_empty=True
    )
    password_env: str = key(
        "", "Or the environment variable that has the password", may_be_empty=True
    )
    tls: bool = key(False, "Whether to use TLS")
    ca_file: str = key(
        "",
        "Certificates to trust instead of the system's, relative to this file",
        may_be_empty=True,
    )
    topic: str = key("edgebox", "Prefix of all topics; each box of a broker needs its own")
    discovery: str = key(
        "homeassistant",
        "Home Assistant's discovery prefix; empty: no discovery",
        may_be_empty=True,
    )
    pictures: bool = key(
        False,
        "Publish the best picture of each camera's latest sighting, with boxes. Whoever may read "
        "the topics sees them",
    )
    metrics_s: float = key(
        10.0, "Seconds between two messages with a camera's figures", low=1, high=3600
    )
    queue_max: int = key(1000, _QUEUE_DOC, low=1, high=100_000)
    overflow: str = key("oldest", _OVERFLOW_DOC, choices=_OVERFLOWS)


@dataclass(frozen=True, slots=True)
class WebhookParameters:
    """An address that each event is posted to."""

    url: str = key("", "URL to post to, http or https", secret="path")
    name: str = key("", "Name of the webhook for people; empty: the URL's host", may_be_empty=True)
    secret_file: str = key(
        "", "File with the signing secret, relative to this file", may_be_empty=True
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
    timeout_s: float = key(10.0, "Time limit of an answer, in seconds", low=0.1, high=300)
    give_up_s: float = key(
        3600.0, "Seconds after which an undelivered event is dropped", low=1, high=604_800
    )
    queue_max: int = key(1000, _QUEUE_DOC, low=1, high=100_000)
    overflow: str = key("oldest", _OVERFLOW_DOC, choices=_OVERFLOWS)

    @property
    def shown_name(self) -> str:
        """The name with the default filled in."""
        parts = _split(self.url)
        return self.name or (parts.netloc if parts is not None else "")


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
        if webhook.shown_name and webhook.shown_name in names:
            yield f'{path}.name: another webhook is called "{webhook.shown_name}", too'
        names.add(webhook.shown_name)


def _of_mqtt(mqtt: MqttParameters) -> Iterator[str]:
    if mqtt.password_file and mqtt.password_env:
        yield one_too_many("mqtt.password_env", "password_file")
    if (mqtt.password_file or mqtt.password_env) and not mqtt.username:
        given = "mqtt.password_file" if mqtt.password_file else "mqtt.password_env"
        yield f"mqtt.username: is needed with {given}"
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
        yield one_too_many("secret_env", "secret_file")
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
