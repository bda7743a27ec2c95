"""A deployment for tests: a database of its own, an imported workspace, accounts."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

from tests.support.helpers import Place
from truekeep.server.accounts import Caller, WorkspaceAccess, find_caller, make_token, set_grant
from truekeep.server.administration import import_workspace
from truekeep.server.handoff_queue import HandedIn, Quotas, hand_in
from truekeep.server.team_server import TeamServer


@dataclass
class Team:
    """A database that is prepared, and the server processes on it."""

    url: str
    base: Path
    servers: list[TeamServer] = field(default_factory=list)
    tokens: dict[str, str] = field(default_factory=dict)

    def server(self, name: str = "one") -> TeamServer:
        made = TeamServer(self.url, self.base / name)
        self.servers.append(made)
        return made

    def add(self, place: Place, name: str = "team") -> None:
        with place.open() as workspace:
            import_workspace(self.url, name, workspace)

    def member(self, account: str, role: str = "owner", workspace: str = "team") -> str:
        """An account with a role, and a token of it."""
        set_grant(self.url, account, workspace, role)
        if account not in self.tokens:
            self.tokens[account] = make_token(self.url, account)[1]
        return self.tokens[account]

    def caller(self, server: TeamServer, account: str = "ada") -> Caller:
        found = find_caller(
            server.database, self.member(account) if account not in self.tokens else self.tokens[account]
        )
        assert isinstance(found, Caller), found
        return found

    def reach(self, server: TeamServer, account: str = "ada", workspace: str = "team") -> WorkspaceAccess:
        found = self.caller(server, account).find(workspace)
        assert found is not None
        return found

    def hand_in(
        self, server: TeamServer, text: str, name: str = "2026-11-14-0900-a.md", *, account: str = "ada"
    ) -> HandedIn:
        return hand_in(
            server.database, self.caller(server, account), self.reach(server, account), text.encode(),
            name=name, writer="claude", machine="laptop", repository="github.com/me/app", quotas=Quotas(),
        )  # fmt: skip

    def close(self) -> None:
        for server in self.servers:
            server.stop()
