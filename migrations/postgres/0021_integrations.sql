create table connections (
  tenant_id uuid not null default current_setting('app.tenant')::uuid,
  _id text collate "C" not null,
  name text collate "C" not null,
  kind text collate "C" not null,
  labels text collate "C" not null,
  metadata text collate "C" not null,
  version bigint not null,
  created bigint not null,
  updated bigint not null,
  primary key (tenant_id, _id)
);

create index connections_by_time on connections (tenant_id, created, _id);

create index connections_by_kind on connections (tenant_id, kind, created, _id);

create table integrations (
  tenant_id uuid not null default current_setting('app.tenant')::uuid,
  _id text collate "C" not null,
  name text collate "C",
  active bigint not null,
  guest bigint not null,
  trigger_kind text collate "C" not null,
  "trigger" text collate "C" not null,
  target_kind text collate "C" not null,
  target text collate "C" not null,
  source text collate "C",
  roles text collate "C" not null,
  workspace_roles text collate "C" not null,
  plugin text collate "C",
  "user" text collate "C" not null,
  since bigint not null,
  version bigint not null,
  created bigint not null,
  updated bigint not null,
  primary key (tenant_id, _id)
);

create index integrations_by_time on integrations (tenant_id, created, _id);

create index integrations_by_trigger on integrations (tenant_id, trigger_kind, active, since);

create index integrations_by_target on integrations (tenant_id, target_kind, created, _id);

create index integrations_of_source on integrations (tenant_id, source) where source is not null;

alter table events add column cause text collate "C";

alter table events add column depth bigint not null default 0;
