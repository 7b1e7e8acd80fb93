alter table tenants add column restoring text collate "C";
alter table tenants add column file_server text collate "C";

create table installation_settings (
  tenant_id uuid not null default current_setting('app.tenant')::uuid,
  name text collate "C" not null,
  value text collate "C" not null,
  primary key (tenant_id, name)
);

create table servers (
  tenant_id uuid not null default current_setting('app.tenant')::uuid,
  name text collate "C" not null,
  details text collate "C" not null,
  started bigint not null,
  seen bigint not null,
  primary key (tenant_id, name)
);
