"""What a configuration uses is not removed."""

from dataclasses import replace

import pytest

from edgebox.app.family_removal import check_unused
from edgebox.config.camera_section import CameraParameters
from edgebox.config.config_file import Config
from edgebox.domain.job_errors import FamilyInUseError


def test_what_a_camera_of_the_configuration_uses_stays() -> None:
    camera = CameraParameters(name="gate", url="rtsp://gate/1", family="mine")
    config = replace(Config(), cameras=(camera, replace(camera, name="door", family="")))
    with pytest.raises(FamilyInUseError, match=r"gate in \[\[cameras\]\] of .* uses mine"):
        check_unused(config, "mine")
    check_unused(config, "another")
