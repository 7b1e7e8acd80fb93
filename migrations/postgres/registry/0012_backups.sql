create table tenant_backups (
  tenant_id uuid not null default current_setting('app.tenant')::uuid,
  tenant text collate "C" not null,
  place text collate "C",
  created bigint,
  bytes bigint,
  problem text collate "C",
  failed bigint,
  primary key (tenant_id, tenant),
  foreign key (tenant_id, tenant) references tenants (tenant_id, id) on delete cascade
);
