-- The numbers of entities that changed, for blueprints of which something is kept in memory: counts, and texts that
-- patterns are compared with. Without rows in the first table, writers write nothing here.
create table tracked_blueprints (
  blueprint text not null primary key references blueprints (key) on delete cascade,
  started integer not null,
  until integer not null
) strict, without rowid;
create table tracked_changes (
  blueprint text not null,
  number integer not null,
  entities text not null,
  primary key (blueprint, number)
) strict, without rowid;
