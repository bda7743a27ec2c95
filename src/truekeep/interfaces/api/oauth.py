"""OAuth 2.1 for MCP, with the SDK's own handlers: discovery, registration, authorization code with PKCE, refresh.

Programs register themselves and get no secret: PKCE proves that whoever redeems a code has asked for it. The person
signs in with the session of `session.py`, and the page here names the program, where its answer goes, the workspace and
the role. Everything is in the database (`server/oauth.py`), so that any process answers any step.
"""

from __future__ import annotations

import json
import uuid
from collections.abc import Awaitable, Callable, Mapping
from time import perf_counter
from typing import TYPE_CHECKING, NamedTuple
from urllib.parse import urlsplit

import anyio
from mcp.server.auth.handlers.authorize import AuthorizationHandler
from mcp.server.auth.handlers.metadata import MetadataHandler, ProtectedResourceMetadataHandler
from mcp.server.auth.handlers.register import RegistrationHandler
from mcp.server.auth.handlers.token import TokenHandler
from mcp.server.auth.middleware.client_auth import AuthenticationError, ClientAuthenticator
from mcp.server.auth.provider import construct_redirect_uri
from mcp.server.auth.settings import ClientRegistrationOptions
from mcp.server.transport_security import RequestBodyLimitMiddleware
from mcp.shared.auth import InvalidRedirectUriError, OAuthMetadata, ProtectedResourceMetadata
from pydantic import AnyUrl, ValidationError
from starlette.datastructures import FormData
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse, RedirectResponse, Response
from starlette.routing import Route, request_response

from truekeep.core.errors import BadInput
from truekeep.interfaces.api.access import Hidden
from truekeep.interfaces.api.errors import known_error, retry_headers, status_of
from truekeep.interfaces.api.html import html_answer, render
from truekeep.interfaces.api.oauth_provider import (
    CHALLENGE,
    MAX_STATE,
    SCOPES,
    URL,
    ProgramProvider,
    RegisteredClient,
    is_loopback,
)
from truekeep.interfaces.web.auth import FORM, POLICY
from truekeep.server.accounts import WorkspaceAccess, is_workspace_name
from truekeep.server.oauth import Approval, OAuthRecord

if TYPE_CHECKING:
    from starlette.types import ASGIApp

    from truekeep.interfaces.api.metrics import Metrics
    from truekeep.interfaces.api.session import BrowserSessions
    from truekeep.server.database import TeamDatabase

MAX_BODY_BYTES = 65_536
BODY_SECONDS = 30.0
Handler = Callable[[Request], Awaitable[Response]]


class ConsentRequest(NamedTuple):
    """What a program asks a person to allow."""

    client: RegisteredClient
    redirect_uri: AnyUrl
    is_redirect_given: bool
    challenge: str
    resource: str
    workspace: str  # "": the person chooses
    state: str | None
    scopes: tuple[str, ...]
    fields: Mapping[str, str]

    @property
    def name(self) -> str:
        return self.client.client_name or "a program without a name"

    @property
    def origin(self) -> str:
        """Where the answer goes, as scheme, host and port."""
        told = urlsplit(str(self.redirect_uri))
        return f"{told.scheme}://{told.netloc}"


class OAuthServer:
    """The routes of OAuth. Without a public address there are none: a program could not know whom it talks to."""

    def __init__(self, database: TeamDatabase, url: str, sessions: BrowserSessions, metrics: Metrics) -> None:
        self._record = OAuthRecord(database)
        self._url = url
        self._sessions = sessions
        self._metrics = metrics

    def routes(self) -> list[Route]:
        if not self._url:
            return []
        resources = "/.well-known/oauth-protected-resource"
        return [
            *(Route(path, self._json(self._show_resource), methods=["GET"])
              for path in (resources, f"{resources}/mcp", f"{resources}/mcp/{{workspace}}")),
            Route("/.well-known/oauth-authorization-server", self._json(MetadataHandler(self._metadata()).handle)),
            Route("/oauth/register", self._limited(self._register), methods=["POST"]),
            Route("/oauth/authorize", html_answer(self._authorize), methods=["GET"]),
            Route("/oauth/consent", html_answer(self._show), methods=["GET"]),
            Route("/oauth/consent", html_answer(self._decide), methods=["POST"]),
            Route("/oauth/token", self._limited(self._give_tokens), methods=["POST"]),
            Route("/oauth/revoke", self._limited(self._revoke), methods=["POST"]),
        ]  # fmt: skip

    def _metadata(self) -> OAuthMetadata:
        at = f"{self._url}/oauth"
        return OAuthMetadata.model_validate(
            {
                "issuer": self._url,
                "authorization_endpoint": f"{at}/authorize",
                "token_endpoint": f"{at}/token",
                "registration_endpoint": f"{at}/register",
                "revocation_endpoint": f"{at}/revoke",
                "scopes_supported": SCOPES["writer"],
                "response_types_supported": ["code"],
                "grant_types_supported": ["authorization_code", "refresh_token"],
                "token_endpoint_auth_methods_supported": ["none"],
                "revocation_endpoint_auth_methods_supported": ["none"],
                "code_challenge_methods_supported": ["S256"],
                "authorization_response_iss_parameter_supported": True,
            }
        )

    async def _show_resource(self, request: Request) -> Response:
        """Where tokens for an MCP address come from. It tells nothing about whether there is such a workspace."""
        name = request.path_params.get("workspace")
        if name is not None and not is_workspace_name(name):
            raise HTTPException(404, "there is no such address")
        metadata = {
            "resource": f"{self._url}/mcp" + (f"/{name}" if name is not None else ""),
            "authorization_servers": [self._url],
            "scopes_supported": SCOPES["writer"],
            "resource_name": "truekeep",
        }
        return await ProtectedResourceMetadataHandler(ProtectedResourceMetadata.model_validate(metadata)).handle(
            request
        )

    # Programs: register, redeem, refresh, revoke. Errors as OAuth has them.

    def _provider(self, resource: object = "") -> ProgramProvider:
        return ProgramProvider(self._record, self._url, resource if isinstance(resource, str) else "")

    async def _register(self, request: Request) -> Response:
        options = ClientRegistrationOptions(valid_scopes=SCOPES["writer"], default_scopes=SCOPES["writer"])
        return await RegistrationHandler(self._provider().for_handlers(), options).handle(request)

    async def _give_tokens(self, request: Request) -> Response:
        form = await _read_form(request)
        provider = self._provider(form.get("resource")).for_handlers()
        response: Response = await TokenHandler(provider, ClientAuthenticator(provider)).handle(request)
        return response

    async def _revoke(self, request: Request) -> Response:
        """The SDK's handler wants a secret from every program; ours have none."""
        form = await _read_form(request)
        try:
            client = await ClientAuthenticator(self._provider().for_handlers()).authenticate_request(request)
        except AuthenticationError as error:
            return _oauth_error("invalid_client", error.message, 401)
        token = form.get("token")
        if not isinstance(token, str):
            return _oauth_error("invalid_request", "token is missing", 400)
        await anyio.to_thread.run_sync(self._record.revoke, uuid.UUID(client.client_id), token)
        return Response(status_code=200)

    def _limited(self, act: Handler) -> ASGIApp:
        return RequestBodyLimitMiddleware(request_response(self._json(act)), MAX_BODY_BYTES)

    def _json(self, act: Handler) -> Handler:
        async def handle(request: Request) -> Response:
            started = perf_counter()
            try:
                with anyio.fail_after(BODY_SECONDS):
                    response = await act(request)
            except ClientDisconnect:
                response = Response(status_code=400)
            except TimeoutError:
                response = _oauth_error("invalid_request", "the request did not come in time", 400)
            except HTTPException as error:
                response = _oauth_error("invalid_request", error.detail, error.status_code)
            except Exception as error:  # noqa: BLE001 - the one place where errors become OAuth's
                told = known_error(error)
                status = status_of(told)
                code = "temporarily_unavailable" if status in (429, 503) else "server_error"
                response = _oauth_error(code, told.message, status)
            response.headers.setdefault("Cache-Control", "no-store")
            response.headers.setdefault("X-Content-Type-Options", "nosniff")
            self._metrics.note(
                request.url.path.rpartition("/mcp")[0] or request.url.path,
                response.status_code,
                perf_counter() - started,
            )
            return response

        return handle

    # The person: what a program asks for, and the answer.

    async def _authorize(self, request: Request) -> Response:
        provider = self._provider()
        await provider.get_client(request.query_params.get("client_id", ""))  # if the database is away, that is told
        response = await AuthorizationHandler(provider.for_handlers()).handle(request)
        if response.status_code >= 400:
            told = json.loads(bytes(response.body))
            raise BadInput(
                f"the program's request is not valid: {told.get('error_description', '')}",
                hint="start again in the program",
            )
        where = response.headers["location"]
        if not where.startswith(f"{self._url}/oauth/consent?"):
            response.headers["location"] = construct_redirect_uri(where, iss=self._url)
        return response

    async def _read(self, given: Mapping[str, str]) -> ConsentRequest:
        """What is asked for, checked again: anybody can write such an address."""
        provider = self._provider()
        client = await provider.get_client(given.get("client_id", ""))
        problem = BadInput(
            "there is no such program any more, or what it asks for is not valid", hint="start again in the program"
        )
        if client is None:
            raise problem
        resource, challenge, state = given.get("resource", ""), given.get("challenge", ""), given.get("state")
        try:
            redirect = client.validate_redirect_uri(URL.validate_python(given.get("redirect_uri", "")))
        except (ValidationError, InvalidRedirectUriError) as error:
            raise problem from error
        workspace = provider.workspace_of(resource)
        if workspace is None or not CHALLENGE.match(challenge) or len(state or "") > MAX_STATE:
            raise problem
        fields = {
            key: given[key]
            for key in ("client_id", "redirect_uri", "given", "challenge", "resource", "scope", "state")
            if key in given
        }
        scopes = tuple(given.get("scope", "").split())
        return ConsentRequest(
            client, redirect, given.get("given") == "1", challenge, resource, workspace, state, scopes, fields
        )

    async def _show(self, request: Request) -> Response:
        signed_in = await anyio.to_thread.run_sync(self._sessions.require, request)
        asked = await self._read(request.query_params)
        reaches = _choices(signed_in.caller.workspaces, asked.workspace)
        may_write = any(reach.allows("writer") for reach in reaches) and (not asked.scopes or "write" in asked.scopes)
        response = render(
            "consent.html",
            title="Let a program use your memory?",
            asked=asked,
            is_own_machine=is_loopback(asked.redirect_uri),
            account=signed_in.caller.name,
            reaches=reaches,
            may_write=may_write,
            csrf=signed_in.csrf,
        )
        # The form's answer leads to the program, which browsers hold against form-action, too.
        onward = asked.origin if "[" not in asked.origin else "http:"
        response.headers["Content-Security-Policy"] = POLICY.replace(
            "form-action 'self'", f"form-action 'self' {onward}"
        )
        return response

    async def _decide(self, request: Request) -> Response:
        signed_in = await anyio.to_thread.run_sync(self._sessions.require, request)
        fields = await self._sessions.read_form(request, signed_in)
        asked = await self._read(fields)
        if fields.get("decision") != "allow":
            return self._answer(asked, error="access_denied", error_description="the person did not allow it")
        reach = next(
            (
                reach
                for reach in _choices(signed_in.caller.workspaces, asked.workspace)
                if reach.name == fields.get("workspace")
            ),
            None,
        )
        if reach is None:
            raise BadInput("no workspace was chosen; nothing was allowed", hint="go back and choose one")
        role = "writer" if fields.get("role") == "writer" and reach.allows("writer") else "reader"
        given = Approval(
            client=uuid.UUID(asked.client.client_id), workspace=reach.id, role=role, resource=asked.resource,
            redirect_uri=str(asked.redirect_uri), is_redirect_given=asked.is_redirect_given, challenge=asked.challenge,
        )  # fmt: skip
        code = await anyio.to_thread.run_sync(self._record.approve, signed_in.session, given)
        return self._answer(asked, code=code)

    def _answer(self, asked: ConsentRequest, **told: str) -> Response:
        where = construct_redirect_uri(str(asked.redirect_uri), **told, state=asked.state, iss=self._url)
        return RedirectResponse(where, status_code=303)


def _choices(reaches: tuple[WorkspaceAccess, ...], name: str) -> list[WorkspaceAccess]:
    """The workspaces to choose from. One that is not there and one that is hidden are told alike."""
    found = [reach for reach in reaches if name in ("", reach.name)]
    if not found:
        raise Hidden("no such workspace", hint="use the address of a workspace of yours, as in …/mcp/NAME")
    return found


async def _read_form(request: Request) -> FormData:
    """The fields of a request. Files, which other forms may have, are not taken."""
    if request.headers.get("content-type", "").partition(";")[0].strip().lower() != FORM:
        raise HTTPException(400, f"the body is {FORM}")
    return await request.form()


def _oauth_error(code: str, told: str, status: int) -> Response:
    return JSONResponse({"error": code, "error_description": told}, status, headers=retry_headers(status))
