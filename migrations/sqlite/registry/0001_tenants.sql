create table versions (
  topic text not null primary key,
  version integer not null
) strict;

create table tenants (
  id text not null primary key,
  uid text not null unique,
  status text not null check (status in ('active', 'suspended')),
  home text not null,
  created integer not null
) strict;

create table hosts (
  host text not null primary key,
  tenant text not null references tenants (id) on delete cascade
) strict;

create index hosts_of_tenant on hosts (tenant);

create table secrets (
  name text not null primary key,
  value text not null
) strict;

create table buckets (
  home text not null primary key,
  created integer not null
) strict;
