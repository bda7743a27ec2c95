#!/bin/sh
# Run once by the database's image: the role of the server, and the login that has it and owns nothing.
set -eu
psql -v ON_ERROR_STOP=1 -v password="$SERVER_PASSWORD" -U postgres -d truekeep <<'SQL'
CREATE ROLE truekeep_server NOLOGIN;
CREATE ROLE truekeep_login LOGIN PASSWORD :'password' IN ROLE truekeep_server;
SQL
