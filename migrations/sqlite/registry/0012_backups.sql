-- The last backup of each tenant, and the last one that failed.
create table tenant_backups (
  tenant text not null primary key references tenants (id) on delete cascade,
  place text,
  created integer,
  bytes integer,
  problem text,
  failed integer
) strict;
