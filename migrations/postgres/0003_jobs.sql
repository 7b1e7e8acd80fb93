create table leases (
  tenant_id uuid not null default current_setting('app.tenant')::uuid,
  name text collate "C" not null,
  holder text collate "C",
  token bigint not null,
  expires bigint not null,
  primary key (tenant_id, name)
);

-- What time it is for all who share this database, in ms; within a transaction it goes on.
create view clock as select (extract(epoch from clock_timestamp()) * 1000)::bigint as now;

create index sessions_by_expiry on sessions (tenant_id, expires);
create index keys_by_expiry on session_keys (tenant_id, expires);
