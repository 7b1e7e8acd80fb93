-- Entities of earlier versions are stored anew in the background: of those up to `upto`, those up to `done` are.
create table entity_compaction (
  name text primary key not null,
  done integer not null,
  upto integer not null
) strict, without rowid;
insert into entity_compaction (name, done, upto) select 'entities', 0, max(seq) from entities having max(seq) is not null;
