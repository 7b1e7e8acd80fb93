-- What a restore in place has begun (JSON); null for tenants whose data are not being replaced.
alter table tenants add column restoring text;
-- The server in whose folder a file of a tenant is, where several servers share this database.
alter table tenants add column file_server text;

-- What operators chose for the whole installation.
create table installation_settings (
  name text not null primary key,
  value text not null
) strict;

-- The servers that share this database, and when each of them was last alive.
create table servers (
  name text not null primary key,
  details text not null,
  started integer not null,
  seen integer not null
) strict;
