"""Containers: Dockerfiles, compose files, Kubernetes objects and Helm charts."""

from __future__ import annotations

import re

from truekeep.verify.manifests.draft import ManifestBuilder
from truekeep.verify.manifests.formats.table import Leaf
from truekeep.verify.manifests.formats.yaml import flow_table, parse_yaml
from truekeep.verify.manifests.limits import LONGEST_NAME
from truekeep.verify.manifests.text import Pattern, numbered_lines

_FROM = Pattern(r"\s*FROM\s+(?:--\S+\s+)*(\S+)(?:\s+AS\s+(\S+))?", re.IGNORECASE)
_ARG = Pattern(r"\s*ARG\s+(\w+)=[\"']?([^\"'\s]*)", re.IGNORECASE)
_EXPOSE = Pattern(r"\s*EXPOSE\s+(.*)", re.IGNORECASE)
_DEFAULT = Pattern(r"\$\{(\w{1,80})(?::?-([^{}$]{0,200}))?\}|\$(\w{1,80})")
_KUBERNETES_PORT = Pattern(
    r"\s*(?:- +)?(?:containerPort|hostPort|targetPort|nodePort|port)\s*:\s*[\"']?([0-9]{1,5})[\"']?\s*(?:#.*)?\Z"
)
_KUBERNETES_IMAGE = Pattern(r"\s*(?:- +)?image\s*:\s*[\"']?([^\s\"'{}#]+)[\"']?\s*(?:#.*)?\Z")
_KUBERNETES_KIND = Pattern(r"^kind:[ \t]*[\"']?([A-Za-z]+)", re.MULTILINE)


def read_dockerfile(draft: ManifestBuilder, text: str) -> None:
    stages: set[str] = set()
    values: dict[str, str] = {}
    for number, line in numbered_lines(text):
        arg = _ARG.match(line)
        if arg and len(values) < 1_000:
            values[arg[1]] = arg[2]
        image = _FROM.match(line)
        if image:
            if image[1].lower() not in stages:
                _add_image(draft, image[1], number, values)
            if image[2]:
                stages.add(image[2].lower())
        expose = _EXPOSE.match(line)
        if expose:
            for word in expose[1].partition("#")[0].split():
                draft.listen(word.partition("/")[0], number)


def read_compose(draft: ManifestBuilder, text: str) -> None:
    root = parse_yaml(text)[0]
    draft.name = root.leaf("name").text
    for name, service in root.tables("services"):
        draft.serve(name, service.line)
        draft.serve(*service.leaf("container_name"))
        image = service.leaf("image")
        if image.text:
            _add_image(draft, image.text, image.line)
        for key in ("ports", "expose"):
            for node in flow_table(service.get(key)).values():
                if isinstance(node, Leaf):
                    _add_port_mapping(draft, node)
                else:
                    for side in ("target", "published"):
                        draft.listen(*node.leaf(side))


def read_kubernetes(draft: ManifestBuilder, text: str) -> None:
    """Ports and images of Kubernetes objects, line by line: templates are no YAML. Other YAML says nothing here."""
    if not _KUBERNETES_KIND.search(text) or "apiVersion:" not in text:
        return
    draft.ecosystem = "docker"  # where its images belong
    in_metadata = False
    for number, line in numbered_lines(text):
        port = _KUBERNETES_PORT.match(line)
        if port:
            draft.listen(port[1], number)
            continue
        image = _KUBERNETES_IMAGE.match(line)
        if image:
            _add_image(draft, image[1], number)
        if line[:1] not in ("", " ", "#"):
            in_metadata = line.startswith("metadata:")
        elif in_metadata:
            name = re.match(r"  name:\s*[\"']?([\w.-]+)[\"']?\s*\Z", line)
            if name:
                draft.serve(name[1], number)


def read_chart(draft: ManifestBuilder, text: str) -> None:
    root = parse_yaml(text)[0]
    draft.name, draft.version = root.leaf("name").text, root.leaf("version").text
    draft.needs("kubernetes", *root.leaf("kubeVersion"))
    for _, item in root.tables("dependencies"):
        name = item.leaf("name")
        draft.add(name.text, item.leaf("version").text, name.line)


def _add_image(draft: ManifestBuilder, image: str, line: int, values: dict[str, str] | None = None) -> None:
    """An image and its tag; the version is the number that the tag begins with."""
    known = values or {}

    def fill(match: re.Match[str]) -> str:
        return known.get(match[1] or match[3], match[2] or match[0])

    plain = _DEFAULT.sub(fill, image[:LONGEST_NAME])
    name, _, digest = plain.partition("@")
    colon = name.rfind(":")
    tag = ""
    if colon > name.rfind("/"):
        name, tag = name[:colon], name[colon + 1 :]
    written = image.partition("@")[0].rpartition(":")[2] if tag and tag not in image else tag
    if not name or "$" in name or name == "scratch":
        return
    number = re.match(r"v?([0-9]+(?:\.[0-9]+)*)", tag)
    if draft.ecosystem == "docker":
        draft.add(name, written or digest, line, version=number[1] if number else "")


def _add_port_mapping(draft: ManifestBuilder, leaf: Leaf) -> None:
    """`127.0.0.1:8080:80/tcp`, `${PORT:-8080}:80`: the ports on both sides."""
    plain = _DEFAULT.sub(lambda match: match[2] or "", leaf.text[:200]).partition("/")[0]
    for side in re.sub(r"\[[^\]]*\]", "", plain).split(":"):
        draft.listen(side, leaf.line)
