"""YAML, with lines: blocks, and flow values on their first level."""

from __future__ import annotations

from truekeep.verify.manifests.formats.table import Leaf, ValueTable
from truekeep.verify.manifests.limits import DEEPEST, LONGEST_LINE
from truekeep.verify.manifests.text import Pattern, numbered_lines

_QUOTED_KEY = Pattern(r"(?:\"([^\"]*+)\"|'([^']*+)')\s*:(?:\s+|\Z)")
_PROPERTY = Pattern(r"(?:[&!][^\s,\[\]{}]*+\s*+)++")


def parse_yaml(text: str) -> list[ValueTable]:
    """The documents of a YAML file: block mappings and lists, every scalar as text, block scalars skipped.

    Anchors and tags are dropped, aliases and merges are not followed. Flow values stay text; see `flow_table`.
    """
    documents = [ValueTable(1)]
    stack: list[tuple[int, bool, ValueTable]] = [(-1, False, documents[0])]  # (indent, is a list's item, its table)
    scalar_indent = -1  # of the key whose block scalar is being skipped
    flow: tuple[ValueTable, str, int, list[str]] | None = None  # a flow value that goes on over lines
    for number, raw in numbered_lines(text):
        line = raw.rstrip()
        content = line.lstrip(" ")
        if flow is not None:
            flow[3].append(_without_comment(content))
            joined = " ".join(flow[3])
            if _is_closed(joined) or len(flow[3]) > 100:
                flow[0][flow[1]] = Leaf(joined, flow[2])
                flow = None
            continue
        if not content or content[0] == "#":
            continue
        indent = len(line) - len(content)
        if scalar_indent >= 0:
            if indent > scalar_indent:
                continue
            scalar_indent = -1
        if indent == 0 and content[:3] in ("---", "..."):
            if documents[-1]:
                documents.append(ValueTable(number))
            stack = [(-1, False, documents[-1])]
            continue
        while content[:2] == "- " or content == "-":
            while stack[-1][0] > indent or (stack[-1][0] == indent and stack[-1][1]):
                stack.pop()
            parent = stack[-1][2]
            parent.is_list = True
            key = str(len(parent))
            rest = content[1:].lstrip()
            if len(stack) > DEEPEST:
                content = ""
                break
            if not rest or rest[:2] == "- " or _key(rest) is not None:
                table = ValueTable(number)
                parent[key] = table
                stack.append((indent, True, table))
                indent += len(content) - len(rest)
                content = rest
            else:
                leaf = _leaf(rest, number)
                parent[key] = leaf
                if leaf.text[:1] in ("[", "{") and not _is_closed(leaf.text):
                    flow = (parent, key, number, [leaf.text])
                content = ""
                if rest[0] in "|>":
                    scalar_indent = indent
        split = _key(content) if content else None
        if split is None:
            continue
        key, value = split
        while stack[-1][0] >= indent:
            stack.pop()
        if len(stack) > DEEPEST:
            continue
        parent = stack[-1][2]
        value = _PROPERTY.sub("", value, count=1) if value[:1] in ("&", "!") else value
        if not value or value[0] == "#":
            table = ValueTable(number)
            parent[key] = table
            stack.append((indent, False, table))
            continue
        leaf = _leaf(value, number)
        parent[key] = leaf
        if value[0] in "|>":
            scalar_indent = indent
        elif value[0] in "[{" and not _is_closed(leaf.text):
            flow = (parent, key, number, [leaf.text])
    return documents


def _key(content: str) -> tuple[str, str] | None:
    """A line's key and what stands behind the colon."""
    if content[0] in "\"'":
        match = _QUOTED_KEY.match(content)
        return (match[1] or match[2] or "", content[match.end() :]) if match else None
    if content[0] in "[{":
        return None
    content = _without_comment(content)
    colon = content.find(": ")
    if colon < 0:
        if not content.endswith(":"):
            colon = content.find(":\t")
            return (content[:colon].rstrip(), content[colon + 1 :].strip()) if colon > 0 else None
        return content[:-1].rstrip(), ""
    return content[:colon].rstrip(), content[colon + 2 :].strip()


def _leaf(value: str, line: int) -> Leaf:
    value = value.strip()
    if value[:1] in ("|", ">"):
        return Leaf("", line)
    if value[:1] in ("[", "{"):
        return Leaf(_without_comment(value), line)
    return Leaf(_text(value), line)


def _without_comment(value: str) -> str:
    comment = value.find(" #")
    return value if comment < 0 else value[:comment].rstrip()


def _text(value: str) -> str:
    value = value.strip()
    if value[:1] in ('"', "'"):
        end = value.find(value[0], 1)
        return value[1:end] if end > 0 else value
    return "" if value[:1] == "#" else _without_comment(value)


def _is_closed(flow: str) -> bool:
    return flow.count("[") + flow.count("{") <= flow.count("]") + flow.count("}")


def flow_table(node: Leaf | ValueTable | None) -> ValueTable:
    """A node as a table, when it is one: a block as it is, `[a, b]` and `{a: b}` on their first level."""
    if isinstance(node, ValueTable):
        return node
    if node is None or node.text[:1] not in ("[", "{"):
        return ValueTable(0)
    table = ValueTable(node.line, is_list=node.text[0] == "[")
    depth, start, quoted = 0, 1, ""
    pieces: list[str] = []
    for position, char in enumerate(node.text[: LONGEST_LINE * 10]):
        if quoted:
            quoted = "" if char == quoted else quoted
        elif char in "\"'":
            quoted = char
        elif char in "[{":
            depth += 1
        elif char in "]}" or (char == "," and depth == 1):
            if depth == 1:
                pieces.append(node.text[start:position])
                start = position + 1
            depth -= char != ","
    for piece in pieces:
        bare = piece.strip()
        if not bare:
            continue
        if table.is_list:
            table[str(len(table))] = _leaf(bare, node.line)
        else:
            key, colon, value = bare.partition(":")
            if colon:
                table[_text(key)] = _leaf(value, node.line)
    return table
