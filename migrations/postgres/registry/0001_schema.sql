-- The registry of installations on PostgreSQL.

-- Tenants

-- `made` is when the database of a tenant was made: what is missing since then is not made again. `support` is the user as whom
-- the operator opens the tenant. Since `outgoing_held`, nothing leaves a tenant that is a copy. `restoring` is what a restore in
-- place has begun (JSON), and `earlier_uids` are the identities that the data had before restores, latest first (JSON).
-- `file_server` is the server in whose folder the file is, where several servers share this database.
create table tenants (
  tenant_id uuid not null default current_setting('app.tenant')::uuid,
  id text collate "C" not null,
  uid text collate "C" not null,
  earlier_uids text collate "C" not null default '[]',
  status text collate "C" not null check (status in ('active', 'suspended')),
  home text collate "C" not null,
  file_server text collate "C",
  created bigint not null,
  made bigint,
  moved bigint,
  schema_version bigint,
  schema_problem text collate "C",
  support text collate "C",
  outgoing_held bigint,
  restoring text collate "C",
  primary key (tenant_id, id),
  unique (tenant_id, uid)
);

-- Hosts at which tenants answer: those that the operator gave (`given`), and those that a tenant claims and proves by DNS.
create table hosts (
  tenant_id uuid not null default current_setting('app.tenant')::uuid,
  host text collate "C" not null,
  tenant text collate "C" not null,
  given bigint not null default 1,
  claimed bigint,
  checked bigint,
  missing bigint,
  primary key (tenant_id, host),
  foreign key (tenant_id, tenant) references tenants (tenant_id, id) on delete cascade
);
create index hosts_of_tenant on hosts (tenant_id, tenant);

-- Origins of websites that may use the API of a tenant from a browser.
create table origins (
  tenant_id uuid not null default current_setting('app.tenant')::uuid,
  origin text collate "C" not null,
  tenant text collate "C" not null,
  version bigint not null,
  primary key (tenant_id, origin, tenant),
  foreign key (tenant_id, tenant) references tenants (tenant_id, id) on delete cascade
);
create index origins_of_tenant on origins (tenant_id, tenant);

-- What the operator allows each tenant.
create table tenant_limits (
  tenant_id uuid not null default current_setting('app.tenant')::uuid,
  tenant text collate "C" not null,
  rates text collate "C" not null,
  quotas text collate "C" not null default '{}',
  primary key (tenant_id, tenant),
  foreign key (tenant_id, tenant) references tenants (tenant_id, id) on delete cascade
);

-- The last backup of each tenant, and the last one that failed.
create table tenant_backups (
  tenant_id uuid not null default current_setting('app.tenant')::uuid,
  tenant text collate "C" not null,
  place text collate "C",
  created bigint,
  bytes bigint,
  problem text collate "C",
  failed bigint,
  primary key (tenant_id, tenant),
  foreign key (tenant_id, tenant) references tenants (tenant_id, id) on delete cascade
);

-- Data that tenants left where they are no longer served, until it is purged.
create table remains (
  tenant_id uuid not null default current_setting('app.tenant')::uuid,
  uid text collate "C" not null,
  home text collate "C" not null,
  since bigint not null,
  primary key (tenant_id, uid, home)
);

-- Schemas of PostgreSQL whose tables many tenants share.
create table buckets (
  tenant_id uuid not null default current_setting('app.tenant')::uuid,
  home text collate "C" not null,
  created bigint not null,
  primary key (tenant_id, home)
);

-- The operator

-- Tokens of the operator that allow a part of what the token of the settings does.
create table operator_tokens (
  tenant_id uuid not null default current_setting('app.tenant')::uuid,
  _id text collate "C" not null,
  name text collate "C" not null,
  hash text collate "C" not null,
  scopes text collate "C" not null,
  created bigint not null,
  expires bigint,
  used bigint,
  primary key (tenant_id, _id),
  unique (tenant_id, name),
  unique (tenant_id, hash)
);

-- What operators and the command line did with tenants.
create table operator_events (
  tenant_id uuid not null default current_setting('app.tenant')::uuid,
  _id text collate "C" not null,
  event_name text collate "C" not null,
  tenant text collate "C" not null,
  metadata text collate "C" not null,
  created bigint not null,
  primary key (tenant_id, _id)
);
create index operator_events_by_time on operator_events (tenant_id, created, _id);

-- Long work that operators started. The process that runs a task touches `updated` every few seconds.
create table operator_tasks (
  tenant_id uuid not null default current_setting('app.tenant')::uuid,
  _id text collate "C" not null,
  kind text collate "C" not null,
  tenant text collate "C" not null,
  status text collate "C" not null,
  input text collate "C" not null,
  progress text collate "C",
  result text collate "C",
  problem text collate "C",
  created bigint not null,
  updated bigint not null,
  finished bigint,
  primary key (tenant_id, _id)
);
create index operator_tasks_by_time on operator_tasks (tenant_id, created, _id);

-- What operators chose for the whole installation.
create table installation_settings (
  tenant_id uuid not null default current_setting('app.tenant')::uuid,
  name text collate "C" not null,
  value text collate "C" not null,
  primary key (tenant_id, name)
);

create table secrets (
  tenant_id uuid not null default current_setting('app.tenant')::uuid,
  name text collate "C" not null,
  value text collate "C" not null,
  primary key (tenant_id, name)
);

-- Certificates

-- The certificates of hosts that are ordered from an ACME authority. The keys are encrypted.
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

-- What any server answers to an ACME authority that checks a host.
create table acme_challenges (
  tenant_id uuid not null default current_setting('app.tenant')::uuid,
  token text collate "C" not null,
  answer text collate "C" not null,
  created bigint not null,
  primary key (tenant_id, token)
);

-- Servers

-- The servers that share this database, and when each of them was last alive.
create table servers (
  tenant_id uuid not null default current_setting('app.tenant')::uuid,
  name text collate "C" not null,
  details text collate "C" not null,
  started bigint not null,
  seen bigint not null,
  primary key (tenant_id, name)
);

-- Which process does a kind of work, one at a time.
create table leases (
  tenant_id uuid not null default current_setting('app.tenant')::uuid,
  name text collate "C" not null,
  holder text collate "C",
  token bigint not null,
  expires bigint not null,
  primary key (tenant_id, name)
);

-- The time for all who share this database, in ms; within a transaction it goes on.
create view clock as select (extract(epoch from clock_timestamp()) * 1000)::bigint as now;

-- Counters by topic, by which caches notice changes and numbers are assigned.
create table versions (
  tenant_id uuid not null default current_setting('app.tenant')::uuid,
  topic text collate "C" not null,
  version bigint not null,
  primary key (tenant_id, topic)
);
