-- The schema of each tenant's database when it was last brought up to date, and why that failed last.
alter table tenants add column schema_version integer;
alter table tenants add column schema_problem text;
