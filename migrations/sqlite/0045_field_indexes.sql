-- The indexes of fields. Most are made when a query first needs them; those of earlier versions stay.
-- `indexing` counts the changes of a blueprint's indexes, so that every writer notices them.
alter table blueprints add column indexing integer not null default 0;
create table field_indexes (
  blueprint text not null references blueprints (key) on delete cascade,
  number integer not null,
  state text not null,
  reason text not null,
  since integer not null,
  used integer not null,
  done integer not null,
  upto integer not null,
  primary key (blueprint, number)
) strict, without rowid;
insert into field_indexes (blueprint, number, state, reason, since, used, done, upto)
select blueprint, number, 'ready', 'earlier version', unixepoch() * 1000, unixepoch() * 1000, 0, 0 from fields;
