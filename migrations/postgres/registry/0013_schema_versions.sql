alter table tenants add column schema_version bigint;
alter table tenants add column schema_problem text collate "C";
