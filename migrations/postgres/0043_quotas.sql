create table daily_use (
  tenant_id uuid not null default current_setting('app.tenant')::uuid,
  day text collate "C" not null,
  kind text collate "C" not null,
  amount bigint not null,
  primary key (tenant_id, day, kind)
);

create table quota_levels (
  tenant_id uuid not null default current_setting('app.tenant')::uuid,
  kind text collate "C" not null,
  period text collate "C" not null,
  level bigint not null,
  primary key (tenant_id, kind)
);
