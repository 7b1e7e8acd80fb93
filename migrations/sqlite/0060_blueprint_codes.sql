-- Entities have the code of their blueprint in the place of its key, which takes less room: a number. There is no foreign
-- key to it: every write of entities checks the version of their blueprint. SQLite drops one only with its table.
alter table blueprints add column code text not null default '';
update blueprints set code = n.number
from (select key, row_number() over (order by created, key) as number from blueprints) n
where n.key = blueprints.key;
insert into versions (topic, version) select 'blueprint codes', count(*) from blueprints having count(*) > 0;
create table entities_next (
  seq integer not null primary key,
  _id text unique,
  blueprint text not null,
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
  history integer,
  version_number integer,
  version_row integer,
  creator text,
  unique (blueprint, identifier)
) strict;
insert into entities_next (seq, _id, blueprint, identifier, user, workspace, shown, keys, version, created, updated,
  altered, form, history, version_number, version_row, creator)
select seq, _id, (select b.code from blueprints b where b.key = e.blueprint), identifier, user, workspace, shown, keys,
  version, created, updated, altered, form, history, version_number, version_row, creator
from entities e order by seq;
drop table entities;
alter table entities_next rename to entities;
create index entities_by_time on entities (blueprint, created, seq);
create index entities_of_user on entities (blueprint, user, created, seq);
create index entities_of_workspace on entities (blueprint, workspace, created, seq) where workspace is not null;
create index entities_to_alter on entities (blueprint, seq) where form = -1;
create index entities_by_change on entities (blueprint, updated, created, seq);
