-- Versions are appended under growing numbers, and each names the one before it of its entity. The entity has the latest
-- one (`version_row`), so that a change reads no version. `history` is the history that these columns are of; `creator`
-- is who created the entity. Rows that exist are numbered in the order of time.
alter table entities add column history integer;
alter table entities add column version_number integer;
alter table entities add column version_row integer;
alter table entities add column creator text;
create table entity_versions_next (
  seq integer not null primary key,
  history integer not null,
  identifier text not null,
  number integer not null,
  at integer not null,
  since integer not null,
  action integer not null,
  previous integer,
  author text,
  former text
) strict;
with ordered as (
  select *, max(at) over (partition by history, identifier order by number) as moment from entity_versions
),
numbered as (
  select *, row_number() over (order by moment, history, identifier, number) as seq from ordered
)
insert into entity_versions_next (seq, history, identifier, number, at, since, action, previous, author, former)
select seq, history, identifier, number, at, case when action = 1 then at else coalesce(lag(at) over entity, at) end, action,
  lag(seq) over entity, author, former
from numbered window entity as (partition by history, identifier order by number);
drop table entity_versions;
alter table entity_versions_next rename to entity_versions;
create index entity_removals on entity_versions (history, identifier, seq, at) where action = 2;
update entities set history = v.history, version_number = v.number, version_row = v.seq
from (
  select b.key, l.history, l.identifier, max(l.number) as number, max(l.seq) as seq
  from entity_versions l join blueprints b on b.history_number = l.history group by b.key, l.history, l.identifier
) v
where entities.blueprint = v.key and entities.identifier = v.identifier;
