create table blueprints (
  key text not null primary key,
  _id text not null unique,
  name text not null,
  description text not null,
  definition text not null,
  version integer not null,
  created integer not null,
  updated integer not null
) strict;

-- A field's number stands for it in the index: rows stay small, and a field can be renamed without touching them.
create table fields (
  number integer not null primary key,
  blueprint text not null references blueprints (key) on delete cascade,
  key text not null,
  unique (blueprint, key)
) strict;

create table entities (
  seq integer not null primary key,
  _id text not null unique,
  blueprint text not null references blueprints (key),
  identifier text not null,
  user text,
  workspace text,
  shown text not null,
  keys text not null,
  version integer not null,
  created integer not null,
  updated integer not null,
  unique (blueprint, identifier)
) strict;

create index entities_by_time on entities (blueprint, created, seq);
create index entities_of_user on entities (blueprint, user, created, seq);
create index entities_of_workspace on entities (blueprint, workspace, created, seq) where workspace is not null;

create table entity_index (
  field integer not null,
  path text not null,
  value text not null,
  created integer not null,
  entity integer not null,
  primary key (field, path, value, created, entity)
) strict, without rowid;
