-- Other servers, and how they are asked; their secrets are in the vault.
create table connections (
  _id text not null primary key,
  name text not null,
  kind text not null,
  labels text not null,
  metadata text not null,
  version integer not null,
  created integer not null,
  updated integer not null
) strict;

create index connections_by_time on connections (created, _id);

create index connections_by_kind on connections (kind, created, _id);

-- What is done when something comes, happens or is due.
create table integrations (
  _id text not null primary key,
  name text,
  active integer not null,
  guest integer not null,
  trigger_kind text not null,
  "trigger" text not null,
  target_kind text not null,
  target text not null,
  source text,
  roles text not null,
  workspace_roles text not null,
  plugin text,
  "user" text not null,
  since integer not null,
  version integer not null,
  created integer not null,
  updated integer not null
) strict;

create index integrations_by_time on integrations (created, _id);

create index integrations_by_trigger on integrations (trigger_kind, active, since);

create index integrations_by_target on integrations (target_kind, created, _id);

create index integrations_of_source on integrations (source) where source is not null;

-- Of which integration's run an event comes, and how many runs led to it.
alter table events add column cause text;

alter table events add column depth integer not null default 0;
