-- What blueprints with a history keep of earlier states of their entities. `history_number` is the history of a blueprint,
-- and `history_fields` has the numbers that stand for its fields there: they outlast a rename, and no other field gets them.
alter table blueprints add column history_number integer;
alter table blueprints add column history_fields text;
create table entity_versions (
  history integer not null,
  identifier text not null,
  number integer not null,
  at integer not null,
  author text,
  action integer not null,
  former text,
  primary key (history, identifier, number)
) strict, without rowid;
