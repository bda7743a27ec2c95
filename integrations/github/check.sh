#!/usr/bin/env bash
# Checks the documents of the checked-out repository. Inputs come as variables, never as code.
set -euo pipefail
arguments=(check --format "${INPUT_FORMAT:-github}")
if [ -n "${INPUT_CONFIDENCE:-}" ]; then arguments+=(--confidence "$INPUT_CONFIDENCE"); fi
since="${INPUT_SINCE:-${BASE_SHA:-}}"
if [ -n "$since" ] && [ "$since" != none ]; then
  if ! git cat-file -e "$since^{commit}" 2>/dev/null; then
    # The checkout step fetched one commit only: the base itself is enough to compare with.
    git fetch --quiet --no-tags --depth=1 origin "$since"
  fi
  arguments+=(--since "$since")
elif [ "${INPUT_HISTORY:-true}" = true ] && [ "$(git rev-parse --is-shallow-repository)" = true ]; then
  # Only history tells what became of a function that a document names. A pull request needs none: it has its base.
  git fetch --quiet --no-tags --unshallow origin ||
    echo "truekeep: the history could not be fetched; what only history tells is not reported" >&2
fi
while IFS= read -r path; do
  if [ -n "$path" ]; then arguments+=("$path"); fi
done <<<"${INPUT_PATHS:-}"
if [ -n "${INPUT_OUTPUT:-}" ]; then
  truekeep "${arguments[@]}" >"$INPUT_OUTPUT"
else
  truekeep "${arguments[@]}"
fi
