"""Maps file names to languages, and languages to the modules that walk them."""

from __future__ import annotations

from typing import NamedTuple

_EXTENSIONS = {
    extension: language
    for language, extensions in {
        "python": "py pyi pyw pyx pxd py-tpl",
        "javascript": "js jsx mjs cjs es6",
        "typescript": "ts tsx mts cts",
        "vue": "vue",
        "svelte": "svelte astro",
        "html": "html htm xhtml",
        "go": "go",
        "rust": "rs",
        "java": "java",
        "groovy": "groovy gradle",
        "kotlin": "kt kts",
        "scala": "scala sc sbt",
        "csharp": "cs",
        "swift": "swift",
        "dart": "dart",
        "c": "c h",
        "cpp": "cc cpp cxx c++ hh hpp hxx h++ ipp inl tpp cu cuh ino",
        "ruby": "rb rake gemspec ru podspec",
        "php": "php phtml php5 inc",
        "shell": "sh bash zsh ksh bats",
        "lua": "lua",
        "perl": "pl pm",
        "elixir": "ex exs",
        "haskell": "hs",
        "ocaml": "ml mli",
        "zig": "zig zon",
        "nim": "nim nims",
        "sql": "sql ddl psql",
        "make": "mk mak",
        "dockerfile": "dockerfile",
        "protobuf": "proto",
        "graphql": "graphql gql graphqls",
        "terraform": "tf tfvars hcl",
        "css": "css scss less",
        "yaml": "yaml yml",
        "toml": "toml",
        "json": "json jsonc json5 webmanifest",
        "ini": "ini cfg conf",
        "env": "env",
        "properties": "properties",
    }.items()
    for extension in extensions.split()
}
_FILES = {
    name: language
    for language, files in {
        "make": "makefile gnumakefile",
        "dockerfile": "dockerfile containerfile",
        "ruby": "rakefile gemfile podfile vagrantfile brewfile fastfile",
        "groovy": "jenkinsfile",
        "python": "sconstruct wscript",
        "shell": ".bashrc .bash_profile .zshrc .profile",
        "toml": "cargo.lock poetry.lock uv.lock pipfile",
        "json": "composer.lock pipfile.lock .babelrc .eslintrc .prettierrc .swcrc",
        "yaml": ".clang-format .clang-tidy",
        "ini": ".editorconfig .gitconfig .gitmodules .npmrc .flake8 .pylintrc .coveragerc",
        "env": ".env",
    }.items()
    for name in files.split()
}
_CONFIG = frozenset(("yaml", "toml", "json", "ini", "env", "properties"))
MARKUP = frozenset(("vue", "svelte", "html"))


class Grammar(NamedTuple):
    """A grammar from the package index, and the query in `queries/` that is run on its trees."""

    query: str
    module: str
    function: str = "language"


_TYPESCRIPT = Grammar("typescript", "tree_sitter_typescript", "language_typescript")
_TSX = Grammar("typescript", "tree_sitter_typescript", "language_tsx")
GRAMMARS: dict[str, tuple[Grammar, ...]] = {  # the first one that parses a file without errors counts
    "c": (Grammar("c", "tree_sitter_c"),),
    "cpp": (Grammar("cpp", "tree_sitter_cpp"),),
    "csharp": (Grammar("csharp", "tree_sitter_c_sharp"),),
    "dart": (Grammar("dart", "tree_sitter_dart"),),
    "elixir": (Grammar("elixir", "tree_sitter_elixir"),),
    "go": (Grammar("go", "tree_sitter_go"),),
    "groovy": (Grammar("groovy", "tree_sitter_groovy"),),
    "haskell": (Grammar("haskell", "tree_sitter_haskell"),),
    "html": (Grammar("javascript", "tree_sitter_javascript"),),
    "java": (Grammar("java", "tree_sitter_java"),),
    "javascript": (Grammar("javascript", "tree_sitter_javascript"),),
    "kotlin": (Grammar("kotlin", "tree_sitter_kotlin"),),
    "lua": (Grammar("lua", "tree_sitter_lua"),),
    "php": (Grammar("php", "tree_sitter_php", "language_php"),),
    "ruby": (Grammar("ruby", "tree_sitter_ruby"),),
    "rust": (Grammar("rust", "tree_sitter_rust"),),
    "scala": (Grammar("scala", "tree_sitter_scala"),),
    "svelte": (_TYPESCRIPT, _TSX),
    "swift": (Grammar("swift", "tree_sitter_swift"),),
    "terraform": (Grammar("terraform", "tree_sitter_hcl"),),
    "typescript": (_TYPESCRIPT, _TSX),
    "vue": (_TYPESCRIPT, _TSX),
    "zig": (Grammar("zig", "tree_sitter_zig"),),
}
WALKERS = {  # the module of this package that finds what a file defines
    **dict.fromkeys(GRAMMARS, "syntax_tree"),
    **{
        language: module
        for module, languages in {
            "python": "python",
            "schemas": "protobuf graphql",
            "line_based": "perl shell ocaml nim sql make dockerfile css",
            "config_files": "yaml toml json ini env properties",
        }.items()
        for language in languages.split()
    },
}


def language_of(path: str) -> str:
    """Return the language of a file by its name, or "" if it is not source."""
    name = path.rpartition("/")[2].lower()
    if found := _FILES.get(name):
        return found
    if name.startswith(("dockerfile.", "containerfile.")):
        return "dockerfile"
    if name.startswith((".env.", ".env-", ".env_")):
        return "env"
    stem, _, extension = name.rpartition(".")
    return _EXTENSIONS.get(extension, "") if stem else ""


def has_grammar(language: str) -> bool:
    """Whether definitions in this language are found by parsing."""
    return language in GRAMMARS


def is_config(language: str) -> bool:
    """Whether files in this language contain keys and values rather than code."""
    return language in _CONFIG
