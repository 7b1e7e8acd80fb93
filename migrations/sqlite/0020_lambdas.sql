create table lambdas (
  _id text not null primary key,
  name text not null,
  description text not null,
  version integer not null,
  revision integer not null,
  size integer not null,
  timeout_ms integer not null,
  memory_mb integer not null,
  env text not null,
  service_role text,
  created integer not null,
  updated integer not null
) strict;

create index lambdas_by_time on lambdas (created, _id);

create table lambda_versions (
  lambda text not null references lambdas (_id) on delete cascade,
  version integer not null,
  code text not null,
  js text not null,
  "user" text,
  created integer not null,
  primary key (lambda, version)
) strict;

create table lambda_runs (
  _id text not null primary key,
  lambda text not null,
  version integer not null,
  cause text not null,
  status integer not null,
  error text,
  started integer not null,
  duration integer not null,
  "user" text,
  logs text not null
) strict;

create index lambda_runs_by_time on lambda_runs (lambda, started, _id);
create index lambda_runs_by_age on lambda_runs (started);
