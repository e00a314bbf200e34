"""The DaemonSet, what runs it as user 0, and the container file: fenced in, and with options and paths that exist."""

from __future__ import annotations

import argparse
import copy
import shutil
import subprocess
import tomllib
from pathlib import Path
from typing import Any

import pytest
import yaml
from gpuwatch_exporters.holders.settings import KUBELET_SOCKET
from gpuwatch_exporters.nvml.command import add_arguments
from gpuwatch_exporters.serving.options import DEFAULT_PORT

TOP = Path(__file__).parents[3]
DEPLOY = TOP / "deploy" / "kubernetes"
Object = dict[str, Any]


def objects(name: str) -> dict[str, Object]:
    found = list(yaml.safe_load_all((DEPLOY / name).read_text()))
    assert all({"apiVersion", "kind", "metadata"} <= each.keys() or "resources" in each for each in found)
    return {each["kind"]: each for each in found}


@pytest.fixture
def daemon_set() -> Object:
    return objects("base/exporter.yaml")["DaemonSet"]


def pod(daemon_set: Object) -> Object:
    return dict(daemon_set["spec"]["template"]["spec"])


def container(daemon_set: Object) -> Object:
    [found] = pod(daemon_set)["containers"]
    return dict(found)


def patched(daemon_set: Object) -> Object:
    """The DaemonSet as with-pods/ makes it: its patches replace what is there and nothing else."""
    kustomization = objects("with-pods/kustomization.yaml")["Kustomization"]
    out = copy.deepcopy(daemon_set)
    for patch in kustomization["patches"]:
        assert patch["target"] == {"kind": "DaemonSet", "name": daemon_set["metadata"]["name"]}
        for step in yaml.safe_load(patch["patch"]):
            *above, last = step["path"].strip("/").split("/")
            at = out
            for key in above:
                at = at[key]
            assert step["op"] == "replace"
            assert last in at
            at[last] = step["value"]
    return out


def test_it_runs_without_root_and_without_any_capability(daemon_set: Object) -> None:
    assert pod(daemon_set)["securityContext"] == {
        "runAsNonRoot": True, "runAsUser": 65534, "runAsGroup": 65534, "seccompProfile": {"type": "RuntimeDefault"},
    }  # fmt: skip
    fence = container(daemon_set)["securityContext"]
    assert fence == {
        "allowPrivilegeEscalation": False, "readOnlyRootFilesystem": True, "capabilities": {"drop": ["ALL"]},
    }  # fmt: skip
    for name in ("hostPID", "hostNetwork", "hostIPC"):
        assert name not in pod(daemon_set)


def test_with_pods_changes_the_user_and_nothing_else(daemon_set: Object) -> None:
    changed = patched(daemon_set)
    assert pod(changed)["securityContext"]["runAsUser"] == 0
    assert container(changed) == container(daemon_set)
    for each in (changed, daemon_set):
        each["spec"]["template"]["spec"].pop("securityContext")
    assert changed == daemon_set


def test_nothing_of_the_host_can_be_written(daemon_set: Object) -> None:
    mounts = {each["name"]: each for each in container(daemon_set)["volumeMounts"]}
    volumes = {each["name"]: each for each in pod(daemon_set)["volumes"]}
    assert mounts.keys() == volumes.keys()
    for name, volume in volumes.items():
        assert "hostPath" not in volume or mounts[name]["readOnly"] is True, name
    assert mounts["pod-resources"]["mountPath"] == str(KUBELET_SOCKET.parent)
    assert volumes["pod-resources"]["hostPath"]["path"] == str(KUBELET_SOCKET.parent)


def test_its_options_exist_and_its_files_are_where_volumes_are(daemon_set: Object) -> None:
    command, *arguments = container(daemon_set)["args"]
    assert command == "nvml"
    parser = argparse.ArgumentParser()
    add_arguments(parser)
    options = vars(parser.parse_args(arguments))
    mounted = [each["mountPath"] for each in container(daemon_set)["volumeMounts"]]
    for name in ("path.procfs", "path.sysfs", "state_file"):
        assert any(str(options[name]).startswith(path) for path in mounted), name


def test_the_node_is_named_by_the_cluster(daemon_set: Object) -> None:
    [node] = [each for each in container(daemon_set)["env"] if each["name"] == "NODE_NAME"]
    assert node["valueFrom"]["fieldRef"]["fieldPath"] == "spec.nodeName"


def test_it_takes_no_gpu_away_from_jobs_and_runs_on_sick_nodes(daemon_set: Object) -> None:
    resources = container(daemon_set)["resources"]
    assert not any("gpu" in name for kind in resources.values() for name in kind)
    assert "cpu" not in resources["limits"]
    assert {"operator": "Exists"} in pod(daemon_set)["tolerations"]
    assert "affinity" not in pod(daemon_set)


def test_probes_and_scrapes_find_the_port(daemon_set: Object) -> None:
    [port] = container(daemon_set)["ports"]
    assert port == {"name": "metrics", "containerPort": DEFAULT_PORT}
    for probe, path in (("livenessProbe", "/-/healthy"), ("readinessProbe", "/-/ready")):
        assert container(daemon_set)[probe]["httpGet"] == {"path": path, "port": port["name"]}
    monitor = objects("podmonitor.yaml")["PodMonitor"]
    [endpoint] = monitor["spec"]["podMetricsEndpoints"]
    assert (endpoint["port"], endpoint["honorLabels"]) == (port["name"], True)
    labels = daemon_set["spec"]["template"]["metadata"]["labels"]
    assert monitor["spec"]["selector"]["matchLabels"].items() <= labels.items()
    assert daemon_set["spec"]["selector"]["matchLabels"].items() <= labels.items()
    assert monitor["metadata"]["namespace"] == daemon_set["metadata"]["namespace"]


def test_the_cluster_is_asked_nothing(daemon_set: Object) -> None:
    found = objects("base/exporter.yaml")
    assert found.keys() == {"Namespace", "ServiceAccount", "DaemonSet"}
    assert found["ServiceAccount"]["automountServiceAccountToken"] is False
    assert pod(daemon_set)["automountServiceAccountToken"] is False
    assert pod(daemon_set)["enableServiceLinks"] is False
    assert pod(daemon_set)["serviceAccountName"] == found["ServiceAccount"]["metadata"]["name"]


@pytest.mark.parametrize("name", [".", "base", "with-pods"])
def test_kustomize_finds_what_it_builds_on(name: str) -> None:
    """It refuses a folder that holds the one it is read from: it would go round in a circle."""
    folder = (DEPLOY / name).resolve()
    for resource in yaml.safe_load((folder / "kustomization.yaml").read_text())["resources"]:
        found = (folder / resource).resolve()
        assert (found / "kustomization.yaml").exists() if found.is_dir() else found.parent == folder
        assert found != folder
        assert found not in folder.parents


@pytest.mark.parametrize(("name", "user"), [(".", 65534), ("with-pods", 0)])
def test_kubectl_renders_it(name: str, user: int, daemon_set: Object) -> None:
    program = shutil.which("kubectl") or pytest.skip("needs kubectl")
    done = subprocess.run(
        [program, "kustomize", str(DEPLOY / name)], capture_output=True, text=True, check=False, timeout=60
    )
    assert done.returncode == 0, done.stderr
    rendered = {each["kind"]: each for each in yaml.safe_load_all(done.stdout)}
    assert pod(rendered["DaemonSet"])["securityContext"]["runAsUser"] == user
    assert rendered["DaemonSet"] == (patched(daemon_set) if user == 0 else daemon_set)


def test_the_container_is_built_of_what_is_here_and_runs_as_nobody() -> None:
    text = (TOP / "deploy" / "container" / "Containerfile").read_text().replace("\\\n", " ")
    lines = [line.split(maxsplit=1) for line in text.splitlines() if line and not line.startswith("#")]
    stages = [number for number, (word, _) in enumerate(lines) if word == "FROM"]
    assert len(stages) == 2
    for word, rest in lines[: stages[1]]:
        if word == "COPY":
            assert all((TOP / source).exists() for source in rest.split()[:-1]), rest
    final = {line[0]: line[1] for line in lines[stages[1] :]}
    assert final["USER"] == "65534:65534"
    assert final["EXPOSE"] == str(DEFAULT_PORT)
    assert "NVIDIA_DRIVER_CAPABILITIES=utility" in final["ENV"]
    scripts = tomllib.loads((TOP / "pyproject.toml").read_text())["project"]["scripts"]
    assert final["ENTRYPOINT"].strip('[]"').rpartition("/")[2] in scripts
    # Everything that the wheel is made of has to be in the build.
    build = tomllib.loads((TOP / "pyproject.toml").read_text())["tool"]["hatch"]["build"]["targets"]["wheel"]
    copied = {word for line in lines if line[0] == "COPY" for word in line[1].split()}
    needed = {path.split("/")[0] for path in (*build["packages"], *build["force-include"])}
    assert needed <= copied
