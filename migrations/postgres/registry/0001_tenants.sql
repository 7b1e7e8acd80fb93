create table versions (
  tenant_id uuid not null default current_setting('app.tenant')::uuid,
  topic text collate "C" not null,
  version bigint not null,
  primary key (tenant_id, topic)
);

create table tenants (
  tenant_id uuid not null default current_setting('app.tenant')::uuid,
  id text collate "C" not null,
  uid text collate "C" not null,
  status text collate "C" not null check (status in ('active', 'suspended')),
  home text collate "C" not null,
  created bigint not null,
  primary key (tenant_id, id),
  unique (tenant_id, uid)
);

create table hosts (
  tenant_id uuid not null default current_setting('app.tenant')::uuid,
  host text collate "C" not null,
  tenant text collate "C" not null,
  primary key (tenant_id, host),
  foreign key (tenant_id, tenant) references tenants (tenant_id, id) on delete cascade
);

create index hosts_of_tenant on hosts (tenant_id, tenant);

create table secrets (
  tenant_id uuid not null default current_setting('app.tenant')::uuid,
  name text collate "C" not null,
  value text collate "C" not null,
  primary key (tenant_id, name)
);

create table buckets (
  tenant_id uuid not null default current_setting('app.tenant')::uuid,
  home text collate "C" not null,
  created bigint not null,
  primary key (tenant_id, home)
);
