"""Containers: Dockerfiles, compose files, Kubernetes objects and Helm charts."""

from __future__ import annotations

import re

from truekeep.verify.manifests.builder import ManifestBuilder
from truekeep.verify.manifests.formats import LazyPattern, Leaf, numbered_lines, parse_yaml
from truekeep.verify.manifests.model import MAX_NAME_LENGTH

_FROM = LazyPattern(r"\s*FROM\s+(?:--\S+\s+)*(\S+)(?:\s+AS\s+(\S+))?", re.IGNORECASE)
_ARG = LazyPattern(r"\s*ARG\s+(\w+)=[\"']?([^\"'\s]*)", re.IGNORECASE)
_EXPOSE = LazyPattern(r"\s*EXPOSE\s+(.*)", re.IGNORECASE)
_DEFAULT = LazyPattern(r"\$\{(\w{1,80})(?::?-([^{}$]{0,200}))?\}|\$(\w{1,80})")
_KUBERNETES_PORT = LazyPattern(
    r"\s*(?:- +)?(?:containerPort|hostPort|targetPort|nodePort|port)\s*:\s*[\"']?([0-9]{1,5})[\"']?\s*(?:#.*)?\Z"
)
_KUBERNETES_IMAGE = LazyPattern(r"\s*(?:- +)?image\s*:\s*[\"']?([^\s\"'{}#]+)[\"']?\s*(?:#.*)?\Z")
_KUBERNETES_KIND = LazyPattern(r"^kind:[ \t]*[\"']?([A-Za-z]+)", re.MULTILINE)


def read_dockerfile(builder: ManifestBuilder, text: str) -> None:
    stages: set[str] = set()
    values: dict[str, str] = {}
    for number, line in numbered_lines(text):
        arg = _ARG.match(line)
        if arg and len(values) < 1_000:
            values[arg[1]] = arg[2]
        image = _FROM.match(line)
        if image:
            if image[1].lower() not in stages:
                _add_image(builder, image[1], number, values)
            if image[2]:
                stages.add(image[2].lower())
        expose = _EXPOSE.match(line)
        if expose:
            for word in expose[1].partition("#")[0].split():
                builder.add_ports(word.partition("/")[0], number)


def read_compose(builder: ManifestBuilder, text: str) -> None:
    root = parse_yaml(text)
    builder.name = root.leaf("name").text
    images: set[Leaf] = set()
    for name, service in root.tables("services"):
        builder.add_service(name, service.line)
        builder.add_service(*service.leaf("container_name"))
        image = service.leaf("image")
        if image.text and image not in images:  # services that merge one base share its image
            images.add(image)
            _add_image(builder, image.text, image.line)
        for key in ("ports", "expose"):
            for node in service.table(key).values():
                if isinstance(node, Leaf):
                    _add_port_mapping(builder, node)
                else:
                    for side in ("target", "published"):
                        builder.add_ports(*node.leaf(side))


def read_kubernetes(builder: ManifestBuilder, text: str) -> None:
    """Read ports and images of Kubernetes objects, line by line: Helm templates are not YAML. Skips other YAML."""
    if not _KUBERNETES_KIND.search(text) or "apiVersion:" not in text:
        return
    builder.ecosystem = "docker"  # its images are Docker images
    in_metadata = False
    for number, line in numbered_lines(text):
        port = _KUBERNETES_PORT.match(line)
        if port:
            builder.add_ports(port[1], number)
            continue
        image = _KUBERNETES_IMAGE.match(line)
        if image:
            _add_image(builder, image[1], number)
        if line[:1] not in ("", " ", "#"):
            in_metadata = line.startswith("metadata:")
        elif in_metadata:
            name = re.match(r"  name:\s*[\"']?([\w.-]+)[\"']?\s*\Z", line)
            if name:
                builder.add_service(name[1], number)


def read_chart(builder: ManifestBuilder, text: str) -> None:
    root = parse_yaml(text)
    builder.name, builder.version = root.leaf("name").text, root.leaf("version").text
    builder.add_runtime("kubernetes", *root.leaf("kubeVersion"))
    for _, item in root.tables("dependencies"):
        name = item.leaf("name")
        builder.add_package(name.text, item.leaf("version").text, name.line)


def _add_image(builder: ManifestBuilder, image: str, line: int, values: dict[str, str] | None = None) -> None:
    """Add an image with its tag; the version is the number that the tag begins with."""
    known = values or {}

    def fill(match: re.Match[str]) -> str:
        return known.get(match[1] or match[3], match[2] or match[0])

    plain = _DEFAULT.sub(fill, image[:MAX_NAME_LENGTH])
    name, _, digest = plain.partition("@")
    colon = name.rfind(":")
    tag = ""
    if colon > name.rfind("/"):
        name, tag = name[:colon], name[colon + 1 :]
    written = image.partition("@")[0].rpartition(":")[2] if tag and tag not in image else tag
    if not name or "$" in name or name == "scratch":
        return
    number = re.match(r"v?([0-9]+(?:\.[0-9]+)*)", tag)
    if builder.ecosystem == "docker":
        builder.add_package(name, written or digest, line, version=number[1] if number else "")


def _add_port_mapping(builder: ManifestBuilder, leaf: Leaf) -> None:
    """Add the ports on both sides of `127.0.0.1:8080:80/tcp` or `${PORT:-8080}:80`."""
    plain = _DEFAULT.sub(lambda match: match[2] or "", leaf.text[:200]).partition("/")[0]
    for side in re.sub(r"\[[^\]]*\]", "", plain).split(":"):
        builder.add_ports(side, leaf.line)
