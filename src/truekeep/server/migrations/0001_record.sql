-- The record of team workspaces: files, ledger, queue, who may what, and what was decided.
--
-- The server works as the role truekeep_server, which owns nothing. Every table with rows of a workspace has row-level
-- security: without the setting truekeep.workspace it shows no row and takes none. What concerns several workspaces, or
-- is no business of a request, is only reached by the functions at the end.

CREATE TABLE deployment (
  only_one boolean PRIMARY KEY DEFAULT true CHECK (only_one),
  id text NOT NULL,                     -- the host's id in copies and folders, the same for every server process
  name text NOT NULL,
  signing_key bytea NOT NULL,           -- Ed25519; signs what copies install
  created_at timestamptz NOT NULL DEFAULT now()
);

CREATE TABLE workspace (
  id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  name text NOT NULL UNIQUE CHECK (name ~ '^[a-z0-9][a-z0-9._-]{0,39}$'),
  version bigint NOT NULL DEFAULT 0,    -- rises by one with every change
  commit_id uuid,                       -- of the change that made this version
  ledger_pages integer NOT NULL DEFAULT 0,
  fencing bigint NOT NULL DEFAULT 0,    -- rises whenever another process takes the lease
  lease_holder text NOT NULL DEFAULT '',
  lease_until timestamptz NOT NULL DEFAULT '-infinity',
  created_at timestamptz NOT NULL DEFAULT now()
);

CREATE TABLE account (
  id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  name text NOT NULL UNIQUE CHECK (name ~ '^[a-z0-9][a-z0-9._@+-]{0,63}$'),
  created_at timestamptz NOT NULL DEFAULT now(),
  disabled_at timestamptz
);

CREATE TABLE access_grant (
  account bigint NOT NULL REFERENCES account ON DELETE CASCADE,
  workspace bigint NOT NULL REFERENCES workspace ON DELETE CASCADE,
  role text NOT NULL CHECK (role IN ('reader', 'writer', 'reviewer', 'owner')),
  PRIMARY KEY (account, workspace)
);

CREATE TABLE token (
  id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  account bigint NOT NULL REFERENCES account ON DELETE CASCADE,
  hash bytea NOT NULL UNIQUE,           -- SHA-256; the token itself is shown once and kept nowhere
  label text NOT NULL DEFAULT '',
  workspace bigint REFERENCES workspace ON DELETE CASCADE,  -- NULL: every workspace of the account
  role text NOT NULL DEFAULT 'owner' CHECK (role IN ('reader', 'writer', 'reviewer', 'owner')),  -- at most
  created_at timestamptz NOT NULL DEFAULT now(),
  expires_at timestamptz,
  revoked_at timestamptz,
  last_used date
);

CREATE TABLE blob (
  workspace bigint NOT NULL REFERENCES workspace ON DELETE CASCADE,
  sha256 bytea NOT NULL,
  bytes bytea NOT NULL,
  PRIMARY KEY (workspace, sha256)
);

CREATE TABLE memory_file (
  workspace bigint NOT NULL REFERENCES workspace ON DELETE CASCADE,
  path text NOT NULL,
  sha256 bytea,                         -- NULL: removed, so that working folders learn of it
  mtime_ns bigint NOT NULL,
  version bigint NOT NULL,              -- of the workspace, when it was last changed
  PRIMARY KEY (workspace, path)
);
CREATE INDEX memory_file_version ON memory_file (workspace, version);
CREATE INDEX memory_file_blob ON memory_file (workspace, sha256);

CREATE TABLE ledger_page (              -- the pages of ledger.sqlite, so that a change costs the pages it changes
  workspace bigint NOT NULL REFERENCES workspace ON DELETE CASCADE,
  number integer NOT NULL,
  bytes bytea NOT NULL,
  version bigint NOT NULL,
  PRIMARY KEY (workspace, number)
);
CREATE INDEX ledger_page_version ON ledger_page (workspace, version);

CREATE TABLE handoff_queue (
  id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  workspace bigint NOT NULL REFERENCES workspace ON DELETE CASCADE,
  digest bytea NOT NULL,
  account bigint NOT NULL REFERENCES account,
  name text NOT NULL,
  writer text NOT NULL,
  machine text NOT NULL,
  repository text NOT NULL,
  bytes bytea NOT NULL,
  received_at timestamptz NOT NULL DEFAULT now(),
  state text NOT NULL DEFAULT 'waiting' CHECK (state IN ('waiting', 'done', 'failed')),
  attempts integer NOT NULL DEFAULT 0,
  outcome text NOT NULL DEFAULT '',
  target text NOT NULL DEFAULT '',
  note text NOT NULL DEFAULT '',
  done_at timestamptz,
  UNIQUE (workspace, digest)
);
CREATE INDEX handoff_queue_waiting ON handoff_queue (workspace, id) WHERE state = 'waiting';
CREATE INDEX handoff_queue_account ON handoff_queue (workspace, account, received_at);

CREATE TABLE decision (                 -- of reviewers; the holder of the lease carries them out
  id uuid PRIMARY KEY,
  workspace bigint NOT NULL REFERENCES workspace ON DELETE CASCADE,
  account bigint NOT NULL REFERENCES account,
  actor text NOT NULL,
  verb text NOT NULL,
  arguments jsonb NOT NULL,
  state text NOT NULL DEFAULT 'waiting' CHECK (state IN ('waiting', 'done')),
  result jsonb,
  created_at timestamptz NOT NULL DEFAULT now(),
  done_at timestamptz
);
CREATE INDEX decision_waiting ON decision (workspace, created_at) WHERE state = 'waiting';

CREATE TABLE audit (
  id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  at timestamptz NOT NULL DEFAULT now(),
  workspace bigint REFERENCES workspace ON DELETE SET NULL,
  actor text NOT NULL,
  act text NOT NULL,
  detail jsonb NOT NULL DEFAULT '{}'
);
CREATE INDEX audit_workspace ON audit (workspace, id);

CREATE TABLE publication (              -- the last state that copies on members' machines install
  workspace bigint PRIMARY KEY REFERENCES workspace ON DELETE CASCADE,
  version bigint NOT NULL,
  head jsonb NOT NULL,
  objects text[] NOT NULL
);
CREATE TABLE publication_object (
  workspace bigint NOT NULL REFERENCES workspace ON DELETE CASCADE,
  digest text NOT NULL,
  bytes bytea NOT NULL,
  PRIMARY KEY (workspace, digest)
);

-- Row-level security.

CREATE FUNCTION current_workspace() RETURNS bigint LANGUAGE sql STABLE AS
  $$ SELECT nullif(current_setting('truekeep.workspace', true), '')::bigint $$;

DO $$
DECLARE name text;
BEGIN
  FOREACH name IN ARRAY ARRAY['access_grant', 'blob', 'memory_file', 'ledger_page', 'handoff_queue', 'decision',
                              'audit', 'publication', 'publication_object']
  LOOP
    EXECUTE format('ALTER TABLE %I ENABLE ROW LEVEL SECURITY', name);
    EXECUTE format('CREATE POLICY one_workspace ON %I USING (workspace = current_workspace())'
                   ' WITH CHECK (workspace = current_workspace())', name);
  END LOOP;
END $$;
ALTER TABLE workspace ENABLE ROW LEVEL SECURITY;
CREATE POLICY one_workspace ON workspace USING (id = current_workspace()) WITH CHECK (id = current_workspace());
ALTER TABLE account ENABLE ROW LEVEL SECURITY;  -- no policy: reached by the functions below only
ALTER TABLE token ENABLE ROW LEVEL SECURITY;

GRANT SELECT ON deployment, workspace, migration TO truekeep_server;
GRANT UPDATE (version, commit_id, ledger_pages, fencing, lease_holder, lease_until) ON workspace TO truekeep_server;
GRANT SELECT, INSERT, UPDATE, DELETE ON blob, memory_file, ledger_page, publication, publication_object
  TO truekeep_server;
GRANT SELECT, INSERT, UPDATE ON handoff_queue, decision TO truekeep_server;
GRANT SELECT, INSERT ON audit TO truekeep_server;  -- never changed, never removed

-- What a request may know before it has a workspace.

CREATE FUNCTION role_rank(role text) RETURNS integer LANGUAGE sql IMMUTABLE AS
  $$ SELECT array_position(ARRAY['reader', 'writer', 'reviewer', 'owner'], role) $$;

CREATE FUNCTION find_token(given bytea, OUT token bigint, OUT account bigint, OUT name text, OUT problem text)
LANGUAGE sql STABLE SECURITY DEFINER AS $$
  SELECT t.id, a.id, a.name, CASE
      WHEN t.revoked_at IS NOT NULL THEN 'revoked'
      WHEN t.expires_at <= now() THEN 'expired'
      WHEN a.disabled_at IS NOT NULL THEN 'disabled'
      ELSE '' END
  FROM token t JOIN account a ON a.id = t.account WHERE t.hash = given
$$;

-- The workspaces that a valid token reaches, with its role there: the account's, and never above the token's own.
CREATE FUNCTION reachable(given bytea)
RETURNS TABLE (workspace bigint, name text, role text, version bigint)
LANGUAGE sql STABLE SECURITY DEFINER AS $$
  SELECT w.id, w.name, CASE WHEN role_rank(g.role) < role_rank(t.role) THEN g.role ELSE t.role END, w.version
  FROM token t
  JOIN account a ON a.id = t.account
  JOIN access_grant g ON g.account = a.id
  JOIN workspace w ON w.id = g.workspace
  WHERE t.hash = given AND t.revoked_at IS NULL AND (t.expires_at IS NULL OR t.expires_at > now())
    AND a.disabled_at IS NULL AND (t.workspace IS NULL OR t.workspace = w.id)
  ORDER BY w.name
$$;

CREATE FUNCTION note_use(given bytea) RETURNS void LANGUAGE sql SECURITY DEFINER AS $$
  UPDATE token SET last_used = current_date WHERE hash = given AND last_used IS DISTINCT FROM current_date
$$;

-- Workspaces with work for the holder of their lease.
CREATE FUNCTION waiting_workspaces() RETURNS SETOF bigint LANGUAGE sql STABLE SECURITY DEFINER AS $$
  SELECT workspace FROM handoff_queue WHERE state = 'waiting'
  UNION SELECT workspace FROM decision WHERE state = 'waiting'
$$;

CREATE FUNCTION renew_leases(holder text, seconds double precision)
RETURNS TABLE (workspace bigint, fencing bigint) LANGUAGE sql SECURITY DEFINER AS $$
  UPDATE workspace SET lease_until = clock_timestamp() + make_interval(secs => seconds)
  WHERE lease_holder = holder AND lease_until > clock_timestamp() RETURNING id, fencing
$$;

-- For /metrics: sums over all workspaces, without a name.
CREATE FUNCTION totals(OUT workspaces bigint, OUT waiting bigint, OUT oldest_seconds double precision, OUT held bigint)
LANGUAGE sql STABLE SECURITY DEFINER AS $$
  SELECT (SELECT count(*) FROM workspace),
    (SELECT count(*) FROM handoff_queue WHERE state = 'waiting'),
    (SELECT coalesce(extract(epoch FROM now() - min(received_at)), 0) FROM handoff_queue WHERE state = 'waiting'),
    (SELECT count(*) FROM workspace WHERE lease_until > now())
$$;

DO $$
DECLARE name text;
BEGIN
  FOREACH name IN ARRAY ARRAY['find_token(bytea)', 'reachable(bytea)', 'note_use(bytea)', 'waiting_workspaces()',
                              'renew_leases(text, double precision)', 'totals()']
  LOOP
    EXECUTE format('ALTER FUNCTION %s SET search_path = truekeep, pg_temp', name);
    EXECUTE format('REVOKE ALL ON FUNCTION %s FROM PUBLIC', name);
    EXECUTE format('GRANT EXECUTE ON FUNCTION %s TO truekeep_server', name);
  END LOOP;
END $$;
