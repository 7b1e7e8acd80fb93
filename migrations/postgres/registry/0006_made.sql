alter table tenants add column made bigint;
update tenants set made = created;
