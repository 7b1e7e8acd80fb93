-- When the tenant's database was made: what is missing since then is not made again.
alter table tenants add column made integer;
update tenants set made = created;
