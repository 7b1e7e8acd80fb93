-- What has happened, in the order in which it was committed.
create table events (
  seq integer not null primary key,
  _id text not null unique,
  source text not null,
  kind text not null,
  event_name text not null,
  description text not null,
  metadata text not null,
  user text,
  workspace text,
  created integer not null
) strict;

create index events_by_time on events (created, seq);
create index events_by_kind on events (kind, created, seq);
create index events_by_name on events (event_name, created, seq);
create index events_of_user on events (user, created, seq) where user is not null;

-- What is to be done outside of requests. Only the first that waits in a lane is ever due.
create table jobs (
  seq integer not null primary key,
  _id text not null unique,
  kind text not null,
  lane text not null,
  payload text not null,
  state text not null,
  attempts integer not null,
  due integer,
  created integer not null,
  finished integer,
  outcome text
) strict;

create index jobs_due on jobs (due, seq) where due is not null;
create index jobs_by_lane on jobs (lane, state, seq);
create index jobs_by_kind on jobs (kind, state, finished);
