"""Sign-in with an OpenID provider, as its relying party: authorization code with PKCE, state and nonce.

authlib speaks with the provider and judges the claims, joserfc checks the signature. What is kept here is the
provider's address, its description and its keys, for an hour.
"""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any
from urllib.parse import urlsplit

import httpx2
from authlib.common.errors import AuthlibBaseError
from authlib.integrations.httpx_client import OAuth2Client
from authlib.oidc.core import CodeIDToken
from joserfc import jwt
from joserfc.errors import InvalidKeyIdError, JoseError
from joserfc.jwk import KeySet
from joserfc.jws import JWSRegistry

from truekeep.core.errors import BadSetup
from truekeep.server.sign_in import OpenIDIdentity, OpenIDSettings, ProviderFailed, SignInRefused

SCOPE = "openid email profile"
ALGORITHMS = ("RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "ES512", "EdDSA", "Ed25519")
SKEW_SECONDS = 120  # between the provider's clock and ours
TIMEOUT_SECONDS = 10.0
KEPT_SECONDS = 3600.0
MAX_ANSWER = 1_000_000


class OpenIDProvider:
    """The provider of a deployment. Every method waits for it."""

    def __init__(self, settings: OpenIDSettings) -> None:
        self.settings = settings
        _check_address(settings.issuer, settings.issuer)
        self._lock = threading.Lock()
        self._metadata: tuple[float, dict[str, Any]] | None = None
        self._keys: tuple[float, KeySet] | None = None

    def authorization_url(self, redirect: str, *, state: str, nonce: str, verifier: str) -> str:
        """Where the browser goes to sign in."""
        with self._client(redirect) as client:
            url, _ = client.create_authorization_url(
                self._endpoint("authorization_endpoint"), state=state, nonce=nonce, code_verifier=verifier
            )
        return str(url)

    def redeem(self, redirect: str, code: str, *, nonce: str, verifier: str) -> OpenIDIdentity:
        """Whom a code stands for. Raises if anything about the answer is wrong."""
        with _explained(self.settings.issuer), self._client(redirect) as client:
            token = client.fetch_token(
                self._endpoint("token_endpoint"),
                grant_type="authorization_code",
                code=code,
                code_verifier=verifier,
            )
            claims = self._claims(token, nonce)
            subject = claims["sub"]
            if not isinstance(subject, str) or not 0 < len(subject) <= 255 or not subject.isprintable():
                raise ProviderFailed("the provider names nobody", hint="tell who runs the server")
            if "email" not in claims and "userinfo_endpoint" in self._description():
                found = _object(client.get(self._endpoint("userinfo_endpoint")))
                claims |= found if found.get("sub") == subject else {}
        return OpenIDIdentity(self.settings.issuer, subject, verified_email(claims))

    def _claims(self, token: Mapping[str, Any], nonce: str) -> dict[str, Any]:
        """The claims of the ID token, if its signature and all that must fit does."""
        given = token.get("id_token")
        if not isinstance(given, str):
            raise ProviderFailed("the provider sent no ID token", hint="it must support OpenID Connect")
        offered = self._description().get("id_token_signing_alg_values_supported") or ["RS256"]
        registry = JWSRegistry(algorithms=[name for name in ALGORITHMS if name in offered], strict_check_header=False)
        try:
            decoded = jwt.decode(given, self._key_set(), registry=registry)
        except InvalidKeyIdError:  # the provider has new keys
            decoded = jwt.decode(given, self._key_set(is_new=True), registry=registry)
        client_id = self.settings.client_id
        claims = CodeIDToken(
            decoded.claims,
            decoded.header,
            {"iss": {"essential": True, "value": self.settings.issuer}, "aud": {"essential": True, "value": client_id}},
            {"nonce": nonce, "client_id": client_id, "access_token": token.get("access_token")},
        )
        claims.validate(leeway=SKEW_SECONDS)
        return dict(claims)

    # The provider's description and keys.

    def _client(self, redirect: str) -> Any:
        offered = self._description().get("token_endpoint_auth_methods_supported") or ["client_secret_basic"]
        secret = self.settings.client_secret
        wanted = ("client_secret_basic", "client_secret_post") if secret else ("none",)
        return OAuth2Client(
            client_id=self.settings.client_id,
            client_secret=secret or None,
            token_endpoint_auth_method=next((name for name in wanted if name in offered), wanted[0]),
            scope=SCOPE,
            redirect_uri=redirect,
            code_challenge_method="S256",
            timeout=TIMEOUT_SECONDS,
            follow_redirects=False,
        )

    def _endpoint(self, name: str) -> str:
        address = self._description().get(name)
        if not isinstance(address, str):
            raise ProviderFailed(f"the provider's description has no {name}", hint="it must support OpenID Connect")
        _check_address(address, self.settings.issuer)
        return address

    def _description(self) -> dict[str, Any]:
        with self._lock:
            if self._metadata is None or time.monotonic() - self._metadata[0] > KEPT_SECONDS:
                found = self._get(f"{self.settings.issuer.rstrip('/')}/.well-known/openid-configuration")
                if found.get("issuer") != self.settings.issuer:
                    raise ProviderFailed(
                        "the provider calls itself by another address than the one it was configured with",
                        hint="--oidc-issuer must be letter by letter what the provider's description has as issuer",
                    )
                self._metadata = time.monotonic(), found
            return self._metadata[1]

    def _key_set(self, *, is_new: bool = False) -> KeySet:
        address = self._endpoint("jwks_uri")
        with self._lock:
            if self._keys is None or is_new or time.monotonic() - self._keys[0] > KEPT_SECONDS:
                self._keys = time.monotonic(), KeySet.import_key_set(self._get(address))  # type: ignore[arg-type]
            return self._keys[1]

    def _get(self, address: str) -> dict[str, Any]:
        with (
            _explained(self.settings.issuer),
            httpx2.Client(timeout=TIMEOUT_SECONDS, follow_redirects=False) as client,
        ):
            return _object(client.get(address))


def _object(answer: httpx2.Response) -> dict[str, Any]:
    if answer.status_code != 200 or len(answer.content) > MAX_ANSWER:
        raise ProviderFailed(
            f"the provider answered {answer.status_code}", hint="try again; else tell who runs the server"
        )
    found = json.loads(answer.content)
    if not isinstance(found, dict):
        raise ValueError("no object")
    return found


def verified_email(claims: Mapping[str, Any]) -> str:
    """The address, in lower case, if the provider says that it verified it."""
    email, verified = claims.get("email"), claims.get("email_verified")
    if not (verified is True or verified == "true") or not isinstance(email, str):
        return ""
    email = email.strip().lower()
    return email if email.count("@") == 1 and email.isprintable() and 3 <= len(email) <= 254 else ""


def _check_address(address: str, issuer: str) -> None:
    """https; http on this machine alone, for a provider that is there."""
    told = urlsplit(address)
    is_here = told.hostname in ("localhost", "127.0.0.1", "::1") and urlsplit(issuer).scheme == "http"
    if not told.hostname or (told.scheme != "https" and not (told.scheme == "http" and is_here)):
        raise BadSetup("an OpenID provider is reached over https only", hint="as in https://login.example.com")


@contextmanager
def _explained(issuer: str) -> Iterator[None]:
    """Errors of the network, of the protocol and of a signature, in plain words; none has a token or a secret."""
    host = urlsplit(issuer).netloc
    try:
        yield
    except httpx2.HTTPError as error:
        raise ProviderFailed(
            f"{host} does not answer ({type(error).__name__})", hint="try again in a minute"
        ) from error
    except JoseError as error:
        raise SignInRefused(
            f"{host} sent an ID token that is not valid: {error.error.replace('_', ' ')}"
            + (f" ({error.claim})" if hasattr(error, "claim") else ""),
            hint="sign in again; if it happens again, compare the clocks, and tell who runs the server",
        ) from error
    except AuthlibBaseError as error:
        raise SignInRefused(f"{host} did not accept the sign-in: {error.error}", hint="sign in again") from error
    except (ValueError, KeyError, TypeError) as error:
        raise ProviderFailed(
            f"{host} sent something that is not OpenID Connect", hint="tell who runs the server"
        ) from error
