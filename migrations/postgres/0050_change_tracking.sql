-- The numbers of entities that changed, for blueprints of which something is kept in memory: counts, and texts that
-- patterns are compared with. Without rows in the first table, writers write nothing here.
create table tracked_blueprints (
  tenant_id uuid not null default current_setting('app.tenant')::uuid,
  blueprint text collate "C" not null,
  started bigint not null,
  until bigint not null,
  primary key (tenant_id, blueprint),
  foreign key (tenant_id, blueprint) references blueprints (tenant_id, key) on delete cascade
);
create table tracked_changes (
  tenant_id uuid not null default current_setting('app.tenant')::uuid,
  blueprint text collate "C" not null,
  number bigint not null,
  entities text collate "C" not null,
  primary key (tenant_id, blueprint, number)
);
