-- What a tenant has used on a day (UTC), in the unit of each kind.
create table daily_use (
  day text not null,
  kind text not null,
  amount integer not null,
  primary key (day, kind)
) strict;

-- The highest part of a quota, in percent, whose use was told by an event.
create table quota_levels (
  kind text not null primary key,
  period text not null,
  level integer not null
) strict;
