"""A small OpenID provider for tests, as a process of its own. Keys and signatures are joserfc's.

It signs in whoever asks, as the person that `POST /test` last named. Whatever else it is told there
makes it answer wrongly.
"""

from __future__ import annotations

import hashlib
import re
import secrets
import subprocess
import sys
import time
from base64 import urlsafe_b64encode
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import httpx2
import uvicorn
from joserfc import jwt
from joserfc.jwk import KeySet, RSAKey
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, RedirectResponse, Response
from starlette.routing import Route

from truekeep.interfaces.listener import listen

CLIENT, SECRET = "truekeep", "a secret of the client"


class Provider:
    """Everything that the process knows."""

    def __init__(self, port: int) -> None:
        self.issuer = f"http://127.0.0.1:{port}"
        self.keys = [RSAKey.generate_key(2048, {"kid": "first", "use": "sig", "alg": "RS256"})]
        self.codes: dict[str, dict[str, str]] = {}
        self.told: dict[str, Any] = {}

    def routes(self) -> list[Route]:
        return [
            Route("/.well-known/openid-configuration", self.describe),
            Route("/jwks", self.show_keys),
            Route("/authorize", self.authorize),
            Route("/token", self.redeem, methods=["POST"]),
            Route("/userinfo", self.userinfo),
            Route("/test", self.tell, methods=["POST"]),
        ]

    async def tell(self, request: Request) -> Response:
        self.told = await request.json()
        if self.told.get("new_keys"):
            self.keys = [RSAKey.generate_key(2048, {"kid": secrets.token_hex(4), "use": "sig", "alg": "RS256"})]
        return JSONResponse({})

    async def describe(self, _: Request) -> Response:
        known = {
            "issuer": self.issuer, "authorization_endpoint": f"{self.issuer}/authorize",
            "token_endpoint": f"{self.issuer}/token", "userinfo_endpoint": f"{self.issuer}/userinfo",
            "jwks_uri": f"{self.issuer}/jwks", "response_types_supported": ["code"],
            "subject_types_supported": ["public"], "id_token_signing_alg_values_supported": ["RS256"],
            "token_endpoint_auth_methods_supported": ["client_secret_basic"],
            "code_challenge_methods_supported": ["S256"],
        }  # fmt: skip
        return JSONResponse({**known, **self.told.get("description", {})})

    async def show_keys(self, _: Request) -> Response:
        return JSONResponse(KeySet(self.keys).as_dict(private=False))  # type: ignore[arg-type]

    async def authorize(self, request: Request) -> Response:
        asked = dict(request.query_params)
        if asked.get("client_id") != CLIENT or asked.get("code_challenge_method") != "S256":
            return JSONResponse({"error": "invalid_request"}, 400)
        if "error" in self.told:
            answer = {"error": self.told["error"], "error_description": "as the test wants"}
        else:
            code = secrets.token_urlsafe(16)
            self.codes[code] = asked
            answer = {"code": code}
        return RedirectResponse(f"{asked['redirect_uri']}?{urlencode({**answer, 'state': asked['state']})}", 302)

    async def redeem(self, request: Request) -> Response:
        if self.told.get("status"):
            return JSONResponse({"error": "server_error"}, self.told["status"])
        form = await request.form()
        asked = self.codes.pop(str(form.get("code")), None)
        digest = hashlib.sha256(str(form.get("code_verifier")).encode()).digest()
        challenge = urlsafe_b64encode(digest).decode().rstrip("=")
        if not self._knows(request):
            return JSONResponse({"error": "invalid_client"}, 401)
        if asked is None or asked["code_challenge"] != challenge or asked["redirect_uri"] != form.get("redirect_uri"):
            return JSONResponse({"error": "invalid_grant"}, 400)
        access = secrets.token_urlsafe(16)
        at_hash = urlsafe_b64encode(hashlib.sha256(access.encode()).digest()[:16]).decode().rstrip("=")
        now = int(time.time())
        claims = {
            "iss": self.issuer, "aud": CLIENT, "iat": now, "exp": now + 300, "nonce": asked["nonce"],
            "at_hash": at_hash, **self.told.get("claims", {}),
        }  # fmt: skip
        claims |= {name: now + seconds for name, seconds in self.told.get("times", {}).items()}
        claims = {name: value for name, value in claims.items() if value is not None}
        key = RSAKey.generate_key(2048, {"kid": "first"}) if self.told.get("forged") else self.keys[0]
        token = jwt.encode({"alg": "RS256", "kid": key.kid}, claims, key)
        if self.told.get("unsigned"):
            header = urlsafe_b64encode(b'{"alg":"none"}').decode().rstrip("=")
            token = f"{header}.{token.split('.')[1]}."
        made = {"access_token": access, "token_type": "Bearer", "expires_in": 300, "id_token": token}
        return JSONResponse({**made, **self.told.get("token", {})})

    def _knows(self, request: Request) -> bool:
        given = httpx2.BasicAuth(CLIENT, SECRET)
        flow = given.auth_flow(httpx2.Request("GET", "http://x"))
        return request.headers.get("authorization") == next(flow).headers["authorization"]

    async def userinfo(self, request: Request) -> Response:
        if not request.headers.get("authorization", "").startswith("Bearer "):
            return JSONResponse({"error": "invalid_token"}, 401)
        return JSONResponse(self.told.get("userinfo", {}))


class RunningProvider:
    """The process, as a test has it."""

    def __init__(self, process: subprocess.Popen[str], issuer: str) -> None:
        self._process = process
        self.issuer = issuer

    def tell(self, **told: Any) -> None:
        """Who signs in next, and what goes wrong."""
        httpx2.post(f"{self.issuer}/test", json=told).raise_for_status()

    def sign_in_as(self, subject: str, email: str = "", *, is_verified: bool = True, **told: Any) -> None:
        claims = {"sub": subject, **({"email": email, "email_verified": is_verified} if email else {})}
        self.tell(**{**told, "claims": {**claims, **told.get("claims", {})}})

    def stop(self) -> None:
        self._process.terminate()
        self._process.wait(30)
        if self._process.stdout is not None:
            self._process.stdout.close()


@contextmanager
def running_provider() -> Iterator[RunningProvider]:
    process = subprocess.Popen(
        [sys.executable, "-m", "tests.support.openid_provider"],
        cwd=Path(__file__).parents[2], stdout=subprocess.PIPE, text=True,
    )  # fmt: skip
    assert process.stdout is not None
    line = process.stdout.readline()
    found = re.search(r"http://\S+", line)
    assert found, line
    provider = RunningProvider(process, found[0])
    try:
        yield provider
    finally:
        provider.stop()


def main() -> None:
    listener = listen("127.0.0.1", 0)
    provider = Provider(listener.getsockname()[1])
    print(provider.issuer, flush=True)  # listening already: requests wait until they are served
    app = Starlette(routes=provider.routes())
    uvicorn.Server(uvicorn.Config(app, log_level="critical")).run(sockets=[listener])


if __name__ == "__main__":
    main()
