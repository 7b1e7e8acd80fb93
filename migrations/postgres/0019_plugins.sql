create table cursors (
  tenant_id uuid not null default current_setting('app.tenant')::uuid,
  name text collate "C" not null,
  seq bigint not null,
  primary key (tenant_id, name)
);

create table plugins (
  tenant_id uuid not null default current_setting('app.tenant')::uuid,
  _id text collate "C" not null,
  name text collate "C" not null,
  description text collate "C" not null,
  manifest_url text collate "C",
  api_path text collate "C",
  proxy_url text collate "C",
  subscribed_events text collate "C" not null,
  active bigint not null,
  account text collate "C",
  former_until bigint,
  last_error text collate "C",
  failed bigint,
  succeeded bigint,
  created bigint not null,
  updated bigint not null,
  primary key (tenant_id, _id),
  unique (tenant_id, name),
  unique (tenant_id, api_path),
  unique (tenant_id, account)
);

create index plugins_by_time on plugins (tenant_id, created, _id);

create table deliveries (
  tenant_id uuid not null default current_setting('app.tenant')::uuid,
  _id text collate "C" not null,
  plugin text collate "C" not null,
  event text collate "C" not null,
  source text collate "C" not null,
  kind text collate "C" not null,
  event_name text collate "C" not null,
  hook_url text collate "C" not null,
  state text collate "C" not null,
  attempts bigint not null,
  status bigint,
  duration bigint,
  answer text collate "C" not null,
  error text collate "C",
  due bigint,
  created bigint not null,
  updated bigint not null,
  primary key (tenant_id, _id)
);

create index deliveries_of_plugin on deliveries (tenant_id, plugin, created, _id);

create index deliveries_by_state on deliveries (tenant_id, plugin, state, created, _id);

create index deliveries_by_time on deliveries (tenant_id, updated);
