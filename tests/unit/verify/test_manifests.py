"""Manifests: what each format says and on which line, versions and names compared, and nothing hostile that hurts."""

from __future__ import annotations

import json
import tomllib
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.support.counting import assert_about_linear, count_work, unless_endless
from truekeep.verify.manifests import (
    MAX_FILE_BYTES,
    MAX_LOCK_BYTES,
    Manifest,
    Package,
    is_manifest,
    is_same_package,
    normalize_name,
    read_manifest,
    runtime_package,
    satisfies,
)
from truekeep.verify.manifests.formats import Leaf, ValueTable
from truekeep.verify.manifests.registry import BY_EXTENSION, BY_NAME, find_reader, load_reader
from truekeep.verify.manifests.toml import parse_toml


def read(path: str, text: str) -> Manifest:
    return read_manifest(path, text.encode())


def told(manifest: Manifest) -> list[str]:
    """A manifest as lines: `3 django >=4.2 (4.2.1) locked indirect`, `7 make:test`, `1 needs python >=3.11`."""
    lines = [f"{manifest.ecosystem}: {manifest.name} {manifest.version}".rstrip().rstrip(":")]
    for package in manifest.packages:
        words = [str(package.line), package.name, package.spec, f"({package.version})" if package.version else ""]
        words += ["locked" if package.is_locked else "", "" if package.is_direct else "indirect"]
        lines.append(" ".join(word for word in words if word))
    lines += [f"{script.line} {script.tool}:{script.name}" for script in manifest.scripts]
    lines += [f"{line} needs {name} {spec}" for name, spec, line in manifest.runtimes]
    lines += [f"{line} port {port}" for port, line in manifest.ports]
    lines += [f"{line} service {name}" for name, line in manifest.services]
    return lines


SAMPLES: dict[str, tuple[str, str]] = {
    "pyproject.toml": (
        """\
[build-system]
requires = ["hatchling>=1.24"]

[project]
name = "truekeep"  # django is not a dependency
version = "1.2.0"
requires-python = ">=3.11"
dependencies = [
  "Django>=4.2,<5 ; python_version >= '3.9'",
  "ruamel_yaml",  # "numpy"
  'uvicorn[standard] == 0.31.0',
  "local @ git+https://example.org/local.git",
]
optional-dependencies.docs = ["sphinx~=7.2"]

[project.scripts]
truekeep = "truekeep.cli:main"

[dependency-groups]
test = ["pytest (>=8.0)", {include-group = "lint"}]
lint = ["ruff"]

[tool.pdm.scripts]
start = {cmd = "python -m truekeep"}
_.env_file = ".env"

[tool.hatch.envs.default]
dependencies = ["coverage"]
[tool.hatch.envs.default.scripts]
cov = "coverage run"
[tool.hatch.envs.docs.scripts]
build = ["sphinx-build", "ls"]

[tool.uv]
dev-dependencies = ["mypy>=1"]
""",
        """\
python: truekeep 1.2.0
9 django >=4.2,<5
10 ruamel-yaml
11 uvicorn == 0.31.0 (0.31.0)
12 local @ git+https://example.org/local.git
14 sphinx ~=7.2
20 pytest >=8.0
21 ruff
2 hatchling >=1.24
35 mypy >=1
28 coverage
17 console:truekeep
24 pdm:start
30 hatch:cov
32 hatch:docs:build
7 needs python >=3.11""",
    ),
    "poetry/pyproject.toml": (
        """\
[tool.poetry]
name = "shop"
version = "0.3.1"
[tool.poetry.dependencies]
python = "^3.10"
django = "^4.2"
celery = { version = "5.3.1", extras = ["redis"] }
pandas = [
  {version = "^1.5", python = "<3.9"},
  {version = "^2.0", python = ">=3.9"},
]
own = {path = "../own"}
[tool.poetry.group.dev.dependencies]
pytest = "*"
[tool.poetry.dependencies.requests]
version = "^2.31"
[tool.poetry.scripts]
shop = "shop.cli:main"
""",
        """\
python: shop 0.3.1
6 django ^4.2
7 celery 5.3.1
8 pandas ^1.5 || ^2.0
12 own path:../own
15 requests ^2.31
14 pytest *
18 console:shop
18 poetry:shop
5 needs python ^3.10""",
    ),
    "setup.cfg": (
        """\
[metadata]
name = shop
version = attr: shop.__version__
[options]
python_requires = >=3.8
install_requires =
    django>=3.2
    # numpy
    requests==2.31.0
[options.extras_require]
docs = sphinx
test =
    pytest; python_version > "3.8"
[options.entry_points]
console_scripts =
    shop = shop.cli:main
    shop-admin = shop.admin:run
[tox:tox]
envlist = lint
""",
        """\
python: shop
7 django >=3.2
9 requests ==2.31.0 (2.31.0)
11 sphinx
13 pytest
16 console:shop
17 console:shop-admin
19 tox:lint
5 needs python >=3.8""",
    ),
    "setup.py": (
        """\
from setuptools import setup
REQUIRED = [
    'requests>=2.0',  # 'nothing>=1'
    "six",
]
EXTRAS = {
    'socks': ['PySocks>=1.5.6, !=1.5.7'],
}
setup(
    name="shop",
    version="2.0.1",
    python_requires=">=3.7, <4",
    install_requires=REQUIRED + ["attrs"],
    tests_require=["pytest"],
    extras_require={"dev": ["black==23.1.0"]},
    entry_points={"console_scripts": ["shop=shop:main"], "other": ["x=y:z"]},
)
""",
        """\
python: shop 2.0.1
3 requests >=2.0
4 six
7 pysocks >=1.5.6, !=1.5.7
14 pytest
15 black ==23.1.0 (23.1.0)
16 console:shop
12 needs python >=3.7, <4""",
    ),
    "requirements/dev.txt": (
        """\
-r base.txt
--index-url https://example.org/simple
# Django
Django==4.2.7
uvicorn[standard]>=0.20 ; python_version > "3.8"  # the server
numpy == 1.26.* \\
    --hash=sha256:0123
-e git+https://example.org/x.git#egg=Own_Thing
https://example.org/wheel-1.0-py3-none-any.whl
flask
these are just words
""",
        """\
python
4 django ==4.2.7 (4.2.7)
5 uvicorn >=0.20
6 numpy == 1.26.*
8 own-thing git+https://example.org/x.git#egg=Own_Thing
10 flask""",
    ),
    "requirements.txt": (
        """\
#
# This file is autogenerated by pip-compile with Python 3.11
#
asgiref==3.7.2
    # via django
django==4.2.7
    # via
    #   -r requirements.in
    #   djangorestframework
pytz==2023.3  # via -r requirements.in
""",
        """\
python
4 asgiref ==3.7.2 (3.7.2) locked indirect
6 django ==4.2.7 (4.2.7) locked
10 pytz ==2023.3 (2023.3) locked""",
    ),
    "Pipfile": (
        """\
[packages]
django = ">=4.2"
requests = {version = "==2.31.0", extras = ["socks"]}
[dev-packages]
pytest = "*"
[requires]
python_version = "3.11"
[scripts]
serve = "python manage.py runserver"
""",
        """\
python
2 django >=4.2
3 requests ==2.31.0 (2.31.0)
5 pytest *
9 pipenv:serve
7 needs python 3.11""",
    ),
    "Pipfile.lock": (
        """\
{
    "_meta": {"requires": {"python_version": "3.11"}},
    "default": {
        "django": {"hashes": ["sha256:1"], "version": "==4.2.7"}
    },
    "develop": {
        "pytest": {"version": "==8.0.0"}
    }
}
""",
        """\
python
4 django ==4.2.7 (4.2.7) locked indirect
7 pytest ==8.0.0 (8.0.0) locked indirect
2 needs python 3.11""",
    ),
    "poetry.lock": (
        """\
# This file is automatically @generated by Poetry
[[package]]
name = "asgiref"
version = "3.7.2"
description = "ASGI"
optional = false
files = [
    {file = "asgiref-3.7.2.whl", hash = "sha256:1"},
]

[package.dependencies]
typing-extensions = {version = ">=4", markers = "python_version < \\"3.11\\""}
name = "not this"

[[package]]
name = "Django"
version = "4.2.7"

[package.source]
type = "legacy"

[metadata]
python-versions = "^3.10"
""",
        """\
python
3 asgiref (3.7.2) locked indirect
16 django (4.2.7) locked indirect
23 needs python ^3.10""",
    ),
    "uv.lock": (
        """\
version = 1
requires-python = ">=3.11"

[[package]]
name = "anyio"
version = "4.9.0"
source = { registry = "https://pypi.org/simple" }
dependencies = [
    { name = "idna" },
]
wheels = [
    { url = "https://example.org/anyio.whl", hash = "sha256:1" },
]

[[package]]
name = "idna"
version = "3.7"
source = { registry = "https://pypi.org/simple" }

[[package]]
name = "pytest"
version = "8.0.0"
source = { registry = "https://pypi.org/simple" }

[[package]]
name = "truekeep"
version = "0.1.0"
source = { editable = "." }
dependencies = [
    { name = "anyio" },
]

[package.dev-dependencies]
dev = [
    { name = "pytest" },
]
""",
        """\
python: truekeep 0.1.0
5 anyio (4.9.0) locked
16 idna (3.7) locked indirect
21 pytest (8.0.0) locked
2 needs python >=3.11""",
    ),
    "environment.yml": (
        """\
name: science
channels: [conda-forge]
dependencies:
  - python=3.11
  - numpy=1.26.4=py311_0
  - conda-forge::pandas>=2.0,<3
  - scipy
  - pip:
      - requests==2.31.0
""",
        """\
python: science
5 numpy =1.26.4 (1.26.4)
6 pandas >=2.0,<3
7 scipy
9 requests ==2.31.0 (2.31.0)
4 needs python =3.11""",
    ),
    "package.json": (
        """\
{
  "name": "@shop/web",
  "version": "3.0.0",
  "description": "uses \\"react\\": yes",
  "packageManager": "pnpm@8.6.0+sha256.abc",
  "engines": { "node": ">=18", "npm": "9" },
  "bin": { "shop": "./cli.js" },
  "scripts": {
    "build": "vite build",
    "test:unit": "vitest"
  },
  "dependencies": {
    "react": "^18.2.0",
    "@scope/pkg": "1.2.3",
    "local": "workspace:*"
  },
  "devDependencies": { "vite": "~5.0.1", "typescript": "5" },
  "peerDependencies": { "vue": "2 || 3" },
  "optionalDependencies": { "fsevents": "git+https://example.org/f.git" }
}
""",
        """\
npm: @shop/web 3.0.0
13 react ^18.2.0
14 @scope/pkg 1.2.3 (1.2.3)
15 local workspace:*
17 vite ~5.0.1
17 typescript 5
18 vue 2 || 3
19 fsevents git+https://example.org/f.git
9 npm:build
10 npm:test:unit
7 console:shop
6 needs node >=18
6 needs npm 9
5 needs pnpm 8.6.0""",
    ),
    "package-lock.json": (
        """\
{
  "name": "web",
  "version": "1.0.0",
  "lockfileVersion": 3,
  "packages": {
    "": {
      "dependencies": { "react": "^18.2.0" }
    },
    "node_modules/loose-envify": {
      "version": "1.4.0",
      "dependencies": { "react": "x" }
    },
    "node_modules/react": {
      "version": "18.2.0"
    },
    "node_modules/a/node_modules/react": {
      "version": "17.0.2"
    },
    "node_modules/own": { "resolved": "packages/own", "link": true },
    "packages/own": { "version": "0.0.1", "devDependencies": { "@types/node": "20" } },
    "node_modules/@types/node": { "version": "20.1.0" }
  }
}
""",
        """\
npm: web 1.0.0
9 loose-envify (1.4.0) locked indirect
13 react (18.2.0) locked
16 react (17.0.2) locked indirect
21 @types/node (20.1.0) locked""",
    ),
    "npm-shrinkwrap.json": (
        """\
{
  "name": "old", "version": "0.1.0", "lockfileVersion": 1,
  "dependencies": {
    "a": {
      "version": "1.0.0",
      "requires": { "b": "^2" },
      "dependencies": {
        "b": { "version": "2.0.0" }
      }
    },
    "c": { "version": "3.0.0" }
  }
}
""",
        """\
npm: old 0.1.0
4 a (1.0.0) locked indirect
8 b (2.0.0) locked indirect
11 c (3.0.0) locked indirect""",
    ),
    "yarn.lock": (
        """\
# yarn lockfile v1


"@babel/core@^7.0.0", "@babel/core@^7.1.0":
  version "7.22.1"
  resolved "https://registry.yarnpkg.com/x"
  dependencies:
    version "9.9.9"

lodash@^4.17.21:
  version "4.17.21"
""",
        """\
npm
4 @babel/core (7.22.1) locked indirect
10 lodash (4.17.21) locked indirect""",
    ),
    "berry/yarn.lock": (
        """\
__metadata:
  version: 6
  cacheKey: 8

"@babel/core@npm:^7.0.0, @babel/core@npm:^7.1.0":
  version: 7.22.1
  resolution: "@babel/core@npm:7.22.1"
  dependencies:
    lodash: ^4
  languageName: node

"lodash@npm:^4":
  version: 4.17.21

"web@workspace:.":
  version: 0.0.0-use.local
  resolution: "web@workspace:."
  dependencies:
    "@babel/core": ^7.0.0
  languageName: unknown
""",
        """\
npm
5 @babel/core (7.22.1) locked
12 lodash (4.17.21) locked indirect""",
    ),
    "pnpm-lock.yaml": (
        """\
lockfileVersion: '9.0'

importers:

  .:
    dependencies:
      react:
        specifier: ^18.2.0
        version: 18.2.0
    devDependencies:
      '@types/node':
        specifier: ^20
        version: 20.1.0

packages:

  '@types/node@20.1.0':
    resolution: {integrity: sha512-x}

  loose-envify@1.4.0:
    resolution: {integrity: sha512-y}
    hasBin: true

  react@18.2.0:
    resolution: {integrity: sha512-z}

snapshots:

  '@types/node@20.1.0': {}

  react-dom@18.2.0(react@18.2.0):
    dependencies:
      react: 18.2.0
""",
        """\
npm
17 @types/node (20.1.0) locked
20 loose-envify (1.4.0) locked indirect
24 react (18.2.0) locked
31 react-dom (18.2.0) locked indirect""",
    ),
    "v5/pnpm-lock.yaml": (
        """\
lockfileVersion: 5.4
specifiers:
  react: ^18.2.0
dependencies:
  react: 18.2.0
packages:
  /@babel/core/7.22.1:
    resolution: {integrity: sha512-x}
  /react/18.2.0_abc:
    dev: false
""",
        """\
npm
7 @babel/core (7.22.1) locked indirect
9 react (18.2.0) locked""",
    ),
    "pnpm-workspace.yaml": (
        """\
packages:
  - 'packages/*'
catalog:
  react: ^18.3.1 # a: comment
catalogs:
  old:
    "@scope/x": 1.0.0
""",
        """\
npm
4 react ^18.3.1
7 @scope/x 1.0.0 (1.0.0)""",
    ),
    "bun.lock": (
        """\
{
  "lockfileVersion": 1,
  "workspaces": {
    "": {
      "name": "web",
      "dependencies": { "react": "^18.2.0", },
    },
  },
  "packages": {
    "loose-envify": ["loose-envify@1.4.0", "", { "bin": "x" }, "sha512-x"],

    "react": ["react@18.2.0", "", { "dependencies": { "loose-envify": "^1.1.0" } }, "sha512-y"],
  }
}
""",
        """\
npm
10 loose-envify (1.4.0) locked indirect
12 react (18.2.0) locked""",
    ),
    ".nvmrc": ("v18.17.0\n", "npm\n1 needs node 18.17.0"),
    ".node-version": ("20\n", "npm\n1 needs node 20"),
    ".python-version": ("# ours\n3.11.4\n3.10\n", "python\n2 needs python 3.11.4"),
    ".ruby-version": ("ruby-3.2.2\n", "ruby\n1 needs ruby 3.2.2"),
    ".tool-versions": (
        "nodejs 18.17.0\npython 3.11.4 3.10.0 # two\n# golang 1.1\njava temurin-17.0.1+12\n",
        "runtime\n1 needs node 18.17.0\n2 needs python 3.11.4\n4 needs java 17.0.1+12",
    ),
    "rust-toolchain": ("1.75.0\n", "rust\n1 needs rust 1.75.0"),
    "rust-toolchain.toml": ('[toolchain]\nchannel = "1.76"\n', "rust\n2 needs rust 1.76"),
    "Cargo.toml": (
        """\
[package]
name = "rg"
version = "14.0.3"
rust-version = "1.74"
[[bin]]
bench = false
name = "rg"
[dependencies]
anyhow = "1.0.75"
bstr = { version = "=1.7.0", default-features = false }
grep = { path = "crates/grep" }
serde.workspace = true
other = { package = "real-name", version = "2" }
[target.'cfg(unix)'.dependencies]
libc = "0.2"
[dev-dependencies.serde_json]
version = "1"
[workspace.dependencies]
tokio = "1.35"
[build-dependencies]
cc = "1"
""",
        """\
rust: rg 14.0.3
9 anyhow 1.0.75
10 bstr =1.7.0 (1.7.0)
11 grep path:crates/grep
12 serde workspace:true
13 real-name 2
16 serde-json 1
21 cc 1
19 tokio 1.35
15 libc 0.2
7 cargo:rg
4 needs rust 1.74""",
    ),
    ".cargo/config.toml": ('[alias]\nxtask = "run -p xtask --"\n', "rust\n2 cargo:xtask"),
    "Cargo.lock": (
        """\
version = 3

[[package]]
name = "aho-corasick"
version = "1.1.2"
source = "registry+https://github.com/rust-lang/crates.io-index"
checksum = "b2"
dependencies = [
 "memchr",
]

[[package]]
name = "memchr"
version = "2.6.4"
source = "registry+https://github.com/rust-lang/crates.io-index"

[[package]]
name = "rg"
version = "14.0.3"
dependencies = [
 "aho-corasick 1.1.2",
]
""",
        """\
rust: rg 14.0.3
4 aho-corasick (1.1.2) locked
13 memchr (2.6.4) locked indirect""",
    ),
    "go.mod": (
        """\
module github.com/example/shop

go 1.22

toolchain go1.22.3

require github.com/spf13/cobra v1.8.0

require (
	github.com/gin-gonic/gin v1.9.1
	golang.org/x/sys v0.15.0 // indirect
	// github.com/nothing/here v1.0.0
)

replace github.com/gin-gonic/gin => ../gin

exclude (
	github.com/old/old v1.0.0
)
""",
        """\
go: github.com/example/shop
7 github.com/spf13/cobra v1.8.0 (1.8.0)
10 github.com/gin-gonic/gin v1.9.1 (1.9.1)
11 golang.org/x/sys v0.15.0 (0.15.0) indirect
3 needs go 1.22
5 needs go 1.22.3""",
    ),
    "go.sum": (
        """\
github.com/gin-gonic/gin v1.9.1 h1:4idEAncQnU5cB7BeOkPtxjfCSye0AAm1R0RVIqJ+Jmg=
github.com/gin-gonic/gin v1.9.1/go.mod h1:hPrL7YrpYKXt5YId3A/Tnip5kqbEAP+KLuI3SUcPTeU=
""",
        "go\n1 github.com/gin-gonic/gin v1.9.1 (1.9.1) locked indirect",
    ),
    "Gemfile": (
        """\
source "https://rubygems.org"
ruby ">= 3.1", '< 4', engine: "jruby"
gem "rails", "~> 7.0", ">= 7.0.4"
gem 'pg', '1.5.4'
# gem "old"
group :test do
  gem("rspec-rails", require: false)
  gem "own", path: "../own"
end
""",
        """\
ruby
3 rails ~> 7.0, >= 7.0.4
4 pg 1.5.4 (1.5.4)
7 rspec-rails
8 own
2 needs ruby >= 3.1, < 4""",
    ),
    "Gemfile.lock": (
        """\
PATH
  remote: .
  specs:
    shop (0.1.0)
      rack (>= 2)

GEM
  remote: https://rubygems.org/
  specs:
    nokogiri (1.15.4-x86_64-linux)
      racc (~> 1.4)
    racc (1.7.1)
    rails (7.0.8)

DEPENDENCIES
  nokogiri
  rails (~> 7.0)
  shop!

RUBY VERSION
   ruby 3.2.2p53

BUNDLED WITH
   2.4.10
""",
        """\
ruby: shop 0.1.0
10 nokogiri (1.15.4) locked
12 racc (1.7.1) locked indirect
13 rails (7.0.8) locked
21 needs ruby 3.2.2
24 needs bundler 2.4.10""",
    ),
    "shop.gemspec": (
        """\
Gem::Specification.new 'shop', version do |s|
  # s.name = 'other'
  s.version = "1.2.3"
  s.required_ruby_version = '>= 2.7'
  s.executables << 'shop'
  s.add_dependency 'rack', '~> 3.0', '>= 3.0.1'
  s.add_development_dependency("rspec", ["~> 3.12"])
end
""",
        """\
ruby: shop 1.2.3
6 rack ~> 3.0, >= 3.0.1
7 rspec ~> 3.12
5 console:shop
4 needs ruby >= 2.7""",
    ),
    "composer.json": (
        """\
{
    "name": "shop/app",
    "require": {
        "php": "^8.1",
        "ext-json": "*",
        "laravel/framework": "^10.10"
    },
    "require-dev": { "phpunit/phpunit": "10.1.0" },
    "scripts": { "test": "phpunit" }
}
""",
        """\
php: shop/app
6 laravel/framework ^10.10
8 phpunit/phpunit 10.1.0 (10.1.0)
9 composer:test
4 needs php ^8.1""",
    ),
    "composer.lock": (
        """\
{
    "packages": [
        {
            "name": "laravel/framework",
            "version": "v10.13.5",
            "source": { "name": "not/this" }
        }
    ],
    "packages-dev": [
        { "name": "own/dev", "version": "dev-main" }
    ],
    "platform": { "php": "^8.1" }
}
""",
        """\
php
4 laravel/framework (10.13.5) locked indirect
10 own/dev locked indirect
12 needs php ^8.1""",
    ),
    "pom.xml": (
        """\
<?xml version="1.0" encoding="UTF-8"?>
<project xmlns="http://maven.apache.org/POM/4.0.0">
  <parent>
    <groupId>org.springframework.boot</groupId>
    <artifactId>spring-boot-starter-parent</artifactId>
    <version>3.2.0</version>
  </parent>
  <artifactId>shop</artifactId>
  <version>1.0-SNAPSHOT</version>
  <properties>
    <java.version>17</java.version>
    <guava.version>31.1-jre</guava.version>
  </properties>
  <!-- <dependency><artifactId>nothing</artifactId></dependency> -->
  <dependencies>
    <dependency>
      <groupId>com.google.guava</groupId>
      <artifactId>guava</artifactId>
      <version>${guava.version}</version>
      <exclusions><exclusion><artifactId>excluded</artifactId></exclusion></exclusions>
    </dependency>
    <dependency>
      <groupId>junit</groupId>
      <artifactId>junit</artifactId>
      <version>[4.12,5)</version>
    </dependency>
  </dependencies>
  <build><plugins><plugin>
    <artifactId>maven-jar-plugin</artifactId>
  </plugin></plugins></build>
</project>
""",
        """\
java: shop 1.0-SNAPSHOT
5 org.springframework.boot:spring-boot-starter-parent 3.2.0 (3.2.0)
18 com.google.guava:guava ${guava.version} (31.1-jre)
24 junit:junit [4.12,5)
29 org.apache.maven.plugins:maven-jar-plugin
11 needs java 17""",
    ),
    "build.gradle": (
        """\
plugins {
    id 'java'
    id 'org.springframework.boot' version '3.2.0'
}
version = '0.0.1'
sourceCompatibility = '17'
ext.guavaVersion = '31.1-jre'
dependencies {
    implementation "com.google.guava:guava:$guavaVersion"
    implementation 'org.springframework.boot:spring-boot-starter-web'
    // implementation 'org.example:nothing:1.0'
    testImplementation group: 'junit', name: 'junit', version: '4.13.2'
}
task hello {
}
tasks.test {
}
tasks.register('bye') {
}
""",
        """\
java: 0.0.1
2 java
3 org.springframework.boot 3.2.0 (3.2.0)
9 com.google.guava:guava $guavaVersion (31.1-jre)
10 org.springframework.boot:spring-boot-starter-web
12 junit:junit 4.13.2 (4.13.2)
14 gradle:hello
18 gradle:bye
6 needs java 17""",
    ),
    "build.gradle.kts": (
        """\
plugins {
    kotlin("jvm") version "1.9.20"
    id("com.example.plugin") version "2.0"
}
val ktor = "2.3.6"
dependencies {
    implementation(platform("org.example:bom:1.0"))
    testImplementation("io.ktor:ktor-server-tests:${ktor}")
}
kotlin { jvmToolchain(21) }
val integration by tasks.registering(Test::class) {
}
""",
        """\
java
2 kotlin 1.9.20 (1.9.20)
3 com.example.plugin 2.0 (2.0)
7 org.example:bom 1.0 (1.0)
8 io.ktor:ktor-server-tests ${ktor} (2.3.6)
11 gradle:integration
10 needs java 21""",
    ),
    "gradle/libs.versions.toml": (
        """\
[versions]
ktor = "2.3.6"
[libraries]
ktor-core = { module = "io.ktor:ktor-server-core", version.ref = "ktor" }
junit = { group = "junit", name = "junit", version = "4.13.2" }
guava = "com.google.guava:guava:31.1-jre"
[plugins]
shadow = { id = "com.github.johnrengelman.shadow", version = "8.1.1" }
""",
        """\
java
4 io.ktor:ktor-server-core 2.3.6 (2.3.6)
5 junit:junit 4.13.2 (4.13.2)
6 com.google.guava:guava 31.1-jre (31.1-jre)
8 com.github.johnrengelman.shadow 8.1.1 (8.1.1)""",
    ),
    "src/Shop.csproj": (
        """\
<Project Sdk="Microsoft.NET.Sdk">
  <PropertyGroup>
    <TargetFrameworks>net6.0;net8.0</TargetFrameworks>
    <PackageId>Shop</PackageId>
    <Version>1.4.0</Version>
    <JsonVersion>13.0.3</JsonVersion>
  </PropertyGroup>
  <ItemGroup>
    <PackageReference Include="Newtonsoft.Json" Version="$(JsonVersion)" />
    <PackageReference Include="Serilog">
      <Version>[3.0,4.0)</Version>
    </PackageReference>
    <!-- <PackageReference Include="Nothing" Version="1" /> -->
  </ItemGroup>
</Project>
""",
        """\
dotnet: Shop 1.4.0
9 newtonsoft.json $(JsonVersion) (13.0.3)
10 serilog [3.0,4.0)
3 needs dotnet 6.0
3 needs dotnet 8.0""",
    ),
    "Directory.Packages.props": (
        '<Project>\n  <ItemGroup>\n    <PackageVersion Include="Moq" Version="4.20.0" />\n  </ItemGroup>\n</Project>\n',
        "dotnet\n3 moq 4.20.0 (4.20.0)",
    ),
    "mix.exs": (
        """\
defmodule Shop.MixProject do
  @version "0.1.0"
  def project do
    [
      app: :shop,
      version: @version,
      elixir: "~> 1.14",
      aliases: aliases(),
      deps: deps()
    ]
  end

  defp deps do
    [
      {:phoenix, "~> 1.7.10"},
      # {:nothing, "~> 1.0"},
      {:own, path: "../own"}
    ]
  end

  defp aliases do
    [
      setup: ["deps.get", "ecto.setup"],
      "ecto.setup": ["ecto.create"]
    ]
  end
end
""",
        """\
elixir: shop 0.1.0
15 phoenix ~> 1.7.10
17 own
23 mix:setup
24 mix:ecto.setup
7 needs elixir ~> 1.14""",
    ),
    "mix.lock": (
        '%{\n  "phoenix": {:hex, :phoenix, "1.7.10", "02189140a61b", [:mix], [], "hexpm", "cf784932"},\n}\n',
        "elixir\n2 phoenix (1.7.10) locked indirect",
    ),
    "pubspec.yaml": (
        """\
name: shop
version: 1.0.0+1
environment:
  sdk: '>=3.0.0 <4.0.0'
dependencies:
  flutter:
    sdk: flutter
  http: ^1.1.0
  path: 1.8.3
dev_dependencies:
  lints: any
""",
        """\
dart: shop 1.0.0+1
6 flutter sdk:flutter
8 http ^1.1.0
9 path 1.8.3 (1.8.3)
11 lints any
4 needs dart >=3.0.0 <4.0.0""",
    ),
    "pubspec.lock": (
        """\
packages:
  http:
    dependency: "direct main"
    version: "1.1.0"
  async:
    dependency: transitive
    version: "2.11.0"
sdks:
  dart: ">=3.0.0 <4.0.0"
""",
        """\
dart
2 http (1.1.0) locked
5 async (2.11.0) locked indirect
9 needs dart >=3.0.0 <4.0.0""",
    ),
    "Package.swift": (
        """\
// swift-tools-version:5.9
import PackageDescription
let package = Package(
    name: "Shop",
    dependencies: [
        .package(url: "https://github.com/apple/swift-nio.git", from: "2.62.0"),
        .package(url: "https://github.com/Alamofire/Alamofire", exact: "5.8.1"),
        .package(url: "https://github.com/a/b.git", .upToNextMinor(from: "1.2.0")),
        .package(url: "https://github.com/a/c.git", "1.0.0"..<"3.0.0"),
        .package(path: "../Own"),
    ]
)
""",
        """\
swift: Shop
6 swift-nio from: 2.62.0
7 alamofire 5.8.1 (5.8.1)
8 b ~1.2.0
9 c 1.0.0..<3.0.0
10 own path:../Own
1 needs swift 5.9""",
    ),
    "Package.resolved": (
        """\
{
  "pins" : [
    {
      "identity" : "swift-nio",
      "state" : { "revision" : "x", "version" : "2.62.0" }
    }
  ],
  "version" : 2
}
""",
        "swift\n4 swift-nio (2.62.0) locked indirect",
    ),
    "Makefile": (
        """\
VERSION := 1:2
CC ?= gcc
URL = http://example.org
.PHONY: all clean \\
	ghost
.DEFAULT_GOAL := all
include other.mk

all: build ## everything
build test: main.o
	echo hello: world
%.o: %.c
	cc $<
$(OUT): x
clean::
	rm -f *.o
ifeq ($(A:b=c),d)
dist: ; tar c .
endif
define RULE
inner: x
endef
all: CFLAGS += -g
export PATH := a:b
docs/index.html: docs
a.tar b.tar &: c
NAMES = one \\
  two
UNKNOWN = $(wildcard *.c)
$(NAMES) $(UNKNOWN): x
$(error The '$(NAMES)' was not found: x)
""",
        """\
make
9 make:all
10 make:build
10 make:test
15 make:clean
18 make:dist
25 make:docs/index.html
26 make:a.tar
26 make:b.tar
30 make:one
30 make:two
5 make:ghost""",
    ),
    "justfile": (
        """\
set shell := ["bash", "-c"]
version := "1.2"
export PORT := "80"
alias t := test

# builds
@build target='debug: x' *args: deps
    cargo build
test:
    cargo test
[private]
_deps:
""",
        """\
just
4 just:t
7 just:build
9 just:test
12 just:_deps""",
    ),
    "Taskfile.yml": (
        """\
version: '3'
tasks:
  default:
    cmds:
      - task: build
  db:migrate:
    aliases: [migrate]
    cmds:
      - |
        tasks:
          not: this
  "build": go build
""",
        """\
task
3 task:default
6 task:db:migrate
7 task:migrate
12 task:build""",
    ),
    "Rakefile": (
        """\
require "rake/testtask"
Rake::TestTask.new(:unit) do |t|
end
task default: [:unit]
namespace :db do
  desc "Migrate"
  task :migrate => :environment do
  end
  namespace "seed" do
    task "all"
  end
end
task :console, [:env]
""",
        """\
rake
2 rake:unit
4 rake:default
7 rake:db:migrate
10 rake:db:seed:all
13 rake:console""",
    ),
    "tox.ini": (
        """\
[tox]
envlist =
    py{311,312}-django{42,50}
    lint, docs
[testenv]
deps =
    pytest>=7
    django42: Django>=4.2,<5
    -r requirements.txt
[testenv:format]
commands = ruff format
""",
        """\
python
7 pytest >=7
8 django >=4.2,<5
3 tox:py311-django42
3 tox:py311-django50
3 tox:py312-django42
3 tox:py312-django50
4 tox:lint
4 tox:docs
10 tox:format""",
    ),
    "noxfile.py": (
        """\
import nox
@nox.session(python=["3.11"])
def tests(session):
    pass
@nox.session(name="type-check")
def mypy(session):
    pass
def helper():
    pass
""",
        "python\n3 nox:tests\n5 nox:type-check",
    ),
    "Dockerfile": (
        """\
ARG PY=3.12
FROM --platform=linux/amd64 python:3.11-slim AS build
FROM python:${PY}
FROM registry.example.org:5000/team/app:1.2@sha256:abc
FROM build
FROM scratch
EXPOSE 8000 9000/udp
expose 5000-5002
""",
        """\
docker
2 python 3.11-slim (3.11)
3 python ${PY} (3.12)
4 registry.example.org:5000/team/app 1.2 (1.2)
7 port 8000
7 port 9000
8 port 5000
8 port 5001
8 port 5002""",
    ),
    "docker-compose.prod.yml": (
        """\
version: "3.8"
services:
  web: &web
    build: .
    container_name: shop-web
    ports:
      - "8080:80"
      - 127.0.0.1:9443:443/tcp
      - "${PORT:-3000}:3000"
      - target: 53
        published: "5353"
        protocol: udp
  db:
    image: "postgres:15.4-alpine"  # the base
    expose: [5432]
    command: >
      postgres
      ports: none
volumes:
  data:
""",
        """\
docker
14 postgres 15.4-alpine (15.4)
7 port 8080
7 port 80
8 port 9443
8 port 443
9 port 3000
10 port 53
11 port 5353
15 port 5432
3 service web
5 service shop-web
13 service db""",
    ),
    "k8s/web.yaml": (
        """\
apiVersion: apps/v1
kind: Deployment
metadata:
  name: web
spec:
  template:
    spec:
      containers:
        - name: app
          image: nginx:1.25
          ports:
            - containerPort: 8080
---
apiVersion: v1
kind: Service
metadata:
  name: web-service
spec:
  ports:
    - port: 80
      targetPort: {{ .Values.port }}
""",
        """\
docker
10 nginx 1.25 (1.25)
12 port 8080
20 port 80
4 service web
17 service web-service""",
    ),
    "Chart.yaml": (
        'apiVersion: v2\nname: shop\nversion: 0.1.0\ndependencies:\n  - name: redis\n    version: "~17.0"\n',
        "helm: shop 0.1.0\n5 redis ~17.0",
    ),
    "Procfile": ("web: gunicorn app\nworker: celery\n", "procfile\n1 procfile:web\n2 procfile:worker"),
    "VERSION": ("v1.4.2-rc1\n", "version: 1.4.2-rc1"),
    "src/shop/_version.py": ('# made\n__version__ = version = "1.2.3.dev4"\n', "python: 1.2.3.dev4"),
    "src/shop/__about__.py": ("VERSION = (4, 2, 0)\n", "python: 4.2.0"),
    "src/shop/__init__.py": ('"""Shop."""\n__version__: str = "0.9"\n', "python: 0.9"),
}


def _rendered(path: str) -> str:
    return "\n".join(line.replace(":  ", ": ") for line in told(read(path, SAMPLES[path][0])))


@pytest.mark.parametrize("path", SAMPLES)
def test_each_format_says_what_it_says(path: str) -> None:
    assert _rendered(path) == SAMPLES[path][1]
    assert read(path, SAMPLES[path][0]).problem == ""
    assert is_manifest(path) or path.endswith("__init__.py")


@pytest.mark.parametrize("path", SAMPLES)
@pytest.mark.parametrize("change", ["as it is", "windows", "pushed down", "marked", "cut"])
def test_every_line_holds_what_is_reported_of_it(path: str, change: str) -> None:
    text = SAMPLES[path][0]
    data = text.encode()
    if change == "windows":
        data = text.replace("\n", "\r\n").encode()
    elif change == "pushed down":
        data = ("\n" * 7 + text).encode()
    elif change == "marked":
        data = b"\xef\xbb\xbf" + data
    elif change == "cut":
        data = data[: len(data) * 2 // 3]
    manifest = read_manifest(path, data)
    lines = data.decode("utf-8-sig").split("\n")
    if change in ("windows", "marked"):
        assert told(manifest) == told(read(path, text))
    for package in manifest.packages:
        name = package.name.rpartition(":")[2] if manifest.ecosystem == "java" else package.name
        assert normalize_name(name, "python") in normalize_name(lines[package.line - 1], "python")
    for script in manifest.scripts:
        line_of = lines[script.line - 1]
        assert script.name.rpartition(":")[2] in line_of or "{" in line_of or "$(" in line_of  # names that are made up
    for _, spec, line in manifest.runtimes:
        assert all(part in lines[line - 1] for part in spec.split(", "))
    for service, line in manifest.services:
        assert service in lines[line - 1]
    for port, line in manifest.ports:
        assert str(port)[:3] in lines[line - 1]


def test_minified_json_is_read_too() -> None:
    for path in ("package.json", "package-lock.json", "composer.lock", "Pipfile.lock"):
        flat = json.dumps(json.loads(SAMPLES[path][0]), separators=(",", ":"))
        plain, small = read(path, SAMPLES[path][0]), read(path, flat)
        assert [item._replace(line=1) for item in plain.packages] == list(small.packages)
        assert [item._replace(line=1) for item in plain.scripts] == list(small.scripts)


@pytest.mark.parametrize(
    "path",
    [
        "a/b/requirements-dev.txt", "dev_requirements.txt", "requirements/base.in", "constraints.txt", "compose.yaml",
        "docker-compose.override.yml", "compose.dev.yml", "Dockerfile.prod", "api.Dockerfile", "Containerfile",
        "GNUmakefile", "rules.mk", "x.gemspec", "lib/tasks/db.rake", "Taskfile.yaml", "App.fsproj", "version.txt",
        "pkg/version.py", "gradle/libs.versions.toml", "gradle/wrapper/gradle-wrapper.properties", "deploy/k8s/app.yml",
        "helm/x/Chart.yaml",
    ],
)  # fmt: skip
def test_names_that_are_manifests(path: str) -> None:
    assert is_manifest(path)


@pytest.mark.parametrize(
    "path",
    [
        "", "/", "README.md", "src/main.py", "src/pkg/__init__.py", "notes.txt", "config.yaml", "data.json", "lib.rs",
        "x.toml", ".github/workflows/ci.yml", "Makefile.py", "package.json.bak", "my-package.json", "requirements.md",
    ],
)  # fmt: skip
def test_names_that_are_not(path: str) -> None:
    assert not is_manifest(path)
    assert read_manifest(path, b"x").packages == ()


def test_every_registered_reader_exists() -> None:
    for _, reader in {**BY_NAME, **BY_EXTENSION}.values():
        module, _, function = reader.partition(":")
        assert load_reader(reader).__name__ == function
        assert load_reader(reader).__module__ == f"truekeep.verify.manifests.{module}"


@pytest.mark.parametrize(
    ("path", "ecosystem", "function"),
    [
        ("a/pyproject.toml", "python", "read_pyproject"),
        ("requirements/dev.txt", "python", "read_requirements"),
        ("constraints.in", "python", "read_requirements"),
        ("environment-gpu.yml", "python", "read_environment"),
        ("ci/test-environment.yaml", "python", "read_environment"),
        ("pylock.prod.toml", "python", "read_toml_lock"),
        ("Cargo.lock", "rust", "read_toml_lock"),
        (".cargo/config.toml", "rust", "read_cargo"),
        ("rust-toolchain.toml", "rust", "read_rust_toolchain"),
        ("gradle/libs.versions.toml", "java", "read_version_catalog"),
        ("app/build.gradle.kts", "java", "read_gradle"),
        ("gradle/publish.gradle", "java", "read_gradle"),
        ("src/App.fsproj", "dotnet", "read_msbuild"),
        ("docker-compose.prod.yml", "docker", "read_compose"),
        ("compose.yaml", "docker", "read_compose"),
        ("Dockerfile.prod", "docker", "read_dockerfile"),
        ("api.Dockerfile", "docker", "read_dockerfile"),
        ("deploy/k8s/app.yml", "kubernetes", "read_kubernetes"),
        ("deployment-web.yaml", "kubernetes", "read_kubernetes"),
        ("helm/shop/Chart.yaml", "helm", "read_chart"),
        ("Makefile.inc", "make", "read_makefile"),
        ("rules.mk", "make", "read_makefile"),
        ("Taskfile.dist.yml", "task", "read_taskfile"),
        ("lib/tasks/db.rake", "rake", "read_rakefile"),
        (".nvmrc", "npm", "read_runtime"),
        (".tool-versions", "runtime", "read_tool_versions"),
        ("Package.resolved", "swift", "read_package_resolved"),
    ],
)
def test_the_right_reader_is_found_for_a_path(path: str, ecosystem: str, function: str) -> None:
    known = find_reader(path)
    assert known is not None
    assert (known[0], load_reader(known[1]).__name__) == (ecosystem, function)


def test_asking_for_every_path_of_a_repository_is_little_work() -> None:
    paths = [f"src/module{number % 97}/deep/file{number}.{end}" for number in range(2_000) for end in ("py", "yaml")]
    assert not any(map(is_manifest, paths))
    assert count_work(lambda: [is_manifest(path) for path in paths]) < 60 * len(paths)


# Versions.


def a_package(spec: str = "", version: str = "", *, name: str = "x", locked: bool = False) -> Package:
    return Package(name, spec, version, 1, locked, True)


@pytest.mark.parametrize(
    ("claimed", "spec", "expected"),
    [
        ("4.2", ">=4.2,<5", True),
        ("4", ">=4.2,<5", True),
        ("4.1", ">=4.2,<5", False),
        ("5", ">=4.2,<5", False),
        ("v4.2", ">=4.2", True),
        ("18", "^18.2.0", True),
        ("18.1", "^18.2.0", False),
        ("17", "^18.2.0", False),
        ("0.3", "^0.2.3", False),
        ("0.2", "^0.2.3", True),
        ("0.0.4", "^0.0.3", False),
        ("1.2.9", "~1.2.3", True),
        ("1.3", "~1.2.3", False),
        ("1.3", "~1", True),
        ("1.5", "~> 1.2", True),
        ("2", "~> 1.2", False),
        ("1.3", "~> 1.2.3", False),
        ("7.1", "~> 7.0, >= 7.0.4", True),
        ("7.0.3", "~> 7.0, >= 7.0.4", False),
        ("1.4", "~=1.2", True),
        ("1.3", "~=1.2.3", False),
        ("1.26.4", "==1.26.*", True),
        ("1.27", "==1.26.*", False),
        ("3", "2 || 3", True),
        ("4", "2 || 3", False),
        ("1.4", "1.2 - 1.4", True),
        ("1.5", "1.2 - 1.4", False),
        ("1.2", "1.x", True),
        ("2.0", "1.x", False),
        ("1.2", ">=1.0 <2.0", True),
        ("1.5.7", ">=1.5.6, !=1.5.7", False),
        ("1.5", ">=1.5.6, !=1.5.7", True),
        ("1.0.80", "1.0.75", True),  # cargo
        ("2", "1.0.75", False),
        ("1.7", "=1.7.0", True),
        ("4.13", "[4.12,5)", True),
        ("5.0", "[4.12,5)", False),
        ("1.0", "(,1.0]", True),
        ("31.2", "31.+", True),
        ("32", "31.+", False),
        ("2.70", "from: 2.62.0", True),
        ("3", "from: 2.62.0", False),
        ("2.9", "1.0.0..<3.0.0", True),
        ("3.0", "1.0.0..<3.0.0", False),
        ("18", "npm:react@^18.1.0", True),
        ("1.9", ">= 1.2 and < 2.0", True),
        ("8.2", "^8.1", True),
        ("1.5", "^1.0@beta", True),
        ("4.2", "<4", False),
        ("4.2", "<=4.2", True),
        ("4.2", ">4.2", True),
        ("4.1", ">4.2", False),
        ("4.2", "*", None),
        ("4.2", "", None),
        ("4.2", "latest", None),
        ("4.2", "any", None),
        ("4.2", "workspace:*", None),
        ("4.2", "workspace:^4.2", None),
        ("4.2", "git+https://example.org/x.git#v4.2", None),
        ("4.2", "@ https://example.org/x.zip", None),
        ("4.2", "file:../x", None),
        ("4.2", "path:../x", None),
        ("4.2", "../x-4.2", None),
        ("4.2", "${version}", None),
        ("4.2", "$version", None),
        ("4.2", "user/repository", None),
        ("4.2", ">=4.2 with words", None),
        ("4.2", "lts/*", None),
        ("words", ">=4.2", None),
        ("", ">=4.2", None),
        (">=3.11", ">=3.11", True),
        (">=3.11", ">=3.11,<4", True),
        (">=3.10", ">=3.11", False),
        (">=3.12", ">=3.11", False),
        (">=18", "^18.0.0", True),
        ("==4.2.1", ">=4.2", False),
        ("==4.2.1", "", None),
    ],
)  # fmt: skip
def test_a_claimed_version_against_a_range(claimed: str, spec: str, expected: bool | None) -> None:
    assert satisfies(claimed, a_package(spec)) is expected


@pytest.mark.parametrize(
    ("claimed", "found", "expected"),
    [
        ("4.2", a_package("==4.2.9", "4.2.9"), True),
        ("==4.2.9", a_package("==4.2.9", "4.2.9"), True),
        ("==4.2.8", a_package("", "4.2.9", locked=True), False),
        (">=4.0", a_package("", "4.2.9", locked=True), True),
        (">=4.10", a_package("", "4.2.9", locked=True), False),
        ("4.2.1", a_package("==4.2.9", "4.2.9"), False),
        ("4.20", a_package("==4.2.9", "4.2.9"), False),
        ("4", a_package("", "4.2.9", locked=True), True),
        ("4.x", a_package("", "4.2.9", locked=True), True),
        ("4.2.1", a_package("", "4.2", locked=True), False),
        ("4.2.0", a_package("", "4.2", locked=True), True),
        ("3.11.4", a_package("3.11-slim", "3.11"), None),
        ("3.12.4", a_package("3.11-slim", "3.11"), False),
        ("31.1", a_package("31.1-jre", "31.1-jre"), True),
        ("5.0.0rc2", a_package("", "5.0.0rc1", locked=True), False),
        ("5.0.0-rc.1", a_package("", "5.0.0-rc.1", locked=True), True),
        ("1.0", a_package("v1.0.3", "v1.0.3"), True),
        ("4.2", a_package("", "main", locked=True), None),
        ("1.2", a_package("~1.2", name="composer/like"), True),
        ("1.9", a_package("~1.2", name="composer/like"), True),
        ("1.9", a_package("~1.2", name="@npm/like"), False),
    ],
)
def test_a_claimed_version_against_a_pin(claimed: str, found: Package, expected: bool | None) -> None:
    assert satisfies(claimed, found) is expected


def test_runtimes_are_compared_like_packages() -> None:
    assert satisfies("3.11", runtime_package(("python", "3.11.4", 1))) is True
    assert satisfies("3.12", runtime_package(("python", "3.11.4", 1))) is False
    assert satisfies("3.12", runtime_package(("python", ">=3.11", 1))) is True
    assert satisfies("18", runtime_package(("node", "18", 1))) is True
    assert satisfies("20", runtime_package(("node", "18", 1))) is False
    assert satisfies("20", runtime_package(("node", "lts/*", 1))) is None
    assert satisfies("1.21", runtime_package(("go", "1.22", 1))) is False
    assert satisfies("1.23", runtime_package(("go", "1.22", 1))) is True
    assert satisfies("8", runtime_package(("java", "1.8", 1))) is True


@pytest.mark.slow
@given(st.text(max_size=30), st.text(max_size=30), st.text(max_size=12), st.booleans())
@settings(max_examples=500, deadline=None)
def test_comparing_versions_never_raises(claimed: str, spec: str, version: str, is_locked: bool) -> None:
    assert satisfies(claimed, Package("x", spec, version, 1, is_locked, True)) in (True, False, None)


_NUMBERS = st.lists(st.integers(0, 30), min_size=1, max_size=4).map(lambda parts: ".".join(map(str, parts)))


@pytest.mark.slow
@given(_NUMBERS, _NUMBERS, st.sampled_from(["==", ">=", "<=", "~=", "!=", "<", ">"]))
@settings(max_examples=500, deadline=None)
def test_ranges_agree_with_packaging(claimed: str, other: str, operator: str) -> None:
    """A full version is in the range, by the reader that pip has: then it must agree here."""
    from packaging.specifiers import InvalidSpecifier, SpecifierSet

    try:
        specifiers = SpecifierSet(operator + other)
    except InvalidSpecifier:
        return
    if claimed in specifiers:
        assert satisfies(claimed, a_package(operator + other)) is True
    elif claimed.count(".") >= 2:
        assert satisfies(claimed, a_package(operator + other)) is False


# Names.


@pytest.mark.parametrize(
    ("claimed", "name", "ecosystem", "expected"),
    [
        ("Ruamel.YAML", "ruamel-yaml", "python", True),
        ("uvicorn[standard]", "uvicorn", "python", True),
        ("django", "django-filter", "python", False),
        ("React", "react", "npm", True),
        ("Next.js", "next", "npm", True),
        ("NextJS", "next", "npm", True),
        ("chart", "chart.js", "npm", True),
        ("@scope/pkg", "@scope/pkg", "npm", True),
        ("pkg", "@scope/pkg", "npm", False),
        ("Angular", "@angular/core", "npm", True),
        ("js", "", "npm", False),
        ("serde_json", "serde-json", "rust", True),
        ("cobra", "github.com/spf13/cobra", "go", True),
        ("spf13/cobra", "github.com/spf13/cobra", "go", True),
        ("chi", "github.com/go-chi/chi/v5", "go", True),
        ("yaml", "gopkg.in/yaml.v3", "go", True),
        ("bra", "github.com/spf13/cobra", "go", False),
        ("guava", "com.google.guava:guava", "java", True),
        ("com.google.guava:guava", "com.google.guava:guava", "java", True),
        ("google", "com.google.guava:guava", "java", False),
        ("Laravel", "laravel/framework", "php", True),
        ("phpunit/phpunit", "phpunit/phpunit", "php", True),
        ("Newtonsoft.Json", "newtonsoft.json", "dotnet", True),
        ("postgres", "postgres", "docker", True),
        ("app", "registry.example.org:5000/team/app", "docker", True),
        ("https://github.com/apple/swift-nio.git", "swift-nio", "swift", True),
        ("rails", "rails", "ruby", True),
        ("", "x", "npm", False),
        ("`x`", "x", "helm", True),
    ],
)  # fmt: skip
def test_which_words_mean_a_package(claimed: str, name: str, ecosystem: str, expected: bool) -> None:
    assert is_same_package(claimed, name, ecosystem) is expected


# Hostile files.

PATHS = [
    *SAMPLES,
    "compose.yaml",
    "settings.gradle",
    "x.mk",
    "packages.config",
    "global.json",
    "go.work",
    "version.txt",
]
MEGABYTE = 1 << 20


@pytest.mark.slow
@given(st.sampled_from(PATHS), st.binary(max_size=300))
@settings(max_examples=400, deadline=None)
def test_bytes_never_raise(path: str, data: bytes) -> None:
    assert "bug" not in read_manifest(path, data).problem


@pytest.mark.slow
@given(st.sampled_from(PATHS), st.text(st.sampled_from("{}[]()<>\"'`\\\n\t :=,.#-/@$&|!*aev10"), max_size=200))
@settings(max_examples=1500, deadline=None)
def test_signs_never_raise(path: str, text: str) -> None:
    manifest = read(path, text)
    assert "bug" not in manifest.problem
    assert all(0 < package.line <= text.count("\n") + 1 for package in manifest.packages)


@pytest.mark.slow
@given(st.sampled_from(list(SAMPLES)), st.data())
@settings(max_examples=600, deadline=None)
def test_broken_samples_never_raise(path: str, data: Any) -> None:
    """Samples with a piece taken out, doubled, or put elsewhere: what parsers stumble over."""
    text = SAMPLES[path][0]
    start = data.draw(st.integers(0, len(text)))
    end = data.draw(st.integers(start, min(len(text), start + 40)))
    put = data.draw(st.integers(0, len(text)))
    changed = text[:put] + text[start:end] + text[put:]
    for broken in (text[:start] + text[end:], changed):
        manifest = read(path, broken)
        assert all(0 < package.line <= broken.count("\n") + 1 for package in manifest.packages)
        assert "bug" not in manifest.problem
        assert not manifest.problem or not manifest.packages


HOSTILE = {
    "brackets": b"[" * 200_000,
    "braces": b"{" * 200_000,
    "objects in objects": b'{"a":' * 100_000,
    "lists in a value": b"a = " + b"[" * 100_000,
    "tables in a value": b"a = " + b"{a=" * 100_000,
    "a long dotted key": b"a" + b".a" * 100_000 + b" = 1",
    "a long dotted table": b"[" + b"a." * 100_000 + b"a]",
    "items in items": b"- " * 100_000,
    "deeper with every line": b"".join(b" " * depth + b"a:\n" for depth in range(1_000)),
    "tags in tags": b"<a>" * 100_000,
    "a huge number": b'{"version": ' + b"9" * 1_000_000 + b"}",
    "a huge value": b"version = " + b"9" * 1_000_000,
    "other types": b'{"dependencies": {"a": 3, "b": null}, "scripts": [], "name": {}, "engines": "x", "bin": 1}',
    "more types": b'{"packages": [1, "x", null, {}, []], "default": 3, "pins": {"a": 1}, "dependencies": {"a": []}}',
    "half a mark": b"\xff\xfe\x00",
    "no text": b"\xff" * 1_000,
    "zeros": b"\x00" * 1_000,
    "latin": b"name: \xe9\xe8\n\x80\x81: \xff\n",
    "escapes": b'"""' + b"\\" * 100_000,
    "quotes": b"'''" * 33_333 + b'"' * 33_333,
    "aliases": b"&a [*a,*a]: *a\n" * 5_000,
    "comments": b"<!--" * 50_000,
    "sections": b"<![CDATA[" * 50_000,
    "doctypes": b"<!DOCTYPE a [" * 50_000,
    "references": b"$(" * 100_000 + b": x",
    "open lists": b"install_requires=[" * 20_000,
    "open texts": b"console_scripts=" * 20_000,
    "open strings": b'.package(url: "' * 20_000,
    "a comment after a tab": b"a:\n  \t # x\n- \t # y\n",
    "lines that go on": b"a \\\n" * 20_000,
    "empty lines": b"\n" * 1_500_000,
    "many": b"x==1\n" * 20_000,
    "many pairs": b"a: b\n" * 20_000,
    "many tables": b"[[package]]\nname = 'a'\n" * 10_000,
}


@pytest.mark.slow
@pytest.mark.parametrize("kind", HOSTILE)
def test_hostile_files_come_to_an_end(kind: str) -> None:
    for path in PATHS:
        with unless_endless():
            assert "bug" not in read_manifest(path, HOSTILE[kind]).problem


@pytest.mark.slow
@pytest.mark.parametrize("piece", ["a", " ", "a ", "a=", "- ", "'", '"a",', "(", "{a,b}", "<a ", "1.", "$a", "\\"])
def test_one_line_of_megabytes(piece: str) -> None:
    for path in PATHS:
        is_lock = path.endswith((".lock", "lock.yaml", "lock.json", ".sum"))

        def read_line(size: int, path: str = path) -> None:
            assert "bug" not in read_manifest(path, piece.encode() * (size // len(piece))).problem

        assert_about_linear(read_line, 3_000, huge=5_000_000 if is_lock else MAX_FILE_BYTES - 1_000)


def test_entities_are_never_expanded() -> None:
    laughs = '<?xml version="1.0"?>\n<!DOCTYPE project [\n<!ENTITY a "ha">\n' + "".join(
        f'<!ENTITY {chr(98 + level)} "{f"&{chr(97 + level)};" * 10}">\n' for level in range(9)
    )
    text = laughs + (
        "]>\n<project>\n<artifactId>&j;</artifactId>\n<dependencies><dependency>\n<groupId>&j;</groupId>\n"
        "<artifactId>safe</artifactId><version>&j;</version></dependency></dependencies></project>\n"
    )
    manifest = read("pom.xml", text)
    assert manifest.name == "&j;"
    (package,) = manifest.packages
    assert (package.name, package.spec, package.version) == ("&j;:safe", "&j;", "")
    assert "safe" in text.split("\n")[package.line - 1]


def test_properties_that_grow_by_each_other_stay_small() -> None:
    def read_levels(levels: int) -> None:
        rows = "".join(f"<p{level}>{f'${{p{level + 1}}}' * 20}</p{level}>\n" for level in range(levels))
        text = (
            f"<project><properties>\n{rows}</properties><version>${{p0}}</version>\n<dependencies><dependency>"
            "<artifactId>a</artifactId><version>${p0}</version></dependency></dependencies></project>"
        )
        assert read("pom.xml", text).packages[0].version == ""

    assert_about_linear(read_levels, 10, huge=1_000)


COMPOSE_WITH_ANCHORS = """\
x-base: &base
  image: postgres:15.4
  ports: ["5432:5432"]
x-image: &image redis:7.2
services:
  first:
    <<: *base
  second:
    <<: [*base, {container_name: two}]
    ports:
      - "6543:5432"
  cache: {image: *image}
"""


def test_aliases_and_merge_keys_of_yaml_are_followed() -> None:
    assert told(read("compose.yaml", COMPOSE_WITH_ANCHORS)) == [
        "docker", "2 postgres 15.4 (15.4)", "4 redis 7.2 (7.2)", "3 port 5432", "11 port 6543", "11 port 5432",
        "6 service first", "8 service second", "9 service two", "12 service cache",
    ]  # fmt: skip


@pytest.mark.parametrize("template", ["&b{} {{<<: [*b{}, *b{}]}}", "&b{} [*b{}, *b{}]", "&b{} {{k: *b{}, l: *b{}}}"])
def test_aliases_that_double_each_other_cost_nothing(template: str) -> None:
    def read_levels(levels: int) -> str:
        rows = "".join(f"a{n}: {template.format(n, n - 1, n - 1)}\n" for n in range(1, levels))
        services = "".join(f"  s{n}: *b{levels - 1}\n" for n in range(levels))
        return read("compose.yaml", f"a0: &b0 {{ports: [80, 81]}}\n{rows}services:\n{services}").problem

    assert read_levels(5) == ""
    assert "more than" in read_levels(60)
    assert count_work(lambda: read_levels(60)) < 20_000


def test_an_alias_inside_its_own_anchor_is_left_out() -> None:
    assert told(read("compose.yaml", "services: &s\n  web: {ports: [80]}\n  again: *s\n")) == [
        "docker", "2 port 80", "2 service web",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("services:\n  web: {ports: [80}\n", "line 2"),
        ("services:\n\tweb:\n", "line 2"),
        ("a: " + "[" * 60, "line 1: nested too deeply"),
        ("a: [" + "1," * 300_000 + "1]", "more than"),
        ("a: !!python/object/apply:os.system ['true']\n", ""),
    ],
)  # fmt: skip
def test_yaml_that_cannot_be_read_names_the_line(text: str, problem: str) -> None:
    manifest = read("compose.yaml", text)
    assert problem in manifest.problem
    assert bool(manifest.problem) == bool(problem)


def test_doubled_keys() -> None:
    assert "twice" in read("pyproject.toml", '[project]\nname = "a"\nname = "b"\n').problem
    assert "twice" in read("Cargo.toml", "[a]\nb = 1\n[[a.b]]\n").problem
    found = read("package.json", '{"dependencies": {"a": "1.0.0",\n"a": "2.0.0"}}').packages
    assert [(package.spec, package.line) for package in found] == [("2.0.0", 2)]


@pytest.mark.parametrize(
    ("path", "text", "problem"),
    [
        ("package.json", "[]", ""),
        ("package.json", "words", "not a JSON object"),
        ("package.json", "", "not a JSON object"),
        ("package.json", '{"a": 1', "comma"),
        ("package.json", '{"name": "x", }', "key"),
        ("package.json", '{"a": tru}', "Expecting value"),
        ("package.json", "{" * 3 + "[" * 600_000, "too many parts"),
        ("package.json", '{"a": ' + "[" * 20_000, "nested"),
        ("pyproject.toml", "[project\n", "line 1"),
        ("pyproject.toml", "\n\nname: x\n", "line 3"),
        ("pyproject.toml", "a = ", "line 1"),
        ("pyproject.toml", "a = 'x\n", "line 1"),
        ("pyproject.toml", "a = 1 b = 2\n", "line 1"),
        ("pyproject.toml", "a = " + "[" * 100, "nested"),
        ("go.sum", "\n" * 1_500_000, "lines"),
        ("Makefile", "\n" * 150_000, "lines"),
        ("Makefile", "a\0b", "not a text"),
    ],
)  # fmt: skip
def test_what_cannot_be_read_says_why_and_nothing_else(path: str, text: str, problem: str) -> None:
    manifest = read(path, text)
    assert problem in manifest.problem
    assert bool(manifest.problem) == bool(problem)
    assert manifest == Manifest(manifest.ecosystem, problem=manifest.problem)


def test_files_beyond_the_limit_are_not_looked_at() -> None:
    assert "larger" in read_manifest("package.json", b" " * (MAX_FILE_BYTES + 1)).problem
    assert "larger" in read_manifest("yarn.lock", b" " * (MAX_LOCK_BYTES + 1)).problem
    assert read_manifest("yarn.lock", b"a@1:\n" * 2 * MEGABYTE).problem != ""


def test_names_that_would_show_as_something_else_are_left_out() -> None:
    text = '{"dependencies": {"a\\u001b[31m": "1", "b\\nc": "1", "' + "c" * 400 + '": "1", "fine": "1"}}'
    assert [package.name for package in read("package.json", text).packages] == ["fine"]


def test_other_encodings() -> None:
    text = "Django==4.2\r\nflask\r\n"
    assert told(read_manifest("requirements.txt", text.encode("utf-16"))) == told(read("requirements.txt", text))
    latin = "# d\xe9pendances\nall: b\n".encode("latin-1")
    assert told(read_manifest("Makefile", latin)) == ["make", "2 make:all"]


def test_a_bug_in_a_reader_does_not_end_the_run(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(draft: object, text: str) -> None:
        raise KeyError(text)

    monkeypatch.setattr("truekeep.verify.manifests.load_reader", lambda reader: broken)
    assert read("go.mod", "module x") == Manifest("go", problem="a bug in its reader: KeyError")


# The readers against those that know everything.

_KEY = st.from_regex(r"[A-Za-z0-9_-]{1,6}", fullmatch=True)
_TOML_TEXT = st.text(st.characters(codec="utf-8", exclude_categories=("Cc", "Cs")), max_size=8)
_SCALAR = st.one_of(
    _TOML_TEXT.map(lambda text: json.dumps(text, ensure_ascii=False)),
    _TOML_TEXT.map(lambda text: "'" + text.replace("'", "") + "'"),
    _TOML_TEXT.map(lambda text: '"""\n' + text.replace("\\", "").replace('"', "") + '\n"""'),
    st.sampled_from(
        ["1", "true", "1979-05-27 07:32:00", "-1.5e3", '""', "''", "'''a'b'''", '"""a"b""c"""', '"""a""""']
    ),
)
_VALUE = st.recursive(
    _SCALAR,
    lambda inner: st.one_of(
        st.lists(inner, max_size=3).map(lambda items: "[" + ", # x]\n ".join([*items, ""]) + "]"),
        st.dictionaries(_KEY, inner, max_size=3).map(
            lambda items: "{" + ", ".join(f"{key} = {value}" for key, value in items.items()) + "}"
        ),
    ),
    max_leaves=6,
)


def _plain(node: object) -> object:
    if isinstance(node, Leaf):
        return node.text
    assert isinstance(node, ValueTable)
    return {key: _plain(value) for key, value in node.items()}


def _alike(value: object) -> object:
    if isinstance(value, dict):
        return {key: _alike(inner) for key, inner in value.items()}
    if isinstance(value, list):
        return {str(place): _alike(inner) for place, inner in enumerate(value)}
    return value if isinstance(value, str) else ...


def _agree(ours: object, theirs: object) -> bool:
    if isinstance(theirs, dict):
        return isinstance(ours, dict) and ours.keys() == theirs.keys() and all(_agree(ours[k], theirs[k]) for k in ours)
    return ours == theirs or (theirs is ... and isinstance(ours, str))


@pytest.mark.slow
@given(st.lists(st.tuples(st.sampled_from(["", "[{}]", "[[{}]]", "[x.{}]"]), _KEY, _KEY, _VALUE), max_size=6))
@settings(max_examples=400, deadline=None)
def test_toml_is_read_as_the_standard_library_reads_it(rows: list[tuple[str, str, str, str]]) -> None:
    text = "".join(f"{head.format(table)}\n{key} = {value} # end\n" for head, table, key, value in rows)
    try:
        theirs = tomllib.loads(text)
    except tomllib.TOMLDecodeError:
        return
    assert _agree(_plain(parse_toml(text)), _alike(theirs))


def a_lock_file(count: int) -> bytes:
    packages: dict[str, Any] = {"": {"dependencies": {"package-7": "^1"}}}
    for number in range(count):
        packages[f"node_modules/package-{number}"] = {
            "version": f"1.{number}.0",
            "resolved": f"https://registry.npmjs.org/package-{number}/-/package-{number}-1.{number}.0.tgz",
            "integrity": "sha512-" + "x" * 86,
            "dependencies": {f"package-{number + 1}": "^1.0.0", f"package-{number + 2}": "^1.0.0"},
            "engines": {"node": ">=10"},
        }
    return json.dumps({"name": "x", "lockfileVersion": 3, "packages": packages}, indent=2).encode()


@pytest.mark.slow
def test_a_large_lock_file() -> None:
    data = a_lock_file(14_000)
    assert len(data) > 5_000_000
    manifest = read_manifest("package-lock.json", data)
    assert len(manifest.packages) == 14_000
    assert [package.name for package in manifest.packages if package.is_direct] == ["package-7"]
    assert 'package-13999"' in data.decode().split("\n")[manifest.packages[-1].line - 1]
    small, large = a_lock_file(300), a_lock_file(1_800)
    assert_about_linear(lambda times: read_manifest("package-lock.json", small if times == 1 else large), 1)
