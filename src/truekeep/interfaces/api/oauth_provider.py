"""What the MCP SDK's OAuth handlers ask of a server: programs, codes and refresh tokens, from the database."""

from __future__ import annotations

import re
import uuid
from ipaddress import ip_address
from typing import cast
from urllib.parse import urlencode

import anyio
from mcp.server.auth.provider import (
    AccessToken,
    AuthorizationCode,
    AuthorizationParams,
    AuthorizeError,
    OAuthAuthorizationServerProvider,
    RefreshToken,
    RegistrationError,
    TokenError,
)
from mcp.shared.auth import OAuthClientInformationFull, OAuthToken
from mcp.shared.auth_utils import resource_url_from_server_url
from pydantic import AnyUrl, TypeAdapter

from truekeep.server.accounts import is_workspace_name
from truekeep.server.oauth import ACCESS_SECONDS, MAX_NAME, IssuedTokens, OAuthRecord

MAX_REDIRECTS, MAX_ADDRESS, MAX_STATE = 10, 500, 1_000
SCOPES = {"reader": ["read"], "writer": ["read", "write"]}
_HOST = re.compile(r"[A-Za-z0-9._-]+\Z|\[[0-9A-Fa-f:.]+\]\Z")  # it goes into the policy of a page
CHALLENGE = re.compile(r"[A-Za-z0-9_-]{43}\Z")
URL: TypeAdapter[AnyUrl] = TypeAdapter(AnyUrl)


class RegisteredClient(OAuthClientInformationFull):
    """A program as it registered. A program on the person's machine may answer on any port (RFC 8252, 7.3)."""

    def validate_redirect_uri(self, redirect_uri: AnyUrl | None) -> AnyUrl:
        if redirect_uri is not None and is_loopback(redirect_uri):
            asked = _without_port(redirect_uri)
            if any(is_loopback(known) and _without_port(known) == asked for known in self.redirect_uris or ()):
                return redirect_uri
        return super().validate_redirect_uri(redirect_uri)


def is_loopback(address: AnyUrl) -> bool:
    host = (address.host or "").strip("[]")
    try:
        return address.scheme == "http" and (host == "localhost" or ip_address(host).is_loopback)
    except ValueError:
        return False


def _without_port(address: AnyUrl) -> tuple[str, str | None, str | None, str | None]:
    return address.scheme, address.host, address.path, address.query


def is_redirect(address: AnyUrl) -> bool:
    """True for an address that a code may be sent to: https, or http on the person's own machine."""
    is_kept = address.scheme == "https" or is_loopback(address)
    plain = not (address.username or address.password or address.fragment is not None)
    return is_kept and plain and _HOST.match(address.host or "") is not None and len(str(address)) <= MAX_ADDRESS


class ProgramProvider:
    """What the SDK's handlers ask, for one request. `resource` is what the request says it wants tokens for."""

    def __init__(self, record: OAuthRecord, url: str, resource: str = "") -> None:
        self._record, self._url, self._resource = record, url, resource
        self._clients: dict[str, RegisteredClient | None] = {}

    def for_handlers(self) -> OAuthAuthorizationServerProvider[AuthorizationCode, RefreshToken, AccessToken]:
        """As the SDK's handlers take it. Two methods are not here, for handlers that are not used."""
        return cast("OAuthAuthorizationServerProvider[AuthorizationCode, RefreshToken, AccessToken]", self)

    async def get_client(self, client_id: str) -> RegisteredClient | None:
        if client_id not in self._clients:
            number = _client_number(client_id)
            info = await anyio.to_thread.run_sync(self._record.find_client, number) if number is not None else None
            self._clients[client_id] = RegisteredClient.model_validate(info) if info is not None else None
        return self._clients[client_id]

    async def register_client(self, client_info: OAuthClientInformationFull) -> None:
        """Keep a program. It gets no secret, and only what is used here is kept of what it says."""
        redirects = client_info.redirect_uris or []
        if len(redirects) > MAX_REDIRECTS or not all(is_redirect(address) for address in redirects):
            raise RegistrationError(
                "invalid_redirect_uri",
                f"at most {MAX_REDIRECTS} addresses: https, or http on localhost, 127.0.0.1 or [::1]; no fragment",
            )
        name = client_info.client_name or ""
        if len(name) > MAX_NAME or not name.isprintable():
            raise RegistrationError("invalid_client_metadata", f"client_name has at most {MAX_NAME} characters")
        client_info.token_endpoint_auth_method = "none"  # noqa: S105 - a way of authentication
        client_info.client_secret = client_info.client_secret_expires_at = None
        client_info.grant_types = [
            kind for kind in ("authorization_code", "refresh_token") if kind in client_info.grant_types
        ]
        client_info.response_types = ["code"]
        for unused in (
            "client_uri", "logo_uri", "contacts", "tos_uri", "policy_uri", "jwks_uri", "jwks", "software_id",
            "software_version", "issuer", "application_type",
        ):  # fmt: skip
            setattr(client_info, unused, None)
        info = client_info.model_dump(mode="json", exclude_none=True)
        await anyio.to_thread.run_sync(self._record.register, uuid.UUID(client_info.client_id), name, info)

    async def authorize(self, client: OAuthClientInformationFull, params: AuthorizationParams) -> str:
        """The page where a person decides. What was asked goes along in its address, and is checked there again."""
        resource = params.resource or f"{self._url}/mcp"
        if self.workspace_of(resource) is None:
            raise AuthorizeError("invalid_target", f"resource is {self._url}/mcp or {self._url}/mcp/NAME")
        if not CHALLENGE.match(params.code_challenge):
            raise AuthorizeError("invalid_request", "code_challenge is no SHA-256 in base64url")
        if len(params.state or "") > MAX_STATE or "\0" in (params.state or ""):
            params.state = None
            raise AuthorizeError("invalid_request", f"state has at most {MAX_STATE} characters")
        asked = {
            "client_id": client.client_id, "redirect_uri": str(params.redirect_uri),
            "given": "1" if params.redirect_uri_provided_explicitly else "", "challenge": params.code_challenge,
            "resource": resource_url_from_server_url(resource), "scope": " ".join(params.scopes or ()),
            **({"state": params.state} if params.state is not None else {}),
        }  # fmt: skip
        return f"{self._url}/oauth/consent?{urlencode(asked)}"

    def workspace_of(self, resource: str) -> str | None:
        """The workspace that an MCP address names; "" for the address without a name, None for another address."""
        given = resource_url_from_server_url(resource).removesuffix("/")
        if given == f"{self._url}/mcp":
            return ""
        name = given.removeprefix(f"{self._url}/mcp/")
        return name if name != given and is_workspace_name(name) else None

    async def load_authorization_code(
        self, client: OAuthClientInformationFull, authorization_code: str
    ) -> AuthorizationCode | None:
        found = await anyio.to_thread.run_sync(self._record.find_code, authorization_code)
        if found is None or str(found.client) != client.client_id or found.seconds <= 0:
            return None
        return AuthorizationCode(
            code=authorization_code,
            scopes=SCOPES[found.role],
            expires_at=float("inf"),  # the database's clock decides
            client_id=str(found.client),
            code_challenge=found.challenge,
            redirect_uri=URL.validate_python(found.redirect_uri),
            redirect_uri_provided_explicitly=found.is_redirect_given,
            resource=found.resource,
        )

    async def exchange_authorization_code(
        self, client: OAuthClientInformationFull, authorization_code: AuthorizationCode
    ) -> OAuthToken:
        self._check_resource(authorization_code.resource)
        made = await anyio.to_thread.run_sync(self._record.redeem, uuid.UUID(client.client_id), authorization_code.code)
        return _issued(made, authorization_code.scopes)

    async def load_refresh_token(self, client: OAuthClientInformationFull, refresh_token: str) -> RefreshToken | None:
        found = await anyio.to_thread.run_sync(self._record.find_refresh, refresh_token)
        if found is None or str(found.client) != client.client_id or found.seconds <= 0:
            return None
        return RefreshToken(
            token=refresh_token, client_id=str(found.client), scopes=SCOPES[found.role], resource=found.resource
        )

    async def exchange_refresh_token(
        self, client: OAuthClientInformationFull, refresh_token: RefreshToken, scopes: list[str]
    ) -> OAuthToken:
        self._check_resource(refresh_token.resource)
        role = "writer" if "write" in scopes else "reader"
        made = await anyio.to_thread.run_sync(
            self._record.rotate, uuid.UUID(client.client_id), refresh_token.token, role
        )
        return _issued(made, SCOPES[role])

    def _check_resource(self, issued_for: str | None) -> None:
        """Tokens are for what the person allowed, whatever else the program asks for now (RFC 8707)."""
        if self._resource and resource_url_from_server_url(self._resource) != issued_for:
            raise TokenError("invalid_target", "resource is not what was allowed")


def _issued(made: IssuedTokens | None, scopes: list[str]) -> OAuthToken:
    if made is None:
        raise TokenError("invalid_grant", "it was used, has expired or was revoked; ask the person again")
    return OAuthToken(
        access_token=made.access,
        expires_in=int(ACCESS_SECONDS),
        scope=" ".join(scopes),
        refresh_token=made.refresh,
    )


def _client_number(client_id: str) -> uuid.UUID | None:
    try:
        number = uuid.UUID(client_id)
    except ValueError:
        return None
    return number if str(number) == client_id else None
