-- What the entities of a blueprint have to become before a change of it can be in force, and how far that is.
create table alterations (
  blueprint text not null primary key references blueprints (key) on delete cascade,
  form integer not null,
  state text not null,
  change text not null,
  created integer not null,
  entity integer not null,
  upto integer not null,
  done integer not null,
  total integer not null,
  problem text,
  since integer not null
) strict;

-- Counts up with each such change that came into force.
alter table blueprints add column form integer not null default 0;

-- What an entity is shown as from that form of its blueprint on; -1 where that is still to be made.
alter table entities add column altered text;
alter table entities add column form integer;
create index entities_to_alter on entities (blueprint, seq) where form = -1;
