-- How far somebody has read the events.
create table cursors (
  name text not null primary key,
  seq integer not null
) strict;

-- Other servers that take part; their secrets are in the vault.
create table plugins (
  _id text not null primary key,
  name text not null unique,
  description text not null,
  manifest_url text,
  api_path text unique,
  proxy_url text,
  subscribed_events text not null,
  active integer not null,
  account text unique,
  former_until integer,
  last_error text,
  failed integer,
  succeeded integer,
  created integer not null,
  updated integer not null
) strict;

create index plugins_by_time on plugins (created, _id);

-- What plugins were told, and what they said.
create table deliveries (
  _id text not null primary key,
  plugin text not null,
  event text not null,
  source text not null,
  kind text not null,
  event_name text not null,
  hook_url text not null,
  state text not null,
  attempts integer not null,
  status integer,
  duration integer,
  answer text not null,
  error text,
  due integer,
  created integer not null,
  updated integer not null
) strict;

create index deliveries_of_plugin on deliveries (plugin, created, _id);

create index deliveries_by_state on deliveries (plugin, state, created, _id);

create index deliveries_by_time on deliveries (updated);
