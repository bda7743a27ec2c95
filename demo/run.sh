#!/bin/sh
# The main job end to end on a sample workspace: handoffs in, ingested, reviewed, searched, verified, repaired, explained,
# exported and imported, and shown to the next agent.
# Everything happens below ./demo-home; nothing of yours is touched.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
top=$(dirname "$here")
HOME="$top/demo-home"
export HOME
unset TRUEKEEP_WORKSPACE XDG_STATE_HOME 2>/dev/null || true
rm -rf "$HOME"
mkdir -p "$HOME"

if [ -t 1 ]; then bold=$(printf '\033[1m'); dim=$(printf '\033[2m'); plain=$(printf '\033[0m'); else bold= dim= plain=; fi
say() { printf '\n%s%s%s\n' "$bold" "$1" "$plain"; }
run() {
    printf '%s$ truekeep' "$dim"
    for word in "$@"; do
        case $word in
            *[!A-Za-z0-9_./:=@%+-]*) printf " '%s'" "$word" ;;
            *) printf ' %s' "$word" ;;
        esac
    done
    printf '%s\n' "$plain"
    truekeep "$@"
}

say "Two repositories, as two agents would work in them"
for name in shop billing; do
    git init -q "$HOME/repos/$name"
    git -C "$HOME/repos/$name" remote add origin "https://git.example/acme/$name.git"
    echo "  ~/repos/$name"
done

commit() { git -C "$HOME/repos/shop" add -A && git -C "$HOME/repos/shop" -c user.name=demo -c user.email=demo@example.invalid commit -qm "$1"; }
mkdir -p "$HOME/repos/shop/app"
cat > "$HOME/repos/shop/app/carts.py" <<'END'
"""Carts live in Redis and are gone after 48 hours."""

CART_TTL = 48 * 3600


def load_cart(session):
    return session.redis.get(f"cart:{session.id}")


def merge_carts(old, new):
    return {**old, **new}
END
commit "Carts in Redis"

say "One canonical memory"
run init --repo "$HOME/repos/*"

say "Claude Code leaves a handoff in shop"
cd "$HOME/repos/shop"
run handoff new --writer claude --type setup --title "Staging sits behind a proxy" \
    --summary "The proxy terminates TLS. Clients that talk to the app directly get a connection reset." \
    --fact "Staging answers on port 8443 only" \
    --fact "The proxy adds X-Real-Ip, which the app demands" \
    --evidence "files changed: deploy/proxy.conf" --card staging-proxy.md --tag proxy --tag staging

say "Codex leaves two in billing: a rule for TOOLS.md, and one that is not to be trusted"
cd "$HOME/repos/billing"
run handoff new --writer codex --type workflow --title "Lint before every push" --document TOOLS.md \
    --content "### Lint
Run make lint before every push; CI rejects what it finds."
cp "$here/2026-11-14-1015-invoice-export.md" .codex/memory-handoffs/
echo "  (copied) .codex/memory-handoffs/2026-11-14-1015-invoice-export.md"

say "What waits, and what lint says of the doubtful one"
run handoff list
run handoff lint .codex/memory-handoffs/2026-11-14-1015-invoice-export.md || true

say "Ingest: filed where it is sure, review where it is not"
run ingest

say "The card, with its age and its origin; the index points at it"
run card show staging-proxy
printf '%s$ cat MEMORY.md%s\n' "$dim" "$plain"
cat "$HOME/.openclaw/workspace/MEMORY.md"

say "The draft, with its reasons"
run review show invoice-export

say "Some older memory, as a year of work leaves it"
memory="$HOME/.openclaw/workspace/memory"
cat > "$memory/2025-02-11.md" <<'END'
# 2025-02-11

## Invoices
- Nightly export died with `ERR_INVOICE_4417: ledger row without currency`; two rows of the January import had none.
- Filled them in by hand. The importer now refuses such rows.

## Shop
- Page weight is down to 410 kB after the new image sizes.
END
cat > "$memory/project-shop.md" <<'END'
# Shop

## Storage
Orders live in PostgreSQL. Carts live in Redis and are gone after 48 hours; nothing may depend on them for longer.

## Releases
A release goes to one machine first, for an hour, and then to all others.
END
echo "  memory/2025-02-11.md, memory/project-shop.md"
run index

say "Three questions. In other words than the note's: meaning finds it"
run search "which database keeps the shopping baskets, and how long" -n 2 --explain

say "An identifier in a note of last year: found whatever its age"
run search ERR_INVOICE_4417 -n 1 --explain

say "Misspelt, and filed a minute ago"
run search "conection rset on staging" -n 1 --explain

say "Truth. A card says where things are; every claim in it is held against the code"
cat > "$memory/cards/carts.md" <<END
---
topic: How carts are kept
category: project-context
tags: [carts]
created: $(date +%F)
updated: $(date +%F)
repository: git.example/acme/shop
---

- \`load_cart\` is defined in \`app/carts.py\`; the lifetime is \`CART_TTL\`.
- Two carts meet in \`merge_carts\` (\`app/carts.py:10\`).
END
run verify memory/cards/carts.md --all

say "The code moves on: a file is renamed, a line is added, a function goes"
cd "$HOME/repos/shop"
git mv app/carts.py app/baskets.py
cat > app/baskets.py <<'END'
"""Carts live in Redis and are gone after 48 hours."""

CART_TTL = 48 * 3600
CART_PREFIX = "cart"


def load_cart(session):
    return session.redis.get(f"{CART_PREFIX}:{session.id}")
END
commit "Carts are baskets now; merging went to the client"
cd "$HOME"
run verify

say "Whoever searches is told"
run search "where is the cart lifetime set" -n 1

say "Repair: what moved is written in place, what is gone is proposed for review"
run verify --fix
printf '%s$ tail -2 memory/cards/carts.md%s\n' "$dim" "$plain"
tail -2 "$memory/cards/carts.md"
run history memory/cards/carts.md
run review list

say "The ledger: every act, every line"
run history
run blame TOOLS.md:2

say "Running it again changes nothing"
run ingest

say "The whole memory in one archive: exported, wiped, imported, identical"
run alf export -o "$HOME/agent.alf"
keep=$(dirname "$memory")
sums() { (cd "$keep" && find . -type f ! -path './.truekeep/*' -exec cksum {} + | sort); }
before=$(sums)
mv "$keep/.truekeep" "$HOME/state" && rm -rf "$keep"
run alf import "$HOME/agent.alf"
[ "$before" = "$(sums)" ] && echo "identical: $(sums | wc -l) files, byte for byte"
rm -rf "$keep/.truekeep" && mv "$HOME/state" "$keep/.truekeep"

say "The session ends: it leaves where things stand"
cd "$HOME/repos/shop"
run checkpoint --last-action "Renamed carts to baskets" --next-action "Merge baskets in the client" \
    --summary "Carts are baskets now; the client merges them." --decision "The client merges, because it knows both baskets."

say "The next agent in this repository begins with this"
run wake --for claude
cd "$HOME"

say "Where to look next"
cat <<END
  workspace   demo-home/.openclaw/workspace   (plain Markdown: cards, MEMORY.md, TOOLS.md)
  search      HOME=\$PWD/demo-home .venv/bin/truekeep search "what runs before a push" --explain
  review      HOME=\$PWD/demo-home .venv/bin/truekeep review list
  verify      HOME=\$PWD/demo-home .venv/bin/truekeep verify --all
  wake        HOME=\$PWD/demo-home .venv/bin/truekeep wake --repo demo-home/repos/billing
  health      HOME=\$PWD/demo-home .venv/bin/truekeep status
  maintain    HOME=\$PWD/demo-home .venv/bin/truekeep reconcile
  browser     HOME=\$PWD/demo-home .venv/bin/truekeep serve
  undo        HOME=\$PWD/demo-home .venv/bin/truekeep undo 2
  commands    docs/commands.md
END
