alter table hosts add column checked bigint;
alter table hosts add column missing bigint;

create table origins (
  tenant_id uuid not null default current_setting('app.tenant')::uuid,
  origin text collate "C" not null,
  tenant text collate "C" not null,
  version bigint not null,
  primary key (tenant_id, origin, tenant),
  foreign key (tenant_id, tenant) references tenants (tenant_id, id) on delete cascade
);

create index origins_of_tenant on origins (tenant_id, tenant);
