alter table tenants add column moved bigint;

create table remains (
  tenant_id uuid not null default current_setting('app.tenant')::uuid,
  uid text collate "C" not null,
  home text collate "C" not null,
  since bigint not null,
  primary key (tenant_id, uid, home)
);
