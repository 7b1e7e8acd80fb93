-- What the operator allows each tenant.
create table tenant_limits (
  tenant text not null primary key references tenants (id) on delete cascade,
  rates text not null
) strict;
