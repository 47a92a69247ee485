"""One colour per class, the same as on the page (webui/test/class-colours.test.ts)."""

from edgebox.media.class_colours import class_colour


def test_a_class_has_one_colour_whatever_the_model() -> None:
    names = ("person", "car", "motorbike", "Motorcycle", "traffic light", "helmet")
    assert [class_colour(name) for name in names] == [
        "#ffb43a",
        "#4cc9f0",
        "#b9a0ff",
        "#b9a0ff",
        "#8fb8ff",
        "#f59bee",
    ]
