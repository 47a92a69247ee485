"""Executors elsewhere in the configuration."""

from pathlib import Path

from tests.config.test_config_file import errors


def test_executors_elsewhere_that_contradict_themselves_are_named(tmp_path: Path) -> None:
    found = errors(
        tmp_path,
        """
        [[executors]]
        kind = "open_inference"
        device = "cpu"
        url = "box"
        model = "{what}"
        [[executors]]
        url = "http://box:8000"
        [[executors]]
        kind = "open_inference"
        url = "https://box"
        fingerprint = "AB"
        ca_file = "ca.pem"
        [[executors]]
        kind = "open_inference"
        url = "http://box"
        ca_file = "ca.pem"
        """,
    )
    assert found == [
        'executors[0].device: is for kind = "local", but kind is "open_inference"; leave it out',
        "executors[0].url: must be the server's address, like https://box:8787",
        'executors[0].model: may have {family} and {variant} in braces, like "{family}_{variant}"',
        'executors[1].url: is for kind = "open_inference", but kind is "local"; leave it out',
        "executors[2].fingerprint: a certificate's fingerprint has 64 hexadecimal digits, as "
        "`edgebox serve` prints it, not 'AB'",
        "executors[2].ca_file: there is a fingerprint, too; keep one of them",
        "executors[3].ca_file: is for https://, but url begins with http://",
    ]


def test_cuda_graphs_are_for_cuda(tmp_path: Path) -> None:
    found = errors(
        tmp_path,
        """
        [[executors]]
        device = "cuda:0"
        cuda_graphs = true
        [[executors]]
        device = "tensorrt"
        cuda_graphs = true
        [[executors]]
        kind = "ray"
        cuda_graphs = true
        """,
    )
    assert found == [
        'executors[1].cuda_graphs: is for CUDA, but device is "tensorrt"; leave it out',
        'executors[2].cuda_graphs: is for kind = "local", but kind is "ray"; leave it out',
    ]
