-- OAuth 2.1 for MCP: programs that registered themselves, what people allowed them, codes and refresh tokens.
-- Access tokens are rows of token. The server's role reaches all of it through the functions at the end only.

CREATE TABLE oauth_client (
  id uuid PRIMARY KEY,
  name text NOT NULL,
  info jsonb NOT NULL,                  -- what it registered, as RFC 7591 has it; there is no secret in it
  created_at timestamptz NOT NULL DEFAULT now(),
  approved_at timestamptz,              -- when somebody first allowed it something
  revoked_at timestamptz
);
CREATE INDEX oauth_client_created ON oauth_client (created_at);

CREATE TABLE oauth_grant (              -- what one person allowed one program, in one workspace
  id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  client uuid NOT NULL REFERENCES oauth_client ON DELETE CASCADE,
  account bigint NOT NULL REFERENCES account ON DELETE CASCADE,
  workspace bigint NOT NULL REFERENCES workspace ON DELETE CASCADE,
  role text NOT NULL CHECK (role IN ('reader', 'writer')),  -- at most
  signed_in_with bigint REFERENCES token ON DELETE CASCADE,  -- the grant ends with it
  resource text NOT NULL,
  created_at timestamptz NOT NULL DEFAULT now(),
  expires_at timestamptz NOT NULL,
  revoked_at timestamptz
);
CREATE INDEX oauth_grant_client ON oauth_grant (client);
CREATE INDEX oauth_grant_account ON oauth_grant (account);
CREATE INDEX oauth_grant_expires ON oauth_grant (expires_at);

CREATE TABLE oauth_code (
  hash bytea PRIMARY KEY,
  client uuid NOT NULL REFERENCES oauth_client ON DELETE CASCADE,
  account bigint NOT NULL REFERENCES account ON DELETE CASCADE,
  workspace bigint NOT NULL REFERENCES workspace ON DELETE CASCADE,
  role text NOT NULL CHECK (role IN ('reader', 'writer')),
  signed_in_with bigint REFERENCES token ON DELETE CASCADE,
  resource text NOT NULL,
  redirect_uri text NOT NULL,
  is_redirect_given boolean NOT NULL,
  challenge text NOT NULL,              -- PKCE, S256
  expires_at timestamptz NOT NULL,
  used_at timestamptz,
  oauth_grant bigint REFERENCES oauth_grant ON DELETE CASCADE
);
CREATE INDEX oauth_code_expires ON oauth_code (expires_at);

CREATE TABLE oauth_refresh (            -- used ones are kept as long as the grant: a second use ends it
  hash bytea PRIMARY KEY,
  oauth_grant bigint NOT NULL REFERENCES oauth_grant ON DELETE CASCADE,
  expires_at timestamptz NOT NULL,
  used_at timestamptz
);
CREATE INDEX oauth_refresh_grant ON oauth_refresh (oauth_grant);

ALTER TABLE token ADD COLUMN oauth_grant bigint REFERENCES oauth_grant ON DELETE CASCADE;
CREATE INDEX token_oauth_grant ON token (oauth_grant);

ALTER TABLE oauth_client ENABLE ROW LEVEL SECURITY;  -- no policies
ALTER TABLE oauth_grant ENABLE ROW LEVEL SECURITY;
ALTER TABLE oauth_code ENABLE ROW LEVEL SECURITY;
ALTER TABLE oauth_refresh ENABLE ROW LEVEL SECURITY;

-- As before; a token of a program also ends with its grant, its program, and the token that was signed in with.
CREATE OR REPLACE FUNCTION find_token(given bytea, OUT token bigint, OUT account bigint, OUT name text, OUT problem text)
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = truekeep, pg_temp AS $$
  SELECT t.id, a.id, a.name, CASE
      WHEN t.revoked_at IS NOT NULL OR g.revoked_at IS NOT NULL OR c.revoked_at IS NOT NULL
        OR s.revoked_at IS NOT NULL THEN 'revoked'
      WHEN t.expires_at <= now() OR g.expires_at <= now() OR s.expires_at <= now() THEN 'expired'
      WHEN a.disabled_at IS NOT NULL THEN 'disabled'
      ELSE '' END
  FROM token t
  JOIN account a ON a.id = t.account
  LEFT JOIN oauth_grant g ON g.id = t.oauth_grant
  LEFT JOIN oauth_client c ON c.id = g.client
  LEFT JOIN token s ON s.id = g.signed_in_with
  WHERE t.hash = given
$$;

CREATE OR REPLACE FUNCTION reachable(given bytea)
RETURNS TABLE (workspace bigint, name text, role text, version bigint)
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = truekeep, pg_temp AS $$
  SELECT w.id, w.name, CASE WHEN role_rank(g.role) < role_rank(t.role) THEN g.role ELSE t.role END, w.version
  FROM find_token(given) f
  JOIN token t ON t.id = f.token
  JOIN access_grant g ON g.account = t.account
  JOIN workspace w ON w.id = g.workspace
  WHERE f.problem = '' AND (t.workspace IS NULL OR t.workspace = w.id)
  ORDER BY w.name
$$;

-- Programs register themselves, without anybody having signed in: so there may be only so many that nobody allowed.
CREATE FUNCTION register_oauth_client(given uuid, name text, info jsonb, a_minute integer, waiting integer)
RETURNS boolean LANGUAGE plpgsql SECURITY DEFINER AS $$
BEGIN
  PERFORM pg_advisory_xact_lock(1953198951);  -- counts and adds as one
  DELETE FROM oauth_client WHERE approved_at IS NULL AND created_at < now() - interval '1 day';
  IF (SELECT count(*) FROM oauth_client WHERE created_at > now() - interval '1 minute') >= a_minute
    OR (SELECT count(*) FROM oauth_client WHERE approved_at IS NULL) >= waiting THEN RETURN false; END IF;
  INSERT INTO oauth_client (id, name, info) VALUES (given, name, info);
  RETURN true;
END $$;

CREATE FUNCTION find_oauth_client(given uuid) RETURNS jsonb LANGUAGE sql STABLE SECURITY DEFINER AS $$
  SELECT info FROM oauth_client WHERE id = given AND revoked_at IS NULL
$$;

-- Whoever has this session allows a program something. `problem` says why not.
CREATE FUNCTION approve_oauth(
  given_session bytea, given_client uuid, given_workspace bigint, given_role text, code bytea, resource text,
  redirect_uri text, is_redirect_given boolean, challenge text, seconds double precision, OUT problem text
) LANGUAGE plpgsql SECURITY DEFINER AS $$
DECLARE signed_in record; reach record; program record;
BEGIN
  SELECT * INTO signed_in FROM find_session(given_session);
  IF signed_in.session IS NULL OR signed_in.problem <> '' THEN problem := 'session'; RETURN; END IF;
  SELECT * INTO reach FROM session_reachable(given_session) r WHERE r.workspace = given_workspace;
  IF reach.workspace IS NULL OR role_rank(given_role) > role_rank(reach.role) THEN problem := 'role'; RETURN; END IF;
  UPDATE oauth_client SET approved_at = coalesce(approved_at, now())
    WHERE id = given_client AND revoked_at IS NULL RETURNING * INTO program;
  IF program.id IS NULL THEN problem := 'client'; RETURN; END IF;
  DELETE FROM oauth_code WHERE expires_at < now() - interval '1 day';
  INSERT INTO oauth_code
    SELECT code, given_client, signed_in.account, given_workspace, given_role, b.token, resource, redirect_uri,
      is_redirect_given, challenge, now() + make_interval(secs => seconds)
    FROM browser_session b WHERE b.id = signed_in.session;
  INSERT INTO audit (workspace, actor, act, detail) VALUES (
    given_workspace, signed_in.name, 'program-allowed',
    jsonb_build_object('client', given_client, 'name', program.name, 'role', given_role));
  problem := '';
END $$;

CREATE FUNCTION find_oauth_code(
  given bytea, OUT client uuid, OUT role text, OUT resource text, OUT redirect_uri text, OUT is_redirect_given boolean,
  OUT challenge text, OUT seconds double precision
) LANGUAGE sql STABLE SECURITY DEFINER AS $$
  SELECT client, role, resource, redirect_uri, is_redirect_given, challenge,
    extract(epoch FROM expires_at - clock_timestamp())
  FROM oauth_code WHERE hash = given
$$;

CREATE FUNCTION end_oauth_grant(given bigint, why text) RETURNS void LANGUAGE sql SECURITY DEFINER AS $$
  WITH ended AS (UPDATE oauth_grant SET revoked_at = now() WHERE id = given AND revoked_at IS NULL RETURNING *)
  INSERT INTO audit (workspace, actor, act, detail)
    SELECT e.workspace, a.name, 'program-ended', jsonb_build_object('client', e.client, 'why', why)
    FROM ended e JOIN account a ON a.id = e.account
$$;

CREATE FUNCTION add_oauth_tokens(
  given bigint, most text, access bytea, refresh bytea, access_seconds double precision, refresh_seconds double precision
) RETURNS void LANGUAGE sql SECURITY DEFINER AS $$
  DELETE FROM token WHERE oauth_grant = given AND expires_at < now() - interval '1 day';
  INSERT INTO token (account, hash, label, workspace, role, expires_at, oauth_grant)
    SELECT g.account, access, c.name, g.workspace, most,
      least(now() + make_interval(secs => access_seconds), g.expires_at), g.id
    FROM oauth_grant g JOIN oauth_client c ON c.id = g.client WHERE g.id = given;
  INSERT INTO oauth_refresh (hash, oauth_grant, expires_at)
    SELECT refresh, id, least(now() + make_interval(secs => refresh_seconds), expires_at)
    FROM oauth_grant WHERE id = given;
$$;

-- Tokens for a code, once. A second time ends what the first one got.
CREATE FUNCTION redeem_oauth_code(
  given_client uuid, given bytea, access bytea, refresh bytea, access_seconds double precision,
  refresh_seconds double precision, grant_seconds double precision, OUT problem text
) LANGUAGE plpgsql SECURITY DEFINER AS $$
DECLARE found oauth_code%ROWTYPE; made bigint;
BEGIN
  SELECT * INTO found FROM oauth_code WHERE hash = given AND client = given_client FOR UPDATE;
  IF found.hash IS NULL OR found.expires_at <= now() OR find_oauth_client(given_client) IS NULL THEN
    problem := 'unknown'; RETURN;
  END IF;
  IF found.used_at IS NOT NULL THEN
    PERFORM end_oauth_grant(found.oauth_grant, 'a code was used twice');
    problem := 'used'; RETURN;
  END IF;
  DELETE FROM oauth_grant WHERE expires_at < now() - interval '30 days' OR revoked_at < now() - interval '30 days';
  INSERT INTO oauth_grant (client, account, workspace, role, signed_in_with, resource, expires_at) VALUES (
    given_client, found.account, found.workspace, found.role, found.signed_in_with, found.resource,
    now() + make_interval(secs => grant_seconds)) RETURNING id INTO made;
  UPDATE oauth_code SET used_at = now(), oauth_grant = made WHERE hash = given;
  PERFORM add_oauth_tokens(made, found.role, access, refresh, access_seconds, refresh_seconds);
  problem := (SELECT f.problem FROM find_token(access) f);
  IF problem <> '' THEN PERFORM end_oauth_grant(made, problem); END IF;
END $$;

CREATE FUNCTION find_oauth_refresh(
  given bytea, OUT client uuid, OUT role text, OUT resource text, OUT seconds double precision
) LANGUAGE sql STABLE SECURITY DEFINER AS $$
  SELECT g.client, g.role, g.resource, extract(epoch FROM r.expires_at - clock_timestamp())
  FROM oauth_refresh r JOIN oauth_grant g ON g.id = r.oauth_grant WHERE r.hash = given
$$;

-- New tokens for a refresh token, once. A second use means that somebody else has it: all of the grant ends.
CREATE FUNCTION rotate_oauth_refresh(
  given_client uuid, given bytea, most text, access bytea, refresh bytea, access_seconds double precision,
  refresh_seconds double precision, OUT problem text
) LANGUAGE plpgsql SECURITY DEFINER AS $$
DECLARE found record;
BEGIN
  SELECT r.*, g.role, g.revoked_at, g.expires_at AS ends INTO found
    FROM oauth_refresh r JOIN oauth_grant g ON g.id = r.oauth_grant
    WHERE r.hash = given AND g.client = given_client FOR UPDATE OF r, g;
  IF found.hash IS NULL OR found.expires_at <= now() OR found.ends <= now() OR found.revoked_at IS NOT NULL
    OR find_oauth_client(given_client) IS NULL THEN problem := 'unknown'; RETURN;
  END IF;
  IF found.used_at IS NOT NULL THEN
    PERFORM end_oauth_grant(found.oauth_grant, 'a refresh token was used twice');
    problem := 'used'; RETURN;
  END IF;
  UPDATE oauth_refresh SET used_at = now() WHERE hash = given;
  PERFORM add_oauth_tokens(
    found.oauth_grant, CASE WHEN role_rank(most) < role_rank(found.role) THEN most ELSE found.role END, access, refresh,
    access_seconds, refresh_seconds);
  problem := (SELECT f.problem FROM find_token(access) f);
  IF problem <> '' THEN PERFORM end_oauth_grant(found.oauth_grant, problem); END IF;
END $$;

-- End a grant by any token of it.
CREATE FUNCTION revoke_oauth(given_client uuid, given bytea) RETURNS void LANGUAGE sql SECURITY DEFINER AS $$
  SELECT end_oauth_grant(g.id, 'the program ended it') FROM oauth_grant g
  WHERE g.client = given_client AND g.id IN (
    SELECT oauth_grant FROM token WHERE hash = given UNION SELECT oauth_grant FROM oauth_refresh WHERE hash = given)
$$;

DO $$
DECLARE name text;
BEGIN
  FOREACH name IN ARRAY ARRAY[
    'register_oauth_client(uuid, text, jsonb, integer, integer)', 'find_oauth_client(uuid)',
    'approve_oauth(bytea, uuid, bigint, text, bytea, text, text, boolean, text, double precision)',
    'find_oauth_code(bytea)', 'find_oauth_refresh(bytea)', 'revoke_oauth(uuid, bytea)',
    'redeem_oauth_code(uuid, bytea, bytea, bytea, double precision, double precision, double precision)',
    'rotate_oauth_refresh(uuid, bytea, text, bytea, bytea, double precision, double precision)']
  LOOP
    EXECUTE format('ALTER FUNCTION %s SET search_path = truekeep, pg_temp', name);
    EXECUTE format('REVOKE ALL ON FUNCTION %s FROM PUBLIC', name);
    EXECUTE format('GRANT EXECUTE ON FUNCTION %s TO truekeep_server', name);
  END LOOP;
  FOREACH name IN ARRAY ARRAY[  -- only the functions above use them
    'end_oauth_grant(bigint, text)',
    'add_oauth_tokens(bigint, text, bytea, bytea, double precision, double precision)']
  LOOP
    EXECUTE format('ALTER FUNCTION %s SET search_path = truekeep, pg_temp', name);
    EXECUTE format('REVOKE ALL ON FUNCTION %s FROM PUBLIC', name);
  END LOOP;
END $$;
