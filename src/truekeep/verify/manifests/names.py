"""Names of packages: when two spellings mean the same one."""

from __future__ import annotations

from functools import lru_cache

from truekeep.verify.manifests.text import Pattern

_DASHES = Pattern(r"[-_.]+")
_GO_MAJOR = Pattern(r"/v[0-9]+\Z|\.v[0-9]+\Z")
_EXTRAS = Pattern(r"\[[^\[\]]*\]\Z")


def normal_name(name: str, ecosystem: str) -> str:
    """A package's name in the form in which two spellings of it are equal."""
    if ecosystem == "python":
        return _DASHES.sub("-", name).lower()
    if ecosystem == "rust":
        return name.replace("_", "-").lower()
    if ecosystem == "docker":
        return name.removeprefix("docker.io/").removeprefix("library/")
    if ecosystem in ("php", "dotnet", "swift"):
        return name.lower()
    return name


def same_package(claimed: str, name: str, ecosystem: str) -> bool:
    """Whether a word of a memory means the package of this name.

    People leave away what every reader knows: the group of a Maven artifact, the host of a Go module, the registry of
    an image, the `.js` of a library, the `/core` of a scoped package.
    """
    spellings, ends = _spellings(claimed, ecosystem)
    own = name.casefold()
    if own in spellings or (ends and own.endswith(ends)):
        return True
    if ecosystem == "go":
        plain = _GO_MAJOR.sub("", own)
        return plain in spellings or plain.endswith(ends)
    return ecosystem in ("python", "rust") and normal_name(own, ecosystem) in spellings


@lru_cache(maxsize=4_096)
def _spellings(claimed: str, ecosystem: str) -> tuple[frozenset[str], tuple[str, ...]]:
    """The names that a word may mean, and the ends of longer ones that it may."""
    word = claimed.strip().strip("`'\"").casefold()
    if ecosystem == "python":
        word = _EXTRAS.sub("", word)
    word = normal_name(word, ecosystem)
    if not word:
        return frozenset(), ()
    if ecosystem == "npm":
        bare = word.removesuffix("js").rstrip(".") if word.endswith("js") else word
        return frozenset(filter(None, (word, f"{word}.js", f"@{word}/core", bare))), ()
    if ecosystem == "java":
        return frozenset((word,)), () if ":" in word else (f":{word}",)
    if ecosystem == "go":
        word = _GO_MAJOR.sub("", word)
        return frozenset((word,)), (f"/{word}",)
    if ecosystem == "php":
        return frozenset((word, f"{word}/framework")), (f"/{word}",)
    if ecosystem == "docker":
        return frozenset((word,)), (f"/{word}",)
    if ecosystem == "swift":
        return frozenset((word, word.rstrip("/").removesuffix(".git").rpartition("/")[2])), ()
    return frozenset((word,)), ()
