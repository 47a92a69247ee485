"""A schema for RayCluster, written by KubeRay's public description of `ray.io/v1`.

Only the fields that deploy/ uses; pod templates are validated by the schemas of Kubernetes.
"""

from typing import Any

_PARAMETERS = {"type": "object", "additionalProperties": {"type": "string"}}
_TEMPLATE = {"type": "object", "required": ["spec"]}


def _closed(properties: dict[str, Any], required: list[str]) -> dict[str, Any]:
    return {
        "type": "object",
        "properties": properties,
        "required": required,
        "additionalProperties": False,
    }


_COUNT = {"type": "integer", "minimum": 0}
_WORKERS = _closed(
    {
        "groupName": {"type": "string", "minLength": 1},
        "replicas": _COUNT,
        "minReplicas": _COUNT,
        "maxReplicas": _COUNT,
        "rayStartParams": _PARAMETERS,
        "template": _TEMPLATE,
    },
    ["groupName", "minReplicas", "maxReplicas", "template"],
)
RAY_CLUSTER = _closed(
    {
        "apiVersion": {"const": "ray.io/v1"},
        "kind": {"const": "RayCluster"},
        "metadata": {"type": "object", "required": ["name"]},
        "spec": _closed(
            {
                "rayVersion": {"type": "string"},
                "headGroupSpec": _closed(
                    {"rayStartParams": _PARAMETERS, "template": _TEMPLATE}, ["template"]
                ),
                "workerGroupSpecs": {"type": "array", "items": _WORKERS},
            },
            ["headGroupSpec"],
        ),
    },
    ["apiVersion", "kind", "metadata", "spec"],
)
