"""What documents say of a repository's own commands, settings, sections and modules, and what says nothing."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.project import Project


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Project:
    made = Project(tmp_path / "app")
    monkeypatch.chdir(made.path)
    return made


def claims(project: Project, *arguments: str) -> list[str]:
    """The claims that are false, in the order of the documents."""
    return [claim for _, _, _, claim in project.alarms(*arguments)]


def test_commands_of_a_framework_are_those_of_the_code(project: Project) -> None:
    project.write("app/Sync.php", "<?php class Sync { protected $signature = 'shop:sync {--all}'; }\n")
    project.write("app/Price.php", "<?php class Price { protected $signature = 'shop:price-list'; }\n")
    project.write("app/Old.php", "<?php $this->setAliases(['shop:fetch']);\n")
    project.write("composer.json", '{"scripts": {"lint": "pint"}}\n')
    project.write(
        "README.md",
        "```bash\nphp artisan shop:sync --all\nphp artisan shop:fetch\nphp artisan shop:purge --missing\n"
        "php artisan migrate:fresh\nphp artisan horizon:publish\nsail artisan shop:price\ncomposer run lint\n"
        "composer run dev\ncomposer require x/y\n```\n",
    )
    project.commit()
    assert claims(project) == ["shop:purge", "shop:price", "dev"]


def test_packages_and_programs_that_cargo_is_told_to_run(project: Project) -> None:
    project.write("Cargo.toml", '[workspace]\nmembers = ["core", "cli"]\n')
    project.write("core/Cargo.toml", '[package]\nname = "shop-core"\n')
    project.write("cli/Cargo.toml", '[package]\nname = "shop-cli"\n')
    project.write("cli/src/bin/import.rs", "fn main() {}\n")
    project.write(
        "AGENTS.md",
        "Run `cargo test -p shop-core`, `cargo test -p shop_cli`, `cargo test -p shop-web`, `cargo run --bin import`,\n"
        "`cargo run --bin export` and `cargo run -p example-name`.\n",
    )
    project.commit()
    assert claims(project) == ["shop-web", "export"]


def test_a_command_whose_file_is_gone(project: Project) -> None:
    project.write(
        "docs/contributing.md", "Run:\n\n```sh\nmkdocs serve\npython manage.py refill\npython manage.py migrate\n```\n"
    )
    project.write("mkdocs.yml", "site_name: x\n")
    project.write("shop/management/commands/refill.py", "class Command: pass\n")
    project.commit()
    assert claims(project) == []
    project.git("rm", "-q", "mkdocs.yml", "shop/management/commands/refill.py")
    project.commit("away")
    assert claims(project) == ["serve", "refill"]


SETTINGS = """\
```env
SHOP_HOST=localhost
SHOP_PORT=8080
MAIL_FROM=shop
SHOP_COLOUR=blue
SHOP_MODE=Very Fast
MALLOC_ARENA_MAX=2
EXAMPLE_SHOP_KEY=1
```

```bash
RELEASE_TAG=v1
echo "$RELEASE_TAG"
docker run -e SHOP_TAX=1 shop
```
"""


def test_variables_of_settings_that_nothing_reads(project: Project) -> None:
    project.write(
        "shop.py", "import os\nHOST = os.environ['SHOP_HOST']\nos.getenv('SHOP_PORT')\nos.getenv('MAIL_FROM')\n"
    )
    project.write(".env.example", "SHOP_HOST=\nSHOP_PORT=\nMAIL_FROM=\nRELEASE=\nOTHER_TAX=\n")
    project.write("README.md", SETTINGS.replace("MALLOC_ARENA_MAX=2\nEXAMPLE_SHOP_KEY=1\n", ""))
    project.commit()
    assert claims(project) == ["SHOP_COLOUR", "SHOP_MODE", "SHOP_TAX"]
    project.write(
        "README.md", SETTINGS.replace("SHOP_COLOUR=blue\nSHOP_MODE=Very Fast\n", "").replace("-e SHOP_TAX=1", "")
    )
    assert claims(project) == []  # another program's, an example's, and one of the shell


def test_settings_of_another_program_and_of_made_up_names_say_nothing(project: Project) -> None:
    project.write("shop.py", "import os\nHOST = os.environ['SHOP_HOST']\nos.environ['SHOP_' + name]\n")
    project.write("README.md", SETTINGS)
    project.commit()
    assert claims(project) == []  # only one of them is here
    project.write("more.py", "import os\nos.environ['SHOP_PORT'], os.environ['MAIL_FROM'], os.environ['SHOP_TAX']\n")
    assert claims(project) == []  # the code puts names together


def test_links_to_sections(project: Project) -> None:
    project.write(
        "README.md",
        "# Shop\n\n[a](#set-up-your-shop) [b](#prices--taxes) [c](#made) [d](#prices) [e](docs/guide.md#use)\n"
        "[f](docs/guide.md#used) [g](#l10) [h](docs/guide.md#under-lined) `[i](#no)` [j](#1-first)\n\n"
        '## Set up your [shop](https://x.org)!\n\n## Prices & taxes\n\n<a id="made"></a>\n\n'
        "```md\n## Prices\n```\n\n## 1. First\n",
    )
    project.write("docs/guide.md", "# Guide\n\n## Use {#use}\n\nUnder lined\n-----------\n")
    project.write("docs/parts.md", '# Parts\n\n[a](#none)\n\n--8<-- "more.md"\n')
    project.commit()
    assert claims(project) == ["#prices", "#used"]


def test_a_change_that_renames_a_section_breaks_its_links(project: Project) -> None:
    project.write("README.md", "# Shop\n\nSee [set-up](docs/guide.md#set-up) and [more](docs/guide.md#never).\n")
    project.write("docs/guide.md", "# Guide\n\n## Set up\n\nText.\n")
    base = project.commit()
    project.write("docs/guide.md", "# Guide\n\n## Installation\n\nText.\n")
    project.commit("rename")
    assert claims(project, "--since", base) == ["#set-up"]


def test_modules_of_an_own_package_that_are_not_here(project: Project) -> None:
    project.write("src/shop/__init__.py", "from .core import Shop\n")
    project.write("src/shop/core.py", "class Shop: pass\n")
    project.write("src/shop/web/__init__.py", "")
    project.write(
        "README.md",
        "```python\nfrom shop.core import Shop\nfrom shop.web.views import View\nfrom shop.example import Thing\n"
        "from requests.auth import Auth\n```\n",
    )
    project.commit()
    assert claims(project) == ["View"]


def test_a_least_version_that_the_manifest_has_left_behind(project: Project) -> None:
    project.write("pyproject.toml", '[project]\nname = "shop"\nrequires-python = ">=3.11"\n')
    project.write("package.json", '{"name": "shop", "engines": {"node": ">=20", "pnpm": ">=10.2"}}\n')
    project.write(
        "README.md",
        "Needs Python 3.9 or newer and Node.js 18+, pnpm 10+.\n\nWith Python 3.12+ and Node >= 22 it is faster.\n",
    )
    project.commit()
    assert claims(project) == ["3.9", "18"]


def test_a_dependency_that_left_the_code(project: Project) -> None:
    project.write("pyproject.toml", '[project]\nname = "shop"\ndependencies = ["price-list", "tax-table"]\n')
    project.write("shop.py", "import tax_table, price_list\n")
    project.write("README.md", "Uses `price-list` and `tax-table`.\n")
    project.commit()
    project.write("pyproject.toml", '[project]\nname = "shop"\ndependencies = []\n')
    project.write("shop.py", "import tax_table\n")
    project.commit("away")
    assert claims(project) == ["price-list"]  # the code still imports the other


def test_paths_below_a_folder_that_the_section_names(project: Project) -> None:
    project.write("server/src/main.rs", "fn main() {}\n")
    project.write("src/main.rs", "fn main() {}\n")
    project.commit()
    project.git("mv", "src/main.rs", "other.rs")
    project.write(
        "AGENTS.md", "## Server\n\nLocation: `/server`\n\n- `src/main.rs` starts it\n\n## Tool\n\n- `src/main.rs`\n"
    )
    project.commit("move")
    assert [line for _, line, *_ in project.alarms()] == [9]


def test_a_folder_above_a_path_that_is_not_here_any_more(project: Project) -> None:
    project.write("src/shop/tools/a.py", "A = 1\n")
    project.write("examples/basic/run.py", "A = 1\n")
    project.commit()
    project.git("mv", "src/shop", "shop")
    project.write(
        "AGENTS.md", "Tools (`src/tools/`) and `lib/never/`.\n\n```sh\ncd examples/advanced\ncd examples/basic\n```\n"
    )
    project.commit("move")
    assert claims(project) == ["src/tools/", "examples/advanced"]


@pytest.mark.parametrize(
    ("name", "line"),
    [
        ("AGENTS.md", '--8<-- "src/parts/none.md"'),
        ("AGENTS.md", "Messages are compiled into `src/made/texts.py`."),
        ("AGENTS.md", "Constants are `UPPER_CASE`, like `SNAKE_CASE`."),
        ("AGENTS.md", "There is no `src/gone.py` wrapper."),
        ("docs/plans/completed/shop.md", "See [it](../none.md)."),
        ("docs/2026-03-04-shop.md", "See [it](none.md)."),
    ],
)
def test_lines_that_say_nothing_of_what_is_here(project: Project, name: str, line: str) -> None:
    project.write("src/gone.py", "UPPER_LEFT = UPPER_RIGHT = SNAKE_ONE = SNAKE_TWO = 1\n")
    project.write("src/parts/here.md", "x\n")
    project.write("src/here.py", "UPPER_LEFT = UPPER_RIGHT = SNAKE_ONE = SNAKE_TWO = 1\n")
    project.commit()
    project.git("rm", "-q", "src/gone.py")
    project.write(name, f"# Text\n\n{line}\n")
    project.commit("text")
    assert claims(project) == []


def test_the_tree_of_a_plan_is_no_alarm(project: Project) -> None:
    tree = "```\nsrc/\n├── here.py\n├── there.py\n├── more.py\n└── planned.py\n```\n"
    for name in ("here", "there", "more"):
        project.write(f"src/{name}.py", "A = 1\n")
    project.write("docs/shop.md", f"# Shop\n\n> Priority: 2\n\n{tree}")
    project.commit()
    assert claims(project) == []
    project.write("docs/shop.md", f"# Shop\n\n{tree}")
    assert claims(project) == ["planned.py"]


def test_a_document_with_two_names_is_read_once(project: Project) -> None:
    project.write("AGENTS.md", "See [it](src/none.py).\n")
    (project.path / "sub").mkdir()
    (project.path / "sub/README.md").symlink_to("../AGENTS.md")
    (project.path / "CLAUDE.md").symlink_to("AGENTS.md")
    project.commit()
    assert project.alarms() == [("AGENTS.md", 1, "gone", "src/none.py")]


def test_names_in_other_capitals_and_names_alike(project: Project) -> None:
    types = "class ShopCartItem: pass\nclass ShopCartList: pass\nclass ShopCartTax: pass\nclass ShopCartView: pass\n"
    project.write("shop.py", f"{types}class StreamableHTTPClient: pass\n")
    project.write(
        "AGENTS.md", "`ShopCartItem`, `ShopCartFactory`, `StreamableHttpClient`, `SomeLibraryFactory`, `GetCartPrice`\n"
    )
    project.commit()
    assert claims(project) == ["ShopCartFactory", "StreamableHttpClient"]


def test_nine_planted_claims(project: Project) -> None:
    project.write(
        "src/server.py", 'PORT = 8081\n\ndef start_server():\n    parser.add_argument("--workers")\n    return PORT\n'
    )
    project.write("package.json", '{"name": "planted", "scripts": {"test": "pytest"}}\n')
    project.commit()
    project.git("mv", "src/server.py", "src/app_server.py")
    project.write(
        "CLAUDE.md",
        "# Notes\n\n"
        "- The entry point is `src/server.py`.\n"
        "- `start_server()` is at `src/server.py:3`.\n"
        "- Build with `npm run build`.\n"
        "- The configuration is in `config/settings.toml`.\n"
        "- The function `run_forever()` is in `src/app_server.py`.\n"
        "- `start_server()` is at line 40 of `src/app_server.py`.\n"
        "- The server listens on port 9090.\n"
        "- The number of workers is set with the flag `--threads`.\n"
        "- This was decided in commit `deadbeef`.\n",
    )
    project.commit("rename")
    report = project.report()
    assert {alarm["line"] for alarm in report["alarms"]} == set(range(3, 12))
    assert report["counts"]["unverifiable"] == 0


def test_a_variable_that_a_change_takes_away(project: Project) -> None:
    reads = (
        "import os\nos.environ['SHOP_HOST'], os.environ['SHOP_PORT'], os.environ['SHOP_MODE'], os.environ['SHOP_TAX']\n"
    )
    project.write("shop.py", reads)
    project.write("README.md", "```env\nSHOP_HOST=\nSHOP_PORT=\nSHOP_MODE=\nSHOP_TAX=\n```\n")
    base = project.commit()
    project.write("shop.py", reads.replace(", os.environ['SHOP_TAX']", ""))
    project.commit("away")
    assert claims(project) == claims(project, "--since", base) == ["SHOP_TAX"]


def test_a_page_with_another_ending_is_where_its_link_leads(project: Project) -> None:
    page = "# Types\n\nHow types are resolved, in some detail, with an example of each of the many kinds there are.\n"
    project.commit(**{"website/docs/types.md": page, "AGENTS.md": "See [types](website/docs/types.md).\n"})
    project.git("mv", "website/docs/types.md", "website/docs/types.mdx")
    project.write("website/versioned_docs/version-2/types.mdx", page)
    project.write("website/docs/types.mdx", "# Types\n\nWritten anew.\n")
    project.commit("mdx")
    assert claims(project) == ["website/docs/types.md"]
    project.check("--fix")
    assert (project.path / "AGENTS.md").read_text() == "See [types](website/docs/types.mdx).\n"


def test_links_of_what_is_planned_are_no_alarm(project: Project) -> None:
    text = "# Reporters\n\n## Planned\n\n- [Video](video.md)\n\n## Present\n\n- [Text](text.md)\n"
    project.commit(**{"docs/reporters.md": text})
    assert claims(project) == ["text.md"]


def test_tasks_of_included_taskfiles(project: Project) -> None:
    project.write(
        "Taskfile.yml",
        "version: '3'\nincludes:\n  website:\n    taskfile: ./website\n\ntasks:\n  lint:\n    cmds: [lint]\n",
    )
    project.write("CONTRIBUTING.md", "Run `task lint`, `task website` and `task website:start`.\n")
    project.commit()
    assert claims(project) == []
    assert claims(project, "--confidence", "low") == []


def test_a_page_whose_feature_was_removed_is_false_throughout(project: Project) -> None:
    project.write(
        "sandbox.py", "RULES = read('SANDBOX_RULES'), read('SANDBOX_HOSTS'), read('SANDBOX_PORTS'), raw_mode\n"
    )
    project.write("shop.py", "def sell():\n    return 1\n")
    project.write("docs/sandbox.md", "Set `SANDBOX_RULES`, `SANDBOX_HOSTS` and `SANDBOX_PORTS`.\n")
    project.write("docs/one.md", "Set `SANDBOX_RULES`.\n")
    project.commit("a feature")
    assert claims(project) == []
    project.git("rm", "-q", "sandbox.py")
    project.commit("without it")
    assert claims(project) == ["SANDBOX_RULES", "SANDBOX_HOSTS", "SANDBOX_PORTS"]  # one name alone is less certain


def test_links_to_pages_that_never_were_are_not_reported_by_the_dozen(project: Project) -> None:
    project.write("docs/here.md", "Here.\n")
    links = "".join(f"- [{name}](./{name}.md)\n" for name in ("sms", "rag", "sql", "faq", "evals"))
    project.write("docs/index.md", f"- [here](./here.md)\n{links}")
    project.write("docs/other.md", "- [gone](./missing.md)\n- TODO: [to come](./later.md)\n")
    project.commit()
    assert claims(project) == ["./missing.md"]
    assert len(claims(project, "--confidence", "medium")) == 6


def test_links_to_this_repository_on_its_host(project: Project) -> None:
    base = "https://github.com/acme/shop/blob/main"
    for name in ("a.py", "b.py", "c.py"):
        project.write(f"src/{name}", "x = 1\n")
    project.git("remote", "set-url", "origin", "https://github.com/acme/shop.git")
    project.write(
        "README.md",
        f"See [a]({base}/src/a.py), [b]({base}/src/b.py#L1), [c]({base}/src/c.py), [d]({base}/src/d.py) and\n"
        "[another project](https://github.com/acme/other/blob/main/src/e.py).\n",
    )
    project.commit()
    project.git("rm", "-q", "src/c.py")
    project.commit("away")
    assert claims(project) == ["src/c.py", "src/d.py"]


def test_a_function_that_a_list_of_the_functions_of_a_file_has_and_no_code(project: Project) -> None:
    names = ("open_shop", "close_shop", "count_goods", "find_price")
    project.write("shop.py", "".join(f"def {name}():\n    return 1\n\n\n" for name in names))
    listed = "".join(f"- `{name}()`\n" for name in (*names, "sell_goods"))
    project.write("docs/api.md", f"# Functions\n\n{listed}\nThen call `other_library_call()` of another one.\n")
    project.write("docs/others.md", "Call `their_function()` first.\n")
    project.commit()
    assert "sell_goods" in claims(project)
    assert "their_function" not in claims(project)


def test_names_in_code_blocks_that_this_code_had(project: Project) -> None:
    project.write("shop.py", "class ShopClient:\n    pass\n\n\ndef open_all_shops():\n    return 1\n")
    project.write(
        "docs/usage.md",
        "```python\nclient = ShopClient()\nopen_all_shops(client)\nOtherClient(ReaderModel())\n"
        "class ReaderModel: ...\n```\n",
    )
    project.commit("first")
    assert claims(project) == []
    project.write("shop.py", "class Client:\n    pass\n")
    project.commit("renamed")
    assert claims(project) == ["ShopClient", "open_all_shops"]


def test_variables_that_begin_with_the_name_of_the_project(project: Project) -> None:
    project.write("package.json", '{"name": "shop"}\n')
    project.write("shop.py", "import os\nos.getenv('SHOP_HOST'), os.getenv('SHOP_PORT'), os.getenv('SHOP_MODE')\n")
    project.write(
        "README.md", "Set `SHOP_COLOUR` and `SHOP_HOST`; `SHOP_MY_KEY` is an example, `CLOUD_KEY` another's.\n"
    )
    project.commit()
    assert claims(project) == ["SHOP_COLOUR"]
    project.write("more.py", "prefix = 'SHOP_' + name\ncolour = 1\n")
    assert claims(project) == []  # may be put together of the two


def test_links_by_an_alias_that_a_bundler_knows(project: Project) -> None:
    project.write("docs/astro.config.mjs", "export default {}\n")
    project.write("docs/src/assets/plan.png", "x\n")
    for name in ("one", "two", "three"):
        project.write(f"docs/src/content/{name}.mdx", "![plan](~/assets/plan.png)\n")
    project.write("docs/src/content/four.mdx", "![plan](./missing.png)\n")
    project.commit()
    assert claims(project) == ["./missing.png"]


def test_a_makefile_that_is_made_of_another_file_may_have_any_target(project: Project) -> None:
    project.write("Makefile", "all:\n\techo\n")
    project.write("README.md", "```sh\nmake check\n```\n")
    project.commit()
    assert claims(project) == ["check"]
    project.write("configure.ac", "AC_INIT\n")
    assert claims(project) == []
