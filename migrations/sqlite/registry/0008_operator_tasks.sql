-- Long work that operators started. The process that runs a task touches `updated` every few seconds.
create table operator_tasks (
  _id text not null primary key,
  kind text not null,
  tenant text not null,
  status text not null,
  input text not null,
  progress text,
  result text,
  problem text,
  created integer not null,
  updated integer not null,
  finished integer
) strict;
create index operator_tasks_by_time on operator_tasks (created, _id);
