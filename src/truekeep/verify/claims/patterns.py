"""The kind of claim that a word can be, by its form alone: a path, a line, a flag, a symbol ... Pure."""

# ruff: noqa: SIM905  (a list of words reads best as words)
from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import pairwise
from typing import NamedTuple

MAX_CLAIM_CHARS = 300

_EXTENSIONS = frozenset(
    "py pyi pyx ipynb js jsx mjs cjs ts tsx mts cts vue svelte astro go rs java kt kts scala groovy gradle c h "
    "cc cpp cxx hh "
    "hpp hxx m mm cs fs vb rb erb rake gemspec php phtml pl pm t lua r jl ex exs erl hrl hs ml mli nim zig dart "
    "swift clj "
    "cljs cljc edn sh bash zsh fish ps1 bat cmd sql proto graphql gql thrift tf tfvars hcl nix bzl bazel cmake "
    "mk am ac in "
    "toml yaml yml json json5 jsonc jsonl ini cfg conf cnf env properties lock xml xsd plist html htm xhtml css "
    "scss sass "
    "less styl md mdx mdc markdown rst txt adoc tex csv tsv svg png jpg jpeg gif ico webp woff woff2 ttf pdf po pot "
    "mo j2 jinja "
    "jinja2 tmpl tpl hbs mustache ejs pug service timer socket target dockerfile sqlite db snap patch diff log "
    "wasm map "
    "whl egg zip tar gz bz2 xz zst asm s cu cuh glsl vert frag wgsl sol vy move cairo el lisp scm rkt vim "
    "desktop rules "
    "spec lark pest g4 y l podspec xcconfig pbxproj storyboard strings resx csproj sln vcxproj props targets "
    "razor cshtml "
    "pyproj eslintrc prettierrc babelrc editorconfig gitignore dockerignore npmrc nvmrc stub inc def".split()
)  # fmt: skip
_BARE_FILES = frozenset(
    "Makefile GNUmakefile Dockerfile Containerfile Jenkinsfile Vagrantfile Procfile Gemfile Rakefile Pipfile Brewfile "
    "Justfile justfile CODEOWNERS LICENSE NOTICE BUILD WORKSPACE go.mod go.sum go.work Caddyfile Tiltfile Earthfile "
    "CMakeLists.txt".split()
)
WELL_KNOWN = _BARE_FILES | frozenset(
    "README.md CHANGELOG.md CONTRIBUTING.md package.json tsconfig.json requirements.txt pyproject.toml setup.py "
    "setup.cfg Cargo.toml composer.json pom.xml build.gradle docker-compose.yml compose.yaml .env .gitignore "
    ".dockerignore .editorconfig __init__.py main.py app.py config.py settings.py utils.py models.py index.html "
    "index.js index.ts main.js main.ts main.go main.rs lib.rs mod.rs config.json config.yaml config.yml "
    "openclaw.json".split()
)  # names that so many projects have that one of them says little
OF_ANY_PROJECT = WELL_KNOWN | frozenset(
    ".env.local .env.example CLAUDE.md GEMINI.md SKILL.md INDEX.md TODO.md NOTES.md __main__.py index.tsx page.tsx "
    "layout.tsx route.ts route.js routes.ts server.js server.ts server.py client.py client.ts db.ts types.ts utils.ts "
    "utils.js robots.txt sitemap.xml llms.txt llms.json manifest.json style.css styles.css favicon.ico "
    "package-lock.json vercel.json _headers".split()
)  # the same for a workspace, which tells of many projects
PRODUCTS = frozenset(
    "node vue next nuxt express react three d3 chart ember backbone alpine moment deno knockout p5 discord mathjax "
    "socket highlight prism reveal pdf sails nest hapi koa meteor babylon paper fabric stimulus video hls".split()
)  # with .js: names of products, not of files
HARNESS_WORDS = frozenset(("HEARTBEAT_OK", "NO_REPLY", "ANNOUNCE_SKIP", "REPLY_SKIP"))  # answers that OpenClaw asks for
FOLDERS_OF_ANY_PROJECT = frozenset(
    "src lib app test tests spec dist build public static assets components api config configs hooks utils server "
    "client web ui schemas node_modules".split()
)
TOP_FOLDERS = frozenset(
    "src lib app apps docs doc test tests spec cmd pkg internal packages crates bin scripts script config configs "
    "examples example tools server client api web ui components utils hooks modules plugins services deploy ops infra "
    ".github .circleci .claude .codex .vscode bench benchmarks internal migrations templates static public assets "
    "include vendor third_party".split()
)
SYSTEM_FOLDERS = frozenset(
    "etc usr var home opt tmp root srv proc sys mnt dev run boot media Users Library Applications private".split()
)
_MEDIA = frozenset("application text image audio video multipart font model message".split())
HOSTS = frozenset("com org net io dev ai app edu gov co uk de sh xyz cloud tech info local internal localhost".split())
_COMMON_WORDS = frozenset(
    # words that are in inline code everywhere and name nothing of one's own
    "true false null none nil undefined nan inf yes no on off self this cls super int str string bool boolean "
    "float double "
    "long short char byte bytes void any object array list dict map set tuple number integer type types "
    "function func fn "
    "def class struct enum trait interface import export from return if else elif for while do switch case "
    "default break "
    "continue try catch except finally raise throw throws new delete in is not and or var let const static "
    "final public "
    "private protected async await yield with as pass lambda package module main master head origin test tests "
    "example examples foo bar baz qux id name key value data file path url get put post patch head options text "
    "json yaml "
    "toml html css csv xml utf-8 ascii gzip http https ssh tcp udp ok error errors debug info warn warning "
    "stdin stdout "
    "stderr git npm npx yarn pnpm bun node python python3 pip pipx uv poetry cargo rustc go make cmake docker "
    "kubectl helm "
    "terraform bash zsh sh sudo apt brew curl wget grep sed awk ls cd rm cp mv mkdir cat echo env ruby gem "
    "bundle java mvn "
    "gradle php composer rg jq ssh scp rsync systemctl journalctl pytest tox mypy ruff eslint prettier tsc jest "
    "vitest x y "
    "z a b c n i j k v e t s p q r m f g h w u d l o".split()
)  # fmt: skip
TOOLS = frozenset(
    "git gh npm npx yarn pnpm bun node deno python python3 py pip pip3 pipx uv uvx poetry conda cargo rustc "
    "rustup go make "
    "cmake ninja docker docker-compose podman kubectl helm terraform ansible bash zsh sh fish sudo su apt "
    "apt-get dnf yum "
    "pacman brew curl wget http grep rg ag sed awk ls cd rm cp mv mkdir rmdir cat head tail echo printf env "
    "export source "
    "set unset ruby gem bundle rake rails java javac mvn gradle gradlew php composer artisan jq yq ssh scp "
    "rsync rclone "
    "systemctl journalctl service launchctl pytest tox nox mypy pyright ruff black isort flake8 eslint prettier "
    "tsc jest "
    "vitest mocha playwright cypress vite webpack rollup esbuild psql mysql sqlite3 redis-cli mongo mongosh tar "
    "zip unzip "
    "chmod chown ln find xargs tee diff patch kill ps top htop lsof netstat ss ip ping dig nslookup openssl gpg "
    "tmux screen "
    "vim nvim nano code emacs less more man which whereis time watch crontab cron nohup df du free uname date "
    "sort uniq wc "
    "gcloud aws az heroku vercel netlify fly flyctl wrangler supabase claude codex openclaw pre-commit coverage".split()
)  # fmt: skip

NAME = r"[A-Za-z_$][\w$]*"
IDENTIFIER = re.compile(rf"{NAME}\Z")
CALL = re.compile(rf"(@?[#.]?{NAME}(?:(?:\.|::|->|#){NAME}){{0,8}}[!?]?)\(.{{0,200}}\)(?:[ ]*(?:->|=>|:).{{0,60}})?\Z")
_DOTTED = re.compile(rf"@?[#.]?{NAME}(?:(?:\.|::|->|#){NAME}){{0,12}}[!?]?(?:\(\))?\Z")
DECLARATION = re.compile(
    rf"(?:export |default |pub(?:\([a-z]+\))? |public |private |static |abstract |async |unsafe |final |declare )*"
    rf"(?:def|class|func|fn|function|struct|enum|trait|interface|type|const|let|var|macro_rules!|module|namespace|impl)"
    rf" +(?:\([^)]{{0,60}}\) *)?({NAME})\b"
)
IMPORT = re.compile(rf"(?:from +([\w.]+) +import +({NAME}(?: *, *{NAME})*)|import +([\w.]+))(?: +as +\w+)?\Z")
ASSIGNED = re.compile(r"(?:export +)?([A-Z][A-Z0-9]*(?:_[A-Z0-9]+)*) ?= ?\S.*\Z")
_CONSTANT = re.compile(r"\$?\{?([A-Z][A-Z0-9]*(?:_[A-Z0-9]+)+)\}?\Z")
_UPPER = re.compile(r"\$\{?([A-Z][A-Z0-9]{2,})\}?\Z")
FLAG = re.compile(r"(--[A-Za-z][\w-]*[A-Za-z0-9])(?:[= ].*)?\Z", re.DOTALL)
_COMMIT = re.compile(r"[0-9a-f]{7,40}\Z")
URL = re.compile(r"(?:https?|ftp)://[^\s<>\"'`]+")
_LOCAL_URL = re.compile(r"https?://(?:localhost|127\.0\.0\.1|0\.0\.0\.0|\[::1?\]):(\d{2,5})(?![\w.])")
_HOST_PORT = re.compile(r"(?:localhost|127\.0\.0\.1|0\.0\.0\.0|\[::1?\]|\*)?:(\d{2,5})\Z")
_BUNDLE = re.compile(
    r"(?:[\w./@~-]*/)?[A-Za-z][\w.]*(?:-[a-z][\w.]*)*[-.]([A-Za-z0-9_]{8,20})\.(?:m?js|cjs|css|wasm|map)\Z"
)
UNIT = re.compile(r"[A-Za-z0-9][\w@.\\:-]*\.(?:service|timer|socket)\Z")
_PATH_LINE = re.compile(
    r"(.+?\w)(?::(\d{1,7})(?:(?:-|–|\.\.)(\d{1,7})|:\d{1,5})?|#L(\d{1,7})(?:C\d+)?(?:-L?(\d{1,7})(?:C\d+)?)?)\Z"
)
_PATH_SYMBOL = re.compile(
    rf"([\w./@+-]+\.\w{{1,10}})(?:::|#|:)({NAME}(?:(?:::|\.){NAME}){{0,6}})(?:\[.*\])?(?:\(\))?\Z"
)
PATH = re.compile(r"(?:~|\.{1,2})?/?(?:[\w.@+()\[\]-]+/)*[\w.@+()\[\]-]+/?\Z|\.[A-Za-z][\w.-]+\Z")
PATTERN = re.compile(
    r"[*?{}<>|$\"'`=,;&%^!\\]|\.\.\.|…|XX|\s"
    r"|YYYY|(?<![A-Za-z])(?:yyyy|MM|DD|NN+)(?![A-Za-z])|\[[A-Z]{2}[A-Z_ -]*\]"
)  # a place for something else: `notes-YYYY-MM-DD.md`, `[DATE].md`
_PACKAGE = re.compile(r"@[a-z0-9][\w.-]*/[a-z0-9][\w.-]*\Z")
_PINNED = re.compile(
    r"(@?[A-Za-z][\w.-]*(?:/[\w.-]+)?)(==|@v?)(\d+(?:\.\d+){0,3}(?:[-.]?(?:a|b|rc|alpha|beta|dev)[\w.]*)?)\Z"
)
_HYPHENATED = re.compile(r"[a-z][a-z0-9]*(?:-[a-z0-9]+)+\Z")
_VERSION = re.compile(r"v?\d+\.\d+(?:\.\d+)?(?:[-.]?(?:a|b|rc|alpha|beta|dev)[\w.]*)?\Z")


class RawClaim(NamedTuple):
    """A claim before its sentence is read. Offsets count from the start of its line."""

    start: int
    end: int
    kind: str
    name: str
    why: str
    place: str = ""
    owner: str = ""
    first: int = 0
    last: int = 0
    is_weak: bool = False


def token_claims(word: str, start: int, why: str, *, is_command: bool = False) -> list[RawClaim]:
    """The claims of one word of code; none if it may be anything."""
    end = start + len(word)
    if URL.match(word):
        return [url_claim(word, start, why)]
    if (match := FLAG.match(word)) is not None:
        return [RawClaim(start, start + len(match[1]), "flag", match[1], why)]
    if (match := _PATH_LINE.match(word)) is not None and is_path(match[1]):
        path = bare_path(match[1])
        first = int(match[2] or match[4])
        last = int(match[3] or match[5] or 0)
        if is_bundle(match[1]):
            return [RawClaim(start, end, "bundle", path, why, first=first, last=max(first, last))]
        return [RawClaim(start, end, "line", path, why, place=path, first=first, last=max(first, last))]
    if is_bundle(word):
        return [RawClaim(start, end, "bundle", bare_path(word), why)]
    if UNIT.match(word) and "/" not in word:
        return [RawClaim(start, end, "unit", word, why, is_weak=not word.endswith((".service", ".timer")))]
    if (match := _PATH_SYMBOL.match(word)) is not None and is_path(match[1]) and not match[2].isdigit():
        parts = re.split(r"::|\.", match[2])
        at = start + match.start(2)
        path = bare_path(match[1])
        return [
            RawClaim(start, start + match.end(1), "path", path, why),
            RawClaim(at, at + len(match[2]), "method" if len(parts) > 1 else "symbol", parts[-1], why, place=path,
                 owner=".".join(parts[:-1])),
        ]  # fmt: skip
    if _PACKAGE.match(word):
        return [RawClaim(start, end, "package", word, why, is_weak=True)]
    if (match := _PINNED.match(word)) is not None and not is_file(match[1]):
        exactly = "==" if match[2] == "==" else ""
        return [RawClaim(start, end, "version", exactly + match[3], why, owner=match[1])]
    if (match := _HOST_PORT.match(word)) is not None and is_port(match[1]):
        return [RawClaim(start + match.start(1), start + match.end(1), "port", match[1], why)]
    if (match := _CONSTANT.match(word)) is not None or (match := _UPPER.match(word)) is not None:
        return [RawClaim(start + match.start(1), start + match.end(1), "env", match[1], why)]
    if (match := ASSIGNED.match(word)) is not None:
        name = match[1]
        return [RawClaim(start + match.start(1), start + match.end(1), "env", name, why, is_weak="_" not in name)]
    if _COMMIT.match(word) and (len(word) == 40 or not (word.isdigit() or word.isalpha())):
        return [RawClaim(start, end, "commit", word, why)]
    if "/" in word or "\\" in word:
        return _path_claims(word, start, why)
    if is_file(word) and not PATTERN.search(word):
        return [RawClaim(start, end, "path", word, why, is_weak=True)]
    if is_command or _VERSION.match(word):
        return []
    if _HYPHENATED.match(word) and word not in _COMMON_WORDS:
        return [RawClaim(start, end, "package", word, why, is_weak=True)]
    return identifier_claims(word, start, why)


def url_claim(word: str, start: int, why: str) -> RawClaim:
    """A link; one to this machine is its port."""
    match = _LOCAL_URL.match(word)
    if match is not None and is_port(match[1]):
        return RawClaim(start + match.start(1), start + match.end(1), "port", match[1], why)
    return RawClaim(start, start + len(word), "url", word, why)


def _path_claims(word: str, start: int, why: str) -> list[RawClaim]:
    end = start + len(word)
    path = word.replace("\\", "/") if re.match(r"(?:[A-Za-z]:)?[\w.-]*\\[\w.\\-]+\Z", word) else word
    if PATTERN.search(path) or not PATH.match(path) or "//" in path:
        return []
    kind = "directory" if path.endswith("/") else "path"
    bare = bare_path(path)
    parts = [part for part in bare.split("/") if part not in ("", ".", "..")]
    if not parts or (len(parts) == 1 and path.startswith("/") and kind == "path" and not is_file(parts[0])):
        return []  # `/`, `/users`: a route as likely as anything
    if parts[0] in _MEDIA and len(parts) == 2 and not is_file(parts[1]) and kind == "path":
        return []
    if path.startswith(("/", "~")):
        outside = path.startswith("~") or parts[0] in SYSTEM_FOLDERS
        return [RawClaim(start, end, kind, bare, why, is_weak=not outside)]
    is_sure = kind == "directory" or is_file(parts[-1]) or (parts[0] in TOP_FOLDERS and len(parts) > 1)
    if "." in parts[0][1:] and parts[0].rsplit(".", 1)[-1].lower() in HOSTS and not path.startswith("."):
        is_sure = False  # github.com/owner/name
    if len(parts) == 1 and kind == "directory":
        is_sure = False
    return [RawClaim(start, end, kind, bare, why, is_weak=not is_sure)]


def identifier_claims(word: str, start: int, why: str) -> list[RawClaim]:
    body = word
    generic = re.match(r"(?:\[\])?[*&]*([\w$.:#@-]+?)<[\w$., &*?\[\]:<>]{1,80}>(\(\))?\Z", body)
    if generic is not None:
        start, body = start + generic.start(1), generic[1]
    tag = re.match(r"</?([A-Z][\w.]*) ?/?>\Z", body)
    if tag is not None:
        start, body = start + tag.start(1), tag[1]
    while body[:1] in ("*", "&") and body[1:2] not in (".", ""):
        start, body = start + 1, body[1:]
    call = CALL.match(body)
    is_call = call is not None
    if call is not None:
        body, why = call[1], "a call"
    elif not _DOTTED.match(body):
        return []
    body = body.removesuffix("()")
    while body[:1] in ("@", "#", ".", "$"):
        start, body, is_call = start + 1, body[1:], True
    parts = [part for part in re.split(r"\.|::|->|#", body) if part.strip("!?")]
    end = start + len(body)
    if not parts:
        return []
    while len(parts) > 1 and parts[0] in ("self", "this", "cls", "super", "crate", "window", "globalThis", "Self"):
        parts = parts[1:]
    last = parts[-1]
    if len(parts) == 1:
        if last.lower() in _COMMON_WORDS and not is_call:
            return []
        if len(last) < (2 if is_call else 3):
            return []  # `f(x)` is mathematics
        return [RawClaim(start, end, "symbol", last, why, is_weak=not (is_call or _is_odd(last)))]
    if parts[-1].lower() in HOSTS and all(part.islower() for part in parts):
        return []
    if all(part.isdigit() for part in parts[1:]):
        return []
    return [RawClaim(start, end, "method", last, why, owner=".".join(parts[:-1]))]


def is_path(word: str) -> bool:
    if PATTERN.search(word) or not PATH.match(word):
        return False
    return is_file(word.rstrip("/").rsplit("/", 1)[-1]) or ("/" in word and word.split("/")[0] in TOP_FOLDERS)


_KNOWN_FILES = frozenset(
    "Cargo.lock yarn.lock poetry.lock uv.lock Pipfile.lock Gemfile.lock composer.lock bun.lock mix.lock".split()
)
_METHOD_LIKE = frozenset(
    "lock env log map db in def rules strings target inc spec props targets move t m s l y r d".split()
)


def is_file(name: str) -> bool:
    """Whether a name is a file's, by its extension or because it is well known."""
    if name in _BARE_FILES:
        return True
    stem, dot, extension = name.rpartition(".")
    if extension in _METHOD_LIKE and _is_dotted(stem) and f"{stem}.{extension}" not in _KNOWN_FILES:
        return False  # `Mutex.lock`, `Array.prototype.map`
    if extension == "json" and re.match(r"[A-Z][a-z]+[A-Z]\w*\Z", stem):
        return False  # `BaseModel.json`
    if not dot or "(" in name:
        return name[:1] == "." and name[1:].lower() in _EXTENSIONS
    if name.startswith(".env."):
        return True
    if not stem:
        return extension.lower() in _EXTENSIONS or (len(extension) > 3 and extension.isalnum() and extension.islower())
    return extension.lower() in _EXTENSIONS and (len(extension) > 1 or extension.islower()) and not stem.isdigit()


def _is_dotted(text: str) -> bool:
    return all(part.isidentifier() for part in text.split("."))


def bare_path(path: str) -> str:
    while path.startswith("./"):
        path = path[2:]
    return path.replace("\\", "/").rstrip("/") or "/"


def _is_odd(word: str) -> bool:
    """Whether a word can hardly be anything but an identifier."""
    if "_" in word.strip("_") or "$" in word:
        return True
    return any(a.islower() and b.isupper() for a, b in pairwise(word))


def is_bundle(word: str) -> bool:
    """Whether a path is of a file that a build made: `dist/index-CQnl8oWA.js`."""
    match = _BUNDLE.match(word)
    return match is not None and _is_hash(match[1])


def _is_hash(word: str) -> bool:
    """Whether this looks like a content hash: digits or capitals between small letters."""
    if any(character.isdigit() for character in word):
        return any(character.isalpha() for character in word)
    changes = sum(a.islower() and b.isupper() for a, b in pairwise(word))
    return changes >= 2 or (changes >= 1 and word[0].isupper() and word[1:2].isupper())


def is_port(digits: str) -> bool:
    return 20 < int(digits) < 65_536 and not digits.startswith("0")


def code_spans(line: str) -> Iterator[tuple[int, int]]:
    """The inside of each inline code span of a line. Runs of backticks are paired by length, in one pass."""
    runs = [(match.start(), match.end()) for match in re.finditer("`+", line)]
    by_length: dict[int, list[int]] = {}
    for index, (start, end) in enumerate(runs):
        by_length.setdefault(end - start, []).append(index)
    cursor = dict.fromkeys(by_length, 0)
    index = 0
    while index < len(runs):
        start, end = runs[index]
        same = by_length[end - start]
        at = cursor[end - start]
        while at < len(same) and same[at] <= index:
            at += 1
        cursor[end - start] = at
        if at == len(same):
            index += 1
            continue
        closing = runs[same[at]]
        yield end, closing[0]
        index = same[at] + 1
