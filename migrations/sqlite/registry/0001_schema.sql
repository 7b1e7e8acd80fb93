-- The registry of an installation on SQLite.

-- Tenants

-- `made` is when the database of a tenant was made: what is missing since then is not made again. `support` is the user as whom
-- the operator opens the tenant. Since `outgoing_held`, nothing leaves a tenant that is a copy. `restoring` is what a restore in
-- place has begun (JSON), and `earlier_uids` are the identities that the data had before restores, latest first (JSON).
-- `file_server` is the server in whose folder the file is, where several servers share this database.
create table tenants (
  id text not null primary key,
  uid text not null unique,
  earlier_uids text not null default '[]',
  status text not null check (status in ('active', 'suspended')),
  home text not null,
  file_server text,
  created integer not null,
  made integer,
  moved integer,
  schema_version integer,
  schema_problem text,
  support text,
  outgoing_held integer,
  restoring text
) strict;

-- Hosts at which tenants answer: those that the operator gave (`given`), and those that a tenant claims and proves by DNS.
create table hosts (
  host text not null primary key,
  tenant text not null references tenants (id) on delete cascade,
  given integer not null default 1,
  claimed integer,
  checked integer,
  missing integer
) strict;
create index hosts_of_tenant on hosts (tenant);

-- Origins of websites that may use the API of a tenant from a browser.
create table origins (
  origin text not null,
  tenant text not null references tenants (id) on delete cascade,
  version integer not null,
  primary key (origin, tenant)
) strict;
create index origins_of_tenant on origins (tenant);

-- What the operator allows each tenant.
create table tenant_limits (
  tenant text not null primary key references tenants (id) on delete cascade,
  rates text not null,
  quotas text not null default '{}'
) strict;

-- The last backup of each tenant, and the last one that failed.
create table tenant_backups (
  tenant text not null primary key references tenants (id) on delete cascade,
  place text,
  created integer,
  bytes integer,
  problem text,
  failed integer
) strict;

-- Data that tenants left where they are no longer served, until it is purged.
create table remains (
  uid text not null,
  home text not null,
  since integer not null,
  primary key (uid, home)
) strict;

-- Schemas of PostgreSQL whose tables many tenants share.
create table buckets (
  home text not null primary key,
  created integer not null
) strict;

-- The operator

-- Tokens of the operator that allow a part of what the token of the settings does.
create table operator_tokens (
  _id text not null primary key,
  name text not null unique,
  hash text not null unique,
  scopes text not null,
  created integer not null,
  expires integer,
  used integer
) strict;

-- What operators and the command line did with tenants.
create table operator_events (
  _id text not null primary key,
  event_name text not null,
  tenant text not null,
  metadata text not null,
  created integer not null
) strict;
create index operator_events_by_time on operator_events (created, _id);

-- Long work that operators started. The process that runs a task touches `updated` every few seconds.
create table operator_tasks (
  _id text not null primary key,
  kind text not null,
  tenant text not null,
  status text not null,
  input text not null,
  progress text,
  result text,
  problem text,
  created integer not null,
  updated integer not null,
  finished integer
) strict;
create index operator_tasks_by_time on operator_tasks (created, _id);

-- What operators chose for the whole installation.
create table installation_settings (
  name text not null primary key,
  value text not null
) strict;

create table secrets (
  name text not null primary key,
  value text not null
) strict;

-- Certificates

-- The certificates of hosts that are ordered from an ACME authority. The keys are encrypted.
create table certificates (
  host text not null primary key,
  chain text,
  key text,
  issuer text,
  issued integer,
  expires integer,
  due integer not null,
  attempted integer,
  failures integer not null,
  problem text
) strict;

create table acme_accounts (
  directory text not null primary key,
  url text not null,
  key text not null,
  created integer not null
) strict;

-- What any server answers to an ACME authority that checks a host.
create table acme_challenges (
  token text not null primary key,
  answer text not null,
  created integer not null
) strict;

-- Servers

-- The servers that share this database, and when each of them was last alive.
create table servers (
  name text not null primary key,
  details text not null,
  started integer not null,
  seen integer not null
) strict;

-- Which process does a kind of work, one at a time.
create table leases (
  name text not null primary key,
  holder text,
  token integer not null,
  expires integer not null
) strict;

-- The time for all who share this database, in ms.
create view clock as select cast(unixepoch('subsec') * 1000 as integer) as now;

-- Counters by topic, by which caches notice changes and numbers are assigned.
create table versions (
  topic text not null primary key,
  version integer not null
) strict;
