create table lambdas (
  tenant_id uuid not null default current_setting('app.tenant')::uuid,
  _id text collate "C" not null,
  name text collate "C" not null,
  description text collate "C" not null,
  version bigint not null,
  revision bigint not null,
  size bigint not null,
  timeout_ms bigint not null,
  memory_mb bigint not null,
  env text collate "C" not null,
  service_role text collate "C",
  created bigint not null,
  updated bigint not null,
  primary key (tenant_id, _id)
);

create index lambdas_by_time on lambdas (tenant_id, created, _id);

create table lambda_versions (
  tenant_id uuid not null default current_setting('app.tenant')::uuid,
  lambda text collate "C" not null,
  version bigint not null,
  code text collate "C" not null,
  js text collate "C" not null,
  "user" text collate "C",
  created bigint not null,
  primary key (tenant_id, lambda, version),
  foreign key (tenant_id, lambda) references lambdas (tenant_id, _id) on delete cascade
);

create table lambda_runs (
  tenant_id uuid not null default current_setting('app.tenant')::uuid,
  _id text collate "C" not null,
  lambda text collate "C" not null,
  version bigint not null,
  cause text collate "C" not null,
  status bigint not null,
  error text collate "C",
  started bigint not null,
  duration bigint not null,
  "user" text collate "C",
  logs text collate "C" not null,
  primary key (tenant_id, _id)
);

create index lambda_runs_by_time on lambda_runs (tenant_id, lambda, started, _id);
create index lambda_runs_by_age on lambda_runs (tenant_id, started);
