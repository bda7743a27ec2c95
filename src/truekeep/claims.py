"""Claims: what a memory names that can be checked now. Markdown → claims, each with its span. Pure.

A claim is a path, a line, a symbol, a flag, a port, a decision ... with the exact place of its words in the text, so that
a repair can touch nothing else. Inline code, links, prose, tables and fences are read, each by what it can be trusted
to mean: a word in prose must look like nothing else, a word in inline code may be any identifier. What may well be
something else (`iterator`, `origin/main`) is kept as `weak`: it counts only where the repository knows it, now or before.
A sentence about the past ("removed in 2.0", "formerly `old.py`") makes no claim that the thing exists.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

from truekeep.claim import Claim

MAX_CLAIMS = 5_000
_LONGEST = 300  # characters of one claim
_LONGEST_LINE = 20_000


class Claims(NamedTuple):
    """What a text claims, and how many claims were left out beyond the limit."""

    claims: tuple[Claim, ...]
    left_out: int = 0


# What a word is made of.
_EXTENSIONS = frozenset(
    "py pyi pyx ipynb js jsx mjs cjs ts tsx mts cts vue svelte astro go rs java kt kts scala groovy gradle c h cc cpp cxx hh "
    "hpp hxx m mm cs fs vb rb erb rake gemspec php phtml pl pm t lua r jl ex exs erl hrl hs ml mli nim zig dart swift clj "
    "cljs cljc edn sh bash zsh fish ps1 bat cmd sql proto graphql gql thrift tf tfvars hcl nix bzl bazel cmake mk am ac in "
    "toml yaml yml json json5 jsonc jsonl ini cfg conf cnf env properties lock xml xsd plist html htm xhtml css scss sass "
    "less styl md mdx markdown rst txt adoc tex csv tsv svg png jpg jpeg gif ico webp woff woff2 ttf pdf po pot mo j2 jinja "
    "jinja2 tmpl tpl hbs mustache ejs pug service timer socket target dockerfile sqlite db snap patch diff log wasm map "
    "whl egg zip tar gz bz2 xz zst asm s cu cuh glsl vert frag wgsl sol vy move cairo el lisp scm rkt vim desktop rules "
    "spec lark pest g4 y l podspec xcconfig pbxproj storyboard strings resx csproj sln vcxproj props targets razor cshtml "
    "pyproj eslintrc prettierrc babelrc editorconfig gitignore dockerignore npmrc nvmrc stub inc def".split()
)  # fmt: skip
_BARE_FILES = frozenset(
    "Makefile GNUmakefile Dockerfile Containerfile Jenkinsfile Vagrantfile Procfile Gemfile Rakefile Pipfile Brewfile "
    "Justfile justfile CODEOWNERS LICENSE NOTICE BUILD WORKSPACE go.mod go.sum go.work Caddyfile Tiltfile Earthfile "
    "CMakeLists.txt".split()
)
_PRODUCTS = frozenset(
    "node vue next nuxt express react three d3 chart ember backbone alpine moment deno knockout p5 discord mathjax "
    "socket highlight prism reveal pdf sails nest hapi koa meteor babylon paper fabric stimulus video hls".split()
)  # with .js: names of products, not of files
_TOP_FOLDERS = frozenset(
    "src lib app apps docs doc test tests spec cmd pkg internal packages crates bin scripts script config configs "
    "examples example tools server client api web ui components utils hooks modules plugins services deploy ops infra "
    ".github .circleci .claude .codex .vscode bench benchmarks internal migrations templates static public assets "
    "include vendor third_party".split()
)
_ROOTS = frozenset(
    "etc usr var home opt tmp root srv proc sys mnt dev run boot media Users Library Applications private".split()
)
_MEDIA = frozenset("application text image audio video multipart font model message".split())
_HOSTS = frozenset("com org net io dev ai app edu gov co uk de sh xyz cloud tech info local internal localhost".split())
_DULL = frozenset(
    # words that are in inline code everywhere and name nothing of one's own
    "true false null none nil undefined nan inf yes no on off self this cls super int str string bool boolean float double "
    "long short char byte bytes void any object array list dict map set tuple number integer type types function func fn "
    "def class struct enum trait interface import export from return if else elif for while do switch case default break "
    "continue try catch except finally raise throw throws new delete in is not and or var let const static final public "
    "private protected async await yield with as pass lambda package module main master head origin test tests "
    "example examples foo bar baz qux id name key value data file path url get put post patch head options text json yaml "
    "toml html css csv xml utf-8 ascii gzip http https ssh tcp udp ok error errors debug info warn warning stdin stdout "
    "stderr git npm npx yarn pnpm bun node python python3 pip pipx uv poetry cargo rustc go make cmake docker kubectl helm "
    "terraform bash zsh sh sudo apt brew curl wget grep sed awk ls cd rm cp mv mkdir cat echo env ruby gem bundle java mvn "
    "gradle php composer rg jq ssh scp rsync systemctl journalctl pytest tox mypy ruff eslint prettier tsc jest vitest x y "
    "z a b c n i j k v e t s p q r m f g h w u d l o".split()
)  # fmt: skip
_TOOLS = frozenset(
    "git gh npm npx yarn pnpm bun node deno python python3 py pip pip3 pipx uv uvx poetry conda cargo rustc rustup go make "
    "cmake ninja docker docker-compose podman kubectl helm terraform ansible bash zsh sh fish sudo su apt apt-get dnf yum "
    "pacman brew curl wget http grep rg ag sed awk ls cd rm cp mv mkdir rmdir cat head tail echo printf env export source "
    "set unset ruby gem bundle rake rails java javac mvn gradle gradlew php composer artisan jq yq ssh scp rsync rclone "
    "systemctl journalctl service launchctl pytest tox nox mypy pyright ruff black isort flake8 eslint prettier tsc jest "
    "vitest mocha playwright cypress vite webpack rollup esbuild psql mysql sqlite3 redis-cli mongo mongosh tar zip unzip "
    "chmod chown ln find xargs tee diff patch kill ps top htop lsof netstat ss ip ping dig nslookup openssl gpg tmux screen "
    "vim nvim nano code emacs less more man which whereis time watch crontab cron nohup df du free uname date sort uniq wc "
    "gcloud aws az heroku vercel netlify fly flyctl wrangler supabase claude codex openclaw pre-commit coverage".split()
)  # fmt: skip

_NAME = r"[A-Za-z_$][\w$]*"
_IDENTIFIER = re.compile(rf"{_NAME}\Z")
_CALL = re.compile(rf"(@?[#.]?{_NAME}(?:(?:\.|::|->|#){_NAME}){{0,8}}[!?]?)\(.{{0,200}}\)(?:[ ]*->.{{0,60}})?\Z")
_DOTTED = re.compile(rf"@?[#.]?{_NAME}(?:(?:\.|::|->|#){_NAME}){{0,12}}[!?]?(?:\(\))?\Z")
_DECLARATION = re.compile(
    rf"(?:export |default |pub(?:\([a-z]+\))? |public |private |static |abstract |async |unsafe |final |declare )*"
    rf"(?:def|class|func|fn|function|struct|enum|trait|interface|type|const|let|var|macro_rules!|module|namespace|impl)"
    rf" +(?:\([^)]{{0,60}}\) *)?({_NAME})\b"
)
_IMPORT = re.compile(rf"(?:from +([\w.]+) +import +({_NAME}(?: *, *{_NAME})*)|import +([\w.]+))(?: +as +\w+)?\Z")
_ASSIGNED = re.compile(r"(?:export +)?([A-Z][A-Z0-9]*(?:_[A-Z0-9]+)*) ?= ?\S.*\Z")
_CONSTANT = re.compile(r"\$?\{?([A-Z][A-Z0-9]*(?:_[A-Z0-9]+)+)\}?\Z")
_UPPER = re.compile(r"\$\{?([A-Z][A-Z0-9]{2,})\}?\Z")
_FLAG = re.compile(r"(--[A-Za-z][\w-]*[A-Za-z0-9])(?:[= ].*)?\Z", re.DOTALL)
_COMMIT = re.compile(r"[0-9a-f]{7,40}\Z")
_URL = re.compile(r"(?:https?|ftp)://[^\s<>\"'`]+")
_HOST_PORT = re.compile(r"(?:localhost|127\.0\.0\.1|0\.0\.0\.0|\[::1?\]|\*)?:(\d{2,5})\Z")
_BUNDLE = re.compile(
    r"(?:[\w./@-]*/)?[A-Za-z][\w.]*(?:-[a-z][\w.]*)*[-.]([A-Za-z0-9_]{8,20})\.(?:m?js|cjs|css|wasm|map)\Z"
)
_UNIT = re.compile(r"[A-Za-z0-9][\w@.\\:-]*\.(?:service|timer|socket)\Z")
_PATH_LINE = re.compile(
    r"(.+?\w)(?::(\d{1,7})(?:(?:-|–|\.\.)(\d{1,7})|:\d{1,5})?|#L(\d{1,7})(?:C\d+)?(?:-L?(\d{1,7})(?:C\d+)?)?)\Z"
)
_PATH_SYMBOL = re.compile(
    rf"([\w./@+-]+\.\w{{1,10}})(?:::|#|:)({_NAME}(?:(?:::|\.){_NAME}){{0,6}})(?:\[.*\])?(?:\(\))?\Z"
)
_PATH = re.compile(r"(?:~|\.{1,2})?/?(?:[\w.@+()\[\]-]+/)*[\w.@+()\[\]-]+/?\Z|\.[A-Za-z][\w.-]+\Z")
_PATTERN = re.compile(r"[*?{}<>|$\"'`=,;&%^!\\]|\.\.\.|…|XX|\s")
_PACKAGE = re.compile(r"@[a-z0-9][\w.-]*/[a-z0-9][\w.-]*\Z")
_PINNED = re.compile(
    r"(@?[A-Za-z][\w.-]*(?:/[\w.-]+)?)(?:==|@v?)(\d+(?:\.\d+){0,3}(?:[-.]?(?:a|b|rc|alpha|beta|dev)[\w.]*)?)\Z"
)
_VERSION = re.compile(r"v?\d+\.\d+(?:\.\d+)?(?:[-.]?(?:a|b|rc|alpha|beta|dev)[\w.]*)?\Z")

# In prose, where nothing marks a word as code.
_PROSE = re.compile(
    r"(?P<url>(?:https?|ftp)://[^\s<>\"'`)\]]+)"
    r"|(?<![\w./@:~-])(?P<path>(?:~/|\.{1,2}/|/)?(?:[\w.@+-]+/)+[\w.@+-]*(?::\d{1,7}(?:[-–]\d{1,7})?(?!\d|\.\d))?)"
    r"|(?<![\w./@:-])(?P<file>[\w-][\w.-]*\.[a-zA-Z][a-zA-Z0-9]{0,8}(?::\d{1,7}(?:[-–]\d{1,7})?(?!\d|\.\d))?)(?![\w/@(])"
    r"|(?<![\w-])(?P<flag>--[a-z][\w-]*[a-z0-9])(?![\w-])"
    r"|(?<![\w.$/-])(?P<call>[A-Za-z_][\w]*(?:(?:\.|::)[A-Za-z_]\w*){0,6})\(\)"
    r"|(?<![\w.$/-])(?P<constant>[A-Z][A-Z0-9]*(?:_[A-Z0-9]+)+)(?![\w/(-])"
    r"|(?<![\w.$/-])(?P<snake>_{0,2}[a-z][a-z0-9]*(?:_[a-z0-9]+)+)(?![\w/(-])"
    r"|(?<![\w./-])(?P<method>[A-Z][A-Za-z0-9]*[a-z]\w*\.[a-z_]\w*)(?![\w/(-])"
)
_PORT = re.compile(
    r"\b[Pp]orts?(?: number)?[ :=]+`?(\d{2,5})`?(?:(?:,| and| or|/) ?`?(\d{2,5})`?)?(?![\w.])"
    r"|\b(?:listen(?:s|ing)?|answers?|serv(?:es|ing)|runs?|running|bound|binds?) (?:on|at|to) `?:?(\d{3,5})`?(?![\w.:%])"
    r"|\b(?:localhost|127\.0\.0\.1|0\.0\.0\.0):(\d{2,5})\b"
)
_LINE_WORD = re.compile(r"\b(?:at |on )?(?:lines?|L)[ ]?(\d{1,6})(?: ?(?:-|–|to|and|through) ?(\d{1,6}))?\b")
_HEX = re.compile(r"(?<![\w./#-])[0-9a-f]{7,40}(?![\w/-]|\.\w)")
_COMMITS = re.compile(
    r"\b(?:commits?|git (?:show|log|revert|diff|checkout|cherry-pick)|reverts?|cherry-pick(?:ed)?|rebased?|bisect(?:ed)?|sha|landed|merged|fixed in"
    r"|introduced (?:in|by|with)|came in with|since)\b",
    re.IGNORECASE,
)
_COMMIT_WORD = re.compile(r"\b(?:commit|revision|rev|sha|changeset)s? +(?:id +)?`?([0-9a-f]{7,40})\b`?", re.IGNORECASE)
_VERSIONED = re.compile(
    r"(?<![\w./@-])([A-Za-z][\w.+-]{1,40}?)(?:`)?(?: version| release)? v?(\d{1,4}(?:\.\d{1,4}){1,3})(?:\.x)?(?![\w%]|\.\d)"
)
_CONTAINER = re.compile(
    r"\bcontainers? (?:named |called )?[`\"']([A-Za-z0-9][\w.-]{1,62})[`\"']"
    r"|`([A-Za-z0-9][\w.-]{1,62})` container\b"
    r"|\bdocker (?:exec(?: -\w+)*|logs(?: -\w+)*|restart|stop|start|inspect) ([A-Za-z0-9][\w.-]{1,62})"
)
_PACKAGE_WORD = re.compile(
    r"\b(?:package|library|dependency|crate|gem|module|plugin)s? (?:called |named )?`(@?[A-Za-z][\w./-]{1,60})`"
    r"|`(@?[A-Za-z][\w./-]{1,60})` (?:package|library|dependency|crate|gem)\b"
    r"|\b(?:depends? on|dependency on|dependency:|pinned? to|pins|requires?|asks for|installs?) `(@?[A-Za-z][\w./-]{1,60})`"
    r"|`(@?[A-Za-z][\w./-]{1,60})` is (?:a|our|an indirect|a direct|a dev|a runtime) (?:\w+ )?dependency\b"
)
_MANIFEST = re.compile(
    r"\b(?:package\.json|pyproject\.toml|Cargo\.toml|go\.mod|Gemfile|composer\.json|pom\.xml|build\.gradle|requirements[\w-]*\.txt|setup\.(?:py|cfg)"
    r"|Pipfile|mix\.exs|pubspec\.yaml)\b"
)
_HYPHENATED = re.compile(r"[a-z][a-z0-9]*(?:-[a-z0-9]+)+\Z")
_TARGET_WORD = re.compile(
    r"\b(?P<kind>make|npm|just|package\.json) (?:target|script|recipe|task)s? `(?P<before>[\w:.-]{1,60})`"
    r"|`(?P<after>[\w:.-]{1,60})` (?P<other>make|npm|just|yarn|pnpm) (?:target|script|recipe|task)"
)
_SCRIPT = re.compile(
    r"(?P<tool>make|gmake|just|npm|pnpm|yarn|bun)(?P<run> run(?:-script)?)? (?P<name>[A-Za-z][\w:.-]*)(?= |$)"
)
_NPM_OWN = frozenset(
    "install i ci add remove rm uninstall update upgrade init create publish pack link unlink audit outdated exec x dlx list ls "
    "view info config login logout whoami version cache prune dedupe run set get why up import store workspace workspaces "
    "patch approve-builds rebuild help doctor explain fund search token root bin prefix dist-tag pm".split()
)
_DECISION = re.compile(
    r"\b(?:we|they|the team|I) (?:have |had )?(?:decided|chose|agreed|settled|picked|opted|switched|standardi[sz]ed|moved)\b"
    r"|\b(?:it was|was) (?:decided|agreed)\b|^\W{0,6}(?:\*\*)?(?:Decision|Decided|Agreed)\b:?"
    r"|\bwe(?:'re| are)? (?:use|using|go with|going with)\b",
    re.IGNORECASE,
)

# A sentence about the past.
_PAST_AFTER = re.compile(
    r"[^.;]{0,30}?\b(?:(?:was|were|is|are|got|has been|have been|had been|being|been)\s+(?:since\s+|later\s+|now\s+|finally\s+|recently\s+"
    r"|completely\s+|entirely\s+)?(?:removed|deleted|dropped|renamed|replaced|superseded|retired|gone|scrapped|ripped|folded|merged into"
    r"|split (?:up )?into|moved (?:to|into|out|over)|migrated to|inlined|killed|obsolete)"
    r"|no longer|used to|does(?: not|n't) exist|do(?: not|n't) exist|never existed|did not exist|is absent|went away"
    r"|(?:was|were) (?:formerly|previously|originally|once)|(?:became|becomes|turned into|moved to|renamed to)\b)"
)
_PAST_BEFORE = re.compile(
    r"(?:\b(?:formerly|previously|originally|once|used to (?:be|live|sit|call|use|have|read|run)(?: in| at| called)?|(?:was|were)(?: formerly| previously)? (?:called|named|in|at|known as)"
    r"|renamed(?: \w+){0,2} from|renam(?:es?|ing|ed)|moved(?: \w+){0,3} from|migrat\w+(?: \w+){0,3} from|instead of|rather than|in place of"
    r"|replac(?:es|ed|ing)|supersed(?:es|ed|ing)|remov(?:es?|ed|al of|ing)|delet(?:es?|ed|ion of|ing)|dropp?(?:s|ed|ing)?|retir(?:es?|ed|ing)|no longer(?: \w+){0,2}"
    r"|there(?: is|'s| was| are) no|not|never|without|no|there used to be|until(?: [^.;`]{1,40})? (?:was|were)(?: \w+){0,3}|(?:earlier|older|previous|former|past|old) (?:versions?|releases?|code|notes?|docs?)(?: \w+){0,3}|until|old|former|ex-|legacy|the late|away from|no more"
    r"|anymore in|does(?: not|n't) (?:have|use|exist in|contain)|did(?: not|n't) (?:have|use))"
    r"(?: (?:the|a|an|our|its|any|old|former|deprecated|file|folder|directory|module|function|class|method|flag|option|setting|script|command|called|named|from|use|using|separate|such))*)"
    r"[ \"'(*_`]*\Z",
    re.IGNORECASE,
)
_PAST_SENTENCE = re.compile(
    r"[^.;,]{0,40}[.;,] ?(?:and )?(?:it|this|that|they)(?: is|'s| was| are| were| has been| have been)(?: now| since| long)? "
    r"(?:gone|not there|no longer|removed|deleted|dropped|dead)",
    re.IGNORECASE,
)
_LOOSE_BEFORE = re.compile(r"\b(?:not|never|without|no|until|once)\b", re.IGNORECASE)
_CHANGE_LINE = re.compile(
    r"^\s*(?:[-*+]|\d+[.)])\s+(?:\*\*|\[|`)?(?:Removed?|Deleted?|Dropp?(?:ed)?|Renamed?|Deprecated?|Fix(?:ed|es)?|Changed?|Added?)\b[:\]*]*\s"
)
_CHANGELOG = re.compile(
    r"\W*(?:full |the )?(?:change ?log|release notes|(?:version |release )?history|what'?s new\b.*|removed\b.*|removals?)\W*\Z",
    re.IGNORECASE,
)
_RELEASE = re.compile(r"^\[?v?\d+\.\d+(?:\.\d+)?\]?(?:\s|$|[-(])")
_DEFINES = re.compile(
    r"\b(?:is |are |was )?(?:defined|declared|implemented|lives?|located|found|sits?|resides?|kept|exported|stands?|handled)\b(?: \w+){0,2} (?:in|at|from|inside|under|by)\b"
)
_JOINS = re.compile(
    r"[\s`*_\"'(\[|,:;—–-]*(?:(?:is |are |now |lives? |defined |declared |implemented |located |found |function |class |method |helper |constant "
    r"|module |struct |type |macro |field |hook |component |still |the |live |which |that |file |a |an |sits |kept |exported |handled )*"
    r"(?:in|at|from|inside|of|under|within|by|see|->|→|=>)?(?: the| file| module)*)?[\s`*_\"'(\[|,:;—–-]*\Z",
    re.IGNORECASE,
)
_JOINED_BY = re.compile(
    r"[\s`*_\"'(\[|,:;—–-]*(?:(?:file |module )*(?:defines?|declares?|has|holds|contains?|exports?|implements?|provides?|is where|with|uses)?"
    r"(?: the| a| an| function| class| method| helper| constant| struct| type| macro| component| hook)*"
    r"(?: lives?| is| sits?| stands?)?)?[\s`*_\"'(\[|,:;—–>→#-]*\Z",
    re.IGNORECASE,
)
_FENCE = re.compile(r"[ \t>]*(`{3,}|~{3,})[ \t]*([^\s`{]*)(.*)")
_HEADING = re.compile(r" {0,3}(#{1,6})[ \t]+(.*)")
_LINK = re.compile(r"\]\(\s*<?([^()\s<>]+(?:\([^()\s]*\))?)[^)\n]{0,200}\)")
_REFERENCE = re.compile(r"^ {0,3}\[[^\]]{1,80}\]:\s*<?(\S+?)>?(?:\s|$)")
_SHELLS = frozenset(
    ("sh", "bash", "zsh", "fish", "shell", "console", "shell-session", "terminal", "powershell", "ps1", "cmd", "bat")
)
_CODE_FENCES = frozenset(
    "py python python3 js javascript jsx ts typescript tsx go golang rs rust java kotlin scala c cpp c++ csharp cs ruby rb php "
    "swift dart elixir lua perl".split()
)


def extract_claims(text: str, *, is_changelog: bool = False, limit: int = MAX_CLAIMS) -> Claims:
    """Everything that a Markdown text claims, in its order; nothing inside the frontmatter."""
    found: list[Claim] = []
    left_out = 0
    for claim in _walk(text, is_changelog):
        if len(found) < limit:
            found.append(claim)
        else:
            left_out += 1
    return Claims(tuple(found), left_out)


class _Raw(NamedTuple):
    """A claim before its sentence was read: offsets count within its line."""

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


def _walk(text: str, is_changelog: bool) -> Iterator[Claim]:
    fence = info = ""
    offset = 0
    in_front = text.startswith("---\n")
    past_level = 0  # the level of the heading that opened a section about the past; 0: none
    decided = False
    for number, line in enumerate(text.split("\n"), start=1):
        start, offset = offset, offset + len(line) + 1
        if in_front:
            in_front = number == 1 or line.rstrip() not in ("---", "...")
            continue
        if len(line) > _LONGEST_LINE:
            line = line[:_LONGEST_LINE]
        if fence:
            bare = line.strip(" \t>")
            if len(bare) >= len(fence) and not bare.strip(fence[0]):
                fence = ""
            elif not is_changelog and not past_level:
                yield from _placed(_in_fence(line, info), line, number, start, past=False)
            continue
        if ("`" in line or "~" in line) and (opened := _FENCE.match(line)) and "`" not in opened[3]:
            fence, info = opened[1], opened[2].lower()
            continue
        if (heading := _HEADING.match(line)) is not None:
            level, title = len(heading[1]), heading[2]
            if not past_level or level <= past_level:
                past_level = level if _CHANGELOG.match(title) or _RELEASE.match(title) else 0
            decided = "decision" in title.lower()
        if not line.strip():
            continue
        past = is_changelog or bool(past_level) or _CHANGE_LINE.match(line) is not None
        yield from _placed(_in_line(line, decided=decided and heading is None), line, number, start, past=past)


def _in_line(line: str, *, decided: bool) -> list[_Raw]:
    """The claims of one line outside fences."""
    raws: list[_Raw] = []
    taken: list[tuple[int, int]] = []
    if "`" in line:
        for start, end in _code_spans(line):
            taken.append((start - 1, end + 1))
            raws += _in_code(line[start:end], start)
    if "](" in line:
        for match in _LINK.finditer(line):
            target = match[1]
            taken.append((match.start(), match.end()))
            raws += _in_link(target, match.start(1))
    elif "]:" in line and (reference := _REFERENCE.match(line)) is not None:
        raws += _in_link(reference[1], reference.start(1))
        taken.append(reference.span())
    raws += _in_words(line, raws)
    prose = line
    if taken:
        pieces, at = [], 0
        for start, end in sorted(taken):
            if start > at:
                pieces.append(line[at:start])
            pieces.append("\x00" * (end - max(start, at)))
            at = max(at, end)
        prose = "".join(pieces) + line[at:]
    raws += _in_prose(prose)
    if decided or _DECISION.search(line):
        raws += _decisions(line, decided=decided)
    raws.sort(key=lambda raw: (raw.start, -raw.end))
    return _without_overlaps(raws)


def _code_spans(line: str) -> Iterator[tuple[int, int]]:
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


def _in_code(code: str, offset: int) -> list[_Raw]:
    """What a span of inline code names."""
    bare = code.strip()
    if not bare or len(bare) > _LONGEST:
        return []
    start = offset + code.index(bare)
    # `"quoted"`, `name,` and `name:` are the name.
    if len(bare) > 2 and bare[0] in "\"'" and bare[-1] == bare[0] and bare[0] not in bare[1:-1]:
        bare, start = bare[1:-1].strip(), start + 1
    trimmed = bare.rstrip(",;")
    if trimmed.endswith(":") and trimmed.count(":") == 1:
        trimmed = trimmed[:-1]
    if not trimmed:
        return []
    if " " in trimmed or "\t" in trimmed:
        return _in_command(trimmed, start)
    return _token(trimmed, start, "inline code")


def _token(word: str, start: int, why: str, *, is_command: bool = False) -> list[_Raw]:  # noqa: PLR0911, PLR0912
    """What one word of code names; nothing when it may be anything."""
    end = start + len(word)
    if _URL.match(word):
        return [_Raw(start, end, "url", word, why)]
    if (match := _FLAG.match(word)) is not None:
        return [_Raw(start, start + len(match[1]), "flag", match[1], why)]
    if (match := _PATH_LINE.match(word)) is not None and _is_path(match[1]):
        path = _bare_path(match[1])
        first = int(match[2] or match[4])
        last = int(match[3] or match[5] or 0)
        return [_Raw(start, end, "line", path, why, place=path, first=first, last=max(first, last))]
    if (match := _BUNDLE.match(word)) is not None and _is_hash(match[1]):
        return [_Raw(start, end, "bundle", _bare_path(word), why)]
    if _UNIT.match(word) and "/" not in word:
        return [_Raw(start, end, "unit", word, why, is_weak=not word.endswith((".service", ".timer")))]
    if (match := _PATH_SYMBOL.match(word)) is not None and _is_path(match[1]) and not match[2].isdigit():
        parts = re.split(r"::|\.", match[2])
        at = start + match.start(2)
        path = _bare_path(match[1])
        return [
            _Raw(start, start + match.end(1), "path", path, why),
            _Raw(at, at + len(match[2]), "method" if len(parts) > 1 else "symbol", parts[-1], why, place=path,
                 owner=".".join(parts[:-1])),
        ]  # fmt: skip
    if _PACKAGE.match(word):
        return [_Raw(start, end, "package", word, why, is_weak=True)]
    if (match := _PINNED.match(word)) is not None and not _is_file(match[1]):
        return [_Raw(start, end, "version", match[2], why, owner=match[1])]
    if (match := _HOST_PORT.match(word)) is not None and _is_port(match[1]):
        return [_Raw(start + match.start(1), start + match.end(1), "port", match[1], why)]
    if (match := _CONSTANT.match(word)) is not None or (match := _UPPER.match(word)) is not None:
        return [_Raw(start + match.start(1), start + match.end(1), "env", match[1], why)]
    if (match := _ASSIGNED.match(word)) is not None:
        name = match[1]
        return [_Raw(start + match.start(1), start + match.end(1), "env", name, why, is_weak="_" not in name)]
    if _COMMIT.match(word) and (len(word) == 40 or not (word.isdigit() or word.isalpha())):
        return [_Raw(start, end, "commit", word, why)]
    if "/" in word or "\\" in word:
        return _path_token(word, start, why)
    if _is_file(word):
        return [_Raw(start, end, "path", word, why, is_weak=True)]
    if is_command or _VERSION.match(word):
        return []
    if _HYPHENATED.match(word):
        return [_Raw(start, end, "package", word, why, is_weak=True)]
    return _symbol_token(word, start, why)


def _path_token(word: str, start: int, why: str) -> list[_Raw]:
    end = start + len(word)
    path = word.replace("\\", "/") if re.match(r"(?:[A-Za-z]:)?[\w.-]*\\[\w.\\-]+\Z", word) else word
    if _PATTERN.search(path) or not _PATH.match(path) or "//" in path:
        return []
    kind = "directory" if path.endswith("/") else "path"
    bare = _bare_path(path)
    parts = [part for part in bare.split("/") if part not in ("", ".", "..")]
    if not parts or (len(parts) == 1 and path.startswith("/") and kind == "path" and not _is_file(parts[0])):
        return []  # `/`, `/users`: a route as likely as anything
    if parts[0] in _MEDIA and len(parts) == 2 and not _is_file(parts[1]) and kind == "path":
        return []
    if path.startswith(("/", "~")):
        outside = path.startswith("~") or parts[0] in _ROOTS
        return [_Raw(start, end, kind, bare, why, is_weak=not outside)]
    is_sure = kind == "directory" or _is_file(parts[-1]) or (parts[0] in _TOP_FOLDERS and len(parts) > 1)
    if "." in parts[0][1:] and parts[0].rsplit(".", 1)[-1].lower() in _HOSTS and not path.startswith("."):
        is_sure = False  # github.com/owner/name
    if len(parts) == 1 and kind == "directory":
        is_sure = False
    return [_Raw(start, end, kind, bare, why, is_weak=not is_sure)]


def _symbol_token(word: str, start: int, why: str) -> list[_Raw]:
    body = word
    generic = re.match(r"(?:\[\])?[*&]*([\w$.:#@-]+?)<[\w$., &*?\[\]:<>]{1,80}>(\(\))?\Z", body)
    if generic is not None:
        start, body = start + generic.start(1), generic[1]
    tag = re.match(r"</?([A-Z][\w.]*) ?/?>\Z", body)
    if tag is not None:
        start, body = start + tag.start(1), tag[1]
    while body[:1] in ("*", "&"):
        start, body = start + 1, body[1:]
    call = _CALL.match(body)
    is_call = call is not None
    if call is not None:
        body = call[1]
    elif not _DOTTED.match(body):
        return []
    body = body.removesuffix("()")
    while body[:1] in ("@", "#", ".", "$"):
        start, body, is_call = start + 1, body[1:], True
    body = body.rstrip("!?") if len(body) > 1 else body
    parts = [part for part in re.split(r"\.|::|->|#", body) if part]
    end = start + len(body)
    if not parts:
        return []
    while len(parts) > 1 and parts[0] in ("self", "this", "cls", "super", "crate", "window", "globalThis", "Self"):
        parts = parts[1:]
    last = parts[-1]
    if len(parts) == 1:
        if last.lower() in _DULL and not is_call:
            return []
        if len(last) < 3 and not is_call:
            return []
        return [_Raw(start, end, "symbol", last, why, is_weak=not (is_call or _is_odd(last)))]
    if parts[-1].lower() in _HOSTS and all(part.islower() for part in parts):
        return []
    if all(part.isdigit() for part in parts[1:]):
        return []
    return [_Raw(start, end, "method", last, why, owner=".".join(parts[:-1]))]


def _in_command(code: str, start: int) -> list[_Raw]:
    """Inline code of several words: a declaration, an import, an assignment, or a command."""
    if (match := _DECLARATION.match(code)) is not None:
        at = start + match.start(1)
        return [_Raw(at, at + len(match[1]), "symbol", match[1], "a declaration")]
    if (match := _IMPORT.match(code)) is not None:
        return _imported(match, start)
    if (call := _CALL.match(code)) is not None:
        return [raw._replace(why="a call") for raw in _symbol_token(call[1] + "()", start, "a call")]
    if (match := _ASSIGNED.match(code)) is not None and "_" in match[1] and " " in code[: match.end(1) + 2]:
        at = start + match.start(1)
        return [_Raw(at, at + len(match[1]), "env", match[1], "an assignment")]
    return list(_command(code, start))


def _imported(match: re.Match[str], start: int) -> list[_Raw]:
    module = match[1] or match[3]
    if match[1] is None:
        return [
            _Raw(
                start + match.start(3),
                start + match.end(3),
                "symbol",
                module.split(".")[-1],
                "an import",
                owner=module,
                is_weak=True,
            )
        ]
    raws = []
    for name in re.finditer(_NAME, match[2]):
        at = start + match.start(2) + name.start()
        raws.append(_Raw(at, at + len(name[0]), "method", name[0], "an import", owner=module, is_weak=True))
    return raws


_INTERPRETERS = frozenset("python python3 py node deno bun ruby php perl bash sh zsh uv npx tsx ts-node".split())


def _command(code: str, start: int) -> Iterator[_Raw]:
    """The paths, flags and scripts in a command. What it would do is nobody's business here."""
    words = [(match.start(), match[0]) for match in re.finditer(r"[^\s\"'()]+", code)]
    at = 0
    while at < len(words) and (
        words[at][1] in ("sudo", "time", "env", "nohup", "exec", "export", "set") or _ASSIGNED.match(words[at][1])
    ):
        if (match := _ASSIGNED.match(words[at][1])) is not None and "_" in match[1]:
            yield _Raw(
                start + words[at][0], start + words[at][0] + len(match[1]), "env", match[1], "a command", is_weak=True
            )
        at += 1
    if at >= len(words):
        return
    program = words[at][1]
    if (match := _SCRIPT.match(code, words[at][0])) is not None:
        tool, name = match["tool"], match["name"]
        own = tool in ("make", "gmake", "just") or match["run"] or (tool != "npm" or name in ("test", "start"))
        if own and (match["run"] or tool in ("make", "gmake", "just") or name not in _NPM_OWN) and "=" not in name:
            yield _Raw(start + match.start("name"), start + match.end("name"), "script", name, "a command", owner=tool)
        return
    if program in _INTERPRETERS:
        script = next(
            (i for i in range(at + 1, len(words)) if not words[i][1].startswith("-") and words[i][1] != "run"), 0
        )
        if script and ("/" in words[script][1] or _is_file(words[script][1])):
            at, program = script, words[script][1]
    is_own = "/" in program or _is_file(program)
    is_tool = program.lower() in _TOOLS
    if not is_tool and not is_own and not _IDENTIFIER.match(program.replace("-", "_")):
        return
    for position, word in words[at:]:
        clean = word.rstrip(",;:|&")
        if clean.startswith("--"):
            if not is_tool and (match := _FLAG.match(clean)) is not None:
                first = start + position
                yield _Raw(
                    first, first + len(match[1]), "flag", match[1], "a command", owner=program, is_weak=not is_own
                )
        elif "/" in clean or _is_file(clean):
            for raw in _token(clean, start + position, "a command", is_command=True):
                if raw.kind in ("path", "directory", "line", "bundle", "symbol", "method"):
                    # What a command names may be what it makes; only a sure shape is a claim.
                    yield raw._replace(is_weak=raw.is_weak or (position != words[at][0] and "/" not in clean))


def _in_link(target: str, start: int) -> list[_Raw]:
    if _URL.match(target):
        return [_Raw(start, start + len(target), "url", target, "a link")]
    bare, _, fragment = target.partition("#")
    if not bare or ":" in bare.split("/")[0] or len(bare) > _LONGEST:
        return []
    end = start + len(bare)
    if (match := re.match(r"L(\d{1,7})(?:-L?(\d{1,7}))?\Z", fragment)) is not None and _is_path(bare):
        first = int(match[1])
        return [_Raw(start, start + len(target), "line", _bare_path(bare), "a link", place=_bare_path(bare), first=first,
                     last=max(first, int(match[2] or 0)))]  # fmt: skip
    if _PATTERN.search(bare) or not _PATH.match(bare) or ("/" not in bare and not _is_file(bare)):
        return []
    kind = "directory" if bare.endswith("/") else "path"
    return [_Raw(start, end, kind, _bare_path(bare), "a link", is_weak=True)]


def _in_words(line: str, raws: list[_Raw]) -> list[_Raw]:
    """Claims that need the words around them: ports, containers, packages, versions, line numbers, commits."""
    found: list[_Raw] = []
    lowered = line.lower()
    if any(character.isdigit() for character in line):
        for match in _PORT.finditer(line):
            for group in range(1, 5):
                if match[group] and _is_port(match[group]):
                    found.append(_Raw(*match.span(group), "port", match[group], "called a port"))
        if "line" in lowered or " L" in line:
            found += _line_words(line, raws)
        for match in _HEX.finditer(line):
            word = match[0]
            if not word.isdigit() and not word.isalpha() and (len(word) == 40 or _COMMITS.search(line)):
                found.append(_Raw(*match.span(), "commit", word, "called a commit"))
        for match in _COMMIT_WORD.finditer(line):
            found.append(_Raw(*match.span(1), "commit", match[1].lower(), "called a commit"))
        for match in _VERSIONED.finditer(line):
            if match[1].lower() not in _NOT_VERSIONED:
                found.append(
                    _Raw(*match.span(2), "version", match[2], "a name and a number", owner=match[1], is_weak=True)
                )
    if "container" in lowered or "docker" in lowered:
        for match in _CONTAINER.finditer(line):
            group = match.lastindex or 1
            found.append(_Raw(*match.span(group), "container", match[group], "called a container"))
    if "`" in line:
        for match in _PACKAGE_WORD.finditer(line):
            group = match.lastindex or 1
            if not _is_file(match[group]) and match[group].lower() not in _TOOLS:
                found.append(_Raw(*match.span(group), "package", match[group], "called a package", is_weak=True))
        if _MANIFEST.search(line):
            for raw in raws:
                is_name = raw.kind == "symbol" and raw.why == "inline code"
                if is_name and line[raw.end : raw.end + 1] == "`":
                    found.append(raw._replace(kind="package", why="beside a manifest", is_weak=True))
        for match in _TARGET_WORD.finditer(line):
            name = "before" if match["before"] else "after"
            tool = match["kind"] or match["other"]
            found.append(
                _Raw(
                    *match.span(name),
                    "script",
                    match[name],
                    "called a target",
                    owner="npm" if tool == "package.json" else tool,
                )
            )
    return found


_NOT_VERSIONED = frozenset(
    "section version chapter figure table step release since before after until from to in at by of about over under only "
    "than and or is was are be the a an with line lines page port http tls ssl rfc iso utf ip than least most around nearly "
    "roughly approximately x score ratio rate took takes up down for on v".split()
)


def _line_words(line: str, raws: list[_Raw]) -> Iterator[_Raw]:
    """ "line 120 of `a.py`" and "`a.py`, lines 3 to 9"."""
    paths = [raw for raw in raws if raw.kind == "path"]
    if not paths:
        paths = [raw for raw in _in_prose(line) if raw.kind == "path"]
    for match in _LINE_WORD.finditer(line):
        near = min(paths, key=lambda raw: min(abs(raw.start - match.end()), abs(match.start() - raw.end)), default=None)
        if near is None or min(abs(near.start - match.end()), abs(match.start() - near.end)) > 40:
            continue
        first = int(match[1])
        last = int(match[2] or 0)
        end = match.end(2) if match[2] else match.end(1)
        yield _Raw(match.start(1), end, "line", near.name, "a line number by a path", place=near.name, first=first,
                   last=max(first, last))  # fmt: skip


def _in_prose(prose: str) -> list[_Raw]:
    """What can only be code, although nothing marks it."""
    found: list[_Raw] = []
    for match in _PROSE.finditer(prose):
        kind = match.lastgroup
        start, end = match.span(kind or 0)
        word = match[kind or 0].rstrip(".,;:!?-")
        end = start + len(word)
        if kind == "url":
            found.append(_Raw(start, end, "url", word, "a link"))
        elif kind in ("path", "file"):
            found += _prose_path(word, start)
        elif kind == "flag":
            found.append(_Raw(start, end, "flag", word, "two dashes", is_weak=True))
        elif kind == "constant":
            found.append(_Raw(start, end, "env", word, "capitals with underscores", is_weak=True))
        elif kind == "snake":
            found.append(_Raw(start, end, "symbol", word, "underscores", is_weak=True))
        elif kind == "call":
            found += [raw._replace(is_weak=True) for raw in _symbol_token(f"{word}()", start, "a call")]
        elif kind == "method":
            owner, _, name = word.partition(".")
            if not (name == "js" or _is_file(word) or name in _HOSTS):
                found.append(_Raw(start, end, "method", name, "a dot between names", owner=owner, is_weak=True))
    return found


def _prose_path(word: str, start: int) -> list[_Raw]:
    path, colon, _ = word.partition(":")
    parts = [part for part in path.split("/") if part not in ("", ".", "..")]
    if not parts:
        return []
    is_file = _is_file(parts[-1])
    if "/" not in path:
        if not is_file or (path.lower().endswith(".js") and path[:-3].lower() in _PRODUCTS):
            return []
        if _UNIT.match(path):
            return [_Raw(start, start + len(path), "unit", path, "a unit's name", is_weak=True)]
        if (
            not colon
            and path[0].isupper()
            and "." in path
            and path.rsplit(".", 1)[1] not in ("md", "json", "toml", "txt", "lock")
        ):
            return []  # "Vue.js", a sentence without a blank
        if colon:
            return _token(word, start, "a file and a line")
        return [_Raw(start, start + len(path), "path", path, "a file's name", is_weak=True)]
    if is_file or path.startswith(("~/", "./", "../")):
        return [raw._replace(why="a path") for raw in _token(word, start, "a path")]
    if path.endswith("/") and len(parts) > 1:
        return [raw._replace(is_weak=parts[0] not in _TOP_FOLDERS) for raw in _token(path, start, "a path")]
    if (parts[0] in _TOP_FOLDERS and len(parts) > 1) or len(parts) > 2:
        return [raw._replace(is_weak=True) for raw in _token(path, start, "a path")]
    return []


def _in_fence(line: str, info: str) -> list[_Raw]:
    """A line of a code block: commands, imports, and paths that cannot be anything else."""
    bare = line.strip()
    if not bare or len(bare) > 1000 or "──" in bare:
        return []
    start = line.index(bare)
    prompt = re.match(r"(?:\$|>|%|❯|[\w.@~:/-]{0,40}\$) +", bare)
    if prompt is not None:
        bare, start = bare[prompt.end() :], start + prompt.end()
    if info in _SHELLS or prompt is not None:
        if bare.startswith("#"):
            return []
        return [raw for piece, at in _pieces(bare) for raw in _command(piece, start + at)]
    if info in _CODE_FENCES:
        match = _IMPORT.match(bare)
        return _imported(match, start) if match is not None and match[1] and not match[1].startswith(".") else []
    if not info:
        raws = [raw for piece, at in _pieces(bare) for raw in _command(piece, start + at)]
        return [raw._replace(is_weak=True) for raw in raws if raw.kind in ("path", "line", "script", "flag")]
    return []


def _pieces(command: str) -> Iterator[tuple[str, int]]:
    """The commands of a line, cut at && and ; and |, with their offsets."""
    at = 0
    for match in re.finditer(r"&&|\|\|?|;", command):
        yield command[at : match.start()], at
        at = match.end()
    yield command[at:], at


def _decisions(line: str, *, decided: bool) -> Iterator[_Raw]:
    """Each sentence that tells of a decision; under a heading about decisions, each list item."""
    at = 0
    for match in re.finditer(r"[.!?](?=\s+[A-Z*`])|\Z", line):
        sentence, start, at = line[at : match.end()], at, match.end()
        bare = sentence.strip()
        if not bare:
            continue
        item = re.match(r"(?:[-*+>]|\d+[.)])\s+", bare)
        if _DECISION.search(bare) or (decided and item is not None):
            first = start + sentence.index(bare) + (item.end() if item else 0)
            text = line[first : start + len(sentence.rstrip())]
            yield _Raw(first, first + len(text), "decision", text[:_LONGEST], "a decision")


# Shapes.


def _is_path(word: str) -> bool:
    if _PATTERN.search(word) or not _PATH.match(word):
        return False
    return _is_file(word.rstrip("/").rsplit("/", 1)[-1]) or ("/" in word and word.split("/")[0] in _TOP_FOLDERS)


def _is_file(name: str) -> bool:
    """Whether a name is a file's, by its ending or because everyone knows it."""
    if name in _BARE_FILES:
        return True
    stem, dot, extension = name.rpartition(".")
    if not dot or "(" in name:
        return name[:1] == "." and name[1:].lower() in _EXTENSIONS
    if not stem:
        return extension.lower() in _EXTENSIONS or (len(extension) > 3 and extension.isalnum() and extension.islower())
    return extension.lower() in _EXTENSIONS and (len(extension) > 1 or extension.islower()) and not stem.isdigit()


def _bare_path(path: str) -> str:
    while path.startswith("./"):
        path = path[2:]
    return path.replace("\\", "/").rstrip("/") or "/"


def _is_odd(word: str) -> bool:
    """Whether a word can hardly be anything but an identifier."""
    if "_" in word.strip("_") or "$" in word:
        return True
    return any(a.islower() and b.isupper() for a, b in zip(word, word[1:], strict=False))


def _is_hash(word: str) -> bool:
    """Whether this looks like a content hash: digits or capitals amid small letters, no word."""
    if any(character.isdigit() for character in word):
        return any(character.isalpha() for character in word)
    changes = sum(a.islower() and b.isupper() for a, b in zip(word, word[1:], strict=False))
    return changes >= 2 or (changes >= 1 and word[0].isupper() and word[1:2].isupper())


def _is_port(digits: str) -> bool:
    return 20 < int(digits) < 65_536 and not digits.startswith("0")


def _without_overlaps(raws: list[_Raw]) -> list[_Raw]:
    """Each stretch of text makes one claim: the more telling kind wins; a decision may hold others."""
    kept: list[_Raw] = []
    for raw in sorted(raws, key=lambda raw: (_ORDER.get(raw.kind, 9), raw.is_weak, raw.start - raw.end)):
        if raw.kind == "decision" or not any(
            raw.start < other.end and other.start < raw.end for other in kept if other.kind != "decision"
        ):
            kept.append(raw)
    return sorted(kept, key=lambda raw: (raw.start, raw.end))


_ORDER = {
    "url": 0,
    "line": 1,
    "bundle": 1,
    "port": 1,
    "commit": 2,
    "version": 3,
    "container": 3,
    "script": 3,
    "package": 3,
    "path": 5,
    "directory": 5,
}


# The sentence around a claim.


def _placed(raws: list[_Raw], line: str, number: int, offset: int, *, past: bool) -> Iterator[Claim]:
    files = [
        raw
        for raw in raws
        if raw.kind in ("path", "line") and (_is_file(raw.name.rsplit("/", 1)[-1]) or raw.kind == "line")
    ]
    for raw in raws:
        place, near, quote, definite = raw.place, "", "", False
        if raw.kind in ("symbol", "method", "env", "flag") and not place and files:
            place, definite = _named_place(raw, files, line)
        if raw.kind == "line":
            near = _held_symbol(raw, raws, line)
            quote = _quoted_beside(raw, raws, line) if "`" in line else ""
        yield Claim(
            kind=raw.kind,
            text=line[raw.start : raw.end],
            start=offset + raw.start,
            end=offset + raw.end,
            line=number,
            column=raw.start + 1,
            name=raw.name,
            place=place,
            owner=raw.owner,
            first=raw.first,
            last=raw.last,
            near=near,
            quote=quote,
            is_weak=raw.is_weak or _is_planned(raw, line),
            is_past=raw.kind not in ("decision", "url") and (past or _is_past(raw, line) or _gives_way(raw, raws, line)),
            is_definite=definite,
            why=raw.why,
        )


def _named_place(raw: _Raw, files: list[_Raw], line: str) -> tuple[str, bool]:
    """The file that the same sentence names for a symbol, and whether it says that the symbol is defined there."""
    for other in files:
        gap = (line[raw.end : other.start] if raw.end <= other.start else line[other.end : raw.start]).removeprefix(
            "()"
        )
        if len(gap) > 70 or raw.start < other.end and other.start < raw.end:
            continue
        if raw.end <= other.start:
            if _JOINS.match(gap) and not re.search(r"[.!?;]\s", gap):
                return other.place or other.name, bool(_DEFINES.search(gap))
        elif _JOINED_BY.match(gap) and not re.search(r"[.!?;]\s", gap):
            return other.place or other.name, bool(re.search(r"defin|declar|implement|export", gap))
    return "", False


def _held_symbol(raw: _Raw, raws: list[_Raw], line: str) -> str:
    """The symbol that stands nearest to a line's number in the same sentence, with no other place between."""
    best, best_gap = "", 61
    for other in raws:
        if other.kind not in ("symbol", "method", "env"):
            continue
        first, last = (other.end, raw.start) if other.end <= raw.start else (raw.end, other.start)
        gap = line[first:last].removeprefix("()")
        between = [item for item in raws if item.kind in ("path", "line") and first <= item.start < last]
        gap_size = len(gap) - sum(item.end - item.start for item in between if item.name == raw.name)
        if any(item.name != raw.name for item in between) or re.search(r"[.!?;]\s", gap) or gap_size >= best_gap:
            continue
        best, best_gap = f"{other.owner}.{other.name}" if other.owner else other.name, gap_size
    return best


def _quoted_beside(raw: _Raw, raws: list[_Raw], line: str) -> str:
    """The code that a memory quotes right beside a line's number; empty when there is none."""
    for start, end in _code_spans(line):
        if start <= raw.start < end or end - start < 4:
            continue
        inside = [other for other in raws if start <= other.start < end]
        if any(other.kind in ("path", "line", "directory") or end - start - (other.end - other.start) <= 4 for other in inside):
            continue
        gap = line[end + 1 : raw.start] if end <= raw.start else line[raw.end : start - 1]
        if len(gap) <= 30 and not re.search(r"[.!?;]\s|\d", gap):
            return line[start:end].strip()
    return ""


def _is_past(raw: _Raw, line: str) -> bool:
    """Whether the sentence says that the thing is gone, was something else, or is not there."""
    before = _sentence_end(line[max(0, raw.start - 90) : raw.start])
    if (match := _PAST_BEFORE.search(before)) is not None:
        loose = _LOOSE_BEFORE.match(match[0].strip())
        if loose is None or re.search(r"\bno\b|there(?: is|'s| are)|never|without", match[0]):
            return True
    if before.endswith("~~`") or before.endswith("~~"):
        return True  # struck out
    after = _QUOTES_AFTER.sub("", line[raw.end : raw.end + 90])
    if _PAST_SENTENCE.match(after):
        return True
    match = _PAST_AFTER.match(after)
    # Another name between the claim and the verb is what the verb speaks of.
    return match is not None and "`" not in match[0]


_PLANNED = re.compile(
    r"(?:\b(?:TODO|FIXME|may|might|could|will|would|should|shall|plan(?:s|ned)? to|want(?:s)? to|going to|propos(?:e|ed|al)|consider|if we|let's|imagine"
    r"|suppose|say|e\.g\.|for example|such as|like)\b[^.;`]{0,40}|\b(?:create|add|write|introduce|call it|name it)"
    r"(?: (?:a|an|the|new|your|file|folder|directory|called|named|helper|class|script))*)[ \"'(*_`:]*\Z",
    re.IGNORECASE,
)
_WOULD_BE = re.compile(r"[`*_\"')]*,? (?:would|could|might|will) (?:be|do|have|make|need)\b")


def _is_planned(raw: _Raw, line: str) -> bool:
    """Whether the sentence speaks of what could be, or of an example: then only what is known here counts."""
    before = _sentence_end(line[max(0, raw.start - 70) : raw.start])
    return _PLANNED.search(before) is not None or _WOULD_BE.match(line[raw.end : raw.end + 30]) is not None


def _gives_way(raw: _Raw, raws: list[_Raw], line: str) -> bool:
    """Whether an arrow leads from this name to another one of its kind: old → new."""
    arrow = _ARROW.match(_QUOTES_AFTER.sub("", line[raw.end : raw.end + 12]))
    following = next((other for other in raws if other.start >= raw.end), None)
    if arrow is None or following is None or following.start > raw.end + 14:
        return False
    files = ("path", "directory", "line", "bundle")
    return (raw.kind in files) == (following.kind in files)


_QUOTES_AFTER = re.compile(r"^(?:\(\))?[`*_\"')\], ]*")
_ARROW = re.compile(r"(?:→|->|=>)\s")


def _sentence_end(text: str) -> str:
    """The last sentence of a stretch of text, as far as it goes."""
    for stop in (". ", "; ", "! ", "? "):
        cut = text.rfind(stop)
        if cut >= 0 and not text[:cut].endswith(("e.g", "i.e", "etc", "vs")):
            text = text[cut + 2 :]
    return text
