-- A host that was proven by a DNS record: when the record was looked at last, and since when it is missing. Both are empty
-- for hosts that were claimed without a proof, which keep their tenant.
alter table hosts add column checked integer;
alter table hosts add column missing integer;

-- The origins of all tenants' websites, for preflights, which can't say which tenant the request will name.
create table origins (
  origin text not null,
  tenant text not null references tenants (id) on delete cascade,
  version integer not null,
  primary key (origin, tenant)
) strict;

create index origins_of_tenant on origins (tenant);
