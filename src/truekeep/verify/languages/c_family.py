"""Java, C#, Dart, C and C++: finds definitions by the words before a bracket.

These languages have no keyword before a function or a field, so a definition is recognized by the words before the
first bracket, `=` or `;`.
"""

from __future__ import annotations

import re

from truekeep.verify.languages.braces import CODE, Braces
from truekeep.verify.languages.lexer import ANGLE, BRACE, BRACKET, CLOSING, COMMA, EQUALS, PAREN, SEMICOLON, opaque
from truekeep.verify.languages.patterns import Patterns
from truekeep.verify.languages.preprocessor import without_directives
from truekeep.verify.languages.statements import finish_braces
from truekeep.verify.languages.walker import DefinitionMark, WalkResult, join

_TYPE_WORDS = (
    rb"enum(?:\s++(?:class|struct))?|@interface|class|struct|union|interface|record(?:\s++(?:class|struct))?|namespace"
    rb"|extension|mixin|trait|module"
)
_PATTERNS = Patterns(
    {
        "terminator": rb"::|[({}\[;=,:]",
        "last word": rb"((?:WORD(?:<[^<>]*+(?:<[^<>]*+>[^<>]*+)*+>)?\s*+::\s*+)*+)(~?WORD)$",
        "operator": rb"\boperator\b\s*+"
        rb"(?:\(\s*+\)|\[\s*+\]|\"++\s*+\w*+|[^\s\w(]++|(?:new|delete)\b(?:\s*+\[\])?|[\w:<>\s*&]++)\s*+$",
        "declarator": rb"[\s*&^]*+(?:const\s++)?(WORD)\s*+(?:\[[^\[\]]*+\]\s*+)*+(?::(?!:)[^,;]*+)?$",
        "next declarator": rb"\s*+[\s*&^]*+WORD\s*+(?:\[[^\[\]]*+\]\s*+)*+[=,;]",
        "pointer": rb"\s*+(?:[\w:]++\s*+)*?[*^&]++\s*+(?:(?:const|volatile|_Nullable|_Nonnull)\s++)*+(WORD)",
        "enclosed name": rb"\s*+(WORD)\s*+\)\s*+\(",
        "type word": rb"(?<![\w.@$])(" + _TYPE_WORDS + rb")\b\s*+(?![,>=)])",
        "type name": rb"(?:(?:final|alignas|__attribute__|__declspec|sealed)\b\s*+|\[\[[^\]]*+\]\]\s*+"
        rb"|[A-Z][A-Z0-9_]*+\s++(?=[A-Za-z_]))*+"
        rb"((?:WORD(?:\s*+(?:::|\.)\s*+)?)++)",
        "enum item": rb"(?:[\s,]|@[\w.]++(?:\s*+\([^()]*+\))?|\[[^\[\]]*+\])*+(WORD)"
        rb"(?=\s*+(?:[,;}(={]|[A-Z_]++\b|__attribute__|\[\[))",
        "access": rb"(?:public|private|protected|signals|Q_SIGNALS)(?:\s++(?:slots|Q_SLOTS))?+",
        "component": rb"(WORD)\s*+(?:=[^,()]*+)?(?=[,)])",
        "bit field": rb"(?<!:):(?!:)",
        "value": rb"\s*+=(?![=>])",
        "call behind": rb"\s*+WORD\s*+\(",
        "local name": rb"[\s*&]*+(WORD)\s*+[;,=\[]",
        "word behind": rb"\s*+(WORD)",
        "local type": rb"[\n;{}](?:(?:\s*+(?:final|static|abstract|typedef|const)\b)*+\s*+"
        rb"(?P<type>(?:(?:class|enum|interface|struct|union)\b[^;{}=()]*+"
        rb"|record\s++WORD[^;{}=()]*+\([^;{}]*+\)[^;{}=()]*+)\{)|(?<=[{}]))",
        "nested type": rb"\n\h*+(?:(?:final|static|abstract|typedef)\h++)*+"
        rb"(?:@\w|(?:public|protected|private|class|enum|interface|record|struct|union)\b)",
        "anonymous": rb"new\s++[\w.$]++\s*+(?:<[^;{}()]*>)?\s*+\([^;{}]*\)\s*+$",
        "operator head": rb"\boperator\s*+[-+*/%^&|!<>=~]*+\s*+$",
    }
)
_CALLS = frozenset(  # words before a parenthesis that are neither a name nor a part of a declaration
    b"if for while switch return catch sizeof alignof asm __asm__ static_assert _Static_assert new case assert do else"
    b" using try".split()
)
_BEFORE_CALLS = frozenset(b"return new throw else case await goto".split())
_OWN_CALLS = {
    "java": frozenset(b"this super synchronized".split()),
    "csharp": frozenset(b"this base lock fixed checked unchecked foreach when await yield nameof typeof".split()),
    "dart": frozenset(b"this super await".split()),
}
_ATTRIBUTES = frozenset(
    b"__attribute__ __declspec alignas _Alignas decltype noexcept throw typeof __typeof__ requires explicit".split()
)
_RESERVED = frozenset(
    b"if for while switch return else case default do break continue goto void int char bool float double long short"
    b" unsigned signed const static extern auto new delete this".split()
)
_BEHIND = frozenset(  # words that may come between parameters and a body
    b"const noexcept override final throw throws volatile try requires where default async sync mutable restrict"
    b" __attribute__ abstract external native on".split()
)
_STATEMENTS = frozenset(  # words that begin statements without a definition
    b"import package using return goto friend export part library throw delete break continue yield await module if"
    b" else case default do while for requires exports opens provides uses".split()
)
_TYPE, _ENUM = "type", "enum"
_NATIVE = frozenset(("c", "cpp"))


def walk(cleaned: bytes, language: str) -> WalkResult:
    text = opaque(cleaned, language)
    macros: list[DefinitionMark] = []
    if language in ("c", "cpp", "csharp"):
        text = without_directives(text, macros)
    headed = _BracketWalker(text, language, macros)
    headed.walk()
    return WalkResult(headed.found, text, finish_braces)


class _Declaration:
    """The part of a declaration that was read so far."""

    __slots__ = ("anonymous", "head", "is_type", "kind", "listed", "name", "record", "start")

    def __init__(self, start: int) -> None:
        self.start = start
        self.head = start  # where its words begin, after annotations
        self.name: tuple[int, int, bytes] | None = None  # of a function, once its parameters were seen
        self.kind = ""
        self.listed = False  # whether what follows is a further name
        self.is_type = False  # whether it is the header of a type
        self.record = -1  # where the fields of a record begin, which may have no body
        self.anonymous: tuple[int, int] | None = None  # the members of a type whose name follows its body


class _BracketWalker(Braces):
    """Walks a language by the words before brackets. Modes besides code: type (also for the file), enum."""

    __slots__ = ("item", "language", "types")

    def __init__(self, text: bytes, language: str, macros: list[DefinitionMark]) -> None:
        super().__init__(text, _PATTERNS["nested type"], _TYPE)
        self.found = macros
        self.language = language
        self.item = _Declaration(0)
        self.types = [b""]  # the names of the types around

    def walk(self) -> None:
        text = self.text
        search = _PATTERNS["terminator"].search
        at = 0
        while at < len(text):
            mode = self.stack[-1].mode
            if mode == CODE:
                at = self.local(at)
                continue
            if mode == _ENUM:
                at = self.constant(at)
                continue
            match = search(text, at)
            if match is None:
                break
            place, at = match.span()
            byte = text[place]
            if byte == PAREN:
                at = self.parenthesis(place)
            elif byte == BRACE:
                at = self.brace(place)
            elif byte == CLOSING:
                at = self.closing(place)
            elif byte == SEMICOLON:
                self.statement(place)
                self.item = _Declaration(at)
            elif byte == EQUALS:
                at = self.equals(place)
            elif byte == COMMA:
                self.comma(place)
            elif byte == BRACKET:
                at = self.close(place)
                if not text[self.item.head : place].strip():
                    self.item.head = at  # an attribute
            elif at - place == 1 and _PATTERNS["access"].fullmatch(text[self.item.head : place].strip()):
                self.item = _Declaration(at)

    def words(self, place: int, limit: int = 400) -> bytes:
        """Return the relevant words before a bracket."""
        return self.text[max(self.item.head, place - limit) : place]

    def last_name(self, header: bytes, place: int) -> tuple[int, int, bytes] | None:
        """Return the last word of a header that ends here, and its qualifier."""
        if b"operator" in header and (match := _PATTERNS["operator"].search(header)):
            start = place - len(header) + match.start()
            return start, start + len(match[0].rstrip()), b""
        bare = header.rstrip()
        while bare.endswith((b"]", b">")):
            opener = bare.rfind(b"[") if bare.endswith(b"]") else _angle_start(bare)
            if opener < 0:
                return None
            bare = bare[:opener].rstrip()
        match = _PATTERNS["last word"].search(bare, max(0, len(bare) - 120) if b"::" in bare else _last_break(bare))
        if match is None:
            return None
        start = place - len(header) + match.start(2)
        return start, start + len(match[2]), match[1]

    # Brackets

    def parenthesis(self, place: int) -> int:
        """Handle the parameters of a function, if a name comes before them."""
        item, text = self.item, self.text
        end = self.close(place)
        if item.name is not None or end == place + 1:
            return end
        header = self.words(place)
        if _is_in_angles(header):
            return end
        found = self.last_name(header, place)
        if self.language in _NATIVE and header.strip():
            inner = _PATTERNS["pointer"].match(text, place + 1, end)
            if inner is None:
                inner = _PATTERNS["enclosed name"].match(text, place + 1, end + 40)
            if inner is not None and text[end : end + 80].lstrip().startswith(b"("):
                is_function = inner.end() > end
                variable = "field" if self.stack[-1].scope else "variable"
                item.kind = "type" if b"typedef" in header.split() else "function" if is_function else variable
                item.name = (*inner.span(1), b"")
                return self.close(text.index(b"(", end))
        if found is None:
            return end
        begin, stop, qualifier = found
        name = text[begin:stop]
        before = header[: len(header) - (place - begin)].rstrip()
        if before.endswith(b"@") or (before.endswith(b".") and b"@" in before.split()[-1]):
            item.head = end  # an annotation
            return end
        words = [word for word in before.split() if not word.startswith(b"@")]
        if name in _ATTRIBUTES:
            return end
        is_type = words and words[-1] in (b"class", b"struct", b"union", b"enum")
        if name == b"new" or (is_type if self.language in _NATIVE else name in _OWN_CALLS.get(self.language, ())):
            return end
        if b"typedef" in words and _PATTERNS["word behind"].match(text, end):
            return end  # a macro used as a type
        if name in _CALLS or (words and words[-1] in _BEFORE_CALLS):
            item.head = end
            return end
        if words and words[-1] in (b"record", b"class", b"struct") and self.language not in _NATIVE:
            return self.components(place, end, name)
        if not self.is_function(name, words, qualifier, end):
            item.head = end  # a macro, or an attribute that looks like one
            return end
        item.name = found
        item.kind = "type" if b"typedef" in words else "function"
        return end

    def is_function(self, name: bytes, words: list[bytes], qualifier: bytes, end: int) -> bool:
        """Whether a name before parameters is a declaration, by what comes before the name and after the parameters."""
        behind = _PATTERNS["word behind"].match(self.text, end)
        goes_on = behind is not None and behind[1] not in _BEHIND
        follows = self.text[end : end + 200].lstrip()[:1]
        if words or qualifier:
            if not goes_on or self.language not in _NATIVE or not name.isupper():
                return True
            return len(words) > 1 and _PATTERNS["call behind"].match(self.text, end) is None
        if name.lstrip(b"~") == self.types[-1] or (self.types[-1] and name.startswith(self.types[-1] + b".")):
            return True
        if goes_on or name.isupper():
            return False
        return follows == b"{" or (self.language == "dart" and follows == b"=")

    def components(self, place: int, end: int, name: bytes) -> int:
        """Handle the fields of a record."""
        scope = join(self.stack[-1].scope, name)
        if end - place < 5000:
            for match in _PATTERNS["component"].finditer(self.text, place, end):
                self.add(*match.span(1), "field", scope=scope)
        self.item.record = place
        return end

    def brace(self, place: int) -> int:
        item = self.item
        if item.name is not None:
            if self.language == "cpp" and self.is_initializer(place):
                return self.close(place)
            mark = self.add_named()
            self.item = _Declaration(place + 1)
            end = self.enter(place, mark)
            self.item = _Declaration(end)
            return end
        header = self.words(place, 20_000)
        bare = _without_brackets(header)
        words = bare.split()
        kind = _PATTERNS["type word"].search(bare)
        if kind is not None and b"=" not in bare:
            return self.open_type(place, bare, kind)
        if words and words[0] == b"extern" and words[-1].startswith(b'"'):
            self.push(_TYPE)
            self.types.append(b"")
            self.item = _Declaration(place + 1)
            return place + 1
        found = self.last_name(header, place)
        if found is None or len(words) < 2 or words[0] in _STATEMENTS or self.language not in ("csharp", "c", "cpp"):
            end = self.enter(place)
            self.item = _Declaration(end)
            return end
        end = self.close(place)
        if self.text[found[0] : found[1]] not in _RESERVED:
            mark = self.add(*found[:2], "property" if self.language == "csharp" else "variable", self.begin())
            mark.stop = end
        if value := _PATTERNS["value"].match(self.text, end):
            end = self.hop(value.end(), b";}")
        self.item = _Declaration(end)
        return end

    def open_type(self, place: int, bare: bytes, kind: re.Match[bytes]) -> int:
        """Enter a class or another type."""
        word = kind[1].split()[0].lstrip(b"@").decode()
        found = _PATTERNS["type name"].match(bare, kind.end())
        name = b"".join(found[1].split()).strip(b":.") if found else b""
        if name in (b"final", b"on", b"extends", b"implements", b"where"):
            name = b""
        mark = None
        if found is not None and name and word != "extension":
            begin = place - len(bare) + found.start(1)
            end = begin + len(found[1].rstrip())
            if word != "namespace":
                begin = max(begin, self.text.rfind(b"::", begin, end) + 2)
                begin += len(self.text[begin:end]) - len(self.text[begin:end].lstrip())
            else:
                begin = max(begin, self.text.rfind(b".", begin, end) + 1, self.text.rfind(b":", begin, end) + 1)
            if begin < end:
                mark = self.add(begin, end, word, self.begin())
        scope = join(self.stack[-1].scope, name.replace(b"::", b".")) if name else None
        self.push(_ENUM if word == "enum" else _TYPE, mark, scope)
        if self.language in _NATIVE and word in ("struct", "union", "enum", "class"):
            self.stack[-1].start = self.item.start
        self.types.append(name.rpartition(b"::")[2])
        self.item = _Declaration(place + 1)
        return place + 1

    def closing(self, place: int) -> int:
        """Handle the end of a type. In C, names may follow."""
        frame = self.stack[-1]
        self.pop(place + 1)
        if len(self.types) > 1:
            self.types.pop()
        self.item = item = _Declaration(place + 1)
        if frame.start >= 0:
            item.listed = True
            item.start = frame.start
            if self.text[frame.start : frame.start + 200].lstrip().startswith(b"typedef"):
                item.kind = "type"
            if frame.mark is None:
                item.anonymous = (frame.first, len(self.found))
            if self.stack[-1].mode == CODE and (match := _PATTERNS["local name"].match(self.text, place + 1)):
                if item.kind == "type":
                    self.further(match.end(1), self.text[place + 1 : match.end(1)])
                return match.end(1)
        return place + 1

    def local(self, at: int) -> int:
        """Handle a brace inside a function, where only types count, including anonymous ones."""
        frame = self.stack[-1]
        match = _PATTERNS["local type"].search(self.text, at)
        if match is None:
            return len(self.text)
        place = match.start()
        byte = self.text[place]
        if 0 <= frame.start <= place:  # the end of a value
            self.stack.pop()
            return frame.start
        if byte == CLOSING:
            self.pop(place + 1)
            if self.stack[-1].mode != CODE:
                self.item = _Declaration(place + 1)
        elif byte == BRACE and place != self.entered:
            if self.language == "java" and self.is_anonymous(place):
                self.push(_TYPE)
                self.types.append(b"")
                self.item = _Declaration(place + 1)
                return place + 1
            if match["type"] is None and (end := self.leaf(place)) >= 0:
                return end
            self.push(CODE)
        if match["type"] is None:
            return match.end()
        self.item = _Declaration(place + 1)
        opened = self.text.find(b"(", match.start("type"), match.end())
        if opened >= 0:
            self.components(opened, match.end(), match["type"].split()[1].partition(b"(")[0])
        bare = _without_brackets(self.words(match.end() - 1, 20_000))
        kind = _PATTERNS["type word"].search(bare)
        if kind is None:
            return place + 1
        return self.open_type(match.end() - 1, bare, kind)

    def is_anonymous(self, place: int) -> bool:
        """Whether an anonymous class begins here."""
        low = max(0, place - 300)
        new = self.text.rfind(b"new ", low, place)
        match = _PATTERNS["anonymous"].match(self.text, new, place) if new >= 0 else None
        return match is not None and match[0].count(b"(") == match[0].count(b")")

    # Statements

    def statement(self, place: int) -> None:
        """Handle a declaration that ends with a semicolon."""
        item = self.item
        if item.name is not None:
            self.add_named().stop = place + 1
            return
        if item.record >= 0 and (found := self.last_name(self.words(item.record), item.record)):
            self.add(*found[:2], "record", self.begin()).stop = place + 1
            return
        header = self.words(place)
        if item.listed:
            self.further(place, header)
            return
        words = [word for word in header.split() if not word.startswith(b"@")]
        if len(words) < 2 or words[0] in _STATEMENTS:
            return
        if words[0] in (b"class", b"struct", b"union", b"enum", b"interface", b"namespace") and len(words) == 2:
            return  # declared, not defined
        if words[0].startswith(b"template") and words[-2] in (b"class", b"struct"):
            return
        if cut := _PATTERNS["bit field"].search(header):
            place -= len(header) - cut.start()
            header = header[: cut.start()]
        self.variable(header, place, words)

    def variable(self, header: bytes, place: int, words: list[bytes]) -> DefinitionMark | None:
        """Handle a field or a variable, if a type comes before its name."""
        found = self.last_name(header, place)
        if found is None or not header[: found[0] - place].strip() or self.text[found[0] : found[1]] in _RESERVED:
            return None
        return self.add(*found[:2], self.item.kind or self.variable_kind(words), self.begin())

    def variable_kind(self, words: list[bytes]) -> str:
        if words[0] == b"typedef":
            return "type"
        if b"const" in words or b"constexpr" in words or (b"final" in words and b"static" in words):
            return "constant"
        return "field" if self.stack[-1].scope else "variable"

    def further(self, place: int, header: bytes) -> None:
        """Handle another name after a comma or the body of a type."""
        match = _PATTERNS["declarator"].match(header)
        if match is None or match[1] in _RESERVED:
            return
        item = self.item
        begin = place - len(header) + match.start(1)
        kind = item.kind or ("field" if self.stack[-1].scope else "variable")
        mark = self.add(begin, begin + len(match[1]), kind, self.begin())
        mark.stop = place + 1
        if item.anonymous is not None:
            outer = self.stack[-1].scope
            for member in self.found[slice(*item.anonymous)]:
                member.scope = join(join(outer, match[1]), member.scope[len(outer) :].lstrip(b"."))
            item.anonymous = None

    def equals(self, place: int) -> int:
        """Handle a value, or a body that is an expression."""
        item = self.item
        header = self.words(place)
        if b"operator" in header and _PATTERNS["operator head"].search(header):
            return place + 1
        if item.name is not None:
            function = self.add_named()
            end = self.hop(place + 1, b";}")
            function.stop = end + 1
            self.item = _Declaration(end + 1 if self.is_at(end, SEMICOLON) else end)
            return self.item.start
        if _is_in_angles(header):
            return place + 1
        words = [word for word in header.split() if not word.startswith(b"@")]
        mark: DefinitionMark | None = None
        if item.listed and (match := _PATTERNS["declarator"].match(header)):
            begin = place - len(header) + match.start(1)
            mark = self.add(begin, begin + len(match[1]), item.kind or self.variable_kind([b"", *words]), self.begin())
        elif words and words[0] == b"using":
            if self.language == "cpp" and len(words) == 2:
                begin = place - len(header) + header.rfind(words[1])
                mark = self.add(begin, begin + len(words[1]), "type", self.begin())
        elif words and words[0] not in _STATEMENTS:
            mark = self.variable(header, place, words)
        return self.initializer(place, mark)

    def initializer(self, place: int, mark: DefinitionMark | None) -> int:
        """Skip a value, or enter it if it may contain classes."""
        text, item = self.text, self.item
        at = place + 1
        while True:
            end = self.hop(at, b";,}")
            if not self.is_at(end, COMMA) or _PATTERNS["next declarator"].match(text, end + 1):
                break
            at = end + 1  # the comma of a generic type
        if mark is not None:
            mark.stop = end + 1 if self.is_at(end, SEMICOLON) else end
        if self.is_at(end, COMMA):
            item.listed = True
            item.head = end + 1
            return end + 1
        self.item = _Declaration(end + 1 if self.is_at(end, SEMICOLON) else end)
        if self.language not in _NATIVE and text.find(b"{", place, end) >= 0:
            self.push(CODE, None, join(mark.scope, text[mark.begin : mark.end]) if mark is not None else None)
            self.stack[-1].start = self.item.start
            return place + 1
        return self.item.start

    def comma(self, place: int) -> None:
        item = self.item
        if item.name is not None or item.is_type:
            return
        header = self.words(place)
        if _is_in_angles(header):
            return
        words = [word for word in header.split() if not word.startswith(b"@")]
        if item.listed:
            self.further(place, header)
        elif len(words) < 2 or words[0] in _STATEMENTS:
            return
        elif self.is_type_header(header):
            item.is_type = True
            return
        else:
            item.kind = "type" if words[0] == b"typedef" else ""
            mark = self.variable(header, place, words)
            if mark is None:
                return
            mark.stop = place
            item.listed = True
        item.head = place + 1

    def is_type_header(self, header: bytes) -> bool:
        """Whether a comma after this is in a list of base types."""
        bare = _without_brackets(header)
        kind = _PATTERNS["type word"].search(bare)
        return kind is not None and (
            self.language not in _NATIVE or _PATTERNS["bit field"].search(bare, kind.end()) is not None
        )

    def constant(self, at: int) -> int:
        """Handle one constant of an enum."""
        text = self.text
        match = _PATTERNS["enum item"].match(text, at)
        mark: DefinitionMark | None = None
        if match is not None:
            mark = self.add(*match.span(1), "constant", match.start(1))
            at = self.skip(match.end())
            if self.is_at(at, PAREN):
                at = self.skip(self.close(at))
            if self.is_at(at, BRACE) and self.language not in _NATIVE:
                self.push(_TYPE, mark)
                self.types.append(b"")
                self.item = _Declaration(at + 1)
                return at + 1
        end = self.hop(at, b",;}")
        if mark is not None:
            mark.stop = end
        if end >= len(text):
            return end
        if text[end] == CLOSING:
            return self.closing(end)
        if text[end] == SEMICOLON:
            self.stack[-1].mode = _TYPE
            self.item = _Declaration(end + 1)
        return end + 1

    def add_named(self) -> DefinitionMark:
        """Handle the function whose parameters were read."""
        assert self.item.name is not None
        begin, end, qualifier = self.item.name
        frame = self.stack[-1]
        scope = join(frame.scope, _unqualified(qualifier)) if qualifier else frame.scope
        kind = self.item.kind
        if kind == "function" and len(self.stack) > 1:
            is_class = frame.mark is None or frame.mark.kind != "namespace"
            kind = "method" if is_class and (self.language not in _NATIVE or frame.scope) else kind
        if kind == "function" and qualifier:
            kind = "method"
        return self.add(begin, end, kind, self.begin(), scope)

    def begin(self) -> int:
        return self.skip(self.item.start)

    def is_initializer(self, place: int) -> bool:
        """Whether this brace initializes a member, in the list before a constructor's body."""
        before = self.text[max(0, place - 60) : place].rstrip()[-1:]
        if not before.isalnum() and before not in (b"_", b">"):
            return False
        end = self.close(place)
        return self.text[end : end + 40].lstrip()[:1] in (b",", b"{")


def _last_break(header: bytes) -> int:
    """Return the earliest offset at which the last word of a header can begin."""
    return max(0, header.rfind(b" "), header.rfind(b"\n"), header.rfind(b"\t"), len(header) - 120)


def _angle_start(header: bytes) -> int:
    """Return where the type parameters at the end of a header begin."""
    depth = 0
    for at in range(len(header) - 1, -1, -1):
        if header[at] == 62:
            depth += 1
        elif header[at] == ANGLE:
            depth -= 1
            if not depth:
                return at
    return -1


def _unqualified(qualifier: bytes) -> bytes:
    bare = re.sub(rb"<[^<>]*+(?:<[^<>]*+>[^<>]*+)*+>|\s", b"", qualifier)
    return bare.strip(b":").replace(b"::", b".")


def _is_in_angles(header: bytes) -> bool:
    """Whether a bracket after this is inside type parameters."""
    if b"<" not in header or b"operator" in header:
        return False
    if b"(" in header:
        header = re.sub(rb"\((?:[^()]++|\([^()]*+\))*+\)", b"", header)
    return header.count(b"<") - 2 * header.count(b"<<") > header.count(b">") - header.count(b"->") - header.count(b"=>")


def _without_brackets(header: bytes) -> bytes:
    """Blank the type parameters, annotations and attributes of a header."""
    if b"<" in header:
        for _ in range(5):
            header, count = re.subn(rb"<[^<>]*+>", lambda match: b" " * len(match[0]), header)
            if not count:
                break
    if b"(" in header:
        for _ in range(5):
            header, count = re.subn(rb"\([^()]*+\)", lambda match: b" " * len(match[0]), header)
            if not count:
                break
    return header
