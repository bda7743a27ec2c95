-- Sessions of people in browsers. The server's role reaches them through the functions at the end only.

CREATE TABLE browser_session (
  id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  account bigint NOT NULL REFERENCES account ON DELETE CASCADE,
  hash bytea NOT NULL UNIQUE,           -- SHA-256 of what the cookie has
  token bigint REFERENCES token ON DELETE CASCADE,  -- it was signed in with: the session has no more, and ends with it
  created_at timestamptz NOT NULL DEFAULT now(),
  expires_at timestamptz NOT NULL,
  revoked_at timestamptz
);
CREATE INDEX browser_session_expires ON browser_session (expires_at);
CREATE INDEX browser_session_account ON browser_session (account);
ALTER TABLE browser_session ENABLE ROW LEVEL SECURITY;  -- no policy

-- Start a session with a token that is valid now; otherwise `problem` says why not.
CREATE FUNCTION start_token_session(given_token bytea, given bytea, seconds double precision, OUT problem text)
LANGUAGE plpgsql SECURITY DEFINER AS $$
DECLARE found record;
BEGIN
  SELECT * INTO found FROM find_token(given_token);
  problem := CASE WHEN found.token IS NULL THEN 'unknown' ELSE found.problem END;
  IF problem <> '' THEN RETURN; END IF;
  DELETE FROM browser_session WHERE expires_at < now() - interval '7 days';
  INSERT INTO browser_session (account, hash, token, expires_at)
    SELECT t.account, given, t.id, least(now() + make_interval(secs => seconds), t.expires_at)
    FROM token t WHERE t.id = found.token;
  UPDATE token SET last_used = current_date WHERE id = found.token;
  INSERT INTO audit (workspace, actor, act, detail)
    SELECT t.workspace, found.name, 'signed-in', jsonb_build_object('token', t.id) FROM token t WHERE t.id = found.token;
END $$;

CREATE FUNCTION find_session(given bytea, OUT session bigint, OUT account bigint, OUT name text, OUT problem text)
LANGUAGE sql STABLE SECURITY DEFINER AS $$
  SELECT s.id, a.id, a.name, CASE
      WHEN s.revoked_at IS NOT NULL THEN 'revoked'
      WHEN s.expires_at <= now() THEN 'expired'
      WHEN a.disabled_at IS NOT NULL THEN 'disabled'
      WHEN t.revoked_at IS NOT NULL THEN 'revoked'
      WHEN t.expires_at <= now() THEN 'expired'
      ELSE '' END
  FROM browser_session s JOIN account a ON a.id = s.account LEFT JOIN token t ON t.id = s.token WHERE s.hash = given
$$;

-- The workspaces that a valid session reaches, with its role there: the account's, and never above the token's.
CREATE FUNCTION session_reachable(given bytea)
RETURNS TABLE (workspace bigint, name text, role text, version bigint)
LANGUAGE sql STABLE SECURITY DEFINER AS $$
  SELECT w.id, w.name,
    CASE WHEN t.role IS NULL OR role_rank(g.role) < role_rank(t.role) THEN g.role ELSE t.role END, w.version
  FROM find_session(given) s
  JOIN browser_session b ON b.id = s.session
  LEFT JOIN token t ON t.id = b.token
  JOIN access_grant g ON g.account = s.account
  JOIN workspace w ON w.id = g.workspace
  WHERE s.problem = '' AND (t.workspace IS NULL OR t.workspace = w.id)
  ORDER BY w.name
$$;

CREATE FUNCTION end_session(given bytea) RETURNS void LANGUAGE sql SECURITY DEFINER AS $$
  WITH ended AS (
    UPDATE browser_session SET revoked_at = now() WHERE hash = given AND revoked_at IS NULL RETURNING account
  )
  INSERT INTO audit (actor, act) SELECT a.name, 'signed-out' FROM ended JOIN account a ON a.id = ended.account
$$;

DO $$
DECLARE name text;
BEGIN
  FOREACH name IN ARRAY ARRAY['start_token_session(bytea, bytea, double precision)', 'find_session(bytea)',
                              'session_reachable(bytea)', 'end_session(bytea)']
  LOOP
    EXECUTE format('ALTER FUNCTION %s SET search_path = truekeep, pg_temp', name);
    EXECUTE format('REVOKE ALL ON FUNCTION %s FROM PUBLIC', name);
    EXECUTE format('GRANT EXECUTE ON FUNCTION %s TO truekeep_server', name);
  END LOOP;
END $$;
