-- Whom an OpenID provider's people are here. The server's role reaches it through the function at the end only.

CREATE TABLE identity (
  id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  account bigint NOT NULL REFERENCES account ON DELETE CASCADE,
  issuer text NOT NULL,
  subject text,                         -- NULL until somebody with the address signed in for the first time
  email text,                           -- in lower case; only a verified address is compared with it
  created_at timestamptz NOT NULL DEFAULT now(),
  CHECK (subject IS NOT NULL OR email IS NOT NULL),
  UNIQUE (issuer, subject)
);
CREATE UNIQUE INDEX identity_email ON identity (issuer, email) WHERE subject IS NULL;
CREATE INDEX identity_account ON identity (account);
ALTER TABLE identity ENABLE ROW LEVEL SECURITY;  -- no policy

-- Sign in somebody whom the provider has vouched for. An address that was linked belongs to the first subject that has
-- it: whoever gets the address later is somebody else. `new_name`: the account to make if there is none; '': none.
CREATE FUNCTION start_identity_session(
  given_issuer text, given_subject text, verified_email text, new_name text, given bytea, seconds double precision,
  OUT problem text, OUT name text
) LANGUAGE plpgsql SECURITY DEFINER AS $$
DECLARE number bigint; disabled timestamptz;
BEGIN
  SELECT i.account INTO number FROM identity i WHERE i.issuer = given_issuer AND i.subject = given_subject;
  IF number IS NULL AND verified_email <> '' THEN
    UPDATE identity i SET subject = given_subject
      WHERE i.issuer = given_issuer AND i.email = verified_email AND i.subject IS NULL RETURNING i.account INTO number;
  END IF;
  IF number IS NULL AND new_name <> '' THEN
    INSERT INTO account (name) VALUES (new_name) ON CONFLICT DO NOTHING RETURNING account.id INTO number;
    IF number IS NULL THEN problem := 'name-taken'; RETURN; END IF;
    INSERT INTO identity (account, issuer, subject, email)
      VALUES (number, given_issuer, given_subject, nullif(verified_email, ''));
    INSERT INTO audit (actor, act, detail) VALUES (new_name, 'account-created', jsonb_build_object('issuer', given_issuer));
  END IF;
  IF number IS NULL THEN problem := 'no-account'; RETURN; END IF;
  SELECT a.name, a.disabled_at INTO name, disabled FROM account a WHERE a.id = number;
  IF disabled IS NOT NULL THEN problem := 'disabled'; RETURN; END IF;
  DELETE FROM browser_session WHERE expires_at < now() - interval '7 days';
  INSERT INTO browser_session (account, hash, expires_at) VALUES (number, given, now() + make_interval(secs => seconds));
  INSERT INTO audit (actor, act, detail) VALUES (name, 'signed-in', jsonb_build_object('issuer', given_issuer));
  problem := '';
END $$;

ALTER FUNCTION start_identity_session(text, text, text, text, bytea, double precision)
  SET search_path = truekeep, pg_temp;
REVOKE ALL ON FUNCTION start_identity_session(text, text, text, text, bytea, double precision) FROM PUBLIC;
GRANT EXECUTE ON FUNCTION start_identity_session(text, text, text, text, bytea, double precision) TO truekeep_server;
