-- Of which blueprints the changes are kept: all after number `since`, for as long as somebody listened lately.
create table change_logs (
  blueprint text not null primary key references blueprints (key) on delete cascade,
  since integer not null,
  until integer not null
) strict;

-- Numbers grow with each change of a tenant, by as much as it takes room: so they tell how much is kept.
create table entity_changes (
  number integer not null primary key,
  blueprint text not null references change_logs (blueprint) on delete cascade,
  made integer not null,
  shown_before text,
  keys_before text,
  shown text,
  keys text
) strict;

create index changes_of_blueprint on entity_changes (blueprint, number);
