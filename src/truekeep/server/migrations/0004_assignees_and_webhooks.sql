-- Who looks at a draft; and the addresses that are told when drafts wait.

CREATE TABLE assignment (
  workspace bigint NOT NULL REFERENCES workspace ON DELETE CASCADE,
  draft text NOT NULL,                  -- its id; a row whose draft is gone means nothing
  account bigint NOT NULL REFERENCES account ON DELETE CASCADE,
  assigned_by text NOT NULL,
  at timestamptz NOT NULL DEFAULT now(),
  PRIMARY KEY (workspace, draft)
);

CREATE TABLE webhook (
  id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  workspace bigint NOT NULL REFERENCES workspace ON DELETE CASCADE,
  url text NOT NULL,
  secret text NOT NULL,                 -- whsec_…: signs each message
  with_titles boolean NOT NULL DEFAULT false,
  site text NOT NULL DEFAULT '',        -- where people open the pages of this server
  created_at timestamptz NOT NULL DEFAULT now(),
  UNIQUE (workspace, url)
);

CREATE TABLE webhook_message (
  id uuid PRIMARY KEY,                  -- the same with each attempt, so that a receiver can drop a second one
  workspace bigint NOT NULL REFERENCES workspace ON DELETE CASCADE,
  webhook bigint NOT NULL REFERENCES webhook ON DELETE CASCADE,
  body text NOT NULL,
  state text NOT NULL DEFAULT 'waiting' CHECK (state IN ('waiting', 'done', 'failed')),
  attempts integer NOT NULL DEFAULT 0,
  due_at timestamptz NOT NULL DEFAULT now(),
  problem text NOT NULL DEFAULT '',     -- of the last attempt
  created_at timestamptz NOT NULL DEFAULT now(),
  done_at timestamptz
);
CREATE INDEX webhook_message_due ON webhook_message (due_at) WHERE state = 'waiting';
CREATE INDEX webhook_message_webhook ON webhook_message (webhook, created_at);

DO $$
DECLARE name text;
BEGIN
  FOREACH name IN ARRAY ARRAY['assignment', 'webhook', 'webhook_message']
  LOOP
    EXECUTE format('ALTER TABLE %I ENABLE ROW LEVEL SECURITY', name);
    EXECUTE format('CREATE POLICY one_workspace ON %I USING (workspace = current_workspace())'
                   ' WITH CHECK (workspace = current_workspace())', name);
  END LOOP;
END $$;

GRANT SELECT, INSERT, UPDATE, DELETE ON assignment TO truekeep_server;
GRANT SELECT ON webhook TO truekeep_server;
GRANT SELECT, INSERT, UPDATE, DELETE ON webhook_message TO truekeep_server;

-- Names of accounts, as far as a member of the workspace may know them.

CREATE FUNCTION reviewers() RETURNS TABLE (account bigint, name text) LANGUAGE sql STABLE SECURITY DEFINER AS $$
  SELECT a.id, a.name FROM access_grant g JOIN account a ON a.id = g.account
  WHERE g.workspace = current_workspace() AND g.role IN ('reviewer', 'owner') AND a.disabled_at IS NULL
  ORDER BY a.name
$$;

-- The handoffs of the workspace with the account that handed them in.
CREATE FUNCTION handed_in_by(digests bytea[]) RETURNS TABLE (digest bytea, name text)
LANGUAGE sql STABLE SECURITY DEFINER AS $$
  SELECT q.digest, a.name FROM handoff_queue q JOIN account a ON a.id = q.account
  WHERE q.workspace = current_workspace() AND q.digest = ANY(digests)
$$;

CREATE OR REPLACE FUNCTION waiting_workspaces() RETURNS SETOF bigint LANGUAGE sql STABLE SECURITY DEFINER
SET search_path = truekeep, pg_temp AS $$
  SELECT workspace FROM handoff_queue WHERE state = 'waiting'
  UNION SELECT workspace FROM decision WHERE state = 'waiting'
  UNION SELECT workspace FROM webhook_message WHERE state = 'waiting' AND due_at <= now()
$$;

-- The next message that a holder of a lease sends. Nobody else takes it before `seconds` are over.
CREATE FUNCTION take_webhook_message(holder text, delays double precision[])
RETURNS TABLE (workspace bigint, id uuid, attempts integer, body text, url text, secret text)
LANGUAGE sql SECURITY DEFINER AS $$
  UPDATE webhook_message m SET attempts = m.attempts + 1,
    due_at = now() + make_interval(secs => delays[least(m.attempts + 1, cardinality(delays))])
  FROM webhook h
  WHERE h.id = m.webhook AND m.id = (
    SELECT n.id FROM webhook_message n JOIN workspace w ON w.id = n.workspace
    WHERE n.state = 'waiting' AND n.due_at <= now()
      AND w.lease_holder = holder AND w.lease_until > clock_timestamp()
    ORDER BY n.due_at LIMIT 1 FOR UPDATE OF n SKIP LOCKED)
  RETURNING m.workspace, m.id, m.attempts, m.body, h.url, h.secret
$$;

CREATE FUNCTION webhook_totals(OUT waiting bigint, OUT failed bigint) LANGUAGE sql STABLE SECURITY DEFINER AS $$
  SELECT count(*) FILTER (WHERE state = 'waiting'), count(*) FILTER (WHERE state = 'failed') FROM webhook_message
$$;

DO $$
DECLARE name text;
BEGIN
  FOREACH name IN ARRAY ARRAY['reviewers()', 'handed_in_by(bytea[])', 'webhook_totals()',
                              'take_webhook_message(text, double precision[])']
  LOOP
    EXECUTE format('ALTER FUNCTION %s SET search_path = truekeep, pg_temp', name);
    EXECUTE format('REVOKE ALL ON FUNCTION %s FROM PUBLIC', name);
    EXECUTE format('GRANT EXECUTE ON FUNCTION %s TO truekeep_server', name);
  END LOOP;
END $$;
