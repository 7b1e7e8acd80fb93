create table idempotency_keys (
  name text not null primary key,
  attempt text not null,
  fingerprint text,
  answer text,
  busy integer not null,
  expires integer not null
) strict;

create index idempotency_keys_by_end on idempotency_keys (expires);

create table imports (
  _id text not null primary key,
  blueprint text not null,
  busy integer not null
) strict;

create index imports_of_blueprint on imports (blueprint);

create table import_undo (
  import text not null,
  entity integer not null,
  before text,
  primary key (import, entity)
) strict, without rowid;
