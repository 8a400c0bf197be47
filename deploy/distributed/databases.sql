-- The accounts and databases of a deployment on several machines: once, by psql, as a superuser:
-- DAGSTER_PASSWORD=… PARTNER_SYNC_PASSWORD=… psql -h … -U postgres -f databases.sql
-- Compose runs it when its PostgreSQL is made. Tables are made by who uses them.
\set ON_ERROR_STOP on
\getenv dagster DAGSTER_PASSWORD
\getenv partner_sync PARTNER_SYNC_PASSWORD

CREATE ROLE dagster LOGIN PASSWORD :'dagster';
CREATE ROLE partner_sync LOGIN PASSWORD :'partner_sync';

CREATE DATABASE dagster OWNER dagster;
-- The ledger; texts are ordered as in a file.
CREATE DATABASE partner_sync OWNER partner_sync TEMPLATE template0 ENCODING 'UTF8' LOCALE 'C';
-- The lake's catalog: the one database that accounts of analysts may enter.
CREATE DATABASE lake OWNER partner_sync;
REVOKE ALL ON DATABASE dagster, partner_sync FROM PUBLIC;
