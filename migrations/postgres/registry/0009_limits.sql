create table tenant_limits (
  tenant_id uuid not null default current_setting('app.tenant')::uuid,
  tenant text collate "C" not null,
  rates text collate "C" not null,
  primary key (tenant_id, tenant),
  foreign key (tenant_id, tenant) references tenants (tenant_id, id) on delete cascade
);
