create table operator_events (
  tenant_id uuid not null default current_setting('app.tenant')::uuid,
  _id text collate "C" not null,
  event_name text collate "C" not null,
  tenant text collate "C" not null,
  metadata text collate "C" not null,
  created bigint not null,
  primary key (tenant_id, _id)
);
create index operator_events_by_time on operator_events (tenant_id, created, _id);
alter table tenants add column support text collate "C";
