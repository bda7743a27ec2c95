#!/usr/bin/env bash
# Installs truekeep into a folder of its own, and puts it on the PATH of later steps.
set -euo pipefail
venv="${RUNNER_TEMP:?}/truekeep"
python3 -m venv "$venv"
if [ -n "${VERSION:-}" ]; then
  "$venv/bin/python" -m pip install --quiet --disable-pip-version-check "truekeep$VERSION"
else
  "$venv/bin/python" -m pip install --quiet --disable-pip-version-check "${ACTION_PATH:?}"
fi
echo "$venv/bin" >>"${GITHUB_PATH:?}"
