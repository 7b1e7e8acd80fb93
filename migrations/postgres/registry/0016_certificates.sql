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

create table certificates (
  tenant_id uuid not null default current_setting('app.tenant')::uuid,
  host text collate "C" not null,
  chain text collate "C",
  key text collate "C",
  issuer text collate "C",
  issued bigint,
  expires bigint,
  due bigint not null,
  attempted bigint,
  failures bigint not null,
  problem text collate "C",
  primary key (tenant_id, host)
);

create table acme_accounts (
  tenant_id uuid not null default current_setting('app.tenant')::uuid,
  directory text collate "C" not null,
  url text collate "C" not null,
  key text collate "C" not null,
  created bigint not null,
  primary key (tenant_id, directory)
);

create table acme_challenges (
  tenant_id uuid not null default current_setting('app.tenant')::uuid,
  token text collate "C" not null,
  answer text collate "C" not null,
  created bigint not null,
  primary key (tenant_id, token)
);
