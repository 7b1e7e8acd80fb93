create table operator_tasks (
  tenant_id uuid not null default current_setting('app.tenant')::uuid,
  _id text collate "C" not null,
  kind text collate "C" not null,
  tenant text collate "C" not null,
  status text collate "C" not null,
  input text collate "C" not null,
  progress text collate "C",
  result text collate "C",
  problem text collate "C",
  created bigint not null,
  updated bigint not null,
  finished bigint,
  primary key (tenant_id, _id)
);
create index operator_tasks_by_time on operator_tasks (tenant_id, created, _id);
