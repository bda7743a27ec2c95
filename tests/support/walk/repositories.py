"""Three repositories with a past: commits over four months, with renames, and a bare origin that all machines share."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

from tests.support.histories import History, git

CARTS = '''\
"""Carts live in Redis."""

CART_TTL = 48 * 3600


def load_cart(session):
    return session.redis.get(f"cart:{session.id}")


def save_cart(session, cart):
    session.redis.set(f"cart:{session.id}", cart, ex=CART_TTL)


def merge_carts(old, new):
    return {**old, **new}
'''
CHECKOUT = '''\
"""From a cart to an order."""

RETRIES = 3


def settle(order, provider):
    for _ in range(RETRIES):
        if provider.charge(order):
            return True
    return False
'''
INVOICES = '''\
"""Invoices, as the tax office wants them."""

from billing.money import round_line


def render_invoice(order):
    return "\\n".join(f"{line.text} {round_line(line.cents)}" for line in order.lines)
'''
MONEY = '''\
"""Money is whole cents."""


def round_line(cents):
    return int(cents)
'''
COMPOSE = 'services:\n  proxy:\n    image: caddy:2\n    ports:\n      - "8443:8443"\n'


def write_origins(folder: Path) -> None:
    """shop, billing and infra as bare repositories."""
    for name, history in (("shop", _shop()), ("billing", _billing()), ("infra", _infra())):
        work = folder / f"{name}.work"
        history.write(work, remote="")
        git(folder, "clone", "-q", "--bare", str(work), str(folder / f"{name}.git"))


def _ago(days: int) -> str:
    return (datetime.now(UTC) - timedelta(days=days)).strftime("%Y-%m-%d")


def _shop() -> History:
    history = History()
    history.commit(_ago(120), {"README.md": "# Shop\n", "app/basket.py": CARTS.replace("48", "24")}, message="A shop")
    history.commit(_ago(110), {"app/pay.py": CHECKOUT}, message="Payments are retried")
    history.commit(_ago(80), renames={"app/basket.py": "app/carts.py"}, message="Baskets are carts")
    history.commit(_ago(61), {"app/carts.py": CARTS}, message="Carts are kept for two days")
    history.commit(_ago(40), renames={"app/pay.py": "app/checkout.py"}, message="Checkout, not pay")
    history.commit(_ago(12), {"Makefile": "lint:\n\truff check app\n"}, message="make lint")
    return history


def _billing() -> History:
    history = History()
    old = INVOICES.replace("render_invoice", "print_invoice").replace("money", "cents")
    history.commit(_ago(118), {"billing/invoices.py": old, "billing/cents.py": MONEY}, message="Invoices")
    history.commit(_ago(90), renames={"billing/cents.py": "billing/money.py"}, message="Cents are money")
    history.commit(_ago(89), {"billing/invoices.py": INVOICES}, message="Invoices are rendered, not printed")
    history.commit(_ago(30), {"pyproject.toml": '[project]\nname = "billing"\nversion = "2.4.0"\n'}, message="2.4.0")
    return history


def _infra() -> History:
    history = History()
    history.commit(_ago(119), {"compose.yml": COMPOSE.replace("8443", "443")}, message="A proxy")
    history.commit(_ago(70), renames={"compose.yml": "deploy/compose.yml"}, message="All of it below deploy")
    history.commit(_ago(69), {"deploy/compose.yml": COMPOSE}, message="Staging on 8443")
    history.commit(_ago(20), {"deploy/release.sh": "#!/bin/sh\ndocker compose up -d\n"}, message="Releases by script")
    return history
