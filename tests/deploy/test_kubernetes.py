"""The manifests of deploy/kubernetes: valid by schema, and in agreement with box and image."""

import os
import re
import shutil
import subprocess
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import jsonschema
import kubernetes_validate
import pytest
import yaml

from edgebox.config.config_file import Config, load
from edgebox.config.host_names import KnownHosts
from edgebox.web.health import ROUTES
from tests.deploy.kustomization import Document, RenderError, documents_of, pods_of, render
from tests.deploy.ray_cluster_schema import RAY_CLUSTER
from tests.docker.dockerfile import image_config, parse, stages

ROOT = Path(__file__).resolve().parents[2]
KUBERNETES = ROOT / "deploy/kubernetes"
FOLDERS = sorted(file.parent for file in KUBERNETES.rglob("kustomization.yaml"))
VERSIONS = ("1.29", "1.37")
"""The schemas that all manifests satisfy: the oldest that the page promises, and a new one."""
NAMES = [str(folder.relative_to(KUBERNETES)) for folder in FOLDERS]
each_folder = pytest.mark.parametrize("folder", FOLDERS, ids=NAMES)


@cache
def rendered(folder: Path) -> list[Document]:
    return list(render(folder).values())


def of_kind(folder: Path, kind: str) -> Iterator[Document]:
    return (document for document in rendered(folder) if document["kind"] == kind)


def box(folder: Path) -> Document:
    (found,) = of_kind(folder, "StatefulSet")
    return found


def box_container(folder: Path) -> Document:
    return dict(box(folder)["spec"]["template"]["spec"]["containers"][0])


def configuration(folder: Path, tmp_path: Path) -> Config:
    """Return what the box of a folder reads."""
    (config_map,) = of_kind(folder, "ConfigMap")
    ((name, text),) = config_map["data"].items()
    (tmp_path / name).write_text(text, "utf-8")
    return load(tmp_path / name)


def all_pods() -> list[Any]:
    documents = [(name, d) for f, name in zip(FOLDERS, NAMES, strict=True) for d in rendered(f)]
    documents += [("restore", d) for d in documents_of(KUBERNETES / "restore.yaml")]
    return [
        pytest.param(pod, id=f"{name}-{d['kind']}") for name, d in documents for pod in pods_of(d)
    ]


def validate(document: Document, version: str) -> None:
    if document["kind"] != "RayCluster":
        kubernetes_validate.validate(document, version, strict=True)
        return
    jsonschema.validate(document, RAY_CLUSTER)
    for template in pods_of(document):
        metadata = {"name": "template"}
        whole = {"apiVersion": "v1", "kind": "PodTemplate", "metadata": metadata}
        kubernetes_validate.validate({**whole, "template": template}, version, strict=True)


@pytest.mark.parametrize("version", VERSIONS)
@each_folder
def test_all_resources_are_valid(folder: Path, version: str) -> None:
    for document in rendered(folder):
        validate(document, version)


@pytest.mark.parametrize("version", VERSIONS)
def test_the_pod_for_restoring_is_valid(version: str) -> None:
    (pod,) = documents_of(KUBERNETES / "restore.yaml")
    validate(pod, version)
    claims = box(KUBERNETES / "base")["spec"]["volumeClaimTemplates"]
    claim = f"{claims[0]['metadata']['name']}-{box(KUBERNETES / 'base')['metadata']['name']}-0"
    assert pod["spec"]["volumes"][0]["persistentVolumeClaim"]["claimName"] == claim


def test_an_unknown_key_is_invalid() -> None:
    document = render(KUBERNETES / "base")[("StatefulSet", "edgebox")]
    document["spec"]["replica"] = 1
    with pytest.raises(kubernetes_validate.ValidationError):
        validate(document, VERSIONS[0])
    cluster = render(KUBERNETES / "overlays/ray")[("RayCluster", "edgebox-ray")]
    cluster["spec"]["headGroupSpec"]["rayStartParams"]["num-cpus"] = 0
    with pytest.raises(jsonschema.ValidationError):
        validate(cluster, VERSIONS[0])


def test_a_patch_for_nothing_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "a.yaml").write_text("{kind: Service, metadata: {name: none}}")
    spec = f"resources: [{KUBERNETES / 'base'}]\npatches: [path: a.yaml]"
    (tmp_path / "kustomization.yaml").write_text(spec)
    with pytest.raises(RenderError, match="none"):
        render(tmp_path)


MUTABLE = {
    "replicas", "ordinals", "template", "updateStrategy", "minReadySeconds",
    "persistentVolumeClaimRetentionPolicy", "revisionHistoryLimit",
}  # fmt: skip
"""What a cluster lets anybody change of a StatefulSet that is there."""


@each_folder
def test_a_box_that_runs_can_be_given_every_overlay(folder: Path) -> None:
    lasting = [
        {key: value for key, value in box(each)["spec"].items() if key not in MUTABLE}
        for each in (KUBERNETES / "base", folder)
    ]
    assert lasting[0] == lasting[1]


@each_folder
def test_labels_and_selectors_agree(folder: Path) -> None:
    labels = box(folder)["spec"]["template"]["metadata"]["labels"].items()
    assert box(folder)["spec"]["selector"]["matchLabels"].items() <= labels
    services = {each["metadata"]["name"]: each["spec"] for each in of_kind(folder, "Service")}
    assert services[box(folder)["spec"]["serviceName"]]["clusterIP"] == "None"
    assert all(spec["selector"].items() <= labels for spec in services.values())
    policies = {each["metadata"]["name"]: each["spec"] for each in of_kind(folder, "NetworkPolicy")}
    assert policies["edgebox"]["podSelector"]["matchLabels"].items() <= labels


@each_folder
def test_ports_and_probes_are_those_of_the_box(folder: Path, tmp_path: Path) -> None:
    server = configuration(folder, tmp_path).server
    container = box_container(folder)
    ports = {port["name"]: port["containerPort"] for port in container["ports"]}
    assert ports == {"http": server.port}
    for service in of_kind(folder, "Service"):
        (port,) = service["spec"]["ports"]
        assert (port["port"], port["targetPort"]) == (server.port, "http")
    probes = {
        kind: container[f"{kind}Probe"]["httpGet"] for kind in ("startup", "liveness", "readiness")
    }
    paths = {kind: probe["path"] for kind, probe in probes.items()}
    assert paths == {"startup": "/healthz", "liveness": "/healthz", "readiness": "/readyz"}
    assert set(paths.values()) <= {route.path for route in ROUTES if route.scope is None}
    scheme = "HTTP" if server.tls == "off" else "HTTPS"
    assert {probe.get("scheme", "HTTP") for probe in probes.values()} == {scheme}


@each_folder
def test_its_names_in_the_cluster_are_known(folder: Path, tmp_path: Path) -> None:
    known = KnownHosts.of("0.0.0.0", configuration(folder, tmp_path).server.allowed_hosts, ())
    headless = f"{box(folder)['metadata']['name']}-0.{box(folder)['spec']['serviceName']}"
    for name in ("edgebox", headless):
        for domain in ("", ".cameras.svc", ".cameras.svc.cluster.local"):
            assert known.has(name + domain), name + domain


@each_folder
def test_the_configuration_is_mounted_where_it_is_looked_for(folder: Path) -> None:
    container = box_container(folder)
    mounts = {mount["name"]: mount["mountPath"] for mount in container["volumeMounts"]}
    variables = {each["name"]: each.get("value", "") for each in container["env"]}
    (config_map,) = of_kind(folder, "ConfigMap")
    (name,) = config_map["data"]
    assert variables["EDGEBOX_CONFIG"] == f"{mounts['config']}/{name}"
    spec = box(folder)["spec"]
    declared = {volume["name"] for volume in spec["template"]["spec"]["volumes"]}
    declared |= {claim["metadata"]["name"] for claim in spec["volumeClaimTemplates"]}
    containers = spec["template"]["spec"]["containers"]
    assert {mount["name"] for each in containers for mount in each["volumeMounts"]} == declared


@pytest.mark.parametrize("pod", all_pods())
def test_pods_are_confined_as_the_image_permits(pod: Document) -> None:
    found = stages(parse((ROOT / "Dockerfile").read_text("utf-8")), {})
    image = image_config(found[-1], {}, found)
    spec = pod["spec"]
    user, group = map(int, image.user.split(":"))
    context = spec["securityContext"]
    assert (context["runAsUser"], context["runAsGroup"], context["fsGroup"]) == (user, group, group)
    assert context["runAsNonRoot"] is True
    assert context["seccompProfile"] == {"type": "RuntimeDefault"}
    assert spec["automountServiceAccountToken"] is False
    for container in spec["containers"]:
        assert container["securityContext"] == {
            "allowPrivilegeEscalation": False,
            "readOnlyRootFilesystem": True,
            "capabilities": {"drop": ["ALL"]},
        }
        mounts = {mount["mountPath"] for mount in container["volumeMounts"]}
        assert {*image.volumes, "/tmp"} <= mounts
        assert re.fullmatch(r"edgebox:[a-z]+", container["image"])
        assert container["resources"]["limits"]["memory"]


@each_folder
def test_there_is_time_to_stop(folder: Path) -> None:
    """A stop takes 8 s at most, docs/how-to/operations.md says."""
    pod = box(folder)["spec"]["template"]["spec"]
    assert 8 < pod["terminationGracePeriodSeconds"] <= 30


def test_the_box_and_the_cluster_of_ray_agree(tmp_path: Path) -> None:
    folder = KUBERNETES / "overlays/ray"
    (cluster,) = of_kind(folder, "RayCluster")
    head, *workers = pods_of(cluster)
    (table,) = [t for t in configuration(folder, tmp_path).executors if t.kind == "ray"]
    ports = {p["name"]: p["containerPort"] for p in head["spec"]["containers"][0]["ports"]}
    assert table.address == f"{cluster['metadata']['name']}-head-svc:{ports['gcs-server']}"
    limits = [pod["spec"]["containers"][0]["resources"]["limits"] for pod in workers]
    assert [float(limit["cpu"]) for limit in limits] == [table.num_cpus]
    lock = (ROOT / "requirements/ray.txt").read_text("utf-8")
    assert f"\nray=={cluster['spec']['rayVersion']} " in lock
    in_box = box(folder)["spec"]["template"]["spec"]["containers"]
    assert f"--address={table.address}" in in_box[1]["args"]
    containers = [*in_box, *(pod["spec"]["containers"][0] for pod in (head, *workers))]
    assert {each["image"] for each in containers} == {"edgebox:ray"}
    for each in containers:
        variables = {variable["name"]: variable for variable in each["env"]}
        assert variables["RAY_AUTH_MODE"]["value"] == "token"
        secret = variables["RAY_AUTH_TOKEN"]["valueFrom"]["secretKeyRef"]
        assert secret == {"name": "edgebox-ray", "key": "auth_token"}


def test_only_box_and_cluster_reach_ray() -> None:
    folder = KUBERNETES / "overlays/ray"
    policies = {each["metadata"]["name"]: each["spec"] for each in of_kind(folder, "NetworkPolicy")}
    cluster, of_box = policies["edgebox-ray"]["ingress"]
    components = {
        e["key"]: set(e["values"])
        for e in policies["edgebox-ray"]["podSelector"]["matchExpressions"]
    }
    (ray,) = of_kind(folder, "RayCluster")
    labels = [pod["metadata"]["labels"] for pod in pods_of(ray)]
    assert components["app.kubernetes.io/component"] == {
        each["app.kubernetes.io/component"] for each in labels
    }
    assert "ports" not in cluster
    assert cluster["from"] == [{"podSelector": policies["edgebox-ray"]["podSelector"]}]
    box_labels = box(folder)["spec"]["template"]["metadata"]["labels"]
    assert of_box["from"] == [{"podSelector": {"matchLabels": box_labels}}]


def test_a_fleet_finds_its_boxes_and_loses_one_at_a_time(tmp_path: Path) -> None:
    folder = KUBERNETES / "overlays/fleet"
    config, spec = configuration(folder, tmp_path), box(folder)["spec"]
    assert config.fleet.boxes == (f"http://{spec['serviceName']}:{config.server.port}",)
    secrets = {mount["name"]: mount["mountPath"] for mount in box_container(folder)["volumeMounts"]}
    assert config.fleet.secret_file == f"{secrets['secrets']}/fleet-secret"
    (budget,) = of_kind(folder, "PodDisruptionBudget")
    assert budget["spec"]["selector"] == spec["selector"]
    assert 0 < budget["spec"]["maxUnavailable"] < spec["replicas"]
    assert [box(each)["spec"]["replicas"] for each in FOLDERS if each != folder] == [1] * (
        len(FOLDERS) - 1
    )


def in_order(value: Any) -> Any:
    """Return a document with its lists of named things by name: their order means nothing."""
    if isinstance(value, dict):
        return {key: in_order(each) for key, each in value.items()}
    if isinstance(value, list):
        ordered = [in_order(each) for each in value]
        named = all(isinstance(each, dict) and "name" in each for each in ordered)
        return sorted(ordered, key=lambda each: str(each["name"])) if named else ordered
    return value


@pytest.mark.skipif(shutil.which("kubectl") is None, reason="needs kubectl")
@each_folder
def test_kubectl_renders_the_same(folder: Path) -> None:
    command = ["kubectl", "kustomize", str(folder)]
    run = subprocess.run(command, capture_output=True, text=True, check=True, env=dict(os.environ))
    # The name of a generated ConfigMap, and of what refers to it, ends with a hash there.
    text = re.sub(r"edgebox-config-[a-z0-9]{10}", "edgebox-config", run.stdout)
    theirs = {(d["kind"], d["metadata"]["name"]): d for d in yaml.safe_load_all(text)}
    assert in_order(theirs) == in_order(render(folder))
