"""Renders the kustomizations of deploy/: the subset that they use; anything else is an error.

Resources, strategic merge patches, generated ConfigMaps (without the hash in their names) and
images. `test_kubernetes` compares it with kubectl where there is one.
"""

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import yaml

Document = dict[str, Any]
_LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)  # ten times as fast, where it is built
_KEYS = {
    "apiVersion", "kind", "resources", "patches", "configMapGenerator", "configurations", "images",
}  # fmt: skip


class RenderError(Exception):
    """A kustomization asks for what it has not, or what is not understood here."""


def render(folder: Path) -> dict[tuple[str, str], Document]:
    """Return the resources of a folder by kind and name.

    Raises:
        RenderError: a patch is for no resource, a name is there twice, or a key is unknown.
        OSError: a file that is named does not exist.
    """
    (spec,) = documents_of(folder / "kustomization.yaml")
    if unknown := spec.keys() - _KEYS:
        raise RenderError(f"{folder.name}: {', '.join(sorted(unknown))} is not understood here")
    found: dict[tuple[str, str], Document] = {}
    for name in spec["resources"]:
        path = folder / name
        documents = render(path).values() if path.is_dir() else documents_of(path)
        for document in documents:
            if identity(document) in found:
                raise RenderError(f"{identity(document)} is there twice")
            found[identity(document)] = document
    for patch in spec.get("patches", ()):
        for document in documents_of(folder / patch["path"]):
            if identity(document) not in found:
                raise RenderError(f"{patch['path']}: there is no {identity(document)}")
            found[identity(document)] = _merged(found[identity(document)], document)
    for wanted in spec.get("configMapGenerator", ()):
        key = ("ConfigMap", wanted["name"])
        if (key in found) != (wanted.get("behavior") == "replace"):
            raise RenderError(f"{key}: to replace it there must be one, to make it there must not")
        data = {Path(file).name: (folder / file).read_text("utf-8") for file in wanted["files"]}
        metadata = {"name": wanted["name"]}
        found[key] = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": data}
    _tag(found.values(), {image["name"]: image["newTag"] for image in spec.get("images", ())})
    return found


def _tag(documents: Iterable[Document], tags: Mapping[str, str]) -> None:
    for document in documents:
        for pod in pods_of(document):
            for container in pod["spec"]["containers"]:
                name = container["image"].partition(":")[0]
                if name in tags:
                    container["image"] = f"{name}:{tags[name]}"


def documents_of(file: Path) -> list[Document]:
    """Return the documents of a YAML file."""
    return list(yaml.load_all(file.read_text("utf-8"), _LOADER))


def identity(document: Mapping[str, Any]) -> tuple[str, str]:
    """Return kind and name."""
    return document["kind"], document["metadata"]["name"]


def pods_of(document: Mapping[str, Any]) -> list[Document]:
    """Return the pod templates of a resource, or the pod that it is."""
    spec = document.get("spec", {})
    match document["kind"]:
        case "Pod":
            return [dict(document)]
        case "StatefulSet":
            return [spec["template"]]
        case "RayCluster":
            groups = [spec["headGroupSpec"], *spec["workerGroupSpecs"]]
            return [group["template"] for group in groups]
    return []


def _merged(base: Any, patch: Any) -> Any:
    if isinstance(base, dict) and isinstance(patch, dict):
        return {
            key: _merged(base[key], patch[key])
            if key in base and key in patch
            else (patch if key in patch else base)[key]
            for key in {**base, **patch}
        }
    if isinstance(base, list) and all(isinstance(i, dict) and "name" in i for i in [*base, *patch]):
        named = {item["name"]: item for item in base}
        for item in patch:
            named[item["name"]] = _merged(named.get(item["name"], {}), item)
        return list(named.values())
    return patch
