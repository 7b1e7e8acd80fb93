-- What operators and the command line did with tenants.
create table operator_events (
  _id text not null primary key,
  event_name text not null,
  tenant text not null,
  metadata text not null,
  created integer not null
) strict;
create index operator_events_by_time on operator_events (created, _id);
-- The user as whom the operator opens the tenant.
alter table tenants add column support text;
