"""Archives of the Agent Life Format for tests: a valid one, in which anything can be changed before it is packed."""

from __future__ import annotations

import copy
import hashlib
import io
import json
from typing import Any

from truekeep.integrations.alf.documents import JsonObject, dump_document, dump_line
from truekeep.integrations.alf.validate import check_archive
from truekeep.integrations.alf.zip_container import ArchiveProblem, ZipReader, ZipWriter

AGENT = "11111111-1111-4111-8111-111111111111"
PARTITION = "memory/2026-Q1.jsonl"
GONE = type("Gone", (), {"__repr__": lambda _: "GONE"})()  # put in a member's place, it takes the member away


def an_id(number: int) -> str:
    return f"019462a0-0000-7000-8000-{number:012x}"


def a_record(number: int = 1, **members: Any) -> JsonObject:
    """A record with nothing but what it must have, and these members."""
    return {
        "id": an_id(number),
        "agent_id": AGENT,
        "content": f"note {number}",
        "memory_type": "semantic",
        "source": {"runtime": "test"},
        "temporal": {"created_at": "2026-01-15T10:30:00Z"},
        "status": "active",
        "namespace": "default",
        **members,
    }


def a_full_record(number: int = 1) -> JsonObject:
    """A record with every member that the format has."""
    return a_record(
        number,
        source={
            "runtime": "test",
            "runtime_version": "1",
            "origin": "workspace",
            "origin_file": "memory/x.md",
            "extraction_method": "agent_written",
            "session_id": "s",
            "interaction_id": "i",
            "identity_version": 1,
        },
        temporal={
            "created_at": "2026-01-15T10:30:00Z",
            "updated_at": "2026-01-15T10:30:00.123456789+02:00",
            "observed_at": None,
            "valid_from": "2026-01-15 10:30:00Z",
            "valid_until": None,
            "last_accessed_at": "2026-01-15T10:30:00Z",
            "access_count": 3,
        },
        category="c",
        supersedes=an_id(999),
        confidence=0.5,
        entities=[{"name": "Ada", "type": "person", "role": "author"}],
        tags=["default", "x"],
        embeddings=[
            {
                "model": "p/m",
                "dimensions": 3,
                "vector": [0.5, 1, -2],
                "computed_at": "2026-01-15T10:30:00Z",
                "source": "runtime",
            }
        ],
        related_records=[{"id": an_id(998), "relation": "derived_from"}],
        raw_source_format={"heading": None},
    )


class Archive:
    """The parts of an archive. `records` are packed into one partition, the rest as it stands."""

    manifest_name = "manifest.json"
    records_name = PARTITION

    def __init__(self, *records: JsonObject) -> None:
        self.records = list(records) or [a_record()]
        self.documents: dict[str, Any] = {
            "manifest.json": {
                "alf_version": "1.0.0",
                "created_at": "2026-01-15T10:30:00Z",
                "agent": {"id": AGENT, "name": "A", "source_runtime": "test"},
                "layers": {
                    "memory": {
                        "record_count": len(self.records),
                        "index_file": "memory/index.json",
                        "partitions": [
                            {
                                "file": PARTITION,
                                "from": "2026-01-01",
                                "to": "2026-03-31",
                                "record_count": len(self.records),
                                "sealed": False,
                            }
                        ],
                    }
                },
            }
        }
        self.entries: dict[str, bytes] = {}  # these bytes, in the end, whatever else would have the name

    def put(self, place: str, value: Any) -> Archive:
        """Change one member: `manifest.json:layers.memory.partitions.0.sealed`, or `record:tags` of the first."""
        name, _, path = place.partition(":")
        *above, last = path.split(".")
        inside: Any = self.records[0] if name == "record" else self.documents[name]
        for step in above:
            inside = inside[int(step) if isinstance(inside, list) else step]
        if value is GONE:
            del inside[int(last) if isinstance(inside, list) else last]
        else:
            inside[int(last) if isinstance(inside, list) else last] = value
        return self

    def parts(self) -> dict[str, bytes]:
        """Every entry, the manifest last."""
        parts = {
            name: dump_document(document) for name, document in self.documents.items() if name != self.manifest_name
        }
        parts[self.records_name] = b"".join(map(dump_line, self.records))
        parts |= self.entries
        parts.setdefault(self.manifest_name, dump_document(self.documents[self.manifest_name]))
        return parts

    def packed(self) -> bytes:
        return pack(self.parts())

    def problems(self) -> list[ArchiveProblem]:
        return problems_of(self.packed())


def a_full_archive(*records: JsonObject) -> Archive:
    """Every layer, with everything in it that the format has, and truekeep's own list of files."""
    archive = Archive(*(records or (a_full_record(1), a_record(2))))
    raw, artifact = b"# X\n", b"\x89PNG"
    archive.entries |= {"raw/openclaw/memory/x.md": raw, "artifacts/a.png": artifact}
    archive.entries["truekeep/files.jsonl"] = file_lines(
        a_file_row("memory/x.md", "raw/openclaw/memory/x.md", raw), a_file_row("a.png", "artifacts/a.png", artifact)
    )
    archive.documents |= copy.deepcopy(_LAYERS)
    attachment = archive.documents["attachments.json"]["attachments"][0]
    attachment["hash"]["value"] = hashlib.sha256(artifact).hexdigest()
    archive.documents["memory/index.json"] = {"partitions": []}
    manifest = archive.documents["manifest.json"]
    manifest["layers"] |= {
        "identity": {"version": 1, "file": "identity.json"},
        "principals": {"count": 1, "file": "principals.json"},
        "credentials": {"count": 1, "file": "credentials.json"},
        "attachments": {"count": 1, "file": "attachments.json", "included_count": 1, "included_size_bytes": 4},
    }
    manifest |= {
        "runtime_hints": {"primary_model": "m", "last_model": "m", "context_window": 1, "notes": None},
        "sync": {"last_sequence": 1, "last_sync_at": "2026-01-15T10:30:00Z"},
        "raw_sources": ["openclaw"],
        "checksum": "sha256:00ff",
    }
    return archive


class Delta(Archive):
    """A delta with one change of each kind, and all that may come with them."""

    manifest_name = "delta-manifest.json"
    records_name = "memory/delta.jsonl"

    def __init__(self) -> None:
        super().__init__(*(a_record(n, operation=name) for n, name in enumerate(("create", "update", "delete"))))
        self.documents = {name: copy.deepcopy(_LAYERS[name]) for name in ("identity.json", "principals.json")}
        self.documents[self.manifest_name] = {
            "alf_version": "1.0.0",
            "created_at": "2026-01-15T10:30:00Z",
            "agent": {"id": AGENT, "source_runtime": "test"},
            "sync": {"base_sequence": 0, "new_sequence": 0},
            "changes": {
                "identity": {"file": "identity.json", "new_version": 2},
                "principals": {"file": "principals.json", "changed_ids": [an_id(30)]},
                "memory": {"file": self.records_name, "record_count": 3},
                "raw": {"changed": ["raw/openclaw/MEMORY.md"], "deleted": ["raw/openclaw/memory/old.md"]},
            },
        }
        self.entries["raw/openclaw/MEMORY.md"] = b"# M\n"


_LAYERS: dict[str, Any] = {
    "identity.json": {
        "id": an_id(20),
        "agent_id": AGENT,
        "version": 1,
        "updated_at": "2026-01-15T10:30:00Z",
        "structured": {
            "names": {"primary": "A", "nickname": "a", "full": None},
            "role": "r",
            "goals": ["g"],
            "psychology": {
                "neural_matrix": {"calm": 1},
                "personality_traits": {"framework": "ocean", "scores": {"o": 0.5}},
                "mbti": "INTJ",
            },
            "linguistics": {"verbosity": 0.5, "slang_usage": False, "idiolect": {"catchphrases": ["c"]}},
            "capabilities": [{"name": "c", "priority": 1, "portability": "intrinsic", "credential_ids": [an_id(40)]}],
            "sub_agents": [{"agent_id": None, "name": "s", "capabilities": [], "status": "active", "model_hints": {}}],
            "aieos_extensions": {},
        },
        "prose": {"soul": "s", "custom_blocks": {"boot_checklist": "b"}},
        "source_format": "openclaw",
        "raw_source": None,
    },
    "principals.json": {
        "principals": [
            {
                "id": an_id(30),
                "principal_type": "human",
                "agent_id": None,
                "profile": {
                    "id": an_id(31),
                    "agent_id": AGENT,
                    "principal_id": an_id(30),
                    "version": 1,
                    "updated_at": "2026-01-15T10:30:00Z",
                    "structured": {
                        "name": "U",
                        "timezone": "Europe/Berlin",
                        "communication_preferences": {"tone": "t"},
                        "work_context": {"projects": ["p"]},
                        "relationships": [{}],
                    },
                    "prose": {"user_profile": "u"},
                },
            }
        ]
    },
    "credentials.json": {
        "credentials": [
            {
                "id": an_id(40),
                "agent_id": AGENT,
                "service": "mail",
                "credential_type": "account",
                "encrypted_payload": "c2VhbGVk",
                "encryption": {
                    "algorithm": "aes-256-gcm",
                    "nonce": "MTIzNDU2Nzg5MDEy",
                    "kdf": "argon2id",
                    "kdf_params": {"memory_cost": 19456, "time_cost": 2, "parallelism": 1},
                },
                "created_at": "2026-01-15T10:30:00Z",
                "capabilities_granted": ["send"],
                "expires_at": None,
                "tags": ["t"],
            }
        ]
    },
    "attachments.json": {
        "artifact_size_threshold": 102400,
        "attachments": [
            {
                "id": an_id(50),
                "filename": "a.png",
                "media_type": "image/png",
                "size_bytes": 4,
                "hash": {"algorithm": "sha256", "value": ""},
                "source_path": "a.png",
                "archive_path": "artifacts/a.png",
                "remote_ref": None,
                "referenced_by": [an_id(1)],
            }
        ],
    },
}


def a_file_row(path: str, entry: str | None, data: bytes, **members: Any) -> dict[str, Any]:
    """What truekeep's own list says about a file."""
    return {
        "path": path,
        "entry": entry,
        "size": len(data),
        "mtime_ns": 1_768_000_000_000_000_000,
        "sha256": hashlib.sha256(data).hexdigest(),
        "mode": 0o600,
        "partitions": [],
        **members,
    }


def file_lines(*rows: object) -> bytes:
    return b"".join(json.dumps(row).encode() + b"\n" for row in rows)


def pack(parts: dict[str, bytes]) -> bytes:
    file = io.BytesIO()
    writer = ZipWriter(file)
    for name, data in parts.items():
        writer.add(name, data)
    writer.close()
    return file.getvalue()


def problems_of(data: bytes, *, most: int = 1000) -> list[ArchiveProblem]:
    with ZipReader(io.BytesIO(data)) as reader:
        return list(check_archive(reader, most=most))
