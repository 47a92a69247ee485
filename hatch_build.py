"""The build hook: builds the page the wheel serves, with no Node on the machine.

Runs for wheels, editable installs and sdists; webui/node.py does the work and is skipped when the
page is fresh, so that a wheel made from an sdist needs no network. `python hatch_build.py`
refreshes the page in an environment without hatchling.
"""

import sys
from pathlib import Path
from typing import Any

# Neither a build front end nor hatchling puts the project's own folder on the path.
sys.path.insert(0, str(Path(__file__).resolve().parent))

from webui.node import PageError, build_page, main

if __name__ == "__main__":
    sys.exit(main(["page"]))

from hatchling.builders.hooks.plugin.interface import BuildHookInterface


class PageBuildHook(BuildHookInterface[Any]):
    """Builds edgebox/web/page from webui/ before hatchling collects the files."""

    PLUGIN_NAME = "custom"

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Build the page unless it is newer than its sources."""
        try:
            built = build_page()
        except PageError as error:
            self.app.abort(f"edgebox: the page could not be built: {error}")
        self.app.display_info(
            "edgebox: built the page" if built else "edgebox: the page is fresh, not built again"
        )
