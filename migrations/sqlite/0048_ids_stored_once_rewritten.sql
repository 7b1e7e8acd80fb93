-- What an SQLite that cannot alter a column runs in the place of 0048_ids_stored_once.sql: it copies the table.
create table entities_next (
  seq integer not null primary key,
  _id text unique,
  blueprint text not null references blueprints (key),
  identifier text not null,
  user text,
  workspace text,
  shown text not null,
  keys text not null,
  version integer not null,
  created integer not null,
  updated integer not null,
  altered text,
  form integer,
  unique (blueprint, identifier)
) strict;
insert into entities_next (seq, _id, blueprint, identifier, user, workspace, shown, keys, version, created, updated, altered, form)
select seq, nullif(_id, identifier), blueprint, identifier, user, workspace, shown, keys, version, created, updated, altered, form
from entities order by seq;
drop table entities;
alter table entities_next rename to entities;
create index entities_by_time on entities (blueprint, created, seq);
create index entities_of_user on entities (blueprint, user, created, seq);
create index entities_of_workspace on entities (blueprint, workspace, created, seq) where workspace is not null;
create index entities_to_alter on entities (blueprint, seq) where form = -1;
create index entities_by_change on entities (blueprint, updated, created, seq);
